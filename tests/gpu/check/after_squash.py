"""Group after-squash: programs whose speculation was undone because the driver's environment
changed, though to the same device: profiler, JIT, NCCL and torch.compile work on the driver's next
copy. A profiler sees what it sees natively also where nothing was undone, and where it begins
before the first CUDA call."""
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


NOTHING = ("HEARTH_TEST_NOTHING", "1")  # a variable that no driver reads


def _changes():
    """Changes of the environment that leave the one device."""
    gpus = machine.nvidia_smi("uuid")
    uuid = gpus[0]["uuid"] if gpus else "0"
    return {"order": ("CUDA_DEVICE_ORDER", "PCI_BUS_ID"), "number": ("CUDA_VISIBLE_DEVICES", "0"),
            "uuid": ("CUDA_VISIBLE_DEVICES", uuid)}


def _programs(stage, has_torch):
    """Name: command, seconds, and how its cuInit is to be served; None where that is open."""
    steps = stage.program("driver_steps")
    jit = [sys.executable, build.GPU / "driver_jit.py"]
    changer = [sys.executable, build.GPU / "changed.py"]
    programs = {}
    for name, change in _changes().items():
        programs[f"C, {name}"] = ([steps, "lookup", "sleep=400", "env=" + "=".join(change), "init",
                                   "devices", "retain=0", "stack", "copy", "tool"], 30,
                                  "squashed")
        programs[f"PTX JIT, {name}"] = ([*jit, *change], 60, "squashed")
        # The first change with every torch program, the others with one.
        for script in SCRIPTS if has_torch and name == "uuid" else SCRIPTS[:1] * has_torch:
            programs[f"{script}, {name}"] = (
                [*changer, *change, build.GPU / f"{script}.py"], TORCH_SECONDS, "squashed")
    profiler = build.GPU / "torch_profiler.py"
    if has_torch:
        programs["torch_profiler, unchanged"] = (
            [*changer, *NOTHING, profiler], TORCH_SECONDS, "speculated")
        for name, change in (("uuid", _changes()["uuid"]), ("unchanged", NOTHING)):
            # A profiler's questions before cuInit may end what was done ahead.
            programs[f"torch_profiler early, {name}"] = (
                [*changer, *change, profiler, "early"], TORCH_SECONDS, None)
    return programs


def run(context):
    """Holds where all say what they say natively, and their records how they were served."""
    has_torch = importlib.util.find_spec("torch") is not None
    checks, jobs = {}, []
    with Stage(context) as stage:
        programs = _programs(stage, has_torch)
        for name, (command, seconds, _) in programs.items():
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
            wanted = programs[name][2]
            right = sum(wanted in (None, end.how("cuInit")) for end in ours)
            rows[-1]["messages"] = [end.messages.splitlines() for end in ours]
            if right < len(ours):
                rows[-1]["calls"] = [[record.get(key) for key in RECORD] for record
                                     in ours[0].records[:KEPT_RECORDS]]
                print("      " + "\n      ".join(rows[-1]["messages"][0]))
            checks[f"{name}: {right} of {len(ours)} {wanted or 'ended'}, natively "
                   f"{natives[0].status}"] = (right == len(ours) and natives[0].status == 0)
        if not has_torch:
            print(f"  torch left out: {sys.executable} has none")
            checks["torch is there"] = context.simulated
        return result(stage, rows, checks, context.simulated)
