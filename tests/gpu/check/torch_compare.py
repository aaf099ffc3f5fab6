"""Group torch-compare: the demo itself, `hearth compare` on two torch programs."""
import importlib.util
import json
import subprocess
import sys

from . import build
from .broker import Broker

SCRIPTS = ("train.py", "first_tensor.py")
RUNS = 5
SECONDS = 230


def _compare(context, broker, command, runs):
    """Returns what compare printed as JSON, and shows its own words."""
    done = subprocess.run([str(context.build / "tools/hearth"), "compare", "-n", str(runs),
                           "--json", "--", *[str(word) for word in command]],
                          env=broker.environment(), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=SECONDS,
                          check=False, text=True)
    print(done.stderr, end="")
    # The compared program's own output may come first; the result is the last line or the whole.
    for text in (done.stdout, *reversed(done.stdout.splitlines())):
        try:
            return done.returncode, json.loads(text)
        except ValueError:
            continue
    return done.returncode, {"output": done.stdout.splitlines()[-40:]}


def _show(command, result):
    """Medians of both arms, column by column."""
    print(f"  {' '.join(str(word).rsplit('/', 1)[-1] for word in command)}")
    for column in result.get("columns", []):
        device = "" if column.get("device") is None else f" {column['device']}"
        arms = {name: arm["median_us"] for name, arm in column.items() if isinstance(arm, dict)}
        print(f"    {column['name'] + device:24}",
              *[f"{name} {'-' if us is None else format(us / 1e3, '.1f')} ms"
                for name, us in arms.items()], flush=True)
    for note in result.get("notes", result.get("output", [])):
        print(f"    {note}")


def run(context):
    """Run both; holds where compare exits with 0."""
    scripts = [[sys.executable, build.GPU / script] for script in SCRIPTS]
    runs = RUNS
    if importlib.util.find_spec("torch") is None:
        if not context.simulated:
            return {"ok": False, "error": f"{sys.executable} has no torch"}
        scripts, runs = [[context.build / "bench/bench_start", "once"]], 2
    results = {}
    with Broker(context) as broker:
        for command in scripts:
            code, result = _compare(context, broker, command, runs)
            results[str(command[-1]).rsplit("/", 1)[-1]] = {"exit": code, "result": result}
            _show(command, result)
    return {"results": results, "ok": all(row["exit"] == 0 for row in results.values())}
