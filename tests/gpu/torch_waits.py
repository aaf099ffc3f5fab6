"""One tensor of torch's; or, as the same program to whoever learns from it, the driver alone,
looked up `late` (just before its first call) or `early`. Usage: torch_waits.py torch|late|early."""
import sys

import driver_waits

WAIT_MS = 1500


def main(how):
    if how == "torch":
        import torch
        print("result", torch.cuda.is_available(), torch.ones(64).to("cuda").sum().item())
    else:
        driver_waits.use(*((WAIT_MS, 0) if how == "late" else (0, WAIT_MS)))


if __name__ == "__main__":
    main(sys.argv[1])
