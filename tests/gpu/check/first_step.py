"""Running first_step.py: alone, or two at once that step by turns; and reading its records."""
import datetime
import json
import selectors
import statistics
import subprocess
import sys
import time

from . import build

SECONDS = 90  # an import from a cold disk, and a step
LOADS = ("cuLibraryLoadData", "cuLibraryLoadFromFile", "cuModuleLoad", "cuModuleLoadData",
         "cuModuleLoadDataEx", "cuModuleLoadFatBinary")


class Run:
    """One process, from its start to its end. `log` is where Hearth writes, if it is there."""

    def __init__(self, command, environment, log=None):
        self.log = log
        if log:
            log.unlink(missing_ok=True)
            environment = {**environment, "HEARTH_LOG": str(log)}
        self.deadline = time.monotonic() + SECONDS
        self.process = subprocess.Popen([str(word) for word in command], env=environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)

    def wait_until_imported(self):
        """Until it says `ready`; returns whether it does."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(max(0, self.deadline - time.monotonic())):
                return False
        return self.process.stdout.readline().strip() == "ready"

    def step(self):
        """Let it go on, to its end; returns what it says, with Hearth's records as `records`."""
        try:
            stdout, stderr = self.process.communicate(
                "go\n", timeout=max(1, self.deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.stop()
            raise
        if self.process.returncode:
            raise RuntimeError(f"exit {self.process.returncode}: {stderr[-500:]}")
        said = json.loads(stdout)
        said["records"] = read_log(self.log)
        return said

    def stop(self):
        """End it, however far it has come."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


def run_alone(command, environment, log=None):
    """One run with nobody beside it."""
    run = Run(command, environment, log)
    if not run.wait_until_imported():
        run.stop()
        raise RuntimeError(f"{command[-1]} did not come as far as its first call")
    return run.step()


def run_in_turn(runs):
    """Runs that import at once; then each steps alone. Returns what they say, None for one that
    failed, with its error printed."""
    ready = [run.wait_until_imported() for run in runs]
    said = []
    for run, is_ready in zip(runs, ready):
        try:
            if not is_ready:
                run.stop()
                raise RuntimeError(f"{run.process.args[-1]} did not come as far as its first call")
            said.append(run.step())
        except (RuntimeError, ValueError, OSError, subprocess.SubprocessError) as error:
            print(f"  {run.process.args[-1]}: {error}", flush=True)
            said.append(None)
    return said


def command_of(model, simulated, work):
    """The program for a model; on the simulated driver its stand-in."""
    if simulated:
        return [build.build_c(work, "first_step", "first_step.c"), model]
    return [sys.executable, build.GPU / "first_step.py", model]


def read_log(path):
    """Hearth's records of one run, [] without a log."""
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (AttributeError, FileNotFoundError):
        return []


def _realtime_us(text):
    moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return (moment - epoch) // datetime.timedelta(microseconds=1)


def in_step(said, names=None):
    """The records of calls (of these names) that began inside the first step."""
    first, last = said["step_at_us"]
    return [record for record in said["records"]
            if record["event"] == "call" and (names is None or record["call"] in names)
            and first <= _realtime_us(record["ts"]) <= last]


def load_ms(said):
    """What the program waited in the first step for images to be loaded."""
    return sum(record["visible_us"] for record in in_step(said, LOADS)) / 1e3


def adoption(said):
    """(handed over, asked for): image loads of the whole run. From the exit line where it counts
    them, else from the records, which are of first and slow loads alone."""
    end = next((record for record in said["records"] if record.get("event") == "exit"), {})
    if "images_asked" in end:
        return end["images_adopted"], end["images_asked"]
    loads = [record for record in said["records"]
             if record.get("call") in LOADS]
    return sum(record["how"] == "prefetched" for record in loads), len(loads)


def parts(said):
    """Where the first step's driver time went: by call and by file, [times, ms]."""
    found = {}
    for record in in_step(said):
        name = " ".join(filter(None, (record["call"], record.get("object"))))
        entry = found.setdefault(name, [0, 0])
        entry[0] += 1
        entry[1] += record["visible_us"] / 1e3
    return {name: [count, round(ms, 3)]
            for name, (count, ms) in sorted(found.items(), key=lambda item: -item[1][1])}


def median(values):
    """The median, None without values."""
    return statistics.median(values) if values else None
