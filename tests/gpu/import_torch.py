"""Imports torch and makes one tensor on the GPU. Prints as JSON, in ms: the import, the whole time
from the process's start to the end of the import, what the main thread ran and waited for a
processor of it, and what was read from the disk in MiB."""
import json
import os
import time

begin = time.monotonic()
import torch  # noqa: E402 (its import is timed)

imported = time.monotonic()
now = time.clock_gettime(time.CLOCK_BOOTTIME)
with open("/proc/self/stat", encoding="ascii") as file:
    fields = file.read().rpartition(")")[2].split()
started = int(fields[19]) / os.sysconf("SC_CLK_TCK")
with open("/proc/self/schedstat", encoding="ascii") as file:
    ran, queued, _ = (int(word) / 1e6 for word in file.read().split())
with open("/proc/self/io", encoding="ascii") as file:
    read = {name: int(value) for name, value in (line.split(":") for line in file)}["read_bytes"]
tensor = torch.ones(1, 1).to("cuda")
torch.cuda.synchronize()
print(json.dumps({"import": (imported - begin) * 1e3, "start to imported": (now - started) * 1e3,
                  "ran": ran, "queued": queued, "read MiB": read / 2**20,
                  "major faults": int(fields[9])}))
