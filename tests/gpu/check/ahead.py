"""What the groups about speculation stand on: programs that run by the hundred, natively or with
what Hearth has learned about them, and the comparison of how they ended.

A learned run gets a copy of a state folder (the template), so that no run teaches the next."""
import collections
import concurrent.futures
import itertools
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple, Optional

from . import build, fidelity
from .broker import Broker

AHEAD = ("speculated", "adopted")
LEFT_OUT = "left out"
OWN_LINE = b"hearth["  # begins each of Hearth's own messages
SHOWN = 4        # differences of one row that are printed and kept
CRASH_LINES = 80


class Job(NamedTuple):
    """One run. `template` is a state folder, None for a native run; with keeps_state it is used as
    it is and learns. What is run through_tool, by `hearth run`, gets its preload from that."""
    name: str
    command: list
    template: Optional[Path] = None
    settings: dict = {}
    seconds: int = 30
    shows_crash: bool = False
    keeps_state: bool = False
    through_tool: bool = False
    tells: bool = False  # Hearth's own messages are asked for, and kept apart


class End(NamedTuple):
    """How it ended: exit status, -signal, "timeout", or LEFT_OUT where it was not run for lack of
    time; its log's records; its pid."""
    status: object
    stdout: bytes
    stderr: bytes
    seconds: float
    records: list
    pid: int
    messages: str = ""

    def how(self, call):
        """How the process's own first such call was served, None where there is no record of one;
        its children write to the same log."""
        return next((record["how"] for record in self.records if record.get("call") == call
                     and record.get("pid", self.pid) == self.pid), None)

    def waited_ms(self, *calls):
        """What the program waited in these calls, or in all of them until its first result."""
        results = [record["first_result_us"] for record in self.records
                   if record.get("event") == "exit" and record.get("first_result_us")]
        until = max(results, default=float("inf"))
        return sum(record["visible_us"] for record in self.records
                   if record.get("event") == "call" and record["at_us"] <= until
                   and (not calls or record["call"] in calls)) / 1e3

    def said(self):
        return self.status, self.stdout, self.stderr


class Stage:
    """A broker with a warm keeper, the undo proven, and folders for the runs."""

    def __init__(self, context):
        self.context = context
        self.broker = Broker(context)
        self.numbers = itertools.count()
        self.undo = None
        self.end = time.monotonic() + context.seconds  # no run begins later

    def __enter__(self):
        self.broker.__enter__()
        try:
            self.broker.start()
            self.undo = self.broker.prove_undo()
            self.blank = self.broker.fresh_state("blank")
        except BaseException:
            self.broker.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.broker.__exit__()

    def program(self, name):
        """A program of tests/programs."""
        return self.context.build / "tests/programs" / name

    def crash_library(self):
        return build.build_c(self.context.work, "libcrash.so", "crash.c", "dump.c",
                             flags=("-shared", "-fPIC"))

    def learn(self, name, command, runs=2, **settings):
        """The state folder after so many runs of the command."""
        state = self.broker.fresh_state(name)
        for _ in range(runs):
            end = self.take(Job(name, command, state, settings, keeps_state=True, seconds=60))
            if end.status != 0:
                raise RuntimeError(f"{name}: what was to be learned ended with {end.status}: "
                                   f"{end.stdout[-300:]} {end.stderr[-300:]}")
        return state

    def _environment(self, job, folder):
        own = {"HOME": str(folder), "TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1",
               "XDG_CACHE_HOME": str(folder), **job.settings}
        if job.template is None:
            environment = self.context.environment(**own)
        else:
            environment = self.broker.environment(HEARTH_LOG=str(folder / "log"), **own)
            if not job.through_tool:
                environment["LD_PRELOAD"] = str(self.context.preload)
            if job.tells:
                environment["HEARTH_LOG_LEVEL"] = "debug"
            state = job.template
            if not job.keeps_state:
                state = folder / "state"
                shutil.copytree(job.template, state)
            environment["HEARTH_STATE_DIR"] = str(state)
        if job.shows_crash:
            environment["LD_PRELOAD"] = " ".join(
                [*environment.get("LD_PRELOAD", "").split(), str(self.crash_path)])
        return environment

    def take(self, job, watch=None):
        """Run it once, in a folder of its own; watch(pid) is called once it has started."""
        if time.monotonic() > self.end:
            return End(LEFT_OUT, b"", b"", 0, [], 0)
        folder = self.broker.folder / f"r{next(self.numbers):06}"
        folder.mkdir()
        environment = self._environment(job, folder)
        begin = time.monotonic()
        process = subprocess.Popen([str(word) for word in job.command], env=environment,
                                   cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, start_new_session=True)
        if watch:
            watch(process.pid)
        try:
            stdout, stderr = process.communicate(timeout=job.seconds)
            status = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            status = "timeout"
        seconds = time.monotonic() - begin
        records = fidelity.read_log(folder / "log")
        own = str(folder).encode()
        shutil.rmtree(folder, ignore_errors=True)
        lines = stderr.splitlines(keepends=True)
        messages = [line for line in lines if job.tells and line.startswith(OWN_LINE)]
        stderr = b"".join(line for line in lines if line not in messages)
        return End(status, stdout.replace(own, b"FOLDER"), stderr.replace(own, b"FOLDER"), seconds,
                   records, process.pid, b"".join(messages).decode(errors="replace"))

    def take_all(self, jobs, workers):
        """All of them, so many at a time; the ends in the jobs' order."""
        if any(job.shows_crash for job in jobs):
            self.crash_path = self.crash_library()
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            return list(pool.map(self.take, jobs))


def difference(end, natives):
    """None where it ended as one of the native runs did, else what differs from the first."""
    if any(end.said() == native.said() for native in natives):
        return None
    first = natives[0]
    for name, ours, theirs in zip(("status", "stdout", "stderr"), end.said(), first.said()):
        if ours != theirs:
            return f"{name} {ours!r:.300} against {theirs!r:.300}"
    return None


def ways(ends, call="cuInit"):
    """How often the first such call was served in which way."""
    return dict(collections.Counter(end.how(call) or "no record" for end in ends
                                    if end.status != LEFT_OUT))


def judge(name, natives, ends, call="cuInit"):
    """The row of runs that should all end as one of the native ones."""
    done = [end for end in ends if end.status != LEFT_OUT]
    differing = [(text, end) for end in done if (text := difference(end, natives))]
    row = {"name": name, "runs": len(ends), "left_out": len(ends) - len(done),
           "native_runs": len(natives), "same": len(done) - len(differing),
           "ways": ways(ends, call),
           "max_s": round(max((end.seconds for end in ends), default=0), 2),
           "native_max_s": round(max((end.seconds for end in natives), default=0), 2),
           "differences": [text for text, _ in differing[:SHOWN]], "crashes": []}
    for native in natives:
        if native.status in ("timeout", LEFT_OUT):
            row["differences"].append(f"a native run: {native.status}")
            break
    if row["left_out"]:
        row["differences"].append(f"{row['left_out']} runs left out: the group's time was over")
    for _, end in differing:
        lines = end.stderr.decode(errors="replace").splitlines()
        if any(line.startswith("crash: ") for line in lines):
            row["crashes"].append({"status": end.status, "stderr": lines[-CRASH_LINES:],
                                   "calls": [[record.get("call"), record.get("how")]
                                             for record in end.records]})
    row["ok"] = not row["differences"] and bool(ends) and bool(natives)
    print_row(row)
    return row


def print_row(row):
    served = ", ".join(f"{way} {count}" for way, count in row["ways"].items())
    print(f"  {row['name']:28} {row['same']} of {row['runs']} as natively "
          f"(at most {row['max_s']} s, natively {row['native_max_s']}); {served}", flush=True)
    for text in row["differences"]:
        print(f"      {text}")
    for crash in row["crashes"][:1]:
        for line in crash["stderr"]:
            print(f"      {line}")


def result(stage, rows, checks, simulated, **more):
    """A group's result; prints which checks hold. A rehearsal is about the programs' ends, not
    about figures."""
    checks = {f"the undo self-test: {stage.undo['proof']}": stage.undo["proof"] == "passed",
              **checks}
    for text, holds in checks.items():
        print(f"  {'holds' if holds else 'FAILS'}: {text}")
    same = all(row["ok"] for row in rows)
    return {"rows": rows, "checks": checks, **more,
            "ok": same and (simulated or all(checks.values()))}
