"""What the torch programs of this folder share: arithmetic that gives the same bits every time."""
import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import torch  # noqa: E402 (cuBLAS reads the variable when torch first uses it)

torch.manual_seed(7)
torch.use_deterministic_algorithms(True)
torch.backends.cudnn.benchmark = False
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False


def result(name, *values):
    """Print what the GPU computed, to the last bit."""
    print("result", name, *[value.hex() if isinstance(value, float) else value
                            for value in values], flush=True)


def small_network():
    """A convolutional network whose weights come from the CPU's generator."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3), torch.nn.ReLU(), torch.nn.Conv2d(16, 32, 3), torch.nn.ReLU(),
        torch.nn.Flatten(), torch.nn.Linear(32 * 24 * 24, 10)).cuda()
