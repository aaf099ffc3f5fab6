"""The driver through ctypes: waits BEFORE ms, looks cuInit up, waits AFTER ms, uses the driver.
Usage: driver_waits.py BEFORE AFTER."""
import ctypes
import sys
import time


def use(before_ms, after_ms):
    """Prints the driver's codes and what came back."""
    time.sleep(before_ms / 1e3)
    cuda = ctypes.CDLL("libcuda.so.1")
    cuda.cuInit  # looked up
    time.sleep(after_ms / 1e3)
    context, memory = ctypes.c_void_p(), ctypes.c_uint64()
    value, back = ctypes.c_int(40961), ctypes.c_int()
    size = ctypes.c_size_t(ctypes.sizeof(value))
    print("result", cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
          cuda.cuCtxSetCurrent(context), cuda.cuMemAlloc_v2(ctypes.byref(memory), size),
          cuda.cuMemcpyHtoD_v2(memory, ctypes.byref(value), size),
          cuda.cuMemcpyDtoH_v2(ctypes.byref(back), memory, size), back.value)


if __name__ == "__main__":
    use(*map(int, sys.argv[1:3]))
