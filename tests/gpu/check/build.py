"""Small C programs of this folder built with the machine's own compiler: for the groups that need
nothing of Hearth's build."""
import shutil
import subprocess
from pathlib import Path

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang") or "cc"
GPU = Path(__file__).resolve().parents[1]
FLAGS = ["-D_GNU_SOURCE", "-std=gnu17", "-O1", "-g", "-Wall"]


class BuildError(Exception):
    """A program could not be built; the message holds the compiler's."""


def build_c(folder, name, *sources, flags=(), libraries=("-ldl", "-lpthread")):
    """Build tests/gpu/SOURCES to folder/name; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / name
    command = [COMPILER, *FLAGS, *flags, "-o", str(target),
               *[str(GPU / source) for source in sources], *libraries]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    if done.returncode:
        raise BuildError(f"{' '.join(command)}:\n{done.stdout}")
    return target
