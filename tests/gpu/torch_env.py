"""CUDA_VISIBLE_DEVICES set at a moment of choice (import, available, count): what torch then sees.
Usage: torch_env.py MOMENT VALUE."""
import os
import sys

MOMENT, VALUE = sys.argv[1:3]
if MOMENT == "import":
    os.environ["CUDA_VISIBLE_DEVICES"] = VALUE
from torch_common import result, torch  # noqa: E402 (after the change, if so asked)

if MOMENT == "lazy":
    os.environ["CUDA_VISIBLE_DEVICES"] = VALUE
if MOMENT == "available":
    result("available before", torch.cuda.is_available())
    os.environ["CUDA_VISIBLE_DEVICES"] = VALUE
if MOMENT == "count":
    result("count before", torch.cuda.device_count())
    os.environ["CUDA_VISIBLE_DEVICES"] = VALUE
result("available", torch.cuda.is_available())
result("count", torch.cuda.device_count())
try:
    result("sum", torch.ones(8).cuda().sum().item())
except RuntimeError as error:
    result("error", type(error).__name__, str(error).splitlines()[0])
