"""The shortest torch program that uses the GPU: is_available, one tensor there, synchronize.
Prints what each took as JSON, in ms; and what torch's own count of the devices took of that, for
which it starts NVML (another library than the driver)."""
import functools
import json
import time

begin = time.monotonic()
import torch  # noqa: E402 (its import is timed)

nvml = {"NVML": 0}


def timed(count):
    """The count, with its time added to nvml."""
    begin = time.monotonic()
    try:
        return count()
    finally:
        nvml["NVML"] += (time.monotonic() - begin) * 1e3


if hasattr(torch.cuda, "_raw_device_count_nvml"):
    torch.cuda._raw_device_count_nvml = functools.partial(timed, torch.cuda._raw_device_count_nvml)
imported = time.monotonic()
available = torch.cuda.is_available()
known = time.monotonic()
tensor = torch.ones(1, 1).to("cuda")
torch.cuda.synchronize()
done = time.monotonic()
assert available and tensor.item() == 1
print(json.dumps({"import": (imported - begin) * 1e3, "is_available": (known - imported) * 1e3,
                  "first tensor": (done - known) * 1e3, "both": (done - imported) * 1e3,
                  **nvml}))
