"""Group after-squash: programs whose speculation was undone because the driver's environment
changed, though to the same device: profiler, JIT, NCCL and torch.compile work on the driver's next
copy."""
import importlib.util
import sys

from . import build, machine
from .ahead import Job, Stage, judge, result

SCRIPTS = ("torch_step", "torch_profiler", "torch_nccl", "torch_compile", "torch_graph",
           "torch_expandable")
WORKERS = 8
TORCH_SECONDS = 150
NATIVES = 2
ROUNDS = 3  # of what takes no torch
RECORD = ("pid", "call", "how", "at_us", "visible_us")
KEPT_RECORDS = 20
ALWAYS = {"HEARTH_SPECULATE": "always"}  # on a blank state: the first run of each


def _changes():
    """Changes of the environment that leave the one device."""
    gpus = machine.nvidia_smi("uuid")
    uuid = gpus[0]["uuid"] if gpus else "0"
    return {"order": ("CUDA_DEVICE_ORDER", "PCI_BUS_ID"), "number": ("CUDA_VISIBLE_DEVICES", "0"),
            "uuid": ("CUDA_VISIBLE_DEVICES", uuid)}


def _programs(stage, has_torch):
    """Name: command and seconds."""
    steps = stage.program("driver_steps")
    jit = [sys.executable, build.GPU / "driver_jit.py"]
    changer = [sys.executable, build.GPU / "changed.py"]
    programs = {}
    for name, change in _changes().items():
        programs[f"C, {name}"] = ([steps, "lookup", "sleep=400", "env=" + "=".join(change), "init",
                                   "devices", "retain=0", "stack", "copy"], 30)
        programs[f"PTX JIT, {name}"] = ([*jit, *change], 60)
        # The first change with every torch program, the others with one.
        for script in SCRIPTS if has_torch and name == "uuid" else SCRIPTS[:1] * has_torch:
            programs[f"{script}, {name}"] = (
                [*changer, *change, build.GPU / f"{script}.py"], TORCH_SECONDS)
    return programs


def run(context):
    """Holds where all say what they say natively, and their records that they were squashed."""
    has_torch = importlib.util.find_spec("torch") is not None
    checks, jobs = {}, []
    with Stage(context) as stage:
        for name, (command, seconds) in _programs(stage, has_torch).items():
            native = Job(name, command, None, {}, seconds)
            ours = native._replace(template=stage.blank, settings=ALWAYS, shows_crash=True,
                                   tells=True)
            jobs += [native] * NATIVES + [ours] * (1 if "torch" in name else ROUNDS)
        jobs.sort(key=lambda job: -job.seconds)
        ended = {}
        for job, end in zip(jobs, stage.take_all(jobs, WORKERS)):
            ended.setdefault(job.name, ([], []))[job.template is not None].append(end)
        rows = []
        for name, (natives, ours) in ended.items():
            rows.append(judge(name, natives, ours))
            squashed = sum(end.how("cuInit") == "squashed" for end in ours)
            rows[-1]["messages"] = [end.messages.splitlines() for end in ours]
            if squashed < len(ours):
                rows[-1]["calls"] = [[record.get(key) for key in RECORD] for record
                                     in ours[0].records[:KEPT_RECORDS]]
                print("      " + "\n      ".join(rows[-1]["messages"][0]))
            checks[f"{name}: {squashed} of {len(ours)} squashed, natively "
                   f"{natives[0].status}"] = (squashed == len(ours) and natives[0].status == 0)
        if not has_torch:
            print(f"  torch left out: {sys.executable} has none")
            checks["torch is there"] = context.simulated
        return result(stage, rows, checks, context.simulated)
