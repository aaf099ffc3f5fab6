"""An environment with jupyter_client and ipykernel, from PyPI, for tests with real kernels."""
import fcntl
import shutil
import subprocess
import sys

import harness

VENV = harness.BUILD / "jupyter-venv"


def why_no_jupyter():
    """Makes the environment once per build."""
    with open(harness.BUILD / "jupyter-venv.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return make()


def make():
    if not (VENV / "made").exists():
        shutil.rmtree(VENV, ignore_errors=True)
        for words in ([sys.executable, "-m", "venv", VENV],
                      [VENV / "bin/pip", "install", "--quiet", "--disable-pip-version-check",
                       "ipykernel", "jupyter_client"]):
            done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  check=False)
            if done.returncode:
                return done.stdout.strip()[-200:]
        (VENV / "made").touch()
    return None
