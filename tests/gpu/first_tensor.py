"""The shortest torch program that uses the GPU: is_available, one tensor there, synchronize.
Prints what each took as JSON, in ms."""
import json
import time

begin = time.monotonic()
import torch  # noqa: E402 (its import is timed)

imported = time.monotonic()
available = torch.cuda.is_available()
known = time.monotonic()
tensor = torch.ones(1, 1).to("cuda")
torch.cuda.synchronize()
done = time.monotonic()
assert available and tensor.item() == 1
print(json.dumps({"import": (imported - begin) * 1e3, "is_available": (known - imported) * 1e3,
                  "first tensor": (done - known) * 1e3, "both": (done - imported) * 1e3}))
