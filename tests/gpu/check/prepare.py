"""What a GPU machine without a network needs from outside, fetched into .deps/ beforehand:
jansson's header and static library (Debian), older CUDA runtimes, and Jupyter's kernel (PyPI)."""
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from . import machine

DEPS = machine.SOURCE / ".deps"
JANSSON = "libjansson-dev"
# CUDA's version to wheel: the oldest and newest majors that programs still bring along.
RUNTIMES = {"11.8": "nvidia-cuda-runtime-cu11==11.8.89",
            "12.1": "nvidia-cuda-runtime-cu12==12.1.105",
            "12.8": "nvidia-cuda-runtime-cu12==12.8.90"}
JUPYTER = ("ipykernel", "jupyter_client")
PYTHON = "3.12"  # the GPU machine's
PLATFORMS = ("manylinux1_x86_64", "manylinux2014_x86_64", "manylinux_2_17_x86_64")


def runtime_path(version):
    """The carried libcudart of this version, or None."""
    found = sorted((DEPS / "cudart" / version).glob("libcudart.so.*"))
    return found[0] if found else None


def _fetch_jansson(folder):
    subprocess.run(["apt-get", "-q", "download", JANSSON], cwd=folder, check=True)
    package = next(folder.glob(f"{JANSSON}_*.deb"))
    subprocess.run(["dpkg", "-x", str(package), str(DEPS)], check=True)
    shutil.rmtree(DEPS / "usr/share", ignore_errors=True)
    # Without libjansson.so beside it the linker takes libjansson.a.
    for link in DEPS.glob("usr/lib/*/libjansson.so*"):
        link.unlink()


def _fetch_runtime(folder, version, wheel):
    target = folder / version
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps",
               "--only-binary=:all:", "-d", str(target)]
    for platform in PLATFORMS:
        command += ["--platform", platform]
    subprocess.run([*command, wheel], check=True)
    place = DEPS / "cudart" / version
    place.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(next(target.glob("*.whl"))) as archive:
        for name in archive.namelist():
            if Path(name).name.startswith("libcudart.so."):
                (place / Path(name).name).write_bytes(archive.read(name))


def _fetch_wheels():
    shutil.rmtree(DEPS / "wheels", ignore_errors=True)
    command = [sys.executable, "-m", "pip", "download", "-q", "--only-binary=:all:",
               "--python-version", PYTHON, "-d", str(DEPS / "wheels")]
    for platform in (*PLATFORMS, "manylinux_2_28_x86_64"):
        command += ["--platform", platform]
    subprocess.run([*command, *JUPYTER], check=True)


def fetch():
    """Fill .deps/; returns the exit status."""
    packages = ", ".join((*RUNTIMES.values(), *JUPYTER))
    print(f"gpu-check: fetching {JANSSON} and {packages} into {DEPS}",
          file=sys.stderr)
    DEPS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        try:
            _fetch_jansson(Path(folder))
            for version, wheel in RUNTIMES.items():
                _fetch_runtime(Path(folder), version, wheel)
            _fetch_wheels()
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"gpu-check: {error}", file=sys.stderr)
            return 1
    return 0
