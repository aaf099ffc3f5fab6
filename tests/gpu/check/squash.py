"""Group squash: programs for which work done ahead turns out wrong: a changed environment, a fork;
and programs that ask NVML first.
Plain and under Hearth they say the same, byte for byte: without a broker, with a warm keeper, with
HEARTH_SPECULATE=always, and in the third run of a program that Hearth has learned."""
import importlib.util
import sys

from . import build, fidelity, machine

WORKERS = 6
SECONDS = 60
VALUES = ("", "0", "-1", "1", "0,0", " 0", "UUID", "PREFIX", "-")
MOMENTS = ("start", "lookup", "count", "init")
OTHERS = (("CUDA_DEVICE_ORDER", "PCI_BUS_ID"), ("CUDA_MODULE_LOADING", "EAGER"),
          ("CUDA_LAUNCH_BLOCKING", "1"), ("CUDA_DEVICE_MAX_CONNECTIONS", "1"))
WAYS = ("speculated", "adopted", "squashed")
BEFORE = ("nothing", "lookup", "init", "context", "busy")
HOW = ("fork", "clone", "vfork", "twice")
TORCH_FORKS = (("import", "fork"), ("available", "fork"), ("tensor", "fork"), ("import", "pool"),
               ("tensor", "subprocess"))
NVML_WAITS_MS = (0, 10, 40, 300)  # before, in and after what is done ahead
NVML_CHANGES = ("nothing", "environment", "fork")
TORCH_ENVIRONMENTS = (("import", "-1"), ("lazy", ""), ("lazy", "0"), ("available", "-1"),
                      ("count", "0"))


def _uuids():
    """The first GPU's UUID and a prefix of it; made-up ones where nvidia-smi names none."""
    gpus = machine.nvidia_smi("uuid")
    whole = gpus[0]["uuid"] if gpus else "GPU-00000000-0000-0000-0000-000000000000"
    return {"UUID": whole, "PREFIX": whole[:len("GPU-") + 8]}


def _c_programs(context):
    environment = build.build_c(context.work, "environment", "environment.c")
    forked = build.build_c(context.work, "forked", "forked.c")
    uuids = _uuids()
    for moment in MOMENTS:
        for number, value in enumerate(VALUES):
            yield fidelity.Program(
                f"env-{moment}-{number}",
                [environment, moment, "CUDA_VISIBLE_DEVICES", uuids.get(value, value)],
                seconds=SECONDS)
        for name, value in OTHERS:
            yield fidelity.Program(f"env-{moment}-{name[5:].lower()}",
                                   [environment, moment, name, value], seconds=SECONDS)
    for before in BEFORE:
        for how in HOW:
            if (before, how) == ("busy", "clone"):
                continue  # libc's own locks may be held in such a child, natively too
            yield fidelity.Program(f"fork-{before}-{how}", [forked, before, how], seconds=SECONDS)


def _nvml_programs():
    for wait in NVML_WAITS_MS:
        for change in NVML_CHANGES:
            yield fidelity.Program(
                f"nvml-{wait}-{change}",
                [sys.executable, build.GPU / "nvml_first.py", f"--{wait}-{change}"],
                seconds=SECONDS)


def _torch_programs():
    for moment, value in TORCH_ENVIRONMENTS:
        yield fidelity.Program(f"torch-env-{moment}{value}",
                               [sys.executable, build.GPU / "torch_env.py", moment, value],
                               seconds=2 * SECONDS)
    for before, how in TORCH_FORKS:
        yield fidelity.Program(f"torch-fork-{before}-{how}",
                               [sys.executable, build.GPU / "torch_fork.py", before, how],
                               seconds=2 * SECONDS)


def run(context):
    """Compare them all."""
    programs = list(_c_programs(context))
    if not context.simulated:  # which has no NVML
        programs += _nvml_programs()
    if importlib.util.find_spec("torch") is not None:
        programs += _torch_programs()
    else:
        print(f"  torch left out: {sys.executable} has none")
    programs = [program for program in programs if context.only in program.name]
    rows = fidelity.run_programs(context, programs, WORKERS, fidelity.ALL_ARMS, plain_runs=2)
    same = sum(row["same"] for row in rows)
    print(f"  {same} of {len(rows)} programs are the same")
    ahead = {way: sum(way in found for row in rows for found in row["ways"].values())
             for way in WAYS}
    print("  runs in which a call was " + ", ".join(f"{way}: {ahead[way]}" for way in WAYS))
    # Where nothing was done ahead there was nothing to compare.
    return {"rows": rows, "ahead": ahead, "ok": same == len(rows) and any(ahead.values())}
