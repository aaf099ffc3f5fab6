"""Group forks: a process that leaves its parent while work was done ahead for that, many times
each: {speculated only; the program initialised itself; a thread in mid-call} by every way to leave.
Child and parent say and see what they do natively, descriptors of the child included.

Python's warning about a fork beside threads is off in both arms: it is about `auto` never being
ahead in a program that forks, and here what was learned is wrong on purpose."""
import importlib.util
import sys

from . import build
from .ahead import Job, Stage, judge, result

BEFORE = ("lookup", "context", "busy")
C_WAYS = ("fork", "clone", "vfork")
PYTHON_WAYS = ("fork", "pool", "subprocess")
TORCH_WAYS = ("fork", "pool", "subprocess", "loader")
TORCH_BEFORE = ("import", "tensor")
ROUNDS, PYTHON_ROUNDS, TORCH_ROUNDS = 50, 8, 2
WORKERS = 8
QUIET = {"PYTHONWARNINGS": "ignore"}


def _cells(stage, name, command, befores, hows, rounds, workers, settings, seconds):
    """All of one program: `rounds` learned runs of each cell against native ones."""
    state = stage.learn(name, [*command, befores[-1], hows[-1]], **settings)
    cells = [(before, how) for before in befores for how in hows
             if (before, how) != ("busy", "clone")  # libc's locks may be held in such a child
             and stage.context.only in f"{name}, {before}, {how}"]
    if not cells:
        return []
    natives = 1 if name == "torch" else 2
    jobs = [Job(f"{name}, {before}, {how}", [*command, before, how], arm, settings, seconds,
                shows_crash=arm is not None and name == "C")
            for number in range(natives + rounds) for before, how in cells
            for arm in (state if number >= natives else None,)]
    ended = {}
    for job, end in zip(jobs, stage.take_all(jobs, workers)):
        ended.setdefault(job.name, ([], []))[job.template is not None].append(end)
    return [judge(cell, plain, learned) for cell, (plain, learned) in ended.items()]


def run(context):
    """Holds where every round of every cell ended as natively."""
    small, checks = context.simulated, {}
    with Stage(context) as stage:
        forked = build.build_c(context.work, "forked", "forked.c")
        rows = _cells(stage, "C", [forked], BEFORE, C_WAYS, context.rounds
                      or (1 if small else ROUNDS), WORKERS, {}, 40)
        script = [sys.executable, build.GPU / "driver_fork.py"]
        rows += _cells(stage, "python", script, BEFORE, PYTHON_WAYS, context.rounds
                       or (1 if small else PYTHON_ROUNDS), WORKERS, QUIET, 60)
        if importlib.util.find_spec("torch") is not None:
            script = [sys.executable, build.GPU / "torch_fork.py"]
            rows += _cells(stage, "torch", script, TORCH_BEFORE, TORCH_WAYS,
                           1 if small else TORCH_ROUNDS, WORKERS, QUIET, 120)
        else:
            print(f"  torch left out: {sys.executable} has none")
            checks["torch is there"] = small
        served = [row["ways"] for row in rows if row["name"].startswith(("C, context", "C, busy"))]
        ahead = sum(found.get("speculated", 0) for found in served)
        checks[f"where the program called first, {ahead} runs of C had it done ahead"] = (
            ahead > 0 or not served)
        return result(stage, rows, checks, small)
