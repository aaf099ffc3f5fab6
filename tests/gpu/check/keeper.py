"""Group keeper: what the keeper saves a new process, and what it costs the machine.

Every round measures each arm once, so that all see the same machine. Before the native arm there
is no broker and the GPU is idle for IDLE_SECONDS, else "native" would secretly be warm."""
import json
import math
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from . import machine, power, statistics_of
from .broker import Broker, BrokerError

ROUNDS = 10
IDLE_SECONDS = 5
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


class Arms:
    """Figures by arm and step. An arm whose program fails is named and loses nobody else's."""

    def __init__(self):
        self.figures = {}
        self.errors = {}

    def measure(self, arm, program, environment, *before, **options):
        try:
            steps = start_once(program, environment, *before, **options)
        except (RuntimeError, ValueError, OSError, subprocess.SubprocessError) as error:
            if arm not in self.errors:
                print(f"  {arm}: {error}")
            self.errors.setdefault(arm, []).append(str(error))
            return
        for step, value in steps.items():
            self.figures.setdefault(arm, {}).setdefault(step, []).append(value)

    def median(self, arm, step):
        """The median, or infinity where the arm has no figures."""
        return statistics_of.summary(self.figures.get(arm, {}).get(step, [])).get(
            "median", math.inf)

    def summaries(self):
        return {arm: {step: statistics_of.summary(values) for step, values in steps.items()}
                for arm, steps in self.figures.items()}

    def show(self, steps):
        for arm, figures in self.figures.items():
            for step in steps:
                print(statistics_of.line(f"{arm}, {step}", figures[step], "ms"))


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
            arms.measure("native", program, plain)
            broker.start("init")
            arms.measure("keeper", program, plain)
            arms.measure("keeper, preloaded", program, preloaded)
            if has_other_user:
                arms.measure("keeper, another user", program, plain, user=NOBODY, group=NOBODY,
                             extra_groups=[])
            if separate:
                arms.measure("keeper, own namespaces", program, plain, *separate)
            broker.stop()
            broker.start("context")
            arms.measure("keeper with context", program, plain)
            broker.stop()


def measure_first_runs(context, broker, arms, rounds, idle):
    """The very first `hearth run`, which starts the broker, against native."""
    program = context.build / "bench/bench_start"
    hearth = str(context.build / "tools/hearth")
    for _ in range(rounds):
        time.sleep(idle)
        arms.measure("native again", program, context.environment())
        time.sleep(idle)
        arms.measure("first hearth run", program, broker.environment(), hearth, "run", "--")
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
    checks.update({f"{arm} ran every time": False for arm in arms.errors})
    for text, holds in checks.items():
        print(f"  {'holds' if holds else 'FAILS'}: {text}")
    return {"ms": arms.summaries(), "figures": arms.figures, "errors": arms.errors, "cost": cost,
            "checks": checks,
            "ok": all(checks.values()) or context.simulated}
