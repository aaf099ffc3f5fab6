"""A DataLoader with worker processes and pinned memory, three epochs after CUDA was initialised."""
from torch_common import result, torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.zeros(1, device="cuda")
    data = TensorDataset(torch.arange(256.0))
    loader = DataLoader(data, batch_size=16, num_workers=4, pin_memory=True)
    for epoch in range(3):
        total = torch.zeros(1, device="cuda")
        for (batch,) in loader:
            total += batch.cuda(non_blocking=True).sum()
        result("epoch", epoch, total.item(), batch.is_pinned())


if __name__ == "__main__":
    main()
