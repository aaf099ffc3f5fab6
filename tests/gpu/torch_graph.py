"""A CUDA graph captured once and replayed."""
from torch_common import result, torch

total = torch.zeros(8, device="cuda")
weight = torch.randn(64, 64).cuda()
square = torch.zeros(64, 64, device="cuda")
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    torch.mm(weight, weight, out=square)
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    total.add_(1)
    torch.mm(weight, weight, out=square)
for _ in range(3):
    graph.replay()
torch.cuda.synchronize()
result("graph", total[0].item(), square.sum().item())
