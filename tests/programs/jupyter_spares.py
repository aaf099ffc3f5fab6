"""Restarts a Jupyter kernel again and again, each second time by SIGKILL, where a spare is to take
the next one's place: `jupyter_spares.py KERNEL RESTARTS HEARTH sim|torch`, and `plain` where none
waits. Prints JSON: for each start if it was by a spare and what a cell saw, how long it took from
the restart until the kernel was ready and until a cell had used the GPU, and how interrupts came
out. Needs jupyter_client."""
import json
import os
import subprocess
import sys
import time

from jupyter_client.manager import KernelManager

DEADLINE_S = 60
FIRST = {"sim": """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
rc = [cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)]
""", "torch": """
import torch
rc = [torch.ones(1).cuda().item() != 1]
"""}
CELL = """
import os
with open(f"/proc/{os.getppid()}/comm") as comm:
    parent = comm.read().strip()
before, left = globals().get("left"), 1
print("seen", any(rc), parent == "hearth", before, os.getpid(), os.environ["JPY_SESSION_NAME"])
"""
# A child of the kernel's gets an interrupt, too: os.system itself cannot be interrupted.
SLEEPS = {"python": "import time; print('began', flush=True); time.sleep(60)",
          "child": "import os; print('began', flush=True); "
                   "print('status', os.system('exec sleep 60'))"}


def execute(client, code, interrupt=None):
    """What the cell printed, and the name of its error; `interrupt` is called once it prints."""
    shown, errors, pending = [], [], [interrupt]

    def take(message):
        if message["msg_type"] == "stream":
            shown.append(message["content"]["text"])
            if pending[0]:
                time.sleep(0.2)  # it sleeps itself by then
                pending.pop()()
                pending.append(None)
        if message["msg_type"] == "error":
            errors.append(message["content"]["ename"])

    client.execute_interactive(code, output_hook=take, timeout=DEADLINE_S)
    return "".join(shown), errors


def wait_for_spare(hearth):
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        status = subprocess.run([hearth, "spare", "status"], stdout=subprocess.PIPE, check=True)
        if b"waiting" in status.stdout:
            return
        time.sleep(0.05)
    raise RuntimeError("no spare waits")


def main():
    kernel, restarts, hearth, cell = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
    waits = "plain" not in sys.argv[5:]
    manager = KernelManager(kernel_name=kernel)
    env = {**os.environ, "JPY_SESSION_NAME": "/somewhere/work.ipynb"}
    starts, interrupts = [], {}
    for number in range(restarts + 1):
        if number and waits:
            wait_for_spare(hearth)
        began = time.monotonic()
        if number:
            manager.restart_kernel(now=number % 2 == 1)
        else:
            manager.start_kernel(env=env)
        client = manager.blocking_client()
        client.start_channels()
        client.wait_for_ready(timeout=DEADLINE_S)
        ready = time.monotonic()
        _, has_failed, is_spare, before, pid, name = execute(client, FIRST[cell] + CELL)[0].split()
        starts.append({"spare": is_spare == "True", "failed": has_failed != "False",
                       "before": before, "pid": int(pid), "name": name,
                       "ready_s": round(ready - began, 3),
                       "s": round(time.monotonic() - began, 3)})
        if number == restarts and waits:
            interrupts = {kind: execute(client, code, manager.interrupt_kernel)
                          for kind, code in SLEEPS.items()}
            wait_for_spare(hearth)
        client.stop_channels()
    manager.shutdown_kernel()
    print(json.dumps({"starts": starts, "interrupts": interrupts}))


if __name__ == "__main__":
    main()
