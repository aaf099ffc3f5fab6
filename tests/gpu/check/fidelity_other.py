"""Group fidelity-other: everything but PyTorch, plain and preloaded, byte for byte: JAX, CuPy,
Numba, a driver-API program, static and shared runtimes, and older runtimes carried along."""
import importlib.util
import sys

from . import build, fidelity, prepare

PYTHON = {"jax": "jax_sum.py", "cupy": "cupy_sum.py", "numba": "numba_add.py"}
WORKERS = 6
SECONDS = 120
# sm_90: Hopper's own code; compute_75: text that the driver compiles, for any other GPU.
TARGETS = ("-gencode", "arch=compute_90,code=sm_90", "-gencode", "arch=compute_75,code=compute_75")


def _python_programs(skipped):
    for module, script in PYTHON.items():
        if importlib.util.find_spec(module) is None:
            skipped.append(f"{module}: {sys.executable} has no such module")
            continue
        yield fidelity.Program(module, [sys.executable, build.GPU / script], seconds=SECONDS)


def _compiled_programs(context, skipped):
    cuda = build.cuda_folder()
    if cuda is None:
        skipped.append(f"compiled programs: no {build.NVCC}")
        return
    libraries = next((cuda / name for name in ("lib64", "lib") if (cuda / name).is_dir()), cuda)
    # Linked with the stub as everywhere, or with the driver itself where the toolkit has none.
    stub = libraries / "stubs/libcuda.so"
    driver = build.build_cuda(context.work, "driver_program", "driver_program.c",
                              str(stub) if stub.exists() else context.driver, "-ldl")
    yield fidelity.Program("driver-linked", [driver], seconds=SECONDS)
    for kind in ("static", "shared"):
        program = build.build_cuda(
            context.work, f"runtime_{kind}", "runtime_program.cu", "-std=c++17", *TARGETS,
            "-cudart", kind, "-Xlinker", f"-rpath,{libraries}")
        yield fidelity.Program(f"cudart-{kind}", [program], seconds=SECONDS)
    fatbin = build.build_cuda(context.work, "kernel.fatbin", "kernel.cu", "-fatbin", *TARGETS)
    carried = build.build_c(context.work, "carried_runtime", "carried_runtime.c")
    found = {}
    for version in prepare.RUNTIMES:
        found[version] = prepare.runtime_path(version)
        if found[version] is None:
            skipped.append(f"cudart {version}: not in .deps (tools/gpu-check --prepare)")
            continue
        yield fidelity.Program(f"cudart-{version}", [carried, fatbin, found[version]],
                               seconds=SECONDS)
    yield fidelity.Program("libraries", [sys.executable, build.GPU / "libraries.py", libraries],
                           seconds=SECONDS)
    own = sorted(libraries.glob("libcudart.so.*"))
    several = [path for path in found.values() if path] + own[:1]
    if len(several) > 1:
        yield fidelity.Program("cudarts-together", [carried, fatbin, *several], seconds=SECONDS)


def run(context):
    """Compare them all. What is missing is named, and fails the group unless simulated."""
    skipped = []
    programs = [*_compiled_programs(context, skipped), *_python_programs(skipped)]
    rows = fidelity.run_programs(context, programs, WORKERS)
    for line in skipped:
        print(f"  skipped: {line}")
    return {"rows": rows, "skipped": skipped,
            "ok": all(row["same"] for row in rows) and (context.simulated or not skipped)}
