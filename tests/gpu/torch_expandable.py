"""Expandable segments: the allocator on the driver's virtual memory calls."""
import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
from torch_common import result, torch  # noqa: E402 (the allocator reads the variable at import)

blocks = [torch.full((1 << 20,), float(number), device="cuda") for number in range(20)]
result("sum", sum(block.sum().item() for block in blocks))
del blocks[::2]
torch.cuda.empty_cache()
blocks.append(torch.ones(30 << 20, device="cuda"))
result("after", sum(block.sum().item() for block in blocks))
try:
    torch.empty(1 << 50, device="cuda")
except torch.OutOfMemoryError:
    result("a petabyte is refused")
