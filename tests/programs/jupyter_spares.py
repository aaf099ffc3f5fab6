"""Restarts a Jupyter kernel again and again, each second time by SIGKILL, where a spare is to take
the next one's place: `jupyter_spares.py KERNEL RESTARTS HEARTH sim|torch`, and `plain` where none
waits. Prints JSON: for each start if it was by a spare and what a cell saw; how long it took from
the restart until the old kernel was gone, and until a cell had used the GPU, which is sent at once;
and how interrupts came out. Needs jupyter_client."""
import json
import os
import select
import subprocess
import sys
import threading
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
seen = [any(rc), parent == "hearth", before, os.getpid(), os.environ["JPY_SESSION_NAME"]]
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


def ask(client, code, name):
    """What the cell leaves in a variable. It is sent before the kernel is there, and its reply
    comes by the channel that loses nothing: wait_for_ready would poll, and then listen for 0.2 s
    more."""
    request = client.execute(code, user_expressions={name: f"__import__('json').dumps({name})"})
    while True:
        reply = client.get_shell_msg(timeout=DEADLINE_S)
        if reply["parent_header"].get("msg_id") == request:
            break
    if reply["content"]["status"] != "ok":
        raise RuntimeError(str(reply["content"]))
    return json.loads(eval(reply["content"]["user_expressions"][name]["data"]["text/plain"]))


class End(threading.Thread):
    """Waits for a process that is somebody else's child to end; `time` is when it did."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.fd, self.time = os.pidfd_open(pid), None
        self.start()

    def run(self):
        select.select([self.fd], [], [])
        self.time = time.monotonic()
        os.close(self.fd)


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
        end = End(starts[-1]["pid"]) if number else None
        began = time.monotonic()
        if number:
            manager.restart_kernel(now=number % 2 == 1)
        else:
            manager.start_kernel(env=env)
        client = manager.blocking_client()
        client.start_channels()
        has_failed, is_spare, before, pid, name = ask(client, FIRST[cell] + CELL, "seen")
        done = time.monotonic()
        if end:
            end.join(DEADLINE_S)
        starts.append({"spare": is_spare, "failed": has_failed, "before": before, "pid": pid,
                       "name": name, "after_kill": number % 2 == 1,
                       "gone_s": round(end.time - began, 3) if end else 0,
                       "s": round(done - began, 3)})
        client.wait_for_ready(timeout=DEADLINE_S)
        if number == restarts and waits:
            interrupts = {kind: execute(client, code, manager.interrupt_kernel)
                          for kind, code in SLEEPS.items()}
            wait_for_spare(hearth)
        client.stop_channels()
    manager.shutdown_kernel()
    print(json.dumps({"starts": starts, "interrupts": interrupts}))


if __name__ == "__main__":
    main()
