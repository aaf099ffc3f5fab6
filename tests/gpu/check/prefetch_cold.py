"""Group prefetch-cold: `import torch` with the kernel's caches dropped, natively and after runs in
which Hearth learned which parts of which files it touches; and with warm caches, where that must
cost nothing. Needs root, to drop caches; arms take turns."""
import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from . import build
from .arms import Arms
from .broker import Broker

COLD_ROUNDS = 5
WARM_ROUNDS = 12
BUDGET_SECONDS = 300
SECONDS = 120
DROP = Path("/proc/sys/vm/drop_caches")
LIMIT_COLD_MS = 4200  # of an import that natively takes about
NATIVE_COLD_MS = 5900
LIMIT_WARM_SHARE = 0.02  # of the native median, which is within what such runs scatter
STEPS = ("import", "start to imported", "ran", "read MiB", "major faults")
ARMS = ("native", "off", "learned")


def _drop_caches():
    """Everything that is not in use: pages, folders' entries, inodes."""
    os.sync()
    DROP.write_text("3\n", encoding="ascii")


def _read(path):
    """Into memory: Hearth's own files, as they are on a machine where it is in use."""
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            file.read_bytes()


def _import(environment, log=None):
    if log:
        log.unlink(missing_ok=True)
        environment = {**environment, "HEARTH_LOG": str(log), "HEARTH_LOG_LEVEL": "debug"}
    done = subprocess.run([sys.executable, str(build.GPU / "import_torch.py")], env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=SECONDS, check=False, text=True)
    if done.returncode:
        raise RuntimeError(f"exit {done.returncode}: {done.stderr[-500:]}")
    return {**json.loads(done.stdout), "messages": done.stderr}


def _steps(environment):
    said = _import(environment)
    said.pop("messages")
    return said


def _disk():
    """What the interpreter's and torch's files lie on."""
    places = {"python": os.path.realpath(sys.executable),
              "torch": importlib.util.find_spec("torch").origin}
    found = {}
    for name, path in places.items():
        best = max((line.split() for line in Path("/proc/mounts").read_text(
            encoding="utf-8").splitlines() if path.startswith(line.split()[1].rstrip("/") + "/")),
                   key=lambda words: len(words[1]), default=["?"] * 4)
        found[name] = {"path": path, "device": best[0], "type": best[2], "options": best[3]}
    found["read_ahead_kb"] = {str(path): path.read_text(encoding="ascii").strip()
                              for path in Path("/sys/class/bdi").glob("*/read_ahead_kb")}
    return found


def run(context):
    """Measure; holds where the cold import is fast enough and the warm one no slower."""
    begin = time.monotonic()
    if context.simulated or importlib.util.find_spec("torch") is None:
        print("  skipped: that takes a GPU and torch")
        return {"ok": context.simulated, "skipped": True}
    if not os.access(DROP, os.W_OK):
        return {"ok": False, "error": f"{DROP} cannot be written: only root can drop caches"}
    arms, checks, disk = Arms(), {}, _disk()
    print(f"  {json.dumps(disk)}", flush=True)
    with Broker(context) as broker:
        broker.start()
        broker.prove_undo()
        state = broker.fresh_state("cold")
        learned = {**broker.environment(LD_PRELOAD=str(context.preload)),
                   "HEARTH_STATE_DIR": str(state)}
        environments = {"native": context.environment(),
                        "off": {**learned, "HEARTH_SPECULATE": "off"}, "learned": learned}
        _drop_caches()
        said = _import(learned, broker.folder / "log")
        notes = [line for line in said["messages"].splitlines() if "files:" in line]
        print("  learning run, cold:", *notes, sep="\n    ", flush=True)
        for number in range(COLD_ROUNDS):
            for arm in (("native", "learned") if number % 2 else ("learned", "native")):
                if time.monotonic() - begin > BUDGET_SECONDS:
                    break
                _drop_caches()
                for path in (context.preload.parent, state):
                    _read(path)
                arms.measure(f"cold, {arm}", _steps, environments[arm])
        _import(context.environment())
        for number in range(WARM_ROUNDS):
            for arm in ARMS[number % len(ARMS):] + ARMS[:number % len(ARMS)]:
                if time.monotonic() - begin > BUDGET_SECONDS + 120:
                    break
                arms.measure(f"warm, {arm}", _steps, environments[arm])
    arms.show(STEPS)
    native, cold = (arms.median(f"cold, {arm}", "import") for arm in ("native", "learned"))
    checks[f"cold import {cold:.0f} ms, at most {LIMIT_COLD_MS} (natively {native:.0f} here, "
           f"{NATIVE_COLD_MS} when the limit was set)"] = cold <= LIMIT_COLD_MS
    checks[f"cold import {cold:.0f} ms, sooner than natively {native:.0f}"] = cold < native
    for step in ("import", "start to imported"):
        native, warm = (arms.median(f"warm, {arm}", step) for arm in ("native", "learned"))
        checks[f"warm, {step}: {warm:.0f} ms, natively {native:.0f}: within "
               f"{LIMIT_WARM_SHARE:.0%}"] = warm <= native * (1 + LIMIT_WARM_SHARE)
    return {"disk": disk, "learning": notes, **arms.result(checks, context.simulated)}
