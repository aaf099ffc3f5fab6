"""Group fidelity-torch: PyTorch as people use it, plain and preloaded, byte for byte."""
import importlib.util
import sys

from . import build, fidelity

NAMES = ("step", "graph", "loader", "profiler", "expandable", "compile", "nccl")
WORKERS = 6
SECONDS = 150


def programs():
    return [fidelity.Program(f"torch-{name}", [sys.executable, build.GPU / f"torch_{name}.py"],
                             seconds=SECONDS)
            for name in NAMES]


def run(context):
    """Compare them all; where torch is missing the group says so and fails unless simulated."""
    if importlib.util.find_spec("torch") is None:
        print(f"  skipped: {sys.executable} has no torch")
        return {"ok": context.simulated, "skipped": [program.name for program in programs()]}
    rows = fidelity.run_programs(context, programs(), WORKERS)
    return {"rows": rows, "ok": all(row["same"] for row in rows)}
