"""Group speculate: what a program waits for its first calls natively, in its first run under
Hearth (which learns), and in later runs (which have them done ahead).

Every round starts from nothing: no broker, an idle GPU, no profile. It measures the native run,
then runs 1, 2 and 3 with the keeper warm and a state folder of the round's own."""
import importlib.util
import json
import subprocess
import sys
import time

from . import build
from .arms import Arms
from .broker import Broker, BrokerError

ROUNDS = 10
IDLE_SECONDS = 5
RUNS = ("run 1", "run 2", "run 3")
LIMITS_MS = {"run 1": (165, 165), "run 2": (20, 30), "run 3": (20, 30)}  # median, p95
LIMIT_DRIVER_MS = 1
LIMIT_AT_ONCE_MS = 2
LIMIT_LATE_MS = 5


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
        for line in log.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if record["event"] == "exit":
                steps["driver"] = record["cuda_visible_us"] / 1e3
    return steps


def _round(context, broker, arms, take, name, idle):
    """One round of one program; take(environment, log) runs it once."""
    time.sleep(idle)
    arms.measure(f"{name}, native", take, context.environment())
    broker.start()
    preloaded = broker.environment(LD_PRELOAD=str(context.preload))
    preloaded["HEARTH_STATE_DIR"] = str(broker.fresh_state("round"))
    arms.measure(f"{name}, keeper only", take, {**preloaded, "HEARTH_SPECULATE": "off"},
                 broker.folder / "log")
    for run_name in RUNS:
        arms.measure(f"{name}, {run_name}", take, preloaded, broker.folder / "log")
    broker.stop()


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
        "C at once": lambda environment, log=None: c_once(program, "once", environment, log),
        "C after 150 ms": lambda environment, log=None: c_once(program, "late", environment, log),
    }
    if has_torch:
        programs["torch"] = torch_once
    arms, checks = Arms(), {}
    with Broker(context) as broker:
        broker.start()
        undo = broker.prove_undo()
        broker.stop()
        for _ in range(rounds):
            for name, take in programs.items():
                try:
                    _round(context, broker, arms, take, name, idle)
                except BrokerError as error:
                    print(f"  {name}: {error}", flush=True)
                    arms.errors.setdefault(f"{name}, broker", []).append(str(error))
                    broker.stop()
    arms.show(("is_available", "first tensor", "both", "driver", "import", "wall"))
    _check_c(arms, checks)
    if has_torch:
        _check_torch(arms, checks)
    else:
        print(f"  torch left out: {sys.executable} has none")
        if not context.simulated:
            checks["torch is there"] = False
    return {"undo": undo, **arms.result(checks, context.simulated)}
