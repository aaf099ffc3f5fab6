"""CuPy: NVRTC, its own cudart, cuBLAS, and a raw kernel."""
import cupy

print("result sum", float((cupy.arange(1000, dtype=cupy.float64) ** 2).sum()).hex())
square = cupy.ones((128, 128), dtype=cupy.float32)
print("result product", float((square @ square).sum()).hex())
kernel = cupy.RawKernel(r"""
extern "C" __global__ void triple(float *values) { values[threadIdx.x] *= 3.0f; }
""", "triple")
values = cupy.arange(32, dtype=cupy.float32)
kernel((1,), (32,), (values,))
print("result triple", float(values.sum()).hex())
print("result version", cupy.cuda.runtime.driverGetVersion())
