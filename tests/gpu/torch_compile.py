"""torch.compile: Inductor with its default workers, Triton's launcher linked with libcuda."""
from torch_common import result, torch


@torch.compile
def chain(values):
    return (values * 2 + 1).relu().sum()


def main():
    values = torch.randn(4096).cuda()
    values.requires_grad_(True)
    total = chain(values)
    total.backward()
    result("compiled", total.item(), values.grad.sum().item())


if __name__ == "__main__":
    main()
