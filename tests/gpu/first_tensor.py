"""The shortest torch program that uses the GPU: is_available, one tensor there, synchronize."""
import time

import torch

begin = time.monotonic()
available = torch.cuda.is_available()
known = time.monotonic()
tensor = torch.ones(1, 1).to("cuda")
torch.cuda.synchronize()
print(f"ms: is_available {(known - begin) * 1e3:.1f} "
      f"first tensor {(time.monotonic() - known) * 1e3:.1f}", available, tensor.item())
