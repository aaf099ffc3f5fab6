"""Group prefetch-same: with images loaded ahead, programs compute what they compute natively.

Losses of 20 deterministic steps, bit for bit, with the share of images handed over in those very
runs; captures that are made while images load; and a virtual environment whose copy, with another
prefix, other inodes and times, gets every image that was learned in the original."""
import importlib.util
import json
import os
import shutil
import subprocess
import sys

from . import build, fidelity, first_step
from .broker import Broker
from .fidelity_other import TARGETS

WAYS = ("eager", "compile", "graph")
WORKERS = 3
SECONDS = 150
LIMIT_ADOPTED = 0.90
ROUNDS = 200  # captures that were made while images were loaded
CAPTURE_MS = 150  # how long a program captures
CAPTURE_RUNS = 30
LEARNING_RUNS = 2  # the second one begins ahead where the first lookup comes too late
LIBRARIES = 4
_LOADER = ("import ctypes, os, sys; "
           "folder = os.path.join(os.path.dirname(os.path.dirname(sys.executable)), 'lib'); "
           "print([ctypes.CDLL(os.path.join(folder, f'libcopied{number}.so')).run() "
           f"for number in range({LIBRARIES})])")


def _losses(context, checks):
    """Eager, compiled and captured steps, plain and learned."""
    if importlib.util.find_spec("torch") is None:
        print(f"  losses left out: {sys.executable} has no torch")
        checks["torch is there"] = context.simulated
        return []
    programs = [fidelity.Program(f"losses-{way}",
                                 [sys.executable, build.GPU / "torch_losses.py", way],
                                 seconds=SECONDS) for way in WAYS]
    rows = fidelity.run_programs(context, programs, WORKERS, ("learned",), plain_runs=2)
    for row in rows:
        adopted, asked = row["images"].get("learned", (0, 0))
        checks[f"{row['program']}: the same"] = row["same"]
        checks[f"{row['program']}: {adopted} of {asked} images handed over, at least "
               f"{LIMIT_ADOPTED:.0%}"] = asked > 0 and adopted >= LIMIT_ADOPTED * asked
    return rows


def _run(command, environment, log):
    """One run; returns its stdout and Hearth's records."""
    log.unlink(missing_ok=True)
    done = subprocess.run([str(word) for word in command],
                          env={**environment, "HEARTH_LOG": str(log)}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=SECONDS,
                          check=False, text=True)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: exit {done.returncode}: {done.stdout} {done.stderr}")
    return done.stdout, {"records": first_step.read_log(log)}


def _overlapping(said, records):
    """How many of the rounds fell into the time that Hearth's thread took for the images which
    the program was handed: it begins with them when the context is there, as the rounds do."""
    hidden_us = sum(record["hidden_us"] for record in records["records"]
                    if record.get("how") == "prefetched" and record["call"] in first_step.LOADS)
    took_us = max(1, said["last_us"] - said["first_us"])
    return int(said["rounds"] * min(1.0, hidden_us / took_us))


def _captures(context, broker, checks):
    """Programs that capture while images load, until enough rounds did."""
    cuda = build.cuda_folder()
    libraries = next((cuda / name for name in ("lib64", "lib") if (cuda / name).is_dir()), cuda)
    program = build.build_cuda(context.work, "capture_rounds", "capture_rounds.cu", "-std=c++17",
                               *TARGETS, f"-L{libraries}", "-lcublas",
                               "-Xlinker", f"-rpath,{libraries}")
    environment = {**broker.environment(LD_PRELOAD=str(context.preload)),
                   "HEARTH_STATE_DIR": str(broker.fresh_state("captures"))}
    runs, overlapping, log = [], 0, broker.folder / "captures.log"
    for number in range(CAPTURE_RUNS):
        stdout, records = _run([program, CAPTURE_MS], environment, log)
        said = json.loads(stdout)
        said["overlapping"] = _overlapping(said, records) if number >= LEARNING_RUNS else 0
        said["images"] = first_step.adoption(records)
        runs.append(said)
        overlapping += said["overlapping"]
        if overlapping >= ROUNDS:
            break
    rounds = sum(run["rounds"] for run in runs)
    print(f"  captures: {rounds} rounds in {len(runs)} runs, all right; {overlapping} while "
          f"images loaded; images handed over in the last run: {runs[-1]['images']}", flush=True)
    checks[f"captures: {overlapping} while images loaded, at least {ROUNDS}"] = (
        overlapping >= ROUNDS)
    return runs


def _make_environment(folder, libraries):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    for library in libraries:
        shutil.copyfile(library, folder / "lib" / library.name)


def _copied(context, broker, checks):
    """A virtual environment, learned from; then a copy of it."""
    libraries = [build.build_cuda(context.work, f"libcopied{number}.so", "copied.cu", "-shared",
                                  "-std=c++17", "-Xcompiler", "-fPIC", f"-DNUMBER={number}",
                                  *TARGETS) for number in range(LIBRARIES)]
    places = [broker.folder / "one", broker.folder / "another/place"]
    for place in places:
        _make_environment(place, libraries)
    for library in libraries:
        os.utime(places[1] / "lib" / library.name, (1, 1))
    environment = {**broker.environment(LD_PRELOAD=str(context.preload)),
                   "HEARTH_STATE_DIR": str(broker.fresh_state("copied"))}
    log, said = broker.folder / "copied.log", []
    for place in (*[places[0]] * LEARNING_RUNS, places[0], places[1]):
        stdout, records = _run([place / "bin/python", "-c", _LOADER], environment, log)
        said.append({"place": str(place), "stdout": stdout,
                     "images": first_step.adoption(records)})
        print(f"  copied: {stdout.strip()}, images {said[-1]['images']}", flush=True)
    adopted, asked = said[-1]["images"]
    checks["copied: the same results"] = len({one["stdout"] for one in said}) == 1
    checks[f"copied: {adopted} of {asked} images handed over in the copy, all of "
           f"{LIBRARIES}"] = adopted == asked and asked >= LIBRARIES
    return said


def run(context):
    """All three; holds where every check does."""
    checks, errors = {}, []
    result = {"rows": _losses(context, checks)}
    with Broker(context) as broker:
        broker.start()
        undo = broker.prove_undo()
        checks[f"the undo self-test: {undo['proof']}"] = undo["proof"] == "passed"
        for name, part in (("captures", _captures), ("copied", _copied)):
            if context.simulated or not os.path.exists(build.NVCC):
                print(f"  {name} left out: that takes a GPU and nvcc")
                checks[f"{name}: nvcc is there"] = context.simulated
                continue
            try:
                result[name] = part(context, broker, checks)
            except (RuntimeError, ValueError, OSError, build.BuildError,
                    subprocess.SubprocessError) as error:
                print(f"  {name}: {error}", flush=True)
                errors.append(f"{name}: {error}")
                checks[f"{name}: ran"] = False
    for text, holds in checks.items():
        print(f"  {'holds' if holds else 'FAILS'}: {text}")
    return {**result, "checks": checks, "errors": errors,
            "ok": all(checks.values()) or context.simulated}
