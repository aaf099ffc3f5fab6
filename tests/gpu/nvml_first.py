"""NVML before CUDA, as monitors and torch.cuda.device_count have it: it takes a private table of
the driver's, and goes on calling into it. Prints what each call answers. Usage: nvml_first.py
--WAIT_MS-CHANGE: how long after the lookup of cuInit NVML is started; what comes between NVML and
CUDA: nothing, a change of CUDA_VISIBLE_DEVICES (environment), or a fork, whose child does the rest
first. Each is an option of its own, so that what one does is not learned for the others."""
import ctypes
import os
import sys
import time

WAIT_MS, CHANGE = sys.argv[1].lstrip("-").split("-")
cuda, nvml = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnvidia-ml.so.1")
cuInit = cuda.cuInit
name = ctypes.create_string_buffer(96)


def say(*words):
    print(*words, flush=True)


def ask_nvml():
    """One use of NVML, from its start to its end."""
    count, device = ctypes.c_uint(), ctypes.c_void_p()
    memory, version = (ctypes.c_ulonglong * 3)(), ctypes.c_int()
    say("nvmlInit", nvml.nvmlInit_v2())
    say("count", nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)), count.value)
    say("device", nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)),
        nvml.nvmlDeviceGetUUID(device, name, len(name)), name.value)
    say("memory", nvml.nvmlDeviceGetMemoryInfo(device, memory), memory[0])
    say("version", nvml.nvmlSystemGetCudaDriverVersion_v2(ctypes.byref(version)), version.value)
    say("nvmlShutdown", nvml.nvmlShutdown())


def use_cuda():
    """A context, memory, and its end."""
    count, context, pointer = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    say("cuInit", cuInit(0))
    say("devices", cuda.cuDeviceGetCount(ctypes.byref(count)), count.value)
    say("retain", cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    say("current", cuda.cuCtxSetCurrent(context))
    ask_nvml()
    say("memory", cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(1 << 20)),
        cuda.cuMemsetD8_v2(pointer, 7, ctypes.c_size_t(1 << 20)), cuda.cuMemFree_v2(pointer))
    say("release", cuda.cuDevicePrimaryCtxRelease_v2(0))


time.sleep(int(WAIT_MS) / 1e3)
ask_nvml()
if CHANGE == "environment":
    os.environ["CUDA_VISIBLE_DEVICES"] = "0"
if CHANGE == "fork":
    child = os.fork()
    if not child:
        ask_nvml()
        use_cuda()
        os._exit(0)
    say("child", os.waitpid(child, 0)[1])
ask_nvml()
use_cuda()
ask_nvml()
