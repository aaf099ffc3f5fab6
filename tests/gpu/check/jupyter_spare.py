"""Group jupyter-spare: a real jupyter_client restarts a real ipykernel, natively and by way of
spares; from the restart to `torch.ones(1).cuda()` done."""
import importlib.util
import json
import os
import statistics
import subprocess

from . import machine
from .broker import Broker
from .jupyter import environment_of_python

RESTARTS, NATIVE_RESTARTS = 6, 2
LIMIT_S = 0.5
SECONDS = 120
PROGRAM = machine.SOURCE / "tests/programs/jupyter_spares.py"


def _restart(context, env, venv, restarts, *words):
    """What the program saw, or what it said as it failed."""
    done = subprocess.run(
        [str(venv / "bin/python"), str(PROGRAM), "python3", str(restarts),
         str(context.build / "tools/hearth"), *words], env=env, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        return None, done.stderr[-4000:]
    starts = json.loads(done.stdout.splitlines()[-1])["starts"]
    for number, start in enumerate(starts):
        print(f"  start {number:2} {'by a spare' if start['spare'] else 'plain':10} "
              f"{'after SIGKILL' if start['after_kill'] else '':13} the old kernel gone "
              f"{start['gone_s']:6.3f} s, first tensor {start['s']:6.3f} s")
    return starts, None


def run(context):
    """Holds where each restart was by a spare, and from the third start on (the first has taught
    what is done ahead) the median took half a second at most on a real GPU: after a kernel that was
    killed, from the restart on; after one that was asked to end, from its end on, since how long it
    takes is its own affair, and Jupyter's, which looks ten times a second."""
    kind = "torch" if importlib.util.find_spec("torch") and not context.simulated else "sim"
    venv = environment_of_python(context)
    hearth = str(context.build / "tools/hearth")
    with Broker(context) as broker:
        broker.start()
        broker.prove_undo()
        env = broker.environment(VIRTUAL_ENV=str(venv), PATH=f"{venv}/bin:{os.environ['PATH']}")
        native, error = _restart(context, {name: value for name, value in os.environ.items()},
                                 venv, NATIVE_RESTARTS, kind, "plain") \
            if kind == "torch" else ([], None)
        imports = ["--import", kind] if kind == "torch" else []
        if not error:
            subprocess.run([hearth, "jupyter", "install", "--spare", *imports], env=env, check=True,
                           stdin=subprocess.DEVNULL)
            try:
                starts, error = _restart(context, env, venv, context.rounds or RESTARTS, kind)
            finally:
                for words in ("spare", "stop"), ("jupyter", "uninstall"):
                    subprocess.run([hearth, *words], env=env, check=False,
                                   stdin=subprocess.DEVNULL)
    if error:
        return {"ok": False, "error": error}
    later = {"a killed kernel's restart": [start["s"] for start in starts[2:]
                                           if start["after_kill"]],
             "the end of a kernel that was asked to": [
                 start["s"] - start["gone_s"] for start in starts[2:] if not start["after_kill"]]}
    checks = {"no call failed": not any(start["failed"] for start in starts),
              "each restart was by a spare": all(start["spare"] for start in starts[1:])}
    for since, seconds in later.items():
        median = statistics.median(seconds)
        checks[f"median {median:.3f} s after {since}, {LIMIT_S} s at most"] = (
            median <= LIMIT_S or context.simulated)
    for name, holds in checks.items():
        print(f"  {'holds' if holds else 'DOES NOT HOLD'}: {name}")
    return {"ok": all(checks.values()), "checks": checks, "native": native, "starts": starts}
