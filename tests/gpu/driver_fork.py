"""The driver through ctypes in a forked child and in its parent: BEFORE is what the parent did
first (lookup, context, or busy: a thread is in driver calls all the time), HOW is fork, pool or
subprocess. Usage: driver_fork.py BEFORE HOW."""
import ctypes
import multiprocessing
import os
import subprocess
import sys
import threading
import time

BEFORE, HOW = sys.argv[1:3]
PAUSE_SECONDS = 0.3
WORKERS = 3
stopped = threading.Event()
cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuInit  # looked up here: what is done ahead begins


def result(*words):
    print("result", *words, flush=True)


def use(who):
    """The driver's codes, and whether four bytes came back."""
    context, memory = ctypes.c_void_p(), ctypes.c_uint64()
    value, back = ctypes.c_int(40961), ctypes.c_int()
    codes = [cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
             cuda.cuCtxSetCurrent(context), cuda.cuMemAlloc_v2(ctypes.byref(memory),
                                                               ctypes.c_size_t(4))]
    if not any(codes):
        cuda.cuMemcpyHtoD_v2(memory, ctypes.byref(value), ctypes.c_size_t(4))
        cuda.cuMemcpyDtoH_v2(ctypes.byref(back), memory, ctypes.c_size_t(4))
    return f"{who} {codes} {'right' if back.value == value.value else 'none'}"


def be_busy():
    number = ctypes.c_int()
    while not stopped.is_set():
        cuda.cuDeviceGetAttribute(ctypes.byref(number), 1, 0)


def main():
    time.sleep(PAUSE_SECONDS)
    thread = threading.Thread(target=be_busy)
    if BEFORE != "lookup":
        result(use("before"))
    if BEFORE == "busy":
        thread.start()
    if HOW == "fork":
        pid = os.fork()
        if pid == 0:
            result(use("child"))
            os._exit(0)
        result("child ended with", os.waitpid(pid, 0)[1])
    elif HOW == "pool":
        with multiprocessing.get_context("fork").Pool(WORKERS) as pool:
            result("pool", pool.map(use, ["worker"] * WORKERS, chunksize=1))
    else:
        result("subprocess", subprocess.run([sys.executable, "-c", "print(6 * 7)"],
                                            stdout=subprocess.PIPE, check=True).stdout)
    result(use("parent"))
    stopped.set()


if __name__ == "__main__":
    main()
