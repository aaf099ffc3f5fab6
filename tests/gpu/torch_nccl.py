"""NCCL with one rank: its own cudart, driver entries by cudaGetDriverEntryPoint."""
import os
import tempfile

from torch_common import result, torch
import torch.distributed as dist

meeting = os.path.join(tempfile.gettempdir(), "meeting")
dist.init_process_group("nccl", init_method=f"file://{meeting}", rank=0, world_size=1,
                        device_id=torch.device("cuda", 0))
values = torch.arange(1024.0).cuda()
dist.all_reduce(values)
dist.broadcast(values, 0)
torch.cuda.synchronize()
result("reduced", values.sum().item())
dist.destroy_process_group()
