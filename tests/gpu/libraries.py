"""CUDA's own libraries by ctypes: each brings a runtime of its own along and finds driver entries
its own way. Usage: libraries.py FOLDER (of the toolkit's libraries). Prints return codes."""
import ctypes
import sys
from pathlib import Path

FOLDER = Path(sys.argv[1])
POINTER, NUMBER = ctypes.c_void_p, ctypes.c_int
# Library, its call that makes a handle, what the handle is, further arguments.
CALLS = (("cudart", "cudaFree", None, (None,)),
         ("cublas", "cublasCreate_v2", POINTER, ()),
         ("cublasLt", "cublasLtCreate", POINTER, ()),
         ("cufft", "cufftCreate", NUMBER, ()),
         ("curand", "curandCreateGenerator", POINTER, (100,)),
         ("cusolver", "cusolverDnCreate", POINTER, ()),
         ("cusparse", "cusparseCreate", POINTER, ()),
         ("cudnn", "cudnnCreate", POINTER, ()),
         ("nccl", "ncclCommInitAll", POINTER, (1, None)))

for name, call, kind, arguments in CALLS:
    found = sorted(FOLDER.glob(f"lib{name}.so.*"))
    if not found:
        print("no", name)
        continue
    function = getattr(ctypes.CDLL(str(found[0])), call)
    handle = () if kind is None else (ctypes.byref(kind()),)
    print("result", call, function(*handle, *arguments), flush=True)
