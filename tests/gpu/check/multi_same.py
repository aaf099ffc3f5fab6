"""Group multi-same: programs on two GPUs say the same plain and under Hearth: CUDA_VISIBLE_DEVICES
by number and UUID, permuted, set from outside, at the start, after the lookup; peer access, copies
between GPUs and CUDA IPC."""
import sys

from . import build, fidelity, multi

WORKERS = 8
MOMENTS = ("start", "lookup", "init")


def _values(gpus):
    first, second = gpus[:2]
    return {"01": "0,1", "10": "1,0", "1": "1", "uuid10": f"{second},{first}", "uuid1": second,
            "prefix1": second[:len("GPU-") + 8], "11": "1,1"}


def _programs(context, gpus):
    environment = build.build_c(context.work, "environment", "environment.c")
    peers = build.build_c(context.work, "peers", "peers.c")
    for label, value in _values(gpus).items():
        yield fidelity.Program(f"outside-{label}", [environment, "start", "HEARTH_NOTHING", "-"],
                               {"CUDA_VISIBLE_DEVICES": value})
        for moment in MOMENTS:
            yield fidelity.Program(f"{moment}-{label}",
                                   [environment, moment, "CUDA_VISIBLE_DEVICES", value])
    yield fidelity.Program("peers", [peers, "results"])
    yield fidelity.Program("peers-permuted", [peers, "results"], {"CUDA_VISIBLE_DEVICES": "1,0"})
    for rank in ("0", "1"):
        yield fidelity.Program(f"peers-rank{rank}", [peers, "results"], {"LOCAL_RANK": rank})


def _torch_programs(context, gpus):
    yield fidelity.Program("torch-shared", [sys.executable, build.GPU / "shared_tensor.py"])
    if context.simulated:
        return  # torch sees no GPU there
    visible = [sys.executable, build.GPU / "torch_visible.py"]
    for label in ("10", "uuid10", "uuid1"):
        value = _values(gpus)[label]
        yield fidelity.Program(f"torch-outside-{label}", visible, {"CUDA_VISIBLE_DEVICES": value})
        yield fidelity.Program(f"torch-lazy-{label}", [*visible, value])


def run(context):
    """Compare them all."""
    gpus = multi.uuids(context)
    programs = list(_programs(context, gpus))
    if multi.has_torch():
        programs += _torch_programs(context, gpus)
    else:
        print(f"  torch left out: {sys.executable} has none")
    rows = fidelity.run_programs(context, programs, WORKERS, fidelity.ALL_ARMS, plain_runs=2)
    same = sum(row["same"] for row in rows)
    ahead = {way: sum(way in found for row in rows for found in row["ways"].values())
             for way in ("speculated", "squashed")}
    print(f"  {same} of {len(rows)} programs are the same; runs in which a call was",
          ", ".join(f"{way}: {count}" for way, count in ahead.items()))
    # Where nothing was done ahead there was nothing to compare.
    return {"rows": rows, "ahead": ahead,
            "ok": same == len(rows) and (all(ahead.values()) or bool(context.only))}
