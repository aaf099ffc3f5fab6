"""Runs programs plain and preloaded and compares exit status, stdout and stderr byte for byte.

Each program runs several times plain, from which masks are made (mask.py), then once preloaded
without a broker (`alone`) and once with a broker whose keeper is warm (`keeper`); where it is asked
for also with HEARTH_SPECULATE=always, and after runs it was learned from. A preloaded run
counts only if Hearth's log shows the program's cuInit: a preload that did nothing is no proof."""
import concurrent.futures
import functools
import json
import os
import shutil
import signal
import subprocess
import time
from typing import NamedTuple, Optional

from . import build, first_step, mask
from .broker import Broker, BrokerError

ARMS = ("alone", "keeper")
ALL_ARMS = (*ARMS, "always", "learned")
CRASH_LINES = 80
KEPT_LINES = 40
LEARNING_RUNS = 2  # before the run that counts, in the arm `learned`


class Program(NamedTuple):
    """One row of the table. `needs` is a Python module or a built file without which it is
    skipped; calls_driver is False for programs that never reach cuInit."""
    name: str
    command: list
    environment: dict = {}
    seconds: int = 120
    needs: Optional[str] = None
    calls_driver: bool = True


class Run(NamedTuple):
    status: object  # exit status, -signal, or "timeout"
    stdout: bytes
    stderr: bytes
    seconds: float
    log: list  # Hearth's records, [] for a plain run


def read_log(path):
    records = []
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                try:
                    records.append(json.loads(line))
                except ValueError:
                    records.append({"call": f"unreadable: {line!r}"})
    except FileNotFoundError:
        pass
    return records


def run_once(context, broker, program, arm, number, more_preload=None):
    """One run in a folder of its own, whose path is as long as every other's, and short: programs
    put sockets there."""
    folder = broker.folder / f"{program.name}-{arm:.5}-{number}"
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("cwd", "home", "cache"):
        (folder / name).mkdir(parents=True)
    log = folder / "hearth.log"
    environment = {
        "plain": context.environment,
        "alone": functools.partial(context.hearth_environment, "/nonexistent/socket"),
        "keeper": broker.environment,
        "always": functools.partial(broker.environment, HEARTH_SPECULATE="always"),
        "learned": broker.environment,
    }[arm](
        HOME=str(folder / "home"), TMPDIR=str(folder / "cache"),
        XDG_CACHE_HOME=str(folder / "cache"), CUDA_CACHE_PATH=str(folder / "cache/cuda"),
        TORCHINDUCTOR_CACHE_DIR=str(folder / "cache/inductor"),
        TRITON_CACHE_DIR=str(folder / "cache/triton"), CUPY_CACHE_DIR=str(folder / "cache/cupy"),
        PYTHONDONTWRITEBYTECODE="1", **program.environment)
    if arm != "plain":
        environment.update(LD_PRELOAD=str(context.preload), HEARTH_LOG=str(log))
    if more_preload:
        environment["LD_PRELOAD"] += f" {more_preload}"
        environment["PYTHONFAULTHANDLER"] = "1"
    if arm == "learned":
        environment["HEARTH_STATE_DIR"] = str(broker.folder / f"state-{program.name}")
    begin = time.monotonic()
    process = subprocess.Popen([str(word) for word in program.command], env=environment,
                               cwd=folder / "cwd", stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               start_new_session=True)
    try:
        stdout, stderr = process.communicate(timeout=program.seconds)
        status = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
        status = "timeout"
    seconds = time.monotonic() - begin
    # Paths of the run's own folder may be printed; they are not a difference.
    own = str(folder).encode()
    run = Run(status, stdout.replace(own, b"FOLDER"), stderr.replace(own, b"FOLDER"), seconds,
              read_log(log))
    shutil.rmtree(folder, ignore_errors=True)
    return run


def run_arm(context, broker, program, arm):
    """The preloaded run that counts, after those that it learns from."""
    if arm == "learned":
        broker.fresh_state(program.name)
    for number in range(LEARNING_RUNS if arm == "learned" else 0):
        run_once(context, broker, program, arm, number)
    return run_once(context, broker, program, arm, LEARNING_RUNS)


def judge(program, plain, preloaded):
    """Compare; returns the row. plain: list of Run; preloaded: dictionary of arm to Run."""
    row = {"program": program.name, "status": plain[0].status, "masks": [], "differences": [],
           "records": {}, "calls": {}, "ways": {}, "images": {},
           "seconds": {"plain": [round(run.seconds, 2) for run in plain]}}
    for run in plain:
        if run.status != plain[0].status or run.status == "timeout":
            row["differences"].append(f"plain runs end differently: "
                                      f"{[run.status for run in plain]}")
            break
    if plain[0].status != 0:
        row["differences"].append(f"plain runs fail: exit status {plain[0].status}")
    masks = []
    for stream in ("stdout", "stderr"):
        try:
            masks += mask.find_masks(stream, [getattr(run, stream) for run in plain])
        except mask.MaskError as error:
            row["differences"].append(f"plain runs: {error}")
    if len(masks) > mask.MOST_MASKS:
        row["differences"].append(f"{len(masks)} masks, at most {mask.MOST_MASKS}")
    row["masks"] = [str(one) for one in masks]
    for arm, run in preloaded.items():
        row["seconds"][arm] = round(run.seconds, 2)
        row["calls"][arm] = [record.get("call") for record in run.log]
        row["records"][arm] = len(run.log)
        row["images"][arm] = first_step.adoption({"records": run.log})
        row["ways"][arm] = sorted({record["how"] for record in run.log if "how" in record})
        if run.status != plain[0].status:
            row["differences"].append(f"{arm}: exit status {run.status}, "
                                      f"plain {plain[0].status}")
        for stream in ("stdout", "stderr"):
            difference = mask.first_difference(
                mask.apply_masks(stream, getattr(plain[0], stream), masks),
                mask.apply_masks(stream, getattr(run, stream), masks))
            if difference:
                row["differences"].append(f"{arm}: {stream}, {difference}")
        if program.calls_driver and not any(record.get("call") == "cuInit" for record in run.log):
            row["differences"].append(f"{arm}: the preload saw no cuInit")
    row["same"] = not row["differences"]
    row["stdout"] = plain[0].stdout.decode(errors="replace").splitlines()[-KEPT_LINES:]
    row["stderr"] = plain[0].stderr.decode(errors="replace").splitlines()[-KEPT_LINES:]
    return row


def run_programs(context, programs, workers, arms=ARMS, plain_runs=mask.RUNS):
    """Run all, `workers` runs at a time; returns the rows in order of the programs."""
    wanted = len(arms)
    programs = [program for program in programs if context.only in program.name]
    with Broker(context) as broker, concurrent.futures.ThreadPoolExecutor(workers) as pool:
        try:
            broker.start()
            if len(arms) > len(ARMS):
                broker.prove_undo()
        except BrokerError as error:
            print(f"  no broker, so only `alone` is compared: {error}")
            arms = ARMS[:1]
        plain = {program.name: [pool.submit(run_once, context, broker, program, "plain", number)
                                for number in range(plain_runs)] for program in programs}
        preloaded = {program.name: {arm: pool.submit(run_arm, context, broker, program, arm)
                                    for arm in arms} for program in programs}
        rows = []
        for program in programs:
            row = judge(program, [job.result() for job in plain[program.name]],
                        {arm: job.result() for arm, job in preloaded[program.name].items()})
            if len(arms) < wanted:
                row["same"] = False
                row["differences"].append("keeper: not run, no broker")
            rows.append(row)
            print_row(row)
            if any(": exit status -" in text for text in row["differences"]):
                examine_crash(context, broker, program, row)
    return rows


def examine_crash(context, broker, program, row):
    """Run a program that was killed under Hearth once more, with a second preload that says where
    it was: the last lines go into the row."""
    library = build.build_c(context.work, "libcrash.so", "crash.c", "dump.c",
                            flags=("-shared", "-fPIC"))
    run = run_once(context, broker, program, "alone", LEARNING_RUNS, library)
    lines = run.stderr.decode(errors="replace").splitlines()
    row["crash"] = {"status": run.status, "stderr": lines[-CRASH_LINES:],
                    "calls": [record.get("call") for record in run.log]}
    for line in lines[-CRASH_LINES:]:
        print(f"      {line}")


def print_row(row):
    """One line a program, its masks and differences below."""
    records = "/".join(str(count) for count in row["records"].values())
    middle = sorted(row["seconds"]["plain"])[len(row["seconds"]["plain"]) // 2]
    print(f"  {row['program']:24} exit {row['status']!s:7} {'same' if row['same'] else 'DIFFERS':8}"
          f" masks {len(row['masks'])} records {records} plain {middle:.1f} s", flush=True)
    for line in row["masks"]:
        print(f"      masked {line}")
    for line in row["differences"]:
        print(f"      {line}")
