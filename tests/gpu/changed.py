"""Runs a torch program after a change of the driver's environment: what was done ahead while torch
was imported is undone. Usage: changed.py NAME VALUE SCRIPT [ARGUMENT...]."""
import os
import runpy
import sys
import time

READY_SECONDS = 0.3
NAME, VALUE, SCRIPT = sys.argv[1:4]
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # as torch_common does before torch

import torch  # noqa: E402,F401 (the import is when work is done ahead)

if __name__ == "__main__":
    time.sleep(READY_SECONDS)
    os.environ[NAME] = VALUE
    sys.argv = sys.argv[3:]
    sys.path[0] = os.path.dirname(SCRIPT)
    runpy.run_path(SCRIPT, run_name="__main__")
