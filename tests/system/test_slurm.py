"""Slurm's own daemons, where they are installed, on one node with two GPUs that are simulated:
`srun hearth run PROGRAM`, as doc/launchers.md has it. Needs root, as slurmd does."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest
from pathlib import Path

import harness

DAEMONS = ("munged", "slurmctld", "slurmd", "srun")
MISSING = [name for name in DAEMONS if not shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")]
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
SlurmctldPort={controller}
SlurmdPort={node}
StateSaveLocation={folder}/slurmctld
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
GresTypes=gpu
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} Gres=gpu:2 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
"""
USE = ("import ctypes, os; print(os.environ['SLURM_LOCALID'], os.environ['CUDA_VISIBLE_DEVICES'], "
       "ctypes.CDLL('libcuda.so.1').cuInit(0))\n")
COMMAND = re.search(r"^srun .*$", (harness.SOURCE / "doc/launchers.md").read_text(), re.M).group()


def free_port():
    with socket.socket() as end:
        end.bind(("127.0.0.1", 0))
        return end.getsockname()[1]


@unittest.skipIf(MISSING or os.geteuid(), f"needs root, and these are not here: {MISSING}")
class Slurm(harness.SystemTest):
    def setUp(self):
        super().setUp()
        self.dir.chmod(0o755)
        self.env["PATH"] = f"{harness.HEARTH.parent}:{self.env['PATH']}:/usr/sbin:/usr/bin"
        for name in ("slurmctld", "spool", "munge"):
            (self.dir / name).mkdir(mode=0o755)
        (self.dir / "munge/key").write_bytes(os.urandom(1024))
        (self.dir / "munge/key").chmod(0o400)
        for path in (self.dir / "munge", self.dir / "munge/key"):
            shutil.chown(path, "munge")
        host = socket.gethostname().partition(".")[0]
        configuration = self.dir / "slurm.conf"
        configuration.write_text(CONFIGURATION.format(
            host=host, folder=self.dir, controller=free_port(), node=free_port(),
            cpus=len(os.sched_getaffinity(0))))
        (self.dir / "gres.conf").write_text(
            f"NodeName={host} Name=gpu File=/dev/null,/dev/zero\n")
        self.env.update(SLURM_CONF=str(configuration), SIMCUDA_DEVICES="2")
        munge = self.dir / "munge"
        self.daemon(munge / "pid", "munged", f"--key-file={munge}/key",
                    f"--socket={munge}/socket", f"--pid-file={munge}/pid",
                    f"--log-file={munge}/log", f"--seed-file={munge}/seed", "--force",
                    user="munge")
        for name in ("slurmctld", "slurmd"):
            self.daemon(self.dir / f"{name}.pid", name, "-f", configuration)
        end = time.monotonic() + 30
        while b"idle" not in self.run_program("sinfo").stdout:
            self.assertLess(time.monotonic(), end, "no node is idle")
            time.sleep(0.2)

    def daemon(self, pid_file, *words, user=None):
        done = self.run_program(*words, user=user)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(self.end, pid_file)

    def end(self, pid_file):
        pid = int(Path(pid_file).read_text())
        os.kill(pid, signal.SIGTERM)
        end = time.monotonic() + 20
        while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
            time.sleep(0.05)

    def test_two_tasks_under_hearth(self):
        (self.dir / "train.py").write_text(USE)
        command = COMMAND.replace("srun ", "srun --gres=gpu:2 --ntasks=2 --overcommit ")
        command = command.replace("python3", sys.executable)
        done = self.run_program("sh", "-c", command, cwd=self.dir)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(sorted(done.stdout.splitlines()), [b"0 0,1 0", b"1 0,1 0"])
        report = self.run_program(harness.HEARTH, "report", "--json", "-n", "9")
        runs = json.loads(report.stdout)["runs"]
        self.assertEqual([run["program"] for run in runs], ["train.py"] * 2)
        # The broker was started in the job, and leaves with it.
        end = time.monotonic() + 20
        while self.run_program(harness.HEARTH, "status").returncode == 0:
            self.assertLess(time.monotonic(), end, "the broker has outlived its job")
            time.sleep(0.1)


if __name__ == "__main__":
    harness.main()
