"""Group prefetch-parts: what a model's first step pays, natively and after a learning run: every
driver call by entry, the libraries that are opened in it, page faults, and the Python in it.

Tracing costs time itself, so nothing here is a limit; the times are those of group prefetch."""
import importlib.util
import json
import subprocess

from . import build, first_step
from .broker import Broker
from .prefetch import MODELS

ROWS = 14


def _lines(path):
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except FileNotFoundError:
        return []


def _in_step(said, lines):
    first, last = said["step_at_us"]
    return [line for line in lines if first <= line["end_us"] <= last]


class Tracer:
    """The three ways of looking, each a run of its own."""

    def __init__(self, context, folder):
        self.calls = build.build_c(context.work, "libtrace.so", "trace_calls.c", "trace_thunks.S",
                                   flags=("-O2", "-shared", "-fPIC"))
        self.loader = build.build_c(context.work, "libaudit.so", "trace_loader.c",
                                    flags=("-shared", "-fPIC"))
        self.folder = folder

    def trace(self, command, environment, log):
        """Driver calls of the first step, by entry."""
        path = self.folder / "calls.json"
        path.unlink(missing_ok=True)
        preload = " ".join(filter(None, (str(self.calls), environment.get("LD_PRELOAD"))))
        said = first_step.run_alone(
            command, {**environment, "LD_PRELOAD": preload, "TRACE_CALLS": str(path)}, log)
        rows = [row for row in _lines(path) if row["phase"] == "step 1"]
        return {"ms": said["ms"], "faults": said["faults"], "modules": said.get("modules", []),
                "adopted": first_step.adoption(said),
                "calls": sorted(rows, key=lambda row: -row["ms"])}

    def audit(self, command, environment, log):
        """Libraries opened in the first step."""
        path = self.folder / "loader.json"
        path.unlink(missing_ok=True)
        said = first_step.run_alone(
            command, {**environment, "LD_AUDIT": str(self.loader), "TRACE_LOADER": str(path)}, log)
        return {"ms": said["ms"], "opened": _in_step(said, _lines(path))}

    @staticmethod
    def profile(command, environment, log):
        """The costliest Python functions of the first step: calls, own ms, whole ms."""
        said = first_step.run_alone(command, {**environment, "FIRST_STEP": "profile"}, log)
        return {"ms": said["ms"], "python": said.get("python", [])}


def _show(name, arm, found):
    calls = found["calls"]
    waited = sum(row["ms"] for row in calls["calls"])
    step = calls["ms"]["step 1"]
    print(f"  {name}, {arm}: first step {step:.1f} ms (third {calls['ms']['step 3']:.1f}), in "
          f"{sum(row['calls'] for row in calls['calls'])} driver calls {waited:.1f}, elsewhere "
          f"{step - waited:.1f}; faults {calls['faults']}; modules imported "
          f"{len(calls['modules'])}; images {calls['adopted'][0]} of {calls['adopted'][1]}")
    for row in calls["calls"][:ROWS]:
        print(f"      {row['calls']:5} x {row['call']:36} {row['ms']:9.3f} ms, longest "
              f"{row['longest_ms']:.3f}")
    for row in found.get("loader", {}).get("opened", []):
        print(f"      opened in {row['us'] / 1e3:.3f} ms: {row['files'][:100]}")
    for row in found.get("profile", {}).get("python", [])[:ROWS]:
        print(f"      {row[1]:5} x {row[0][:60]:60} own {row[2]:9.3f} ms, whole {row[3]:9.3f}",
              flush=True)


def run(context):
    """Trace each model in both arms; fails where a run does."""
    results, errors = {}, {}
    with Broker(context) as broker:
        broker.start()
        broker.prove_undo()
        tracer, log = Tracer(context, broker.folder), broker.folder / "log"
        for name, module in MODELS.items():
            is_there = context.simulated or importlib.util.find_spec(module)
            if context.only not in name or not is_there or (context.simulated and results):
                continue
            command = first_step.command_of(name, context.simulated, context.work)
            arms = {"native": context.environment(),
                    "learned": {**broker.environment(LD_PRELOAD=str(context.preload)),
                                "HEARTH_STATE_DIR": str(broker.fresh_state(name))}}
            try:
                first_step.run_alone(command, arms["learned"], log)
                results[name] = {"native": {
                    "loader": tracer.audit(command, arms["native"], None),
                    "profile": tracer.profile(command, arms["native"], None)}, "learned": {
                    "profile": tracer.profile(command, arms["learned"], log)}}
                for arm, environment in arms.items():
                    results[name][arm]["calls"] = tracer.trace(
                        command, environment, log if arm == "learned" else None)
                    _show(name, arm, results[name][arm])
            except (RuntimeError, ValueError, OSError, LookupError,
                    subprocess.SubprocessError) as error:
                print(f"  {name}: {error}", flush=True)
                errors[name] = str(error)
    return {"models": results, "errors": errors, "ok": not errors}
