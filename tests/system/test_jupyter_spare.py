"""Jupyter kernels restarted by way of spares: a real jupyter_client and ipykernel on the simulated
driver. These need PyPI, once per build."""
import json
import os
import signal
import subprocess
import time

import harness
import spares
from kernels import VENV, why_no_jupyter

RESTARTS = 10
PROGRAM = harness.SOURCE / "tests/programs/jupyter_spares.py"


class KernelTest(harness.SystemTest):
    def setUp(self):
        super().setUp()
        reason = why_no_jupyter()
        if reason:
            self.skipTest(f"jupyter_client and ipykernel cannot be had: {reason}")
        for name in [name for name in self.env if name.startswith("PYTHON")]:
            del self.env[name]
        folder = self.dir / "share/jupyter/kernels/python3"
        folder.mkdir(parents=True)
        (folder / "kernel.json").write_text(json.dumps(
            {"argv": [str(VENV / "bin/python"), "-Xfrozen_modules=off", "-m",
                      "ipykernel_launcher", "-f", "{connection_file}"],
             "display_name": "a kernel", "language": "python"}))
        (self.dir / "work").mkdir()
        self.env.update(JUPYTER_PATH=str(self.dir / "share/jupyter"), HOME=str(self.dir),
                        LD_LIBRARY_PATH=str(harness.SIM.parent))
        self.addCleanup(self.run_program, harness.HEARTH, "stop")
        self.addCleanup(self.run_program, harness.HEARTH, "spare", "stop")
        done = self.run_program(harness.HEARTH, "jupyter", "install", "--spare")
        self.assertEqual(done.returncode, 0, done)

    def assert_nothing_left(self):
        """No process that has this test's folder in its environment, but for the broker."""
        self.run_program(harness.HEARTH, "stop")
        deadline = time.monotonic() + harness.DEADLINE_S
        while left := [pid for pid in os.listdir("/proc")
                       if pid.isdigit() and spares.mentions(pid, str(self.dir).encode())]:
            self.assertLess(time.monotonic(), deadline, left)
            time.sleep(0.02)

    def test_ten_restarts_five_by_sigkill_and_interrupts(self):
        done = self.run_program(VENV / "bin/python", PROGRAM, "python3", RESTARTS, harness.HEARTH,
                                "sim", timeout=240, cwd=self.dir / "work")
        self.assertEqual(done.returncode, 0, done.stderr.decode()[-2000:])
        seen = json.loads(done.stdout.splitlines()[-1])
        starts = seen["starts"]
        self.assertEqual([start["spare"] for start in starts], [False] + [True] * RESTARTS, starts)
        self.assertFalse(any(start["failed"] for start in starts))
        self.assertEqual({start["before"] for start in starts}, {None})
        self.assertEqual({start["name"] for start in starts}, {"/somewhere/work.ipynb"})
        self.assertEqual(len({start["pid"] for start in starts}), RESTARTS + 1)
        self.assertEqual(seen["interrupts"]["python"], ["began\n", ["KeyboardInterrupt"]])
        self.assertEqual(seen["interrupts"]["child"],
                         [f"began\nstatus {int(signal.SIGINT)}\n", []])
        # The kernel's manager is gone, and the spare with it.
        self.assert_nothing_left()

    def test_a_kernel_ends_with_a_manager_that_is_killed(self):
        text = ("import os, sys, time\nfrom jupyter_client.manager import KernelManager\n"
                "m = KernelManager(kernel_name='python3')\nm.start_kernel()\n"
                "c = m.blocking_client()\nc.start_channels()\nc.wait_for_ready(timeout=60)\n"
                "while b'waiting' not in __import__('subprocess').check_output([sys.argv[1], "
                "'spare', 'status']):\n    time.sleep(0.05)\n"
                "m.restart_kernel(now=True)\nc = m.blocking_client()\nc.start_channels()\n"
                "c.wait_for_ready(timeout=60)\nprint('ready', flush=True)\ntime.sleep(60)")
        with subprocess.Popen([VENV / "bin/python", "-c", text, harness.HEARTH], env=self.env,
                              cwd=self.dir / "work", stdout=subprocess.PIPE) as manager:
            self.assertEqual(manager.stdout.readline(), b"ready\n")
            manager.kill()
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
