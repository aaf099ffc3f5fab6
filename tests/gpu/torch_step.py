"""Three eager training steps, with a convolution, a matrix product, a softmax and Adam."""
from torch_common import result, small_network, torch

print("devices", torch.cuda.device_count(), torch.cuda.is_available())
print("device", torch.cuda.get_device_name(0), torch.cuda.get_device_capability(0))
model = small_network()
optimizer = torch.optim.Adam(model.parameters())
images = torch.randn(64, 1, 28, 28).cuda()
labels = torch.randint(0, 10, (64,)).cuda()
for step in range(3):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    result("loss", step, loss.item())
left = torch.randn(512, 512).cuda()
result("product", (left @ left.t()).sum().item())
result("softmax", torch.softmax(left, -1)[3, 5].item())
try:
    torch.empty(1 << 50, device="cuda")
except torch.OutOfMemoryError:
    result("a petabyte is refused")
