"""Numba: asks the loader for libcuda itself; arrays there and back, then a kernel by NVVM. Whether
this machine's Numba can compile one is its own affair, and a result like any other."""
import numpy
from numba import cuda

device = cuda.get_current_device()
print("result device", device.compute_capability, device.name)
values = cuda.to_device(numpy.ones(1000))
print("result copied", float(values.copy_to_host().sum()).hex())


def add_index(values):
    index = cuda.grid(1)
    if index < values.size:
        values[index] += index


try:
    cuda.jit(add_index)[8, 128](values)
    print("result sum", float(values.copy_to_host().sum()).hex())
except Exception as error:
    print("result no kernel:", type(error).__name__, str(error).splitlines()[:1])
