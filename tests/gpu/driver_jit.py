"""PTX through the driver alone: looked up, the environment changed, then compiled without a cache
and launched. Usage: driver_jit.py NAME VALUE."""
import ctypes
import os
import sys
import time

NAME, VALUE = sys.argv[1:3]
READY_SECONDS = 0.4
COUNT = 1024
TEXT = b"""
.version 6.5
.target sm_75
.address_size 64
.visible .entry thrice(.param .u64 values)
{
.reg .b32 %r<5>;
.reg .b64 %rd<4>;
ld.param.u64 %rd1, [values];
mov.u32 %r1, %tid.x;
mul.wide.s32 %rd2, %r1, 4;
cvta.to.global.u64 %rd1, %rd1;
add.s64 %rd3, %rd1, %rd2;
ld.global.u32 %r4, [%rd3];
mul.lo.s32 %r4, %r4, 3;
st.global.u32 [%rd3], %r4;
ret;
}
"""
cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuInit  # looked up here: what is done ahead begins


def call(name, *arguments):
    print("result", name, getattr(cuda, name)(*arguments), flush=True)


time.sleep(READY_SECONDS)
os.environ["CUDA_CACHE_DISABLE"] = "1"
os.environ[NAME] = VALUE
size = ctypes.c_size_t(4 * COUNT)
context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
memory = ctypes.c_uint64()
values = (ctypes.c_int * COUNT)(*range(COUNT))
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(TEXT))
call("cuModuleGetFunction", ctypes.byref(function), module, b"thrice")
call("cuMemAlloc_v2", ctypes.byref(memory), size)
call("cuMemcpyHtoD_v2", memory, values, size)
parameters = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(memory), ctypes.c_void_p))
call("cuLaunchKernel", function, 1, 1, 1, COUNT, 1, 1, 0, None, parameters, None)
call("cuCtxSynchronize")
call("cuMemcpyDtoH_v2", values, memory, size)
print("result sum", sum(values), flush=True)
