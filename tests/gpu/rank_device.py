"""A rank's device: cuda:RANK, or in a rehearsal the simulated driver's context beside the CPU."""
import ctypes

import torch
from gpus_of import is_simulated

BACKEND = "gloo" if is_simulated() else "nccl"
_DRIVER = ctypes.CDLL("libcuda.so.1") if is_simulated() else None


def initialise():
    """What asking for the number of devices does, and no more."""
    if _DRIVER:
        return _DRIVER.cuInit(0)
    return torch.cuda.is_available()


def take(rank):
    """The device, chosen as scripts choose it."""
    if not _DRIVER:
        torch.cuda.set_device(rank)
        return torch.device("cuda", rank)
    context = ctypes.c_void_p()
    code = _DRIVER.cuInit(0) or _DRIVER.cuDevicePrimaryCtxRetain(ctypes.byref(context), rank)
    if code:
        raise RuntimeError(f"simulated driver: {code}")
    _DRIVER.cuCtxSetCurrent(context)
    return torch.device("cpu")


def wait():
    """Until the device has done all."""
    if not _DRIVER:
        torch.cuda.synchronize()


def name(rank):
    """The device's name, as gpus_of has it."""
    if _DRIVER:
        return str(rank)
    return "GPU-" + str(torch.cuda.get_device_properties(rank).uuid).removeprefix("GPU-")
