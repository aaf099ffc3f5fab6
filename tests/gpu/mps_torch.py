"""Torch under MPS: `train SEED STEPS WIDTH...` trains networks that are so wide, and says what each
took, and what came before; `fill MIB` takes memory until there is no more, with a limit of torch's
own at MIB (0: none). Prints one JSON object."""
import json
import sys
import time

BEGAN = time.monotonic()
import torch  # noqa: E402 (what it takes is measured)
IMPORT_S = time.monotonic() - BEGAN

PIECE_MIB = 64


def train_one(seed, steps, width):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU(),
                                torch.nn.Linear(width, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.randn(256, width).cuda()
    labels = torch.randint(0, 10, (256,)).cuda()
    torch.cuda.synchronize()
    began = time.monotonic()
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
    return {"loss": loss.item(), "train_s": time.monotonic() - began}


def train(seed, steps, *widths):
    began = time.monotonic()
    torch.ones(1, device="cuda").sum().item()
    first_s = time.monotonic() - began
    return {"import_s": IMPORT_S, "first_s": first_s,
            **{str(width): train_one(seed, steps, width) for width in widths}}


def fill(limit_mib):
    free, total = (size >> 20 for size in torch.cuda.mem_get_info())
    if limit_mib:
        torch.cuda.set_per_process_memory_fraction(limit_mib / total)
    pieces, limit = [], 32 * 1024 // PIECE_MIB
    try:
        while len(pieces) < limit:
            pieces.append(torch.empty(PIECE_MIB << 20, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError as error:
        said = str(error)[:200]
    else:
        said = ""
    return {"free_mib": free, "total_mib": total, "got_mib": len(pieces) * PIECE_MIB,
            "free_after_mib": torch.cuda.mem_get_info()[0] >> 20, "said": said}


print(json.dumps(globals()[sys.argv[1]](*map(int, sys.argv[2:]))))
