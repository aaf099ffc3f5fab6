"""On which GPUs a process has a context: as NVML lists them, or on a simulated machine as its
accounts say. The names are NVML's UUIDs, or the simulated GPUs' numbers."""
import glob
import os
import struct
from collections import Counter

# struct client of lib/sim/sim_machine.c: magic, registered, memory and contexts of each GPU
ACCOUNT = struct.Struct("<II16Q16I")
FIRST_OF_CONTEXTS = 2 + 16


def is_simulated():
    """Whether this is a rehearsal on a simulated machine."""
    return "SIMCUDA_MACHINE" in os.environ


def of_process(pid):
    """One name for each of its contexts, sorted; NVML names a GPU once, however many there are."""
    return sorted((_simulated if is_simulated() else _listed)(pid).elements())


def _file_of(descriptor):
    """The file behind /proc/PID/fd/N; "" where another thread has just closed it."""
    try:
        return os.readlink(descriptor)
    except FileNotFoundError:
        return ""


def _accounts(pid):
    """Its own are open and mapped; another process's are opened for a moment, to be read."""
    opened = {file for file in map(_file_of, glob.glob(f"/proc/{pid}/fd/*"))
              if "nvidia-client-" in file}
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
            mapped = {line.split(maxsplit=5)[-1].rstrip("\n") for line in maps
                      if "nvidia-client-" in line}
    except FileNotFoundError:
        return set()
    return opened & mapped


def _simulated(pid):
    accounts = _accounts(pid)
    found = Counter()
    for path in accounts:
        try:
            with open(path, "rb") as file:
                fields = ACCOUNT.unpack(file.read(ACCOUNT.size))
        except (FileNotFoundError, struct.error):
            continue  # another thread has just begun or ended it
        for gpu, count in enumerate(fields[FIRST_OF_CONTEXTS:]):
            found[str(gpu)] += count
    return +found


def _listed(pid):
    import pynvml  # only a machine with GPUs has it

    pynvml.nvmlInit()
    try:
        found = Counter()
        for number in range(pynvml.nvmlDeviceGetCount()):
            gpu = pynvml.nvmlDeviceGetHandleByIndex(number)
            if any(process.pid == pid
                   for process in pynvml.nvmlDeviceGetComputeRunningProcesses(gpu)):
                name = pynvml.nvmlDeviceGetUUID(gpu)
                found[name if isinstance(name, str) else name.decode()] += 1
        return found
    finally:
        pynvml.nvmlShutdown()


def memory_used():
    """MiB in use on each GPU, by name; {} on a simulated machine."""
    if is_simulated():
        return {}
    import pynvml

    pynvml.nvmlInit()
    try:
        gpus = [pynvml.nvmlDeviceGetHandleByIndex(number)
                for number in range(pynvml.nvmlDeviceGetCount())]
        return {str(pynvml.nvmlDeviceGetUUID(gpu)):
                pynvml.nvmlDeviceGetMemoryInfo(gpu).used >> 20 for gpu in gpus}
    finally:
        pynvml.nvmlShutdown()
