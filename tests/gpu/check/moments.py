"""Group moments: six programs with their work begun at process start, at the first lookup of
cuInit, and at the moment that Hearth chose after three runs: what each waited in the driver until
its first result, and how often a guess was undone.

A moment is forced by what the profile learned: a run that looks up late and calls at once leaves
the start, one that looks up early and calls late leaves the lookup."""
import importlib.util
import sys

from . import build
from .ahead import LEFT_OUT, Job, Stage, result
from .arms import Arms

FORCED_ROUNDS, CHOSEN_ROUNDS = 5, 20
TORCH_FORCED_ROUNDS, TORCH_CHOSEN_ROUNDS = 3, 5
LEARNING_RUNS = 3
LIMIT_WORSE_MS = 5
LIMIT_SQUASHES = 1 / 20
MOMENTS = ("start", "lookup")


def _programs(stage, has_torch):
    """Name: its command, and the same program's words for a run that forces each moment."""
    steps = [stage.program("driver_steps")]
    end = ["init", "retain=0", "copy"]
    forced = {"start": [*steps, "sleep=500", "lookup", *end],
              "lookup": [*steps, "lookup", "sleep=500", *end]}
    programs = {
        "at once": ([*steps, "lookup", *end], forced),
        "looks up, works 150 ms": ([*steps, "lookup", "sleep=150", *end], forced),
        "works 200 ms, looks up": ([*steps, "sleep=200", "lookup", *end], forced),
        "sets its device first": ([*steps, "sleep=60", "env=CUDA_VISIBLE_DEVICES=0", "lookup",
                                   "sleep=200", *end], forced),
    }
    python = [sys.executable, build.GPU / "driver_waits.py"]
    programs["python"] = ([*python, "100", "150"], {"start": [*python, "500", "0"],
                                                    "lookup": [*python, "0", "500"]})
    if has_torch:
        torch = [sys.executable, build.GPU / "torch_waits.py"]
        programs["torch"] = ([*torch, "torch"], {"start": [*torch, "late"],
                                                 "lookup": [*torch, "early"]})
    return programs


def _run_once(stage, arms, arm, job, hows):
    end = stage.take(job)
    if end.status == LEFT_OUT:
        return
    if end.status != 0:
        arms.errors.setdefault(arm, []).append(f"{end.status}: {end.stdout} {end.stderr[-300:]}")
        return
    hows.setdefault(arm, []).append(end.how("cuInit"))
    arms.measure(arm, lambda: {"waited": end.waited_ms(), "wall": end.seconds * 1e3})


def _measure(stage, arms, hows, name, command, forced, rounds):
    """All arms of one program, by turns."""
    forced_rounds, chosen_rounds = rounds
    templates = {moment: stage.learn(f"{name} {moment}", forced[moment]) for moment in MOMENTS}
    chosen = stage.learn(f"{name} chosen", command, LEARNING_RUNS)
    for number in range(max(rounds)):
        for moment in MOMENTS if number < forced_rounds else ():
            _run_once(stage, arms, f"{name}, {moment}",
                      Job(name, command, templates[moment], seconds=60), hows)
        if number < chosen_rounds:
            _run_once(stage, arms, f"{name}, chosen",
                      Job(name, command, chosen, seconds=60, keeps_state=True), hows)


def _check(arms, hows, name):
    chosen = hows.get(f"{name}, chosen", [])
    squashed = chosen.count("squashed")
    best = min(arms.median(f"{name}, {moment}", "waited") for moment in MOMENTS)
    waited = arms.median(f"{name}, chosen", "waited")
    return {f"{name}: waits {waited:.1f} ms, the better moment {best:.1f}, at most "
            f"{LIMIT_WORSE_MS} more": waited <= best + LIMIT_WORSE_MS,
            f"{name}: {squashed} of {len(chosen)} undone, at most one in 20":
            bool(chosen) and squashed <= max(1, len(chosen)) * LIMIT_SQUASHES}


def run(context):
    """Measure; holds where the chosen moment is good for every program."""
    small = context.simulated
    has_torch = importlib.util.find_spec("torch") is not None and not small
    arms, hows, checks = Arms(), {}, {}
    with Stage(context) as stage:
        for name, (command, forced) in _programs(stage, has_torch).items():
            if context.only not in name:
                continue
            rounds = (FORCED_ROUNDS, CHOSEN_ROUNDS)
            if name == "torch":
                rounds = (TORCH_FORCED_ROUNDS, TORCH_CHOSEN_ROUNDS)
            _measure(stage, arms, hows, name, command, forced, (1, 2) if small else rounds)
            checks.update(_check(arms, hows, name))
        arms.show(("waited", "wall"))
        for arm, ways in hows.items():
            print(f"  {arm}: " + ", ".join(f"{way} {ways.count(way)}" for way in
                                           sorted(set(ways), key=str)))
        if not has_torch:
            print(f"  torch left out: {sys.executable} has none, or a rehearsal")
            checks["torch is there"] = small
        checks.update({f"{arm} ran every time": False for arm in arms.errors})
        return result(stage, [], checks, small and not arms.errors, ways=hows,
                      ms=arms.summaries(), figures=arms.figures, errors=arms.errors)
