"""torch.profiler (CUPTI) sees the kernels: their names and how often each ran. With the argument
`early` it begins before the program's first CUDA call."""
import sys

from torch_common import result, torch
from torch.profiler import ProfilerActivity, profile

IS_EARLY = sys.argv[1:] == ["early"]

left = torch.randn(256, 256)
if not IS_EARLY:
    left = left.cuda()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
    left = left.cuda()
    for _ in range(2):
        right = torch.relu(left @ left)
    torch.cuda.synchronize()
events = sorted((event.key, event.count) for event in profiler.key_averages()
                if event.device_type == torch.autograd.DeviceType.CUDA)
for name, count in events:
    result("kernel", count, name[:120])
result("sum", right.sum().item())
