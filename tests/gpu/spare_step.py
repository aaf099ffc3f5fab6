"""A program for a spare: the first tensor to the GPU and back, then a CNN's training steps. Usage:
spare_step.py torch|sim SECONDS.

Prints one line of JSON: when it began, the tensor was back and the first step had ended
(CLOCK_MONOTONIC, in seconds, for whoever has started it), the loss, and how long the steps of
SECONDS took, in ms."""
import json
import statistics
import sys
import time

begun_at = time.monotonic()
KIND, SECONDS = sys.argv[1], float(sys.argv[2])


def by_torch():
    """Yields at the tensor, at the first step and at each further one."""
    import torch
    yield torch.ones(1).cuda().cpu().item()
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 32, 3), torch.nn.ReLU(), torch.nn.Conv2d(32, 64, 3),
        torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(64 * 24 * 24, 10)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    images, labels = torch.randn(64, 1, 28, 28).cuda(), torch.randint(0, 10, (64,)).cuda()
    while True:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        yield loss.item()


def by_driver():
    """The same moments for a machine without torch."""
    import ctypes
    cuda, context, memory = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
    if cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) or \
            cuda.cuCtxSetCurrent(context) or cuda.cuMemAlloc_v2(ctypes.byref(memory), 64):
        raise SystemExit("no context")
    while True:
        yield float(cuda.cuMemsetD8_v2(memory, 0, 64) or cuda.cuCtxSynchronize())


moments = by_torch() if KIND == "torch" else by_driver()
next(moments)
tensor_at = time.monotonic()
loss = next(moments)
step_at = before = time.monotonic()
took = []
while before < step_at + SECONDS:
    next(moments)
    took.append((time.monotonic() - before) * 1e3)
    before = time.monotonic()
print(json.dumps({"begun_at": begun_at, "tensor_at": tensor_at, "step_at": step_at, "loss": loss,
                  "steps": len(took), "later_ms": statistics.median(took) if took else None}),
      flush=True)
