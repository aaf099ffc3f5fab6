"""What a state of the machine costs: watts, clocks and memory by nvidia-smi, resident memory of
processes by /proc."""
import shutil
import statistics
import subprocess
import time

from . import machine

SETTLE_SECONDS = 6
SAMPLE_SECONDS = 8
FIELDS = ("power.draw", "clocks.sm", "clocks.mem", "memory.used", "pstate")
EVERY_MS = 500


def _smi():
    return shutil.which("nvidia-smi") or "/usr/local/nvidia/bin/nvidia-smi"


def sample(simulated):
    """Medians over SAMPLE_SECONDS of the first GPU, {} where nvidia-smi is missing."""
    if simulated:
        return {}
    time.sleep(SETTLE_SECONDS)
    process = subprocess.Popen(
        [_smi(), "--id=0", "--query-gpu=" + ",".join(FIELDS), "--format=csv,noheader,nounits",
         f"--loop-ms={EVERY_MS}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=machine.clean_environment())
    try:
        text, _ = process.communicate(timeout=SAMPLE_SECONDS)
    except subprocess.TimeoutExpired:
        process.terminate()
        text, _ = process.communicate()
    columns = {field: [] for field in FIELDS}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == len(FIELDS):
            for field, cell in zip(FIELDS, cells):
                columns[field].append(cell)
    row = {"samples": len(columns["power.draw"])}
    for field, cells in columns.items():
        numbers = []
        for cell in cells:
            try:
                numbers.append(float(cell))
            except ValueError:
                continue
        if numbers:
            row[field] = round(statistics.median(numbers), 2)
            if field == "power.draw":
                row["power.min"], row["power.max"] = min(numbers), max(numbers)
        elif cells:
            row[field] = cells[-1]
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
    query = machine.output_of(_smi(), "--query-compute-apps=pid,process_name,used_memory",
                              "--format=csv,noheader")
    table = machine.output_of(_smi())
    if query is None and table is None:
        return "no nvidia-smi"
    return {"query": (query or "").strip(),
            "table": any(str(pid) in line.split() for line in (table or "").splitlines()),
            "no processes": "No running processes found" in (table or "")}
