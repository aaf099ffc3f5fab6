"""Group mps: CUDA MPS kept by `hearth mps`.

Five rounds of its whole life with four clients at once; start, memory and throughput of programs
plain, under MPS, under Hearth and under both; each state that a pipe folder may be in
(mps_states.py); memory limits of torch and of MPS compared; a sweep of 20 torch programs."""
import concurrent.futures
import importlib.util
import json
import statistics
import subprocess
import sys
import time

from . import build, mps_states, mps_turns
from .arms import Arms
from .broker import Broker
from .mps_stage import Stage

ROUNDS = 5
CLIENTS = 4
ARMS = ("plain", "MPS", "Hearth", "Hearth+MPS")
IMPORT_MS = 150  # what a program does before its cuInit, so that there is something to hide
LIMIT_GAIN = 1.5
LIMIT_LOSS = 0.99
SWEEP, AT_ONCE, STEPS = 20, 10, 1200
# A step of the narrow network is python's time, one of the wide is mostly the GPU's.
WIDTHS = (256, 2048)
LIMIT_MIB = 4096


def _life(stage):
    """Start, four clients at once, status, clients, limits, stop: what is left afterwards."""
    found = {"start": stage.start("--threads", "90%") * 1e3}
    clients = [stage.client("init", "context", "kernel", "enabled", "hold", arm="MPS")
               for _ in range(CLIENTS)]
    codes = [[client.rc(step) for step in ("init", "context", "kernel")] for client in clients]
    enabled = [(client.wait_for("enabled") or {}).get("value") for client in clients]
    if codes != [[0, 0, 0]] * CLIENTS or enabled != [1] * CLIENTS:
        raise RuntimeError(f"clients got {codes}, attached {enabled}")
    listed = sorted(stage.clients())
    if listed != sorted(client.pid for client in clients):
        raise RuntimeError(f"status lists {listed}")
    roll = stage.roll()
    done = stage.hearth("mps", "limit", "--mem", "8GiB", "--json")
    if json.loads(done.stdout) != {"threads": 90, "memory": {"0": "8G"}}:
        raise RuntimeError(f"limits: {done.stdout} {done.stderr}")
    if stage.hearth("mps", "stop").returncode != 1:
        raise RuntimeError("stop did not refuse")
    for client in clients:
        client.go()
        client.end()
    began = time.monotonic()
    stage.stop()
    found["stop"] = (time.monotonic() - began) * 1e3
    left = stage.leftovers([roll["supervisor"], roll["daemon"],
                            *[server["pid"] for server in roll["servers"]]])
    if left:
        raise RuntimeError(f"left: {left}")
    return found


def _first(stage, arm):
    """One program's first calls."""
    steps = stage.client(f"sleep={IMPORT_MS}", "init", "context", "kernel", "enabled", arm=arm,
                         program=stage.starter).end()
    wrong = {step: line["rc"] for step, line in steps.items() if line["rc"]}
    if wrong or "enabled" not in steps or steps["enabled"]["value"] != ("MPS" in arm):
        raise RuntimeError(f"{arm}: {steps}")
    return {"load": steps["load"]["ms"], "cuInit": steps["init"]["ms"],
            "context": steps["context"]["ms"], "first kernel": steps["kernel"]["ms"],
            "in all": sum(steps[step]["ms"] for step in ("load", "init", "context", "kernel"))}


def _memory(stage, arm, before):
    """GPU memory of each of four programs, MiB; and of the server, which came after `before`."""
    idle = stage.used_mib()
    clients = [stage.client("init", "context", "kernel", "hold", arm=arm) for _ in range(CLIENTS)]
    for client in clients:
        client.wait_for("hold")
    used = stage.used_mib()
    for client in clients:
        client.end()
    server = {"MiB of the server": idle - before} if "MPS" in arm else {}
    return {"MiB each": (used - idle) / CLIENTS, **server}


def _starts(stage, arms, rounds):
    """All arms by turns. The broker keeps the GPU warm for each; MPS runs only for its own."""
    arms.measure("Hearth, while it learns", _first, stage, "Hearth")
    for number in range(rounds):
        for arm in ARMS:
            before = stage.used_mib()
            if "MPS" in arm:
                stage.start()
            arms.measure(arm, _first, stage, arm)
            if not number:
                arms.measure(arm, _memory, stage, arm, before)
            if "MPS" in arm:
                stage.stop("--force")


def _throughput(stage, arms, small):
    stage.start()
    for pair in mps_turns.PAIRS:
        for _ in range(1 if small else mps_turns.ROUNDS[pair]):
            for count in mps_turns.JOBS[small]:
                mps_turns.contest(stage, arms, pair, count)
        if "MPS" in pair[0]:
            stage.stop("--force")


def _torch(stage, is_client, *words):
    began = time.monotonic()
    done = subprocess.run([sys.executable, build.GPU / "mps_torch.py", *map(str, words)],
                          env=stage.names(is_client), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=150,
                          check=False)
    if done.returncode:
        raise RuntimeError(f"mps_torch.py {words}: {done.stderr.decode()[-300:]}")
    return {**json.loads(done.stdout), "s": time.monotonic() - began}


def _sweep(stage, is_client):
    """Seconds for all of them, so many at a time; and what each part took the middle one."""
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        runs = list(pool.map(lambda seed: _torch(stage, is_client, "train", seed, STEPS, *WIDTHS),
                             range(SWEEP)))
    found = {"in all s": time.monotonic() - began, "runs": SWEEP, "at once": AT_ONCE}
    parts = {"import torch": [run["import_s"] for run in runs],
             "first tensor": [run["first_s"] for run in runs],
             **{f"training, {width} wide": [run[str(width)]["train_s"] for run in runs]
                for width in WIDTHS}}
    found.update({f"{part} s": statistics.median(values) for part, values in parts.items()})
    return {**found, "losses": [run[str(width)]["loss"] for run in runs for width in WIDTHS]}


def _torch_parts(stage):
    """Limits side by side, and the sweep, plain and under MPS."""
    found = {"fraction, plain": _torch(stage, False, "fill", LIMIT_MIB)}
    stage.start()
    try:
        found["fraction, MPS"] = _torch(stage, True, "fill", LIMIT_MIB)
        stage.hearth("mps", "limit", "--mem", f"{LIMIT_MIB}MiB")
        found["limit of MPS"] = _torch(stage, True, "fill", 0)
        stage.hearth("mps", "limit", "--mem", "none")
        found["sweep, MPS"] = _sweep(stage, True)
    finally:
        stage.stop("--force")
    found["sweep, plain"] = _sweep(stage, False)
    for name, row in found.items():
        print(f"  {name}: {({key: value for key, value in row.items() if key != 'losses'})}",
              flush=True)
    return found


def _checks(arms, states, torch, small):
    checks = {
        f"{1 if small else ROUNDS} rounds leave no process and no file":
            len(arms.figures.get("life", {}).get("stop", [])) == (1 if small else ROUNDS),
        "codes of each state are those recorded":
            not mps_states.differences(states),
        "doctor says what is wrong in each state": all(row["says it"] for row in states)}
    if not small:
        checks["MPS at 4 jobs at least 1.5 x plain"] = \
            arms.median("MPS", "4 at once") >= LIMIT_GAIN * arms.median("plain", "4 at once")
        # Turn against turn: what the machine does meanwhile is the same for both.
        checks["Hearth+MPS at least MPS - 1 %"] = all(
            statistics.median(mps_turns.ratios(arms, mps_turns.PAIRS[0], f"{count} at once")
                              or [0]) >= LIMIT_LOSS for count in mps_turns.JOBS[small])
    if torch:
        checks["the sweep under MPS trains the same"] = (
            torch["sweep, MPS"]["losses"] == torch["sweep, plain"]["losses"])
    return checks


def run(context):
    """Measure; holds where nothing is left behind and MPS gives what it should."""
    arms, torch, small = Arms(), {}, context.simulated
    with Broker(context) as broker, Stage(context, broker) as stage:
        broker.start()
        broker.prove_undo()
        for _ in range(1 if small else ROUNDS):
            if not arms.measure("life", _life, stage):
                stage.hearth("mps", "stop", "--force")
        _starts(stage, arms, 1 if small else ROUNDS)
        _throughput(stage, arms, small)
        states = mps_states.rows(stage)
        if importlib.util.find_spec("torch") and not small:
            try:
                torch = _torch_parts(stage)
            except (RuntimeError, ValueError, subprocess.SubprocessError) as error:
                arms.errors.setdefault("torch", []).append(str(error))
    arms.show(["start", "stop", "load", "cuInit", "context", "first kernel", "in all"])
    for arm in ARMS:
        print(f"  {arm}: " + ", ".join(f"{step} {arms.median(arm, step):.0f}"
                                       for step in arms.figures.get(arm, {}) if "MiB" in step))
    return {"ratios": mps_turns.show(arms),
            **arms.result(_checks(arms, states, torch, small), small), "states": states,
            "torch": torch, "unit": "ms; MiB; kernels a second"}
