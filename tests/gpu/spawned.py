"""torch.multiprocessing.spawn: one child a GPU, and one more that only asks whether there are GPUs.
No child has a rank variable. Each prints as one line of JSON on which GPUs it has contexts: before
it uses one, afterwards, and at the end, while all of them live. Usage: spawned.py COUNT."""
import json
import os
import sys
import time

begin = time.monotonic()
import torch  # noqa: E402 (its import is timed)

imported = time.monotonic()
import gpus_of  # noqa: E402

AHEAD_SECONDS = 0.5  # for whatever is done ahead to be there


def work(number, count, barrier):
    """One child."""
    import rank_device

    is_user = number < count
    own = os.getpid()
    time.sleep(AHEAD_SECONDS)
    line = {"child": number, "device": None, "before": gpus_of.of_process(own)}
    start = time.monotonic()
    if is_user:
        values = torch.ones(8, device=rank_device.take(number))
        line["result"] = values.sum().item()
        line["device"] = rank_device.name(number)
    else:
        rank_device.initialise()
    line["first tensor"] = (time.monotonic() - start) * 1e3
    line["after"] = gpus_of.of_process(own)
    barrier.wait()
    line["end"] = gpus_of.of_process(own)
    line["parent"] = gpus_of.of_process(os.getppid())
    line["import"] = (imported - begin) * 1e3
    os.write(1, (json.dumps(line) + "\n").encode())
    barrier.wait()


def main():
    """The parent, which uses no GPU."""
    import torch.multiprocessing as mp

    count = int(sys.argv[1])
    barrier = mp.get_context("spawn").Barrier(count + 1)
    mp.spawn(work, args=(count, barrier), nprocs=count + 1)


if __name__ == "__main__":
    main()
