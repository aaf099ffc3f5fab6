"""Group storm: many programs that make contexts at the same moment.

First, one program that waits for its context while others only speculate: none, one, two, four and
seven. For comparison eight natively at once; and, to see what the kernel would give a program if
speculation could pause, seven that are stopped in the midst of theirs. Then eight torch programs at
once, natively and learned."""
import concurrent.futures
import contextlib
import importlib.util
import json
import os
import signal
import statistics
import sys
import time

from . import build
from .ahead import AHEAD, Job, Stage, result
from .arms import Arms

OTHERS = (1, 2, 4, 7)
MOST, ROUNDS, FEW = 7, 6, 3
STARTED_S = 0.06   # after so long the others are in the midst of their contexts
OTHERS_MS = 1500   # how long the others live
VICTIM_S = 6       # who is stopped may hold what the kernel gives one process at a time
TORCH, NATIVE_STORMS, STORMS = 8, 2, 3
LIMIT_FACTOR = 1.3
LIMIT_HIDDEN_MS = 5
RETAIN = "cuDevicePrimaryCtxRetain"


def _victim(stage, settings):
    """The program that waits: its cuInit and its retain, in ms."""
    end = stage.take(Job("victim", [stage.program("driver_steps"), "init", "retain=0", "copy"],
                         stage.blank, settings, seconds=VICTIM_S))
    if end.status != 0 or b"right" not in end.stdout:
        raise RuntimeError(f"the waiting program ended with {end.status}: {end.stdout}")
    return {"cuInit": end.waited_ms("cuInit"), "retain": end.waited_ms(RETAIN)}


def _beside(stage, state, others, stops):
    """The same beside others that speculate, or that were stopped while they did."""
    job = Job("other", [stage.program("driver_steps"), "lookup", f"sleep={OTHERS_MS}", "end=_exit"],
              state)
    pids = []
    with concurrent.futures.ThreadPoolExecutor(MOST) as pool:
        ends = [pool.submit(stage.take, job, pids.append) for _ in range(others)]
        try:
            time.sleep(STARTED_S)
            if stops:
                for pid in pids:
                    os.kill(pid, signal.SIGSTOP)
            return _victim(stage, {"HEARTH_SPECULATE": "off"})
        finally:
            for pid in pids if stops else ():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            for end in ends:
                end.result()


def _native_storm(stage, count):
    """So many at once without Hearth: the middle and the last one's retain."""
    job = Job("native", [stage.context.build / "bench/bench_start", "once"])
    waited = [json.loads(end.stdout)["retain_us"] / 1e3
              for end in stage.take_all([job] * count, count)]
    return {"retain": statistics.median(waited), "last": max(waited)}


def _measure_one(stage, arms, small):
    steps = stage.program("driver_steps")
    state = stage.learn("other", [steps, "lookup", "sleep=400", "init", "retain=0"])
    off = {"HEARTH_SPECULATE": "off"}
    for number in range(2 if small else ROUNDS):
        arms.measure("alone", _victim, stage, off)
        for others in OTHERS:
            if others == MOST or number < FEW:
                arms.measure(f"{others} speculate", _beside, stage, state, others, False)
        # The simulated driver's turns are a file's lock, which who is stopped keeps.
        if number < FEW and not small:
            arms.measure(f"{MOST} stopped", _beside, stage, state, MOST, True)
        if number < FEW:
            arms.measure(f"{MOST + 1} natively", _native_storm, stage, MOST + 1)
    alone = arms.median("alone", "retain")
    beside = arms.median(f"{MOST} speculate", "retain")
    return {f"retain beside {MOST} that speculate: {beside:.0f} ms, alone {alone:.0f}: "
            f"{beside / alone:.2f} times, at most {LIMIT_FACTOR}": beside <= LIMIT_FACTOR * alone}


def _torch_storm(stage, arms, state, count):
    """So many torch programs at once; returns their ends."""
    job = Job("torch", [sys.executable, build.GPU / "first_tensor.py"], state, seconds=120)
    ends = stage.take_all([job] * count, count)
    for end in ends:
        if end.status != 0:
            raise RuntimeError(f"torch ended with {end.status}: {end.stderr[-300:]}")
        steps = json.loads(end.stdout)
        if state is not None:
            steps["driver"] = end.waited_ms()
        arms.measure(f"{count} torch, {'learned' if state else 'natively'}", lambda: steps)
    return ends


def _measure_torch(stage, arms):
    state = stage.learn("torch", [sys.executable, build.GPU / "first_tensor.py"])
    ends = []
    for number in range(max(NATIVE_STORMS, STORMS)):
        if number < NATIVE_STORMS:
            _torch_storm(stage, arms, None, TORCH)
        if number < STORMS:
            ends += _torch_storm(stage, arms, state, TORCH)
    ahead = sum(end.how("cuInit") in AHEAD and end.how(RETAIN) in AHEAD for end in ends)
    most = max(end.waited_ms() for end in ends)
    return {f"{TORCH} torch at once: {ahead} of {len(ends)} had both calls done ahead":
            ahead == len(ends),
            f"{TORCH} torch at once: at most {most:.1f} ms in the driver until the first result, "
            f"at most {LIMIT_HIDDEN_MS}": most <= LIMIT_HIDDEN_MS}


def run(context):
    """Measure; holds where both limits do."""
    arms = Arms()
    with Stage(context) as stage:
        checks = _measure_one(stage, arms, context.simulated)
        if importlib.util.find_spec("torch") is not None and not context.simulated:
            checks.update(_measure_torch(stage, arms))
        else:
            print(f"  torch left out: {sys.executable} has none, or a rehearsal")
            checks["torch is there"] = context.simulated
        arms.show(("cuInit", "retain", "last", "is_available", "first tensor", "both", "driver",
                   "import"))
        more = {f"{arm} ran every time": False for arm in arms.errors}
        return result(stage, [], {**checks, **more}, context.simulated and not arms.errors,
                      ms=arms.summaries(), figures=arms.figures, errors=arms.errors)
