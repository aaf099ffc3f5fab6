"""A daemon of MPS in tests: the stand-in in PATH, started and ended by `hearth mps`, and programs
that are its clients."""
import json
import os
import subprocess
import sys
import time

import harness
import mps_standin

# One that other users can run, too.
PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
STEPS = harness.PROGRAMS / "driver_steps"


class MpsTest(harness.SystemTest):
    """self.place is the folder of the user's own daemon, which ends with the test."""

    def setUp(self):
        super().setUp()
        self.dir.chmod(0o755)
        mps_standin.install(self.dir / "bin", PYTHON)
        self.env["PATH"] = f"{self.dir / 'bin'}:{self.env['PATH']}"
        self.env["LD_LIBRARY_PATH"] = str(harness.SIM.parent)
        self.place = self.dir / "run/hearth/mps"
        self.addCleanup(self.hearth, "stop")
        self.addCleanup(self.mps, "stop", "--force")

    def hearth(self, *words, **options):
        return self.run_program(harness.HEARTH, *words, **options)

    def mps(self, *words, **options):
        return self.hearth("mps", *words, **options)

    def start(self, *words):
        done = self.mps("start", *words)
        self.assertEqual((done.returncode, done.stderr), (0, b""), done)
        return self.roll()

    def roll(self):
        """What `hearth mps status` says."""
        return json.loads(self.mps("status", "--json").stdout)

    def server(self):
        servers = self.roll()["servers"]
        return servers[0] if servers else None

    def clients(self):
        server = self.server()
        return [client["pid"] for client in server["clients"]] if server else []

    def wait_until(self, true, what):
        deadline = time.monotonic() + harness.DEADLINE_S
        while not (found := true()):
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.02)
        return found

    def client(self, *steps, pipe=None, **more):
        """A program that is a client, with a context, and goes on until it is told to by
        a byte on its stdin, or its end."""
        options = {name: more.pop(name) for name in ("user", "group", "extra_groups")
                   if name in more}
        program = subprocess.Popen(
            [STEPS, "init", "retain=0", "work", "input", *steps],
            env={**self.env, "CUDA_MPS_PIPE_DIRECTORY": str(pipe or self.place / "pipe"), **more},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.stdin.close)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        return program

    def attached(self, count, **more):
        """So many clients that have contexts."""
        programs = [self.client(**more) for _ in range(count)]
        self.wait_until(lambda: len(self.clients()) == count, "not all have a context")
        return programs


def is_there(pid):
    return not harness.gone(pid)
