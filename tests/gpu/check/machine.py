"""What a result is worth nothing without: the machine, its driver, the date and the commit; and
where the real driver is."""
import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from . import build

SOURCE = Path(__file__).resolve().parents[3]
GPU_FIELDS = ("name", "driver_version", "uuid", "persistence_mode", "compute_mode", "memory.total")

_FIND_DRIVER = """
import ctypes, re
ctypes.CDLL("libcuda.so.1")
print(next(line.split()[-1] for line in open("/proc/self/maps") if "libcuda.so" in line))
"""


def clean_environment(**more):
    """The environment of a native program: nothing of Hearth's, nothing preloaded. CUDA_* and
    NCCL_* stay as the machine set them."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("HEARTH", "SIMCUDA")) and name != "LD_PRELOAD"}
    return {**kept, **more}


def output_of(*command, timeout=30, env=None):
    """stdout of a command, or None where it cannot be had."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              stdin=subprocess.DEVNULL, timeout=timeout, check=False,
                              env=env or clean_environment(), text=True)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def nvidia_smi(*fields):
    """One dictionary a GPU, [] where there is no nvidia-smi."""
    tool = shutil.which("nvidia-smi") or "/usr/local/nvidia/bin/nvidia-smi"
    text = output_of(tool, "--query-gpu=" + ",".join(fields), "--format=csv,noheader,nounits")
    return [dict(zip(fields, (cell.strip() for cell in line.split(","))))
            for line in (text or "").splitlines()]


def find_driver():
    """The path of the libcuda.so.1 that this machine's programs get, or None."""
    text = output_of(sys.executable, "-c", _FIND_DRIVER)
    return os.path.realpath(text.strip()) if text else None


def read_commit(source=SOURCE):
    """The commit of the checkout, from git or from its files; None without .git."""
    text = output_of("git", "-C", str(source), "rev-parse", "HEAD")
    if text:
        return text.strip()
    head = source / ".git" / "HEAD"
    try:
        text = head.read_text(encoding="ascii").strip()
        if text.startswith("ref: "):
            text = (source / ".git" / text[5:]).read_text(encoding="ascii").strip()
    except OSError:
        return None
    return text if re.fullmatch("[0-9a-f]{40}", text) else None


def compiler_version():
    """The first line the C compiler says about itself."""
    return (output_of(build.COMPILER, "--version") or "none").splitlines()[0]


def describe(commit, driver, simulated):
    """The head of every result."""
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": commit or read_commit() or "unknown",
        "driver": "simulated" if simulated else driver,
        "gpus": [] if simulated else nvidia_smi(*GPU_FIELDS),
        "power_control": {} if simulated else power_controls(),
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "compiler": compiler_version(),
    }


def power_controls(pci=Path("/sys/bus/pci/devices")):
    """Runtime power control (`on` or `auto`) of each NVIDIA device of the PCI bus."""
    found = {}
    for device in sorted(pci.glob("*")):
        try:
            if (device / "vendor").read_text(encoding="ascii").strip() == "0x10de":
                found[device.name] = (device / "power/control").read_text(encoding="ascii").strip()
        except OSError:
            continue
    return found


def write_result(folder, group, head, result):
    """group.json: head, group and what the group returned."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{group}.json"
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"group": group, **head, **result}, file, indent=1)
        file.write("\n")
    return path
