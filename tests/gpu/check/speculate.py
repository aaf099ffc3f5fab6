"""Group speculate: what a program waits for its first calls natively, in its first run under
Hearth (which learns), and in later runs (which have them done ahead).

A native run has no broker and an idle GPU. The runs under Hearth have a warm keeper, the verdict of
the undo self-test, and a state folder of their own: empty before run 1. A program that takes long
learns in some of the rounds only; in the others run 2 has a copy of what one run left."""
import importlib.util
import json
import math
import shutil
import subprocess
import sys
import time
from typing import Callable, NamedTuple

from . import build, statistics_of
from .arms import Arms
from .broker import Broker, BrokerError

ROUNDS = 10
IDLE_SECONDS = 5
FEW = 3  # rounds of what takes long and isn't what this group is about
AHEAD = ("cuInit", "cuDevicePrimaryCtxRetain")  # what has to be speculated in later runs
RUNS = ("run 1", "run 2", "run 3")
LIMITS_MS = {"run 1": (165, 165), "run 2": (20, 30), "run 3": (20, 30)}  # median, p95
LIMIT_DRIVER_MS = 1
LIMIT_AT_ONCE_MS = 2
LIMIT_LATE_MS = 5
CHANCE = 0.05
LIMIT_SLOWER = 0.03  # the import, which is seconds of other work, in parts of the native one


class Program(NamedTuple):
    """take(environment, log) runs it once; in how many rounds it runs natively and from nothing,
    and whether its first call comes late enough for its calls to be done ahead."""
    take: Callable
    native_rounds: int
    learning_rounds: int
    has_keeper_arm: bool
    can_speculate: bool


def torch_once(environment, log=None):
    """first_tensor.py's own figures and its whole time; with a log also the driver's share."""
    return _once([sys.executable, build.GPU / "first_tensor.py"], environment, log)


def c_once(program, word, environment, log=None):
    """The same of bench/start: `driver` is what it waited in cuInit and retain."""
    steps = _once([program, word], environment, log)
    waited = {name.removesuffix("_us"): us / 1e3 for name, us in steps.items()
              if name.endswith("_us")}
    return {"driver": waited["cuInit"] + waited["retain"], "cuInit": waited["cuInit"],
            "retain": waited["retain"], "wall": steps["wall"]}


def _once(command, environment, log):
    if log:
        log.unlink(missing_ok=True)
        environment = {**environment, "HEARTH_LOG": str(log)}
    begin = time.monotonic()
    done = subprocess.run([str(word) for word in command], env=environment, timeout=60,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    wall = (time.monotonic() - begin) * 1e3
    if done.returncode:
        raise RuntimeError(f"exit {done.returncode}: {done.stdout} {done.stderr[-500:]}")
    steps = {**json.loads(done.stdout), "wall": wall}
    if log:
        steps["driver"] = _waited_us(log) / 1e3
    return steps


def _waited_us(log):
    """What the program waited in the driver until its first result. What comes later, up to the
    releases at its exit, it would have waited natively too, and is no part of its start."""
    records = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    results = [record["first_result_us"] for record in records if record["event"] == "exit"]
    result_us = max((us for us in results if us), default=math.inf)
    return sum(record["visible_us"] for record in records
               if record["event"] == "call" and record["at_us"] <= result_us)


def _served(log):
    """How each first call was served, by name."""
    try:
        records = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError):
        return {}
    return {record["call"]: record["how"] for record in records if record["event"] == "call"}


def _copy_state(source, target):
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)


def _round(context, broker, arms, served, name, program, number, idle):
    """One round of one program."""
    if number < program.native_rounds:
        broker.stop()
        time.sleep(idle)
        arms.measure(f"{name}, native", program.take, context.environment())
    if not broker.process:
        broker.start()
    learned, log = broker.folder / "learned", broker.folder / "log"
    is_learning = number < program.learning_rounds
    state = broker.fresh_state("round")
    if not is_learning:
        _copy_state(learned, state)
    environment = broker.environment(LD_PRELOAD=str(context.preload))
    environment["HEARTH_STATE_DIR"] = str(state)
    if program.has_keeper_arm:
        arms.measure(f"{name}, keeper only", program.take,
                     {**environment, "HEARTH_SPECULATE": "off"}, log)
    for run_name in RUNS if is_learning else RUNS[1:2]:
        arm = f"{name}, {run_name}"
        arms.measure(arm, program.take, environment, log)
        served.setdefault(arm, []).append(_served(log))
        if run_name == RUNS[0]:
            _copy_state(state, learned)


def _check_served(programs, served, checks):
    """Without this a group that never speculated would pass where the limits are wide."""
    for name, program in programs.items():
        for run_name in RUNS[1:] if program.can_speculate else ():
            runs = served.get(f"{name}, {run_name}", [])
            good = sum(all(run.get(call) == "speculated" for call in AHEAD) for run in runs)
            ways = sorted({run.get(call, "no record") for run in runs for call in AHEAD})
            checks[f"{name}, {run_name}: {good} of {len(runs)} speculated "
                   f"({', '.join(ways)})"] = bool(runs) and good == len(runs)


def _check_not_slower(arms, checks, step, slack):
    """The import's own time varies by half from run to run, so medians of ten compare chance.
    Slower is what is so by its lower quartile, and by an order of the figures that chance hardly
    makes."""
    native = arms.figures.get("torch, native", {}).get(step, [])
    later = arms.figures.get("torch, run 2", {}).get(step, [])
    quartiles = [statistics_of.lower_quartile(values) for values in (later, native)]
    chance = statistics_of.chance_of_slower(later, native)
    checks[f"torch, run 2, {step}: lower quartile {quartiles[0]:.0f} ms, natively "
           f"{quartiles[1]:.0f} (N = {len(later)}, {len(native)}; rank sum: chance {chance:.2f}); "
           f"fails above {slack:.0%} more with a chance under {CHANCE}"] = bool(
               later and native
               and (quartiles[0] <= quartiles[1] * (1 + slack) or chance >= CHANCE))


def _check_torch(arms, checks):
    for run_name, (median, p95) in LIMITS_MS.items():
        arm = f"torch, {run_name}"
        checks[f"{arm}: first calls {arms.median(arm, 'both'):.1f} ms, at most {median}"] = (
            arms.median(arm, "both") <= median)
        checks[f"{arm}: p95 {arms.p95(arm, 'both'):.1f} ms, at most {p95}"] = (
            arms.p95(arm, "both") <= p95 or run_name == "run 1")
    for run_name in RUNS[1:]:
        waited = arms.median(f"torch, {run_name}", "driver")
        checks[f"torch, {run_name}: in the driver {waited:.2f} ms, at most "
               f"{LIMIT_DRIVER_MS}"] = waited <= LIMIT_DRIVER_MS
    for step, slack in (("import", LIMIT_SLOWER), ("wall", 0)):
        _check_not_slower(arms, checks, step, slack)


def _check_c(arms, checks):
    added = arms.median("C at once, run 3", "driver") - arms.median("C at once, keeper only",
                                                                    "driver")
    checks[f"C at once, run 3: {added:+.1f} ms against keeper only, at most "
           f"{LIMIT_AT_ONCE_MS}"] = added <= LIMIT_AT_ONCE_MS
    waited = arms.median("C after 150 ms, run 3", "driver")
    checks[f"C after 150 ms, run 3: in the driver {waited:.1f} ms, at most "
           f"{LIMIT_LATE_MS}"] = waited <= LIMIT_LATE_MS


def run(context):
    """Measure; holds where every limit of the later runs does."""
    has_torch = importlib.util.find_spec("torch") is not None
    rounds, idle = (2, 0) if context.simulated else (ROUNDS, IDLE_SECONDS)
    program = context.build / "bench/bench_start"
    programs = {
        "C at once": Program(
            lambda environment, log=None: c_once(program, "once", environment, log),
            FEW, rounds, has_keeper_arm=True, can_speculate=False),
        "C after 150 ms": Program(
            lambda environment, log=None: c_once(program, "late", environment, log),
            FEW, rounds, has_keeper_arm=True, can_speculate=True),
    }
    if has_torch:
        programs["torch"] = Program(torch_once, rounds, FEW, has_keeper_arm=False,
                                    can_speculate=True)
    arms, served, checks = Arms(), {}, {}
    with Broker(context) as broker:
        undo = broker.prove_undo()
        checks[f"the undo self-test: {undo['proof']}"] = undo["proof"] == "passed"
        for name, one in programs.items():
            for number in range(rounds):
                try:
                    _round(context, broker, arms, served, name, one, number, idle)
                except (BrokerError, OSError) as error:
                    print(f"  {name}: {error}", flush=True)
                    arms.errors.setdefault(f"{name}, broker", []).append(str(error))
                    broker.stop()
    arms.show(("is_available", "first tensor", "both", "driver", "NVML", "import", "wall"))
    _check_served(programs, served, checks)
    _check_c(arms, checks)
    if has_torch:
        _check_torch(arms, checks)
    else:
        print(f"  torch left out: {sys.executable} has none")
        if not context.simulated:
            checks["torch is there"] = False
    return {"undo": undo, "served": served, **arms.result(checks, context.simulated)}
