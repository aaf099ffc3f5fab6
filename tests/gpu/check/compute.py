"""Which processes have contexts, and of how much memory, as NVML says while programs run."""
import os
import threading

from . import machine, power

EVERY_SECONDS = 0.05


def _by_nvml():
    """A function that returns {pid: MiB}, or None where there is no NVML for python."""
    try:
        import pynvml
        pynvml.nvmlInit()
        device = pynvml.nvmlDeviceGetHandleByIndex(0)
    except Exception:  # whatever is missing, nvidia-smi is asked instead
        return None
    return lambda: {one.pid: (one.usedGpuMemory or 0) >> 20
                    for one in pynvml.nvmlDeviceGetComputeRunningProcesses(device)}


def _by_tool():
    text = machine.output_of(power.smi(), "--query-compute-apps=pid,used_memory",
                             "--format=csv,noheader,nounits") or ""
    rows = [line.split(",") for line in text.splitlines() if "," in line]
    return {int(pid): int(mib) if mib.strip().isdigit() else 0 for pid, mib in rows}


class Watch:
    """While it is entered, a thread looks again and again. `sessions` is {session: {pid: MiB}}, the
    most that each process had; `at_once` how many of a session had a context at the same time."""

    def __init__(self, simulated):
        self.read = (lambda: {}) if simulated else (_by_nvml() or _by_tool)
        self.sessions, self.at_once, self.known = {}, {}, {}
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._loop, daemon=True)

    def _session(self, pid):
        """A process that is seen is alive, or was when NVML looked."""
        if pid not in self.known:
            try:
                self.known[pid] = os.getsid(pid)
            except OSError:
                return None
        return self.known[pid]

    def _loop(self):
        while not self.stopped.wait(EVERY_SECONDS):
            now = {}
            for pid, mib in self.read().items():
                session = self._session(pid)
                found = self.sessions.setdefault(session, {})
                found[pid] = max(mib, found.get(pid, 0))
                now[session] = now.get(session, 0) + 1
            for session, count in now.items():
                self.at_once[session] = max(count, self.at_once.get(session, 0))

    def of(self, session):
        """What a session's processes had: how many at once, and each one's MiB, largest first."""
        return {"at_once": self.at_once.get(session, 0),
                "mib": sorted(self.sessions.get(session, {}).values(), reverse=True)}

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()
