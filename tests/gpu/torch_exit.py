"""A torch program that ends after MS milliseconds, wherever it is: `sys.exit`, `_exit`, C's `exit`,
or killed by the timer's signal (`alarm`). `end` comes to its end by itself. Prints nothing.
Usage: torch_exit.py HOW MS."""
import ctypes
import os
import signal
import sys

HOW, MS = sys.argv[1], int(sys.argv[2])
AGAIN_SECONDS = 0.3  # python swallows an exception in some callbacks: then once more
SLEEP_SECONDS = 20


def leave(*_):
    if HOW == "sys.exit":
        sys.exit(5)
    elif HOW == "_exit":
        os._exit(6)
    elif HOW == "exit":
        ctypes.CDLL(None).exit(7)


if HOW != "end":
    if HOW != "alarm":
        signal.signal(signal.SIGALRM, leave)
    signal.setitimer(signal.ITIMER_REAL, max(MS, 1) / 1000, AGAIN_SECONDS)

import torch  # noqa: E402 (the timer runs while it is imported)

if torch.cuda.is_available():
    values = torch.arange(4096.0).to("cuda")
    (values @ values).item()
if HOW != "end":
    signal.sigtimedwait([], SLEEP_SECONDS)
    while True:
        signal.pause()
