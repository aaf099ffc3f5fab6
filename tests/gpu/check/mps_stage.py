"""What the group mps stands on: a daemon kept by `hearth mps` in a folder of its own, and clients
that do what their words say (mps_client.c)."""
import importlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from . import build, machine, power

# Its sum is looked at, or it would be left out. It never is 0.
PTX = """.version 6.5
.target sm_75
.address_size 64
.visible .entry spin(.param .u32 length)
{
.reg .b32 %r<3>;
.reg .f32 %f<2>;
.reg .pred %p, %q;
ld.param.u32 %r1, [length];
mov.u32 %r2, 0;
mov.f32 %f1, 0f3F800000;
again:
fma.rn.f32 %f1, %f1, %f1, %f1;
add.u32 %r2, %r2, 1;
setp.lt.u32 %p, %r2, %r1;
@%p bra again;
setp.eq.f32 %q, %f1, 0f00000000;
@%q trap;
ret;
}
"""
SIMULATED_IMAGE = "SIMCUDA1\nkernel spin spin\n"
LENGTHS = {False: "100000", True: "400"}  # some 0.4 ms on an H200; microseconds in the simulation
LIMIT_S = 30
BIN = "/usr/local/nvidia/bin"


class Client:
    """One program: its lines are read as they come."""

    def __init__(self, command, environment, **options):
        self.begun = time.monotonic()
        self.lines, self.arrived = [], threading.Condition()
        self.process = subprocess.Popen([str(word) for word in command], env=environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, **options)
        self.pid = self.process.pid
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for text in self.process.stdout:
            with self.arrived:
                self.lines.append(json.loads(text))
                self.arrived.notify_all()
        with self.arrived:
            self.lines.append(None)
            self.arrived.notify_all()

    def wait_for(self, step, seconds=LIMIT_S, nth=0):
        """The nth line of a step; None where the program ended, or waits, without it."""
        end = time.monotonic() + seconds
        with self.arrived:
            while True:
                found = [line for line in self.lines if line and line["step"] == step]
                if len(found) > nth:
                    return found[nth]
                if None in self.lines:
                    return None
                if time.monotonic() >= end:
                    return None
                self.arrived.wait(end - time.monotonic())

    def rc(self, step, seconds=LIMIT_S):
        line = self.wait_for(step, seconds)
        return line and line["rc"]

    def go(self):
        try:
            self.process.stdin.write(b"g")
            self.process.stdin.flush()
        except OSError:
            pass  # it has ended

    def end(self, kill=False):
        """Wait for its end; its steps by name."""
        try:
            self.process.stdin.close()
        except OSError:
            pass
        if kill:
            self.process.kill()
        try:
            self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(LIMIT_S)
        self.reader.join(LIMIT_S)
        self.process.stdout.close()
        self.process.stderr.close()
        return {line["step"]: line for line in self.lines if line}


class Stage:
    """One daemon at a time, in a folder of its own below /tmp, since a socket's path is short."""

    def __init__(self, context, broker):
        self.context, self.broker = context, broker
        self.folder = Path(tempfile.mkdtemp(prefix="hearth-mps-", dir="/tmp"))
        os.chmod(self.folder, 0o755)
        (self.folder / "run").mkdir(mode=0o700)
        self.path = f"{os.environ.get('PATH', os.defpath)}:{BIN}"
        if context.simulated:
            self._install_standin()
        self.program = self.folder / "client"
        shutil.copy(build.build_c(context.work, "mps_client", "mps_client.c"), self.program)
        # One of its own for starts: what is learned of the others is another beginning.
        self.starter = self.folder / "starter"
        shutil.copy(self.program, self.starter)
        # Where another user reaches it, too.
        self.tool = self.folder / "hearth"
        shutil.copy(context.build / "tools/hearth", self.tool)
        self.image = self.folder / "image"
        self.image.write_text(SIMULATED_IMAGE if context.simulated else PTX)
        self.place = self.folder / "run/hearth/mps"

    def _install_standin(self):
        folder = self.folder / "bin"
        sys.path.insert(0, str(machine.SOURCE / "tests/system"))
        importlib.import_module("mps_standin").install(folder, sys.executable)
        self.path = f"{folder}:{self.path}"

    def names(self, is_client=False, **more):
        """A program's environment; with MPS where it is to be a client."""
        more.setdefault("PATH", self.path)
        more.update(XDG_RUNTIME_DIR=str(self.folder / "run"), MPS_CLIENT_IMAGE=str(self.image),
                    MPS_CLIENT_LENGTH=LENGTHS[self.context.simulated])
        if is_client:
            more.setdefault("CUDA_MPS_PIPE_DIRECTORY", str(self.place / "pipe"))
        return self.context.environment(**more)

    def hearth_names(self):
        return self.broker.environment(**{
            name: value for name, value in self.names().items()
            if name in ("PATH", "XDG_RUNTIME_DIR") or name.startswith("MPS_CLIENT")})

    def hearth(self, *words, **options):
        tool = self.tool if options.get("user") else self.context.build / "tools/hearth"
        return subprocess.run(
            [str(tool), *map(str, words)],
            env=options.pop("env", None) or self.hearth_names(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=2 * LIMIT_S, check=False,
            **options)

    def start(self, *words):
        """Seconds that it took."""
        begin = time.monotonic()
        done = self.hearth("mps", "start", *words)
        if done.returncode:
            raise RuntimeError(f"hearth mps start: {done.stderr.decode()}")
        return time.monotonic() - begin

    def stop(self, *words):
        done = self.hearth("mps", "stop", *words)
        if done.returncode:
            raise RuntimeError(f"hearth mps stop: {done.stderr.decode()}")

    def roll(self):
        return json.loads(self.hearth("mps", "status", "--json").stdout)

    def clients(self):
        return [client["pid"] for server in self.roll()["servers"] or []
                for client in server["clients"]]

    def client(self, *steps, arm="plain", **more):
        """A program in one of the arms: plain, MPS, Hearth, Hearth+MPS."""
        options = {name: more.pop(name) for name in ("user", "group", "extra_groups", "cwd")
                   if name in more}
        command = [more.pop("program", self.program), *steps]
        if arm.startswith("Hearth"):
            words = ["run", "--mps", "--"] if arm == "Hearth+MPS" else ["run", "--"]
            command = [self.context.build / "tools/hearth", *words, *command]
            return Client(command, {**self.hearth_names(), **more}, **options)
        return Client(command, self.names(arm == "MPS", **more), **options)

    def control(self, folder, *words, text="", user=None, seconds=LIMIT_S):
        """The control program itself, for daemons that are not Hearth's."""
        tool = shutil.which("nvidia-cuda-mps-control", path=self.path)
        return subprocess.run([tool, *words], env=self.names(
            CUDA_MPS_PIPE_DIRECTORY=f"{folder}/pipe", CUDA_MPS_LOG_DIRECTORY=f"{folder}/log"),
            input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=seconds,
            check=False, user=user)

    def used_mib(self):
        """GPU memory in use, of all processes; 0 in a rehearsal."""
        text = "" if self.context.simulated else machine.output_of(
            power.smi(), "--query-gpu=memory.used", "--format=csv,noheader,nounits")
        return int((text or "0").split()[0])

    def leftovers(self, pids):
        """Processes and files that should not be there any more."""
        found = [f"process {pid}" for pid in pids if pid and lives_on(pid)]
        if self.place.exists():
            found += [f"{stat.filemode(path.lstat().st_mode)} {path}"
                      for path in [self.place, *self.place.rglob("*")]]
        return found

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.hearth("mps", "stop", "--force")
        shutil.rmtree(self.folder, ignore_errors=True)


def lives_on(pid):
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"
