"""Group multi-peers: how fast copies between GPUs and out of another process's memory are, natively
and under Hearth in runs where the first calls were done ahead."""
import json
import math
import subprocess

from . import build, multi
from .arms import Arms
from .broker import Broker

ROUNDS = 6
MIB = 256
LIMIT = 0.02  # slower than natively, in parts
RANK = {"LOCAL_RANK": "0"}  # so that a context is made ahead


def _speeds(program, size, environment):
    done = subprocess.run([program, "bandwidth", str(size)], env=environment, timeout=60,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        raise RuntimeError(f"exit {done.returncode}: {done.stdout[-500:]}")
    return json.loads(done.stdout)


def compare(arms, steps, checks, under, native="native"):
    """Adds a check for each step: faster is no fault."""
    for step in steps:
        plain, ours = arms.median(native, step), arms.median(under, step)
        share = ours / plain - 1
        checks[f"{under}, {step}: {ours:.2f} GB/s, natively {plain:.2f} ({share:+.2%}, at least "
               f"-{LIMIT:.0%})"] = -LIMIT <= share < math.inf


def run(context):
    """Measure by turns; holds where no median is slower by more than the limit."""
    multi.uuids(context)
    rounds, size = (2, 1) if context.simulated else (ROUNDS, MIB)
    program = build.build_c(context.work, "peers", "peers.c")
    arms, checks = Arms(), {}
    with Broker(context) as broker:
        broker.start()
        undo = broker.prove_undo()
        state = broker.fresh_state("peers")
        under = {**broker.environment(LD_PRELOAD=str(context.preload), **RANK),
                 "HEARTH_STATE_DIR": str(state)}
        arms.measure("learning", _speeds, program, size, under)
        for _ in range(rounds):
            arms.measure("native", _speeds, program, size, context.environment(**RANK))
            arms.measure("everything", _speeds, program, size, under)
    steps = ("there", "back", "shared")
    for arm, figures in arms.figures.items():
        print(f"  {arm:12}", *[f"{step} {arms.median(arm, step):.2f} GB/s (n={len(figures[step])})"
                               for step in steps])
    compare(arms, steps, checks, "everything")
    return {"undo": undo, **arms.result(checks, context.simulated)}
