"""Group jupyter: a real jupyter_client restarts a real ipykernel under Hearth ten times, every
second time by SIGKILL; each start's first `.to("cuda")`, its memory, and that at the end."""
import importlib.util
import json
import os
import shutil
import site
import subprocess
import sys

from . import machine
from .broker import Broker
from .prepare import DEPS, JUPYTER

RESTARTS = 10
SECONDS = 400
FIRST_LIMIT_MS = 20
SLACK_MIB = 16


def environment_of_python(context):
    """A venv with ipykernel, on top of the python that has torch, also where that is a venv itself;
    from carried wheels where there are any, else from PyPI."""
    venv = context.work / "jupyter-venv"
    if not (venv / "made").exists():
        shutil.rmtree(venv, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", str(venv)],
                       check=True)
        carried = ["--no-index", f"--find-links={DEPS / 'wheels'}"]
        wheels = DEPS / "wheels"
        subprocess.run([str(venv / "bin/python"), "-m", "pip", "install", "-q",
                        "--ignore-installed", *JUPYTER,
                        *(carried if wheels.exists() and not context.simulated else [])],
                       check=True)
        packages = next(venv.glob("lib/python*/site-packages"))
        (packages / "below.pth").write_text(
            "".join(f"{path}\n" for path in site.getsitepackages()), encoding="utf-8")
        (venv / "made").touch()
    return venv


def _hearth(context, env, *words):
    return subprocess.run([str(context.build / "tools/hearth"), *words], env=env, check=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout


def run(context):
    """Holds where each first use from the second start on took 20 ms at most (on a real GPU), one
    context lived at each time, and the memory came back."""
    kind = "torch" if importlib.util.find_spec("torch") and not context.simulated else "sim"
    restarts = context.rounds or (2 if context.simulated else RESTARTS)
    venv = environment_of_python(context)
    with Broker(context) as broker:
        broker.start()
        broker.prove_undo()
        env = broker.environment(VIRTUAL_ENV=str(venv), PATH=f"{venv}/bin:{os.environ['PATH']}")
        _hearth(context, env, "jupyter", "install")
        try:
            done = subprocess.run(
                [str(venv / "bin/python"),
                 str(machine.SOURCE / "tests/programs/jupyter_restarts.py"), "python3",
                 str(restarts), kind], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True, timeout=SECONDS, check=False)
        finally:
            print("  " + _hearth(context, env, "jupyter", "uninstall").strip())
        if done.returncode:
            return {"ok": False, "error": done.stderr[-4000:]}
        report = _hearth(context, env, "report", "-n", "99")
    seen = json.loads(done.stdout.splitlines()[-1])
    starts = seen["starts"]
    for number, start in enumerate(starts):
        print(f"  start {number:2}{' after SIGKILL' if start['after_kill'] else '':14} first use "
              f"{start['first_ms']:8.2f} ms, {start['nvml_ms']:.2f} of it in NVML, "
              f"{start['used_mib']} MiB used")
    print(f"  {seen['baseline_mib']} MiB used before, {seen['after_mib']} after\n")
    print("\n".join(f"  {line}" for line in report.splitlines()))
    used = [start["used_mib"] for start in starts]
    later = [start["first_ms"] for start in starts[1:]]
    checks = {"no call failed": not any(start["failed"] for start in starts),
              f"first use at most {FIRST_LIMIT_MS} ms from the second start on":
              max(later) <= FIRST_LIMIT_MS or context.simulated,
              "one context at each time": max(used) - min(used) <= SLACK_MIB,
              "memory back": seen["after_mib"] <= seen["baseline_mib"] + SLACK_MIB}
    for name, holds in checks.items():
        print(f"  {'holds' if holds else 'DOES NOT HOLD'}: {name}")
    return {"ok": all(checks.values()), "checks": checks, "report": report.splitlines(), **seen}
