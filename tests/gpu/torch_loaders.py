"""A DataLoader with eight spawned workers, which import torch and never use the GPU, beside a main
process that does."""
from torch_common import result, torch
from torch.utils.data import DataLoader, TensorDataset

WORKERS = 8


def main():
    data = TensorDataset(torch.arange(512.0))
    loader = DataLoader(data, batch_size=16, num_workers=WORKERS, multiprocessing_context="spawn",
                        pin_memory=True)
    total = torch.zeros(1, device="cuda")
    for (batch,) in loader:
        total += batch.cuda(non_blocking=True).sum()
    result("total", total.item())


if __name__ == "__main__":
    main()
