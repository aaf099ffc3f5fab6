"""Which GPUs torch sees, by UUID, where CUDA_VISIBLE_DEVICES is set from outside or after torch was
imported; and a tensor on each. Usage: torch_visible.py [VALUE]."""
import os
import sys

from torch_common import result, torch

if len(sys.argv) > 1:
    os.environ["CUDA_VISIBLE_DEVICES"] = sys.argv[1]
result("available", torch.cuda.is_available())
result("count", torch.cuda.device_count())
for device in range(torch.cuda.device_count()):
    result("device", device, torch.cuda.get_device_properties(device).uuid,
           torch.arange(64.0, device=f"cuda:{device}").sum().item())
