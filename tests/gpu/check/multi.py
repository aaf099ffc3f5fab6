"""What the groups of `gpu-check --multi` share: the GPUs' names, programs of several processes that
print lines of JSON, and which contexts each process may have."""
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from . import build, machine

SECONDS = 120  # for one program
IDLE_SECONDS = 5  # before a native run, so that it isn't warm


class NotEnough(Exception):
    """Fewer than two GPUs."""


def uuids(context):
    """The UUIDs that programs can name the GPUs by, in the driver's order."""
    program = build.build_c(context.work, "environment", "environment.c")
    done = subprocess.run([program, "start", "HEARTH_NOTHING", "-"], env=context.environment(),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True,
                          timeout=SECONDS, text=True)
    found = []
    for digits in re.findall(r"^result device \d+ 0 ([0-9a-f]{32})$", done.stdout, re.MULTILINE):
        ends = (0, 8, 12, 16, 20, 32)
        found.append("GPU-" + "-".join(digits[begin:end] for begin, end in zip(ends, ends[1:])))
    if len(found) < 2:
        raise NotEnough(f"{len(found)} GPUs, at least 2 are needed: {done.stdout}")
    return found


def names(context, gpus):
    """The same GPUs, as gpus_of.py names them."""
    return [str(number) for number in range(len(gpus))] if context.simulated else gpus


def has_torch():
    """Whether the python that runs this has torch."""
    done = machine.output_of(sys.executable, "-c", "import torch.distributed.run; print(1)",
                             timeout=SECONDS)
    return bool(done)


def torchrun(count, *words):
    """The command for so many ranks on this host."""
    beside = Path(sys.executable).parent / "torchrun"
    command = [beside] if beside.exists() else [sys.executable, "-m", "torch.distributed.run"]
    return [*command, "--standalone", f"--nproc-per-node={count}", *words]


def start(command, environment):
    """The program, running, in a session of its own."""
    return subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                            env={**environment, "LAUNCHED": str(time.monotonic())},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            start_new_session=True)


def finish(process):
    """The lines of JSON that it printed. Raises RuntimeError with what else it said."""
    try:
        said, complaint = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, complaint = process.communicate()
    lines = [json.loads(line) for line in said.splitlines() if line.startswith(b"{")]
    if process.returncode or not lines:
        raise RuntimeError(f"exit {process.returncode}: {said[-500:]} {complaint[-1500:]}")
    return lines


def wrong_contexts(lines, who, at, expected):
    """What of `at` in the lines is not what it has to be: one text each."""
    wrong = []
    for line in lines:
        for moment in at:
            wanted = expected(line, moment)
            if line[moment] != wanted:
                wrong.append(f"{who} {line[who]}, {moment}: contexts on {line[moment]}, "
                             f"not {wanted}")
    return wrong
