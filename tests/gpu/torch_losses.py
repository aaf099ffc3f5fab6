"""Twenty training steps under deterministic settings, to the last bit. Usage: torch_losses.py WAY:
`eager`, `compile` (torch.compile of the model) or `graph` (one step captured and replayed)."""
import sys

from torch_common import result, small_network, torch

STEPS = 20


def main(way):
    """Train, and say each loss."""
    model = small_network()
    optimizer = torch.optim.Adam(model.parameters(), capturable=way == "graph")
    images = torch.randn(64, 1, 28, 28).cuda()
    labels = torch.randint(0, 10, (64,)).cuda()
    run_model = torch.compile(model) if way == "compile" else model
    loss = torch.zeros((), device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=False)
        value = torch.nn.functional.cross_entropy(run_model(images), labels)
        value.backward()
        optimizer.step()
        loss.copy_(value.detach())

    replay = step
    if way == "graph":
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        replay = graph.replay
    for number in range(STEPS):
        replay()
        result("loss", number, loss.item())
    result("weights", sum(value.sum().item() for value in model.parameters()))


if __name__ == "__main__":
    main(sys.argv[1])
