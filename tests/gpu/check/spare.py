"""Group spare: from the client's start to the first tensor on the host, and to the end of a CNN's
first training step, natively and through a spare; and small programs that come out the same."""
import concurrent.futures
import contextlib
import importlib.util
import json
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import first_step, machine
from .arms import Arms
from .broker import Broker

sys.path.insert(0, str(machine.SOURCE / "tests/system"))
import spare_programs  # noqa: E402 (path above)

PROGRAM = machine.SOURCE / "tests/gpu/spare_step.py"
NATIVE_RUNS, SPARE_RUNS = 3, 13
COUNT = "2"  # so that the next one waits already; what one run teaches, the third after it has
TIMES_SECONDS = 105  # no run begins later
TENSOR_LIMIT_MS, STEP_LIMIT_MS = 150, 500
STEPS_SECONDS, SIMULATED_SECONDS = "1", "0.1"
WORKERS = 12
LIST_SECONDS = 60  # for all small programs; what is left then has not been compared
READY_SECONDS = 40
RUN_SECONDS = 60
OWN = re.compile(rb"^hearth\[\d+\]: .*\n", re.M)
PLAIN = re.compile(rb"^hearth\[\d+\]: a plain start: (.*)\n", re.M)
REASON = re.compile(rb"^hearth\[\d+\]: a spare was (?:not used|left alone): (.*)\n", re.M)
ADDRESS = re.compile(rb"0x[0-9a-f]{6,}")


class Spares:
    """The spares of one kind, from their start to their end."""

    def __init__(self, broker, environment, *options):
        self.hearth = [str(broker.context.build / "tools/hearth")]
        self.environment, self.options = environment, options

    def run(self, *words, **options):
        options.setdefault("timeout", RUN_SECONDS)
        return subprocess.run([*self.hearth, *map(str, words)], env=self.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              **{"stdin": subprocess.DEVNULL, **options})

    def __enter__(self):
        begun = time.monotonic()
        done = self.run("spare", "start", *self.options, "--", sys.executable)
        if done.returncode:
            raise RuntimeError(f"spare start: {done.stderr.decode(errors='replace')}")
        self.started_s = time.monotonic() - begun
        return self

    def __exit__(self, *_):
        self.run("spare", "stop")

    def wait(self):
        """Until one waits; how long that took, in s, and what is said of it."""
        begun = time.monotonic()
        while time.monotonic() < begun + READY_SECONDS:
            lines = self.run("spare", "status").stdout.decode().splitlines()[1:]
            waiting = [line for line in lines if " waiting " in line]
            if waiting:
                return time.monotonic() - begun, waiting[0]
            time.sleep(0.05)
        raise RuntimeError("no spare is ready")


def _measure(spares, kind, is_spare, log):
    """One run of PROGRAM: times in ms since its client's start."""
    log.unlink(missing_ok=True)
    # In a folder of its own: the names of those beside it must not stand before torch's.
    program = log.parent / "program/step.py"
    program.parent.mkdir(exist_ok=True)
    program.write_bytes(PROGRAM.read_bytes())
    option = ["--spare"] if is_spare else []
    seconds = STEPS_SECONDS if kind == "torch" else SIMULATED_SECONDS
    command = [*spares.hearth, "run", *option] if is_spare else []
    environment = {**spares.environment, "HEARTH_LOG_LEVEL": "debug"}
    begun = time.monotonic()
    done = subprocess.run([*command, *(["--"] if command else []), sys.executable, str(program),
                           kind, seconds], env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=RUN_SECONDS,
                          check=False)
    ended = time.monotonic()
    if done.returncode or (is_spare and PLAIN.search(done.stderr)):
        raise RuntimeError(f"status {done.returncode}: {done.stderr.decode()[-600:]}")
    said = json.loads(done.stdout)
    times = {name: (said[at] - begun) * 1e3 for name, at in
             (("begin", "begun_at"), ("tensor", "tensor_at"), ("first step", "step_at"))}
    times.update({"later step": said["later_ms"], "whole": (ended - begun) * 1e3})
    return times, said["loss"], done.stderr


def _times(broker, kind, imports, rounds):
    """The arms, the losses that were seen, and Hearth's records of each run in a spare."""
    arms, losses, runs = Arms(), set(), []
    ends_at = time.monotonic() + TIMES_SECONDS
    log = broker.folder / "log"
    environment = broker.environment(HEARTH_LOG=str(log), HEARTH_LOG_LEVEL="debug")
    native = {name: value for name, value in broker.context.environment().items()
              if name != "LD_PRELOAD"}

    def take(spares, is_spare):
        times, loss, stderr = _measure(spares, kind, is_spare, log)
        losses.add(loss)
        if is_spare:
            runs.append({"records": first_step.read_log(log) if log.exists() else [],
                         "messages": stderr.decode(errors="replace")[-6000:]})
        return times
    plain = Spares(broker, native)
    for _ in range(NATIVE_RUNS):
        arms.measure("native", take, plain, False)
    with Spares(broker, environment, "--import", imports, "--gpu", "0",
                "--count", COUNT) as spares:
        print(f"  {COUNT} spares are ready after {spares.started_s:.1f} s")
        for number in range(rounds):
            waited, line = spares.wait()
            if time.monotonic() > ends_at:
                break
            arm = "spare, before it is learned" if number < 2 * int(COUNT) else "spare"
            if arms.measure(arm, take, spares, True):
                runs[-1]["spare"] = f"{waited:.1f} s more: {line.strip()}"
    return arms, losses, runs


def _hows(records):
    """What served the calls of a run: how often each."""
    counts = {}
    for record in records:
        if record["event"] == "call":
            name = f"{record['call']} {record['how']}"
            counts[name] = counts.get(name, 0) + 1
    return counts


def _small_programs():
    """Name, source, and the words behind the python, of each program without own flags."""
    for name, source in sorted(spare_programs.SCRIPTS.items()):
        settings = spare_programs.settings_of(source)
        if "flags" not in settings:
            yield name, source, settings


def _compare(spares, name, source, settings, deadline):
    """One program, natively and through a spare: what differs, None where time was up."""
    with tempfile.TemporaryDirectory(prefix="hearth-spare-") as folder:
        work = Path(folder)
        for path, text in spare_programs.FILES.items():
            (work / path).parent.mkdir(exist_ok=True)
            (work / path).write_text(text)
        script = work / "program.py"
        script.write_text(source + "\n")
        shell = settings.get("shell")

        def run(*option):
            word = script if shell and "cd " in shell else script.name
            words = [*spares.hearth, "run", *option, "--", sys.executable, str(word),
                     *shlex.split(settings.get("args", ""))]
            text = settings.get("stdin", "").encode().decode("unicode_escape").encode()
            done = subprocess.run(["bash", "-c", shell, "bash", *words] if shell else words,
                                  env={**spares.environment, "HEARTH_LOG_LEVEL": "info"},
                                  cwd=work, input=text, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=RUN_SECONDS, check=False)
            plain = PLAIN.search(done.stderr) or PLAIN.search(done.stdout)
            said = [OWN.sub(b"", ADDRESS.sub(b"0x", text)).decode(errors="replace")
                    for text in (done.stdout, done.stderr)]
            reason = REASON.search(done.stderr)
            return [done.returncode, *said], plain and (reason or plain)[1].decode()
        native, _ = run()
        why = "no spare"
        while time.monotonic() < deadline:
            spared, why = run("--spare")
            if not why:
                return [] if native == spared else [
                    f"{what}: {one[-300:]!r} became {other[-300:]!r}" for what, one, other in
                    zip(("status", "stdout", "stderr"), map(str, native), map(str, spared))
                    if one != other]
            time.sleep(0.3)
        return [f"not compared: {why}"]


def _compare_all(broker, imports):
    """Programs by name, with what differs; no context is made ahead for them, since most fork."""
    environment = broker.environment(HEARTH_SPECULATE="off")
    found = {}
    programs = list(_small_programs())
    if broker.context.simulated:
        programs = programs[:6]
    options = "--import", imports, "--count", str(2 if broker.context.simulated else WORKERS)
    with Spares(broker, environment, *options) as spares, \
            concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        deadline = time.monotonic() + LIST_SECONDS
        waiting = {name: pool.submit(_compare, spares, name, source, settings, deadline)
                   for name, source, settings in programs}
        for name, future in waiting.items():
            try:
                found[name] = future.result()
            except (OSError, subprocess.SubprocessError) as error:
                found[name] = [str(error)]
    return found


def run(context):
    """Holds where the medians of ten runs after the first are within the issue's limits (on a real
    GPU), losses are equal, and each small program came out the same."""
    has_torch = importlib.util.find_spec("torch") and not context.simulated
    # An optimizer imports torch._dynamo at its first use, which takes seconds.
    kind, imports = ("torch", "torch,torch._dynamo") if has_torch else ("sim", "json,ctypes")
    rounds = context.rounds or (6 if context.simulated else SPARE_RUNS)
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(Broker(context))
        broker.start()
        broker.prove_undo()
        arms, losses, runs = _times(broker, kind, imports, rounds)
        begun = time.monotonic()
        programs = _compare_all(broker, imports.partition(",")[0])
        print(f"  {len(programs)} small programs in {time.monotonic() - begun:.0f} s")
    arms.show(("begin", "tensor", "first step", "later step", "whole"))
    figures = {step: [value for name, arm in arms.figures.items() if name != "native"
                      for value in arm.get(step, [])] for step in ("tensor", "first step")}
    for run_ in runs:
        run_["hows"] = _hows(run_["records"])
        run_["images"] = [(record.get("images_asked", 0), record.get("images_adopted", 0))
                          for record in run_["records"] if record["event"] == "exit"]
        print(f"  {run_['spare']}; {run_['hows']}, images {run_['images']}")
    for name, differences in programs.items():
        for difference in differences:
            print(f"  {name}: {difference}")
    checks = {
        f"first tensor within {TENSOR_LIMIT_MS} ms": bool(figures["tensor"]) and
        statistics.median(figures["tensor"]) <= TENSOR_LIMIT_MS,
        f"first step within {STEP_LIMIT_MS} ms": bool(figures["first step"]) and
        statistics.median(figures["first step"]) <= STEP_LIMIT_MS,
        "context handed over in every spare": all(
            "cuInit speculated" in counts and "cuDevicePrimaryCtxRetain speculated" in counts
            for counts in (run_["hows"] for run_ in runs)),
        "one loss": len(losses) == 1,
        "small programs come out the same": not any(programs.values())}
    result = arms.result(checks, context.simulated)
    if any(programs.values()) or not runs:
        result["ok"] = False
    for run_ in runs[1:-1]:  # what is long is of use where something went wrong
        if "cuInit speculated" in run_["hows"]:
            del run_["records"], run_["messages"]
    return {**result, "runs": runs, "losses": sorted(losses), "programs": programs}
