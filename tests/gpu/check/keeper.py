"""Group keeper: what the keeper saves a new process, and what it costs the machine.

Every round measures each arm once, so that all see the same machine. Before the native arm there
is no broker and the GPU is idle for IDLE_SECONDS, else "native" would secretly be warm."""
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from . import machine, power
from .arms import Arms
from .broker import Broker, BrokerError

ROUNDS = 10
IDLE_SECONDS = 3
NOBODY = 65534
LIMIT_WARM_MS = 15
LIMIT_FIRST_RUN_MS = 5


def start_once(program, environment, *before, **options):
    """One fresh process; returns its steps in ms and its wall time."""
    begin = time.monotonic()
    done = subprocess.run([*before, str(program), "once"], env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, check=False, **options)
    wall = (time.monotonic() - begin) * 1e3
    if done.returncode:
        raise RuntimeError(f"{program}: exit {done.returncode}: {done.stdout} {done.stderr}")
    steps = json.loads(done.stdout)
    return {"cuInit": steps["cuInit_us"] / 1e3, "retain": steps["retain_us"] / 1e3,
            "first copy": steps["first copy_us"] / 1e3, "wall": wall}


def namespace_command():
    """What starts a program in mount and pid namespaces of its own; None where nothing does."""
    tool = shutil.which("unshare")
    if tool is None:
        return None
    command = [tool, "--mount", "--pid", "--fork", "--mount-proc"]
    return command if machine.output_of(*command, "/bin/true") is not None else None


def _program_for_anyone(context, folder):
    """bench/start where every user may run it."""
    os.chmod(folder, 0o755)
    target = Path(folder) / "start"
    shutil.copy(context.build / "bench/bench_start", target)
    os.chmod(target, 0o755)
    return target


def measure_rounds(context, broker, arms, rounds, idle):
    """The interleaved rounds of all arms."""
    plain = context.environment()
    preloaded = broker.environment(LD_PRELOAD=str(context.preload))
    separate = namespace_command()
    # A simulated machine is one user's.
    has_other_user = os.getuid() == 0 and not context.simulated
    if separate is None:
        print("  no unshare here: the namespace arm is left out")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        program = _program_for_anyone(context, folder)
        for _ in range(rounds):
            time.sleep(idle)
            arms.measure("native", start_once, program, plain)
            broker.start("init")
            arms.measure("keeper", start_once, program, plain)
            arms.measure("keeper, preloaded", start_once, program, preloaded)
            if has_other_user:
                arms.measure("keeper, another user", start_once, program, plain, user=NOBODY,
                             group=NOBODY, extra_groups=[])
            if separate:
                arms.measure("keeper, own namespaces", start_once, program, plain, *separate)
            broker.stop()
            broker.start("context")
            arms.measure("keeper with context", start_once, program, plain)
            broker.stop()


def measure_first_runs(context, broker, arms, rounds, idle):
    """The very first `hearth run`, which starts the broker, against native."""
    program = context.build / "bench/bench_start"
    hearth = str(context.build / "tools/hearth")
    for _ in range(rounds):
        time.sleep(idle)
        arms.measure("native again", start_once, program, context.environment())
        time.sleep(idle)
        arms.measure("first hearth run", start_once, program, broker.environment(), hearth,
                     "run", "--")
        broker.stop()


def measure_cost(context, broker, rows):
    """Watts, clocks and memory idle, with the keeper, with its contexts, and idle again: adds one
    row each."""
    for name, retain in (("idle", None), ("keeper", "init"), ("keeper with context", "context"),
                         ("idle again", None)):
        if retain:
            broker.start(retain)
        row = {"state": name, **power.sample(context.simulated)}
        if retain:
            status = broker.status()
            row["broker_rss_kib"] = power.resident_kib(status["pid"])
            row["keeper_rss_kib"] = power.resident_kib(status["keeper"]["pid"])
            row["listed_by_nvidia_smi"] = power.is_listed(status["keeper"]["pid"])
            broker.stop()
        rows.append(row)
        print("  " + "  ".join(f"{key} {value}" for key, value in row.items()), flush=True)


def run(context):
    """Measure; holds where the keeper's cuInit and the first run are within their limits."""
    rounds, idle = (2, 0) if context.simulated else (ROUNDS, IDLE_SECONDS)
    arms, cost = Arms(), []
    parts = {"rounds": lambda: measure_rounds(context, broker, arms, rounds, idle),
             "first runs": lambda: measure_first_runs(context, broker, arms, rounds, idle),
             "cost": lambda: measure_cost(context, broker, cost)}
    with Broker(context) as broker:
        for part, measure in parts.items():
            try:
                measure()
            except (BrokerError, OSError, subprocess.SubprocessError) as error:
                print(f"  {part}: {error}")
                arms.errors[part] = [str(error)]
                broker.stop()
    arms.show(("cuInit", "retain", "wall"))
    checks = {f"{arm}: cuInit at most {LIMIT_WARM_MS} ms":
              arms.median(arm, "cuInit") <= LIMIT_WARM_MS
              for arm in arms.figures if arm.startswith("keeper")}
    added = arms.median("first hearth run", "wall") - arms.median("native again", "wall")
    checks[f"first hearth run adds {added:.1f} ms, at most {LIMIT_FIRST_RUN_MS}"] = (
        added <= LIMIT_FIRST_RUN_MS)
    return {"cost": cost, **arms.result(checks, context.simulated)}
