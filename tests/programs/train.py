"""The smallest CUDA program in Python, for the README's examples: standard library only, so that
it runs where PyTorch does not. Prints the same line every time; exits 1 at the first call that
fails."""
import ctypes
import sys

driver = ctypes.CDLL("libcuda.so.1")
WORDS = 1024


def call(name, *arguments):
    rc = getattr(driver, name)(*arguments)
    if rc:
        sys.exit(f"{name}: {rc}")


device, context = ctypes.c_int(), ctypes.c_void_p()
memory = ctypes.c_uint64()
numbers = (ctypes.c_uint32 * WORDS)(*range(WORDS))
back = (ctypes.c_uint32 * WORDS)()

call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(ctypes.sizeof(numbers)))
call("cuMemcpyHtoD_v2", memory, numbers, ctypes.c_size_t(ctypes.sizeof(numbers)))
call("cuMemcpyDtoH_v2", back, memory, ctypes.c_size_t(ctypes.sizeof(back)))
call("cuMemFree_v2", memory)
call("cuDevicePrimaryCtxRelease_v2", device)
print(f"trained on {sum(back)} numbers")
