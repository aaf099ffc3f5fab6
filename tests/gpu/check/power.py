"""What a state of the machine costs: watts, clocks and memory by nvidia-smi, resident memory of
processes by /proc."""
import shutil
import statistics
import time

from . import machine

SETTLE_SECONDS = 6
SAMPLES = 16
EVERY_SECONDS = 0.4
FIELDS = ("power.draw", "clocks.sm", "clocks.mem", "memory.used", "pstate")


def smi():
    return shutil.which("nvidia-smi") or "/usr/local/nvidia/bin/nvidia-smi"


def sample(simulated):
    """Medians of SAMPLES readings of the first GPU, {} in a rehearsal. Each reading is a process of
    nvidia-smi of its own: the same little load in every state that is compared."""
    if simulated:
        return {}
    time.sleep(SETTLE_SECONDS)
    columns = {field: [] for field in FIELDS}
    for _ in range(SAMPLES):
        for field, cell in next(iter(machine.nvidia_smi(*FIELDS)), {}).items():
            columns[field].append(cell)
        time.sleep(EVERY_SECONDS)
    row = {"samples": len(columns["power.draw"])}
    for field, cells in columns.items():
        try:
            numbers = [float(cell) for cell in cells]
        except ValueError:
            row[field] = cells[-1]
            continue
        if numbers:
            row[field] = round(statistics.median(numbers), 2)
    numbers = columns["power.draw"]
    if numbers and "power.draw" in row and isinstance(row["power.draw"], float):
        row["power.min"], row["power.max"] = min(map(float, numbers)), max(map(float, numbers))
    return row


def resident_kib(pid):
    """All and anonymous resident memory of a process, in KiB."""
    found = {}
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith(("VmRSS:", "RssAnon:")):
                    name, value = line.split()[:2]
                    found[name.rstrip(":")] = int(value)
    except OSError:
        pass
    return found


def is_listed(pid):
    """Whether nvidia-smi names the process: by its query, or in its table."""
    query = machine.output_of(smi(), "--query-compute-apps=pid,process_name,used_memory",
                              "--format=csv,noheader")
    table = machine.output_of(smi())
    if query is None and table is None:
        return "no nvidia-smi"
    return {"query": (query or "").strip(),
            "table": any(str(pid) in line.split() for line in (table or "").splitlines()),
            "no processes": "No running processes found" in (table or "")}
