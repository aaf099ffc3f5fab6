"""Building on the GPU machine: Hearth itself with meson, and small programs with the machine's own
C compiler and nvcc."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

GPU = Path(__file__).resolve().parents[1]
SOURCE = GPU.parents[1]
DEPS = SOURCE / ".deps"
FLAGS = ["-D_GNU_SOURCE", "-std=gnu17", "-O1", "-g", "-Wall"]
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang") or "cc"
NVCC = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"


class BuildError(Exception):
    """A program could not be built; the message holds the compiler's."""


def _run(command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                          check=False, **options)
    if done.returncode:
        raise BuildError(f"{' '.join(str(word) for word in command)}:\n{done.stdout}")
    return done.stdout


def _build_environment():
    """The environment for meson and compilers: this python's tools, what .deps/ holds."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment.get('PATH', '')}"
    if (DEPS / "usr/include/jansson.h").exists():
        libraries = ":".join(str(path) for path in DEPS.glob("usr/lib/*"))
        for name, value in (("CPATH", str(DEPS / "usr/include")), ("LIBRARY_PATH", libraries)):
            old = environment.get(name)
            environment[name] = f"{value}:{old}" if old else value
    return environment


def _meson(environment):
    """meson's command: on PATH, beside this python, or as a module of it."""
    found = shutil.which("meson", path=environment["PATH"])
    return [found] if found else [sys.executable, "-m", "mesonbuild.mesonmain"]


def build_hearth(folder):
    """Configure where needed, and build Hearth in folder. Raises BuildError."""
    environment = _build_environment()
    ninja = shutil.which("ninja", path=environment["PATH"])
    if ninja is None:
        raise BuildError(f"no ninja on PATH nor beside {sys.executable}")
    environment["NINJA"] = ninja
    if not (folder / "build.ninja").exists():
        _run([*_meson(environment), "setup", folder],
             cwd=SOURCE, env=environment)
    _run([ninja, "-C", folder], env=environment)


def build_c(folder, name, *sources, flags=(), libraries=("-ldl", "-lpthread")):
    """Build tests/gpu/SOURCES to folder/name; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / name
    _run([COMPILER, *FLAGS, *flags, "-o", target, *[GPU / source for source in sources],
          *libraries])
    return target


def cuda_folder():
    """The toolkit that nvcc belongs to, or None."""
    return Path(NVCC).resolve().parents[1] if os.path.exists(NVCC) else None


def build_cuda(folder, name, source, *flags):
    """Build tests/gpu/SOURCE with nvcc to folder/name; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / name
    _run([NVCC, *flags, "-o", target, GPU / source], env=_build_environment())
    return target
