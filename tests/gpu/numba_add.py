"""Numba: asks the loader for libcuda itself, compiles with NVVM and links."""
import numpy
from numba import cuda


@cuda.jit
def add_index(values):
    index = cuda.grid(1)
    if index < values.size:
        values[index] += index


values = cuda.to_device(numpy.ones(1000))
add_index[8, 128](values)
print("result sum", float(values.copy_to_host().sum()).hex())
print("result device", cuda.get_current_device().compute_capability)
