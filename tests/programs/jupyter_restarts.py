"""Restarts a Jupyter kernel again and again, each second time by SIGKILL, and has each use its GPU:
`jupyter_restarts.py KERNEL RESTARTS sim|torch`. Prints JSON: for each start what the first use
took, what of that torch's own count of the devices by NVML, and the GPU memory used while the
kernel lives; and that before and after all. Needs jupyter_client."""
import json
import os
import subprocess
import sys
import time

from jupyter_client.manager import KernelManager

DEADLINE_S = 120
# A lookup, something that takes its time, as imports do, and then the first use.
CELLS = {"sim": """
import ctypes, time
cuda = ctypes.CDLL("libcuda.so.1")
init = cuda.cuInit
time.sleep(0.6)
began = time.perf_counter()
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
rc = [init(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
      cuda.cuCtxSetCurrent(context), cuda.cuMemAlloc_v2(ctypes.byref(memory), 1 << 20)]
print("first", any(rc), (time.perf_counter() - began) * 1000, 0)
""", "torch": """
import time, torch
count, nvml = torch.cuda._raw_device_count_nvml, []

def timed():
    began = time.perf_counter()
    try:
        return count()
    finally:
        nvml.append(time.perf_counter() - began)

torch.cuda._raw_device_count_nvml = timed
began = time.perf_counter()
moved = torch.ones(4).to("cuda")
torch.cuda.synchronize()
print("first", False, (time.perf_counter() - began) * 1000, sum(nvml) * 1000)
"""}
SIM_USED = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, free, total = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context), cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
print((total.value - free.value) >> 20)
"""


def used_mib(kind):
    """By another process, without Hearth."""
    if kind == "sim":
        words = [sys.executable, "-c", SIM_USED]
    else:
        words = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits",
                 "--id=0"]
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    return int(subprocess.run(words, env=env, stdout=subprocess.PIPE, check=True, text=True,
                              timeout=DEADLINE_S).stdout.split()[0])


def settled(kind, below):
    """The memory used once that is below a limit again, or after a while anyway."""
    end = time.monotonic() + 10
    while True:
        used = used_mib(kind)
        if used <= below or time.monotonic() > end:
            return used
        time.sleep(0.05)


def execute(client, code):
    """What the cell printed."""
    shown = []

    def take(message):
        if message["msg_type"] == "stream":
            shown.append(message["content"]["text"])
        if message["msg_type"] == "error":
            raise RuntimeError("\n".join(message["content"]["traceback"]))

    client.execute_interactive(code, output_hook=take, timeout=DEADLINE_S)
    return "".join(shown)


def main():
    kernel, restarts, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    baseline = used_mib(kind)
    manager = KernelManager(kernel_name=kernel)
    manager.start_kernel(env={**os.environ, "JPY_SESSION_NAME": "/somewhere/work.ipynb"})
    starts = []
    for number in range(restarts + 1):
        is_killed = number % 2 == 1
        if number:
            manager.restart_kernel(now=is_killed)
        client = manager.blocking_client()
        client.start_channels()
        client.wait_for_ready(timeout=DEADLINE_S)
        _, has_failed, took, nvml = execute(client, CELLS[kind]).split()
        starts.append({"after_kill": is_killed, "failed": has_failed != "False",
                       "first_ms": round(float(took), 2), "nvml_ms": round(float(nvml), 2),
                       "used_mib": used_mib(kind)})
        client.stop_channels()
    manager.shutdown_kernel()
    print(json.dumps({"baseline_mib": baseline, "after_mib": settled(kind, baseline),
                      "starts": starts}))


if __name__ == "__main__":
    main()
