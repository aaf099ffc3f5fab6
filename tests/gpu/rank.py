"""One rank of torchrun: import, first tensor, NCCL's first all_reduce, the first training step,
then the speed of large all_reduces. One line of JSON: times in ms, results, and on which GPUs this
process and its launcher have contexts while all ranks live. Usage: rank.py [ROUNDS]."""
import os
import time

begin = time.monotonic()
import torch  # noqa: E402 (its import is timed)
import torch._dynamo  # noqa: E402,F401 (the wrapper and the optimizer import it at first use)
import torch.distributed as dist  # noqa: E402

imported = time.monotonic()
import json  # noqa: E402 (what torch has not imported is none of its time)
import statistics  # noqa: E402
import sys  # noqa: E402

import gpus_of  # noqa: E402
import rank_device  # noqa: E402

WARM_UP = 5
BATCH = 10  # all_reduces between two waits, so that the host's part does not count
MIB = 1 << 20

rank = int(os.environ["LOCAL_RANK"])
rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 0
size = (1 if gpus_of.is_simulated() else 256) * MIB
ready = time.monotonic()

device = rank_device.take(rank)
values = torch.ones(1, device=device)
rank_device.wait()
marks = {"first tensor": time.monotonic()}

dist.init_process_group(rank_device.BACKEND)
dist.all_reduce(values)
rank_device.wait()
marks["all_reduce"] = time.monotonic()

torch.manual_seed(7)
torch.backends.cudnn.deterministic = True
model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 32, 3), torch.nn.ReLU(), torch.nn.Conv2d(32, 64, 3), torch.nn.ReLU(),
    torch.nn.Flatten(), torch.nn.Linear(64 * 24 * 24, 10)).to(device)
model = torch.nn.parallel.DistributedDataParallel(
    model, device_ids=None if device.type == "cpu" else [rank])
optimizer = torch.optim.Adam(model.parameters())
images = torch.full((16, 1, 28, 28), 1.0 + rank, device=device)
labels = torch.arange(16, device=device) % 10
loss = torch.nn.functional.cross_entropy(model(images), labels)
loss.backward()
optimizer.step()
rank_device.wait()
marks["first step"] = time.monotonic()

dist.barrier()  # all ranks have what they will have, and none has left
contexts = gpus_of.of_process(os.getpid())
launcher = gpus_of.of_process(os.getppid())
asking = time.monotonic()
memory = gpus_of.memory_used()
asked = time.monotonic()  # for the GPUs' memory: about what torch's own count of GPUs takes

took = []
block = torch.ones(size // 4, device=device)
for number in range(WARM_UP + rounds if rounds else 0):
    rank_device.wait()
    start = time.perf_counter()
    for _ in range(BATCH):
        dist.all_reduce(block)
    rank_device.wait()
    if number >= WARM_UP:
        took.append((time.perf_counter() - start) / BATCH)
    block.fill_(1)
dist.all_reduce(block)
total = block.sum().item()
dist.barrier()

# The imports between `imported` and `ready` are this program's own.
own = ready - imported
line = {"rank": rank, "pid": os.getpid(), "device": rank_device.name(rank), "contexts": contexts,
        "launcher": launcher, "memory_mib": memory,
        "result": [values.item(), loss.item().hex(), total],
        "import": (imported - begin) * 1e3,
        **{name: (at - begin - own) * 1e3 for name, at in marks.items()},
        "ask NVML": (asked - asking) * 1e3,
        "after import": (marks["first tensor"] - ready) * 1e3,
        "since launch": (marks["first step"] - float(os.environ["LAUNCHED"]) - own) * 1e3}
if took:
    line["all_reduce GB/s"] = size / statistics.median(took) / 1e9
os.write(1, (json.dumps(line) + "\n").encode())
dist.destroy_process_group()
if gpus_of.is_simulated():
    os._exit(0)  # at an orderly end gloo's threads abort the process now and then, also natively
