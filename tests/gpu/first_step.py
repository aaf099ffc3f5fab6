"""The first step of a model that is on the GPU already. Usage: first_step.py MODEL.

With FIRST_STEP=profile in the environment the first step runs under cProfile, whose costliest rows
are printed too; where trace_calls.c is preloaded, it is told where the step begins and ends.

Prints `ready` when everything is imported, then waits for a line before it touches the GPU: so two
such programs can import at once and step by turns. Then prints one line of JSON: times in ms, when
the first step was (CLOCK_REALTIME, us), page faults in it, files that it mapped, and memory."""
import cProfile
import ctypes
import json
import os
import pstats
import resource
import sys
import time

started = time.monotonic()
import torch  # noqa: E402 (its import is timed)

MODEL = sys.argv[1]
ROWS = 25  # of the profile
if MODEL in ("resnet", "vit"):
    import torchvision
elif MODEL == "gpt2":
    from transformers import GPT2Config, GPT2LMHeadModel
imported = time.monotonic()


def training(model, images, labels):
    """A training step: forward, backward, Adam."""
    optimizer = torch.optim.Adam(model.parameters())

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    return step


def forward(model, *inputs):
    """A forward pass."""
    model.eval()

    def step():
        with torch.inference_mode():
            model(*inputs)
    return step


def prepare():
    """The model and its inputs on the GPU; returns its step."""
    torch.manual_seed(0)
    if MODEL == "cnn":
        model = torch.nn.Sequential(
            torch.nn.Conv2d(1, 32, 3), torch.nn.ReLU(), torch.nn.Conv2d(32, 64, 3),
            torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(64 * 24 * 24, 10))
        return training(model.cuda(), torch.randn(64, 1, 28, 28).cuda(),
                        torch.randint(0, 10, (64,)).cuda())
    if MODEL == "resnet":
        return forward(torchvision.models.resnet50().cuda(), torch.randn(1, 3, 224, 224).cuda())
    if MODEL == "vit":
        return forward(torchvision.models.vit_b_16().cuda(), torch.randn(1, 3, 224, 224).cuda())
    if MODEL == "gpt2":
        return forward(GPT2LMHeadModel(GPT2Config()).cuda().half(),
                       torch.randint(0, 50000, (1, 64)).cuda())
    if MODEL == "mlp":
        return forward(torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(),
                                           torch.nn.Linear(512, 10)).cuda(),
                       torch.randn(32, 512).cuda())
    raise SystemExit(f"first_step.py: no model {MODEL!r}: cnn, resnet, vit, gpt2, mlp")


def host_memory():
    """VmHWM, VmRSS and its parts, in MiB."""
    with open("/proc/self/status", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file if ":" in line)
    return {name: int(fields[name].split()[0]) / 1024
            for name in ("VmHWM", "VmRSS", "RssAnon", "RssFile")}


def mapped_files():
    with open("/proc/self/maps", encoding="utf-8") as file:
        return {line.split(None, 5)[5].strip() for line in file if line.count("/")}


def no_phase(name):
    """Nobody traces."""


trace_phase = getattr(ctypes.CDLL(None), "trace_phase", no_phase)
profiler = cProfile.Profile() if os.environ.get("FIRST_STEP") == "profile" else None
print("ready", flush=True)
sys.stdin.readline()
begun = time.monotonic()
step = prepare()
torch.cuda.synchronize()
placed = time.monotonic()
modules = set(sys.modules)
files, faults = mapped_files(), resource.getrusage(resource.RUSAGE_SELF)
at_us, took = [time.time_ns() // 1000], []
for number in range(3):
    trace_phase((b"setup", b"step 1", b"step 2")[number])  # what ends here
    before = time.monotonic()
    if profiler and number == 0:
        profiler.runcall(step)
    else:
        step()
    torch.cuda.synchronize()
    took.append((time.monotonic() - before) * 1e3)
    if number == 0:
        at_us.append(time.time_ns() // 1000)
        later = resource.getrusage(resource.RUSAGE_SELF)
        free, total = torch.cuda.mem_get_info()
        memory = {"gpu": (total - free) / 2**20, **host_memory()}
        files = sorted(mapped_files() - files)
rows = sorted(pstats.Stats(profiler).stats.items(), key=lambda row: -row[1][2]) if profiler else []
print(json.dumps({
    "modules": sorted(set(sys.modules) - modules), "python": [
        [f"{os.path.basename(where[0])}:{where[1]} {where[2]}", row[1], row[2] * 1e3, row[3] * 1e3]
        for where, row in rows[:ROWS]],
    "ms": {"import": (imported - started) * 1e3, "to GPU": (placed - begun) * 1e3,
           "step 1": took[0], "step 3": took[2]},
    "step_at_us": at_us, "memory_mib": memory, "files": files,
    "faults": {"major": later.ru_majflt - faults.ru_majflt,
               "minor": later.ru_minflt - faults.ru_minflt}}), flush=True)
