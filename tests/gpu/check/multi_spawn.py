"""Group multi-spawn: torch.multiprocessing.spawn with a child for each GPU and one that only asks
whether there are any. No child has a rank variable, so none may have a context before it asks, and
afterwards on its own GPU only; in the first run, the tenth and those between, which run at the same
time."""
import sys

from . import build, multi
from .arms import Arms
from .broker import Broker

BETWEEN = (4, 4)  # runs 2 to 9
MOMENTS = ("before", "after", "end", "parent")


def _expected(line, moment):
    return [line["device"]] if line["device"] and moment in ("after", "end") else []


class Group:
    """The runs, and what they have shown."""

    def __init__(self, count):
        self.command = [sys.executable, build.GPU / "spawned.py", count]
        self.count = count
        self.arms, self.checks, self.runs = Arms(), {}, {}

    def measure(self, arm, environment, at_once=1):
        """So many runs at the same time."""
        processes = [multi.start(self.command, environment) for _ in range(at_once)]
        for process in processes:
            self.arms.measure(arm, self._take, arm, process)

    def _take(self, arm, process):
        lines = multi.finish(process)
        if len(lines) != self.count + 1:
            raise RuntimeError(f"{len(lines)} of {self.count + 1} children: {lines}")
        self.runs.setdefault(arm, []).append(sorted(lines, key=lambda line: line["child"]))
        users = [line for line in lines if line["device"]]
        return {step: max(line[step] for line in users) for step in ("import", "first tensor")}

    def check(self, names):
        for arm, runs in self.runs.items():
            wrong = [text for lines in runs
                     for text in multi.wrong_contexts(lines, "child", MOMENTS, _expected)]
            devices = {tuple(line["device"] for line in lines) for lines in runs}
            if devices != {(*names, None)}:
                wrong.append(f"devices {devices}, not {names}")
            for text in wrong:
                print(f"  {arm}: {text}")
            self.checks[f"{arm}: each child has a context on its own GPU only, and none before it "
                        f"asks ({len(runs)} runs)"] = not wrong


def run(context):
    """Run them; holds where no context is where it should not be."""
    if not multi.has_torch():
        print("  left out: no torch")
        return {"ok": context.simulated, "error": "no torch"}
    gpus = multi.uuids(context)
    group = Group(len(gpus))
    group.measure("native", context.environment())
    with Broker(context) as broker:
        broker.start()
        undo = broker.prove_undo()
        state = broker.fresh_state("spawn")
        under = {**broker.environment(LD_PRELOAD=str(context.preload)),
                 "HEARTH_STATE_DIR": str(state)}
        group.measure("run 1", under)
        for at_once in (2,) if context.simulated else BETWEEN:
            group.measure("runs 2 to 9", under, at_once)
        group.measure("run 10", under)
        group.measure("always", {**under, "HEARTH_SPECULATE": "always"})
    group.arms.show(("import", "first tensor"))
    group.check(multi.names(context, gpus))
    return {"undo": undo, "gpus": gpus, "runs": group.runs,
            **group.arms.result(group.checks, context.simulated)}
