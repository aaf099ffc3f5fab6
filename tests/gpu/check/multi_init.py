"""Group multi-init: cuInit as a function of how many GPUs are visible, with and without the
keeper."""
import time

from . import multi
from .arms import Arms
from .broker import Broker
from .keeper import start_once

ROUNDS = 4
LIMIT_MS = 40  # with the keeper and two GPUs visible


def run(context):
    """Measure; holds where two visible GPUs cost no more than the limit."""
    gpus = multi.uuids(context)
    rounds, idle = (2, 0) if context.simulated else (ROUNDS, multi.IDLE_SECONDS)
    program = context.build / "bench/bench_start"
    counts = sorted({1, 2, len(gpus)})
    arms = Arms()

    def measure(arm, count, environment):
        visible = ",".join(str(number) for number in range(count))
        arms.measure(f"{arm}, {count} visible", start_once, program,
                     {**environment, "CUDA_VISIBLE_DEVICES": visible})

    with Broker(context) as broker:
        for _ in range(rounds):
            for count in counts:
                time.sleep(idle)
                measure("native", count, context.environment())
            broker.start()
            for count in counts:
                measure("keeper", count, context.environment())
                measure("keeper, preloaded", count,
                        broker.environment(LD_PRELOAD=str(context.preload)))
            broker.stop()
    arms.show(("cuInit", "retain"))
    checks = {}
    for arm in ("keeper", "keeper, preloaded"):
        took = arms.median(f"{arm}, 2 visible", "cuInit")
        checks[f"{arm}, 2 visible: cuInit {took:.1f} ms, at most {LIMIT_MS}"] = took <= LIMIT_MS
    return {"gpus": gpus, **arms.result(checks, context.simulated)}
