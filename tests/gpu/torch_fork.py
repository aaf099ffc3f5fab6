"""torch in a forked child and in its parent: BEFORE is what the parent did first (import,
available, tensor), HOW is fork, pool, subprocess or loader (a DataLoader's workers)."""
import multiprocessing
import os
import subprocess
import sys

from torch_common import result, torch

BEFORE, HOW = sys.argv[1:3]


def use(who):
    """A tensor there and back, or the error as users see it, without its addresses."""
    try:
        values = torch.arange(64.0).cuda()
        answer = (values @ values).item()
    except RuntimeError as error:
        answer = type(error).__name__ + ": " + str(error).splitlines()[0]
    result(who, answer)
    return answer


def main():
    if BEFORE == "available":
        result("available", torch.cuda.is_available())
    elif BEFORE == "tensor":
        use("before")
    if HOW == "fork":
        pid = os.fork()
        if pid == 0:
            use("child")
            os._exit(0)
        result("child ended with", os.waitpid(pid, 0)[1])
    elif HOW == "pool":
        with multiprocessing.get_context("fork").Pool(2) as pool:
            result("pool", pool.map(use, ["worker", "worker"]))
    elif HOW == "loader":
        data = torch.utils.data.TensorDataset(torch.arange(64.0))
        loader = torch.utils.data.DataLoader(data, batch_size=8, num_workers=3)
        result("loader", sum(batch.sum().item() for (batch,) in loader))
    else:
        result("subprocess", subprocess.run(
            [sys.executable, "-c", "import torch; print(torch.ones(3).cuda().sum().item())"],
            stdout=subprocess.PIPE, check=True).stdout)
    use("parent")


if __name__ == "__main__":
    main()
