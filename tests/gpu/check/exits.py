"""Group exits: programs that end while work is done ahead for them, at random moments and in every
way: they end as natively. A second preload says where one crashed."""
import importlib.util
import random
import sys

from . import build
from .ahead import Job, Stage, judge, result

ENDS = ("return", "exit", "_exit", "quick", "abort", "term", "kill", "exec")
TORCH_ENDS = ("sys.exit", "_exit", "exit", "alarm")
MOMENTS, LAST_MS = 300, 700          # of C programs: cuInit and retain, also among others
LOOKUPS = 300                        # of a program that is squashed and then ends
TORCH_MOMENTS, TORCH_LAST_MS = 50, 3000
WORKERS = 8
FIRST_MS = 140  # half of the moments are within this: cuInit and the retain of one alone
SEED = 20261130


def _moments(count, last_ms, first_ms):
    chance = random.Random(SEED)
    return [chance.randrange(first_ms if number % 2 else last_ms) for number in range(count)]


def _c_rows(stage, count):
    """Every way to end, before, inside and after the thread's cuInit and retain."""
    steps = stage.program("driver_steps")
    begin = {"lookup": stage.learn("lookup", [steps, "lookup", "sleep=400", "init", "retain=0"]),
             "start": stage.learn("start", [steps, "sleep=400", "lookup", "init", "retain=0"])}
    control = stage.take_all([Job(name, [steps, "lookup", "sleep=400", "init", "retain=0"], state)
                              for name, state in begin.items()], 1)
    natives, jobs = {}, {}
    for number, wait in enumerate(_moments(count, LAST_MS, FIRST_MS)):
        end = ENDS[number % len(ENDS)]
        moment = ("lookup", "start")[number // len(ENDS) % 2]
        jobs.setdefault(end, []).append(
            Job(end, [steps, "lookup", f"sleep={wait}", f"end={end}"], begin[moment],
                shows_crash=end != "abort"))
        natives.setdefault(end, [Job(end, [steps, "lookup", "sleep=1", f"end={end}"],
                                     shows_crash=end != "abort")])
    # In the order of their moments' numbers, so that all ways are under way at once.
    order = [job for group in zip(*jobs.values()) for job in group]
    order += [job for group in jobs.values() for job in group[len(order) // len(jobs):]]
    ended = {}
    for job, end in zip(order, stage.take_all(order, WORKERS)):
        ended.setdefault(job.name, []).append(end)
    rows = [judge(f"C, {name}", stage.take_all(natives[name], 1), ended[name]) for name in ended]
    return rows, {f"a run that does not end has its calls done ahead ({name})":
                  end.how("cuInit") == "speculated" for name, end in zip(begin, control)}


def _lookup_row(stage, count):
    """Squashed by a changed environment, and then at its end."""
    program = build.build_c(stage.context.work, "environment", "environment.c")
    words = ("CUDA_VISIBLE_DEVICES", "")
    state = stage.learn("environment", [program, "init", "CUDA_VISIBLE_DEVICES", "0"])
    job = Job("lookup", [program, "lookup", *words], state, shows_crash=True)
    native = job._replace(template=None)
    row = judge("C, squashed, then return", stage.take_all([native] * 2, 2),
                stage.take_all([job] * count, WORKERS))
    return row, {f"all {count} were squashed": row["ways"].get("squashed") == count}


def _torch_row(stage, count):
    """A torch program at moments of its import and of its first calls."""
    command = [sys.executable, build.GPU / "torch_exit.py"]
    state = stage.learn("torch", [*command, "end", "0"])
    jobs = [Job(how, [*command, how, str(wait)], state, shows_crash=True, seconds=90)
            for number, wait in enumerate(_moments(count, TORCH_LAST_MS, TORCH_LAST_MS))
            for how in (TORCH_ENDS[number % len(TORCH_ENDS)],)]
    natives = [job._replace(template=None) for job in jobs]
    ends = stage.take_all([*jobs, *natives], WORKERS)
    rows = []
    for how in TORCH_ENDS:
        chosen = [number for number, job in enumerate(jobs) if job.name == how]
        if chosen:
            rows.append(judge(f"torch, {how}", [ends[len(jobs) + number] for number in chosen],
                              [ends[number] for number in chosen]))
    return rows


def run(context):
    """Holds where all ended as natively."""
    small = context.simulated
    moments = context.rounds or (len(ENDS) * 3 if small else MOMENTS)
    lookups = context.rounds or (10 if small else LOOKUPS)
    with Stage(context) as stage:
        rows, checks = _c_rows(stage, moments)
        row, more = _lookup_row(stage, lookups)
        rows.append(row)
        checks.update(more)
        if importlib.util.find_spec("torch") is not None:
            most = 4 if small else TORCH_MOMENTS
            rows += _torch_row(stage, min(context.rounds or most, most))
        else:
            print(f"  torch left out: {sys.executable} has none")
            checks["torch is there"] = small
        return result(stage, rows, checks, small)
