"""The demo of the first calls: a small network's first training steps, as people write them.
Prints what each part took, which is why it is not among the programs that are compared."""
import time

start = time.monotonic()
import torch  # noqa: E402 (its import is timed)

imported = time.monotonic()
model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 32, 3), torch.nn.ReLU(), torch.nn.Conv2d(32, 64, 3), torch.nn.ReLU(),
    torch.nn.Flatten(), torch.nn.Linear(64 * 24 * 24, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters())
images = torch.randn(64, 1, 28, 28, device="cuda")
labels = torch.randint(0, 10, (64,), device="cuda")
torch.cuda.synchronize()
marks = [start, imported, time.monotonic()]
for _ in range(3):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
    torch.cuda.synchronize()
    marks.append(time.monotonic())
print("ms:", *[f"{name} {(end - begin) * 1e3:.1f}" for name, begin, end in
               zip(("import", "setup", "step1", "step2", "step3"), marks, marks[1:])])
