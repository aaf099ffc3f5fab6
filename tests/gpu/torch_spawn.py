"""torch.multiprocessing.spawn with two ranks, each with a tensor on the first GPU for a while."""
import time

from torch_common import result, torch

RANKS = 2
SECONDS = 1


def work(rank, answers):
    values = torch.arange(1024.0).cuda()
    answers[rank] = (values * (rank + 1)).sum()
    torch.cuda.synchronize()
    time.sleep(SECONDS)


if __name__ == "__main__":
    answers = torch.zeros(RANKS).share_memory_()
    torch.multiprocessing.spawn(work, args=(answers,), nprocs=RANKS)
    result("ranks", *answers.tolist())
