"""Group spawned: contexts and memory of the processes of torch programs that start workers,
natively and in the first and the tenth run under Hearth; and a program that does not use the GPU
though what was learned says so: once its context was given back, memory and watts are what they
were."""
import concurrent.futures
import importlib.util
import subprocess
import sys
import time

from . import build, machine
from .ahead import Job, Stage, judge, result
from .compute import Watch

RUNS = 10
BETWEEN_WORKERS = 4  # runs 2 to 9, which are not looked at, of one program at once
NATIVES = 2
SECONDS = 180
MEMORY_SLACK_MIB = 16  # between two contexts of one program, natively too
GIVE_BACK_S, AFTER_S = 3, 5
READY_S = 1.5
SETTLE_S = 6
SAMPLES, EVERY_S = 8, 0.3
LIMIT_IDLE_MIB, LIMIT_IDLE_WATTS = 8, 3
IDLE = "idle"  # what --only calls the program that uses no GPU
PROGRAMS = {"spawn": "torch_spawn.py", "loaders": "torch_loaders.py", "compile": "torch_compile.py"}


def _chain(stage, watch, name, script, natives):
    """The runs of one program; returns {arm: [End and contexts]}."""
    command = [sys.executable, build.GPU / script]
    native = Job(f"{name}, native", command, None, seconds=SECONDS)
    state = stage.broker.fresh_state(name)
    learning = Job(name, command, state, seconds=SECONDS, keeps_state=True)
    with concurrent.futures.ThreadPoolExecutor(BETWEEN_WORKERS) as pool:
        found = {"native": list(pool.map(stage.take, [native] * natives)),
                 "run 1": [stage.take(learning)]}
        between = list(pool.map(stage.take, [learning] * (RUNS - 2)))
    found[f"run {RUNS}"] = [stage.take(learning)]
    found["between"] = between
    return {arm: [(end, watch.of(end.pid)) for end in ends] for arm, ends in found.items()}


def _is_like(ours, natives):
    """As many contexts, and each of them no larger than natively."""
    return any(ours["at_once"] == native["at_once"] and len(ours["mib"]) == len(native["mib"])
               and all(abs(mine - other) <= MEMORY_SLACK_MIB
                       for mine, other in zip(ours["mib"], native["mib"])) for native in natives)


def _torch(stage, simulated, rows, checks):
    natives = 1 if simulated else NATIVES
    with Watch(simulated) as watch, concurrent.futures.ThreadPoolExecutor() as pool:
        jobs = {name: pool.submit(_chain, stage, watch, name, script, natives)
                for name, script in PROGRAMS.items() if stage.context.only in name}
        chains = {name: job.result() for name, job in jobs.items()}
    contexts = {}
    for name, chain in chains.items():
        plain = [end for end, _ in chain["native"]]
        for arm, runs in chain.items():
            contexts[f"{name}, {arm}"] = [seen for _, seen in runs]
            if arm != "native":
                rows.append(judge(f"{name}, {arm}", plain, [end for end, _ in runs]))
        native = contexts[f"{name}, native"]
        for arm in ("run 1", f"run {RUNS}"):
            ours = contexts[f"{name}, {arm}"][0]
            checks[f"{name}, {arm}: contexts {ours['at_once']} at once of {ours['mib']} MiB, "
                   f"natively {native[0]['at_once']} of {native[0]['mib']}"] = (
                       _is_like(ours, native) and native[0]["at_once"] > 0)
    return contexts


def _sample():
    """Medians of the first GPU's memory and watts."""
    rows = []
    for _ in range(SAMPLES):
        rows += machine.nvidia_smi("memory.used", "power.draw")[:1]
        time.sleep(EVERY_S)
    return {field: sorted(float(row[field]) for row in rows)[len(rows) // 2]
            for field in ("memory.used", "power.draw") if rows}


def _wrong_profile(stage, simulated, checks):
    """The machine before, while a context is held that nobody asks for, and after the deadline."""
    steps = stage.program("driver_steps")
    state = stage.learn("wrong", [steps, "lookup", "sleep=400", "init", "retain=0"])
    words = [str(steps), "lookup", "sleep=30000"]
    seen = {}
    told = stage.broker.folder / "wrong.txt"

    def hold(settings, moments):
        environment = {**stage.broker.environment(), **settings, "HEARTH_LOG_LEVEL": "debug",
                       "LD_PRELOAD": str(stage.context.preload), "HEARTH_STATE_DIR": str(state)}
        with told.open("a") as messages, subprocess.Popen(
                words, env=environment, stdin=subprocess.DEVNULL, stderr=messages) as process:
            begin = time.monotonic()
            for name, seconds in moments:
                time.sleep(max(0, begin + seconds - time.monotonic()))
                seen[name] = _sample() if not simulated else {}
            process.kill()

    settle_s, give_back_s, after_s = (0, 1, 0.5) if simulated else (SETTLE_S, GIVE_BACK_S, AFTER_S)
    hold({"HEARTH_SPECULATE": "off"}, [("before", settle_s)])
    # The first sample ends before the deadline.
    hold({"HEARTH_GIVE_BACK": str(GIVE_BACK_S + SAMPLES)}, [("held", READY_S)])
    hold({"HEARTH_GIVE_BACK": str(give_back_s)}, [("given back", give_back_s + after_s)])
    hold({"HEARTH_SPECULATE": "off"}, [("afterwards", settle_s)])
    made, back = (told.read_text().count(words) for words in (
        "context on device 0: 0 after", "context on device 0 is given back"))
    checks[f"nobody asked for the {made} contexts of 2 runs, {back} was given back before the end "
           "of its run"] = (made, back) == (2, 1)
    if simulated:
        return seen
    base = {field: min(seen["before"][field], seen["afterwards"][field])
            for field in seen["before"]}
    held, back = seen["held"]["memory.used"], seen["given back"]
    checks[f"a context is held for nobody: {held:.0f} MiB, before {base['memory.used']:.0f}"] = (
        held > base["memory.used"] + 100)
    for field, unit, limit in (("memory.used", "MiB", LIMIT_IDLE_MIB),
                               ("power.draw", "W", LIMIT_IDLE_WATTS)):
        checks[f"{AFTER_S} s after the deadline: {back[field]:.1f} {unit}, else "
               f"{base[field]:.1f}, at most {limit} more"] = back[field] <= base[field] + limit
    return seen


def run(context):
    """Holds where contexts and memory are as natively, and a wrong guess left nothing."""
    rows, checks, contexts = [], {}, {}
    with Stage(context) as stage:
        idle = (_wrong_profile(stage, context.simulated, checks)
                if context.only in IDLE else {})
        for name, figures in idle.items():
            print(f"  {name}: {figures}")
        if not any(context.only in name for name in PROGRAMS):
            pass
        elif importlib.util.find_spec("torch") is not None:
            contexts = _torch(stage, context.simulated, rows, checks)
        else:
            print(f"  torch left out: {sys.executable} has none")
            checks["torch is there"] = context.simulated
        return result(stage, rows, checks, context.simulated, contexts=contexts, idle=idle)
