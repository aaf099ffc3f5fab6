"""What the tests of the simulated driver stand on: its programs, calls from Python, its log."""
import json
import subprocess
import sys

import harness

SIMPLE = harness.PROGRAMS / "simple_driver"
# Runs a few calls from Python: prints what each returned.
CALLS = """
import ctypes, os, sys, threading
cuda = ctypes.CDLL("libcuda.so.1")
def memory():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    rc = cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    return rc or (total.value - free.value) >> 20
def context(device=0):
    handle = ctypes.c_void_p()
    rc = cuda.cuDevicePrimaryCtxRetain(ctypes.byref(handle), device)
    return rc or cuda.cuCtxSetCurrent(handle)
def count():
    number = ctypes.c_int(-1)
    return cuda.cuDeviceGetCount(ctypes.byref(number)) or f"{number.value} devices"
def alloc(mib):
    return cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(mib << 20))
"""


class SimTest(harness.SystemTest):
    def setUp(self):
        super().setUp()
        self.env.update(LD_LIBRARY_PATH=str(harness.SIM.parent), SIMCUDA_SPEED="0")

    def run_calls(self, code, **env):
        """The lines that Python code on top of CALLS printed."""
        done = self.run_program(sys.executable, "-c", CALLS + code, env={**self.env, **env})
        self.assertEqual(done.stderr, b"")
        return done.stdout.decode().split("\n")[:-1]

    def start_holding(self, *words, **env):
        """A simple_driver that has done its work and waits; ended with the test."""
        process = subprocess.Popen([SIMPLE, *words, "hold"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, env={**self.env, **env})
        self.addCleanup(process.wait)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        for line in process.stdout:
            if line == b"ready\n":
                return process
        self.fail(f"simple_driver {words} ended with {process.wait()}")

    def log(self, *command, **env):
        """The calls of a program's run, as the driver logged them."""
        path = self.dir / "calls"
        done = self.run_program(*command, env={**self.env, "SIMCUDA_LOG": str(path), **env})
        return done, [json.loads(line) for line in path.read_text().splitlines()]
