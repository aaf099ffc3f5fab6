"""Group multi-torchrun: torchrun with a rank for each GPU, natively (no broker, idle GPUs), in its
first run under Hearth (which learns: the keeper alone helps), in runs 2 to 10, and started by
`hearth run`. Each run says how long import, first tensor, first all_reduce and first step took, on
which GPUs each rank has contexts, and how fast all_reduce is."""
import json
import time

from . import build, multi
from .arms import Arms
from .broker import Broker
from .multi_peers import compare

NATIVE_BEFORE = (1, 3, 5, 7, 9)  # before these runs there is a native one
RUNS = 10
RUNS_BY_HEARTH = 3
BUDGET_SECONDS = 300  # no further native run or one by `hearth run` is begun after it
ROUNDS = 40  # of ten all_reduces
LIMIT_FIRST_MS = 30
LIMIT_SHORTER = 0.20
LIMIT_MEMORY_MIB = 64  # a context is 528
STEPS = ("import", "after import", "driver", "ask NVML", "first tensor", "all_reduce",
         "first step", "own", "since launch")
AHEAD = ("cuInit", "cuDevicePrimaryCtxRetain")


class Group:
    """The runs, and what they have shown."""

    def __init__(self, context, broker, count):
        self.context, self.broker, self.count = context, broker, count
        self.arms, self.checks, self.runs = Arms(), {}, []
        rounds = 3 if context.simulated else ROUNDS
        self.command = multi.torchrun(count, build.GPU / "rank.py", rounds)
        self.state, self.started = None, 0

    def take(self, arm, environment, *before):
        """One run: the slowest rank's steps."""
        self.started += 1
        log = self.broker.folder / f"torchrun-{self.started}"
        log.mkdir()
        if "HEARTH_SOCKET" in environment:
            environment = {**environment, "HEARTH_LOG": f"{log}/%p"}
        lines = multi.finish(multi.start([*before, *self.command], environment))
        if len(lines) != self.count:
            raise RuntimeError(f"{len(lines)} of {self.count} ranks: {lines}")
        lines.sort(key=lambda line: line["rank"])
        for line in lines:
            line["own"] = line["first step"] - line["import"]
            line["how"], line["driver"] = _served(log / str(line["pid"]))
        self.runs.append({"arm": arm, "ranks": lines})
        figures = {step: max(line[step] for line in lines) for step in STEPS}
        if "HEARTH_LOG" not in environment:
            del figures["driver"]
        if "all_reduce GB/s" in lines[0]:
            figures["all_reduce GB/s"] = min(line["all_reduce GB/s"] for line in lines)
        return figures

    def native(self, idle):
        self.broker.stop()
        time.sleep(idle)
        self.arms.measure("native", self.take, "native", self.context.environment())

    def under(self, arm, *before, **more):
        """One run with the preload in the environment, or by the command `before`."""
        if not self.broker.process:
            self.broker.start()
        preload = {} if before else {"LD_PRELOAD": str(self.context.preload)}
        environment = {**self.broker.environment(**preload), "HEARTH_STATE_DIR": str(self.state),
                       **more}
        self.arms.measure(arm, self.take, arm, environment, *before)

    def measure(self):
        idle, native_before = multi.IDLE_SECONDS, NATIVE_BEFORE
        if self.context.simulated:
            idle, native_before = 0, NATIVE_BEFORE[:1]
        self.state = self.broker.fresh_state("torchrun")
        begin = time.monotonic()

        def has_time():
            return time.monotonic() - begin < BUDGET_SECONDS

        for number in range(1, RUNS + 1):
            if number in native_before and has_time():
                self.native(idle)
            self.under("run 1" if number == 1 else "speculation")
            if number in native_before[3:] and has_time():
                self.under("keeper only", HEARTH_SPECULATE="off")
        for _ in range(RUNS_BY_HEARTH if has_time() else 1):
            self.under("everything", self.context.build / "tools/hearth", "run", "--")

    def of_arm(self, *arms):
        return [run for run in self.runs if run["arm"] in arms]

    def check_contexts(self, names):
        """Each rank on its own GPU, and there alone; torchrun itself nowhere."""
        native = self.of_arm("native")
        if native and not any(line["contexts"] for run in native for line in run["ranks"]):
            self.checks["NVML names no process here; memory instead"] = self._same_memory(native)
            return
        for number, run in enumerate(self.runs):
            lines = run["ranks"]
            wrong = multi.wrong_contexts(
                lines, "rank", ("contexts", "launcher"),
                lambda line, at: [line["device"]] if at == "contexts" else [])
            if sorted(line["device"] for line in lines) != sorted(names):
                wrong.append(f"devices {[line['device'] for line in lines]}, not {names}")
            for text in wrong:
                print(f"  {run['arm']}, run {number}: {text}")
            run["wrong"] = wrong
        for arm in self.arms.figures:
            runs = self.of_arm(arm)
            self.checks[f"{arm}: rank k has a context on GPU k only, in {len(runs)} runs"] = (
                not any(run["wrong"] for run in runs))

    def _same_memory(self, native):
        wanted = native[0]["ranks"][0]["memory_mib"]
        far = [(run["arm"], run["ranks"][0]["memory_mib"]) for run in self.runs
               if any(abs(used - wanted.get(gpu, 0)) > LIMIT_MEMORY_MIB
                      for gpu, used in run["ranks"][0]["memory_mib"].items())]
        print(f"  memory natively {wanted} MiB; others that differ: {far}")
        return not far

    def check_served(self):
        """All ranks' first calls were done ahead from run 2 on."""
        for arm in ("speculation", "everything"):
            ways = [line["how"].get(call, "no record") for run in self.of_arm(arm)
                    for line in run["ranks"] for call in AHEAD]
            good = ways.count("speculated")
            self.checks[f"{arm}: {good} of {len(ways)} first calls speculated "
                        f"({', '.join(sorted(set(ways)))})"] = bool(ways) and good == len(ways)

    def check_times(self):
        arms = self.arms
        for arm in ("speculation", "everything"):
            first = arms.median(arm, "after import")
            self.checks[f"{arm}: first tensor {first:.1f} ms after import, at most "
                        f"{LIMIT_FIRST_MS} (natively {arms.median('native', 'after import'):.0f})"
                        ] = first <= LIMIT_FIRST_MS
            own, native = arms.median(arm, "own"), arms.median("native", "own")
            share = own / native - 1
            self.checks[f"{arm}: to the end of the first step without the import {own:.0f} ms, "
                        f"natively {native:.0f} ({share:+.1%}, at most -{LIMIT_SHORTER:.0%})"
                        ] = share <= -LIMIT_SHORTER
            compare(arms, ("all_reduce GB/s",), self.checks, arm)

    def check_results(self):
        results = {str([line["result"] for line in run["ranks"]]) for run in self.runs}
        native = {str([line["result"] for line in run["ranks"]]) for run in self.of_arm("native")}
        self.checks[f"results are the same in all {len(self.runs)} runs"] = len(results) == 1
        if len(native) > 1:
            print(f"  native runs differ: {native}")


def _served(path):
    """How each first call of the process was served, by name, the first record of each; and what
    it waited in cuInit and the retain, in ms."""
    try:
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError):
        return {}, 0
    calls = [record for record in reversed(records) if record["event"] == "call"]
    return ({record["call"]: record["how"] for record in calls},
            sum(record["visible_us"] for record in calls if record["call"] in AHEAD) / 1e3)


def run(context):
    """Measure; holds where every limit does."""
    if not multi.has_torch():
        print("  left out: no torch")
        return {"ok": context.simulated, "error": "no torch"}
    gpus = multi.uuids(context)
    with Broker(context) as broker:
        broker.start()
        undo = broker.prove_undo()
        group = Group(context, broker, len(gpus))
        group.measure()
    group.arms.show((*STEPS, "all_reduce GB/s"))
    group.check_contexts(multi.names(context, gpus))
    group.check_served()
    group.check_results()
    group.check_times()
    return {"undo": undo, "gpus": gpus, "runs": group.runs,
            **group.arms.result(group.checks, context.simulated)}
