"""Spares in tests: started, waited for, and programs run natively and through one."""
import importlib.util
import os
import re
import sys
import time

import harness

# With numpy where it is; what it needs of the standard library otherwise.
IMPORTS = "numpy" if importlib.util.find_spec("numpy") else "json,decimal,multiprocessing.pool"
PYTHON = sys.executable
ADDRESS = re.compile(rb"0x[0-9a-f]{6,}")  # differs from run to run


class SpareTest(harness.SystemTest):
    """Ends its spares; self.spares is the folder that their sockets are in."""

    def setUp(self):
        super().setUp()
        self.spares = self.dir / "run/hearth/spares"
        self.work = self.dir / "work"
        self.work.mkdir()
        for name in [name for name in self.env if name.startswith("PYTHON")]:
            del self.env[name]
        self.addCleanup(self.hearth, "stop")  # the broker that `hearth run` has started
        self.addCleanup(self.hearth, "spare", "stop")

    def hearth(self, *words, **options):
        options.setdefault("cwd", self.work)
        return self.run_program(harness.HEARTH, *words, **options)

    def start(self, *words, python=(PYTHON,), **options):
        done = self.hearth("spare", "start", "--import", IMPORTS, *words, "--", *python, **options)
        self.assertEqual((done.returncode, done.stderr), (0, b""), done)
        return done

    def waiting(self):
        """The pythons that wait, by `hearth spare status`."""
        lines = self.hearth("spare", "status").stdout.decode().splitlines()[1:]
        return [int(line.split()[0]) for line in lines if line.split()[1] == "waiting"]

    def wait_for_one(self):
        """The pid of the one that waits."""
        deadline = time.monotonic() + harness.DEADLINE_S
        while time.monotonic() < deadline:
            found = self.waiting()
            if found:
                return found[0]
            time.sleep(0.02)
        self.fail("no spare is ready")

    def names(self):
        return set(os.listdir(self.spares))

    def adopt(self, *words, **options):
        """Run a program by way of a spare, and make sure that it was."""
        self.wait_for_one()
        before = self.names()
        done = self.hearth("run", "--spare", "--", *words, **options)
        self.assertNotEqual(before & self.names(), before, f"a plain start: {words} {done}")
        return done

    def assert_plain(self, *words, **options):
        """Run a program for which no spare is to be used."""
        self.wait_for_one()
        before = self.names()
        done = self.hearth("run", "--spare", "--", *words, **options)
        self.assertEqual(before, self.names(), f"a spare was used: {words}")
        return done

    def assert_alike(self, *words, shell=None, text=b""):
        """The same status and output natively and through a spare, with `text` in a pipe for
        stdin. With `shell`, a script in which "$@" stands for the program."""
        def run(option):
            command = [str(harness.HEARTH), "run", *option, "--", *map(str, words)]
            if shell:
                command = ["bash", "-c", shell, "bash", *command]
            reader, writer = os.pipe()
            os.write(writer, text)
            os.close(writer)
            try:
                done = self.run_program(*command, cwd=self.work, stdin=reader)
            finally:
                os.close(reader)
            return (done.returncode, *(ADDRESS.sub(b"0x", output) for output in
                                       (done.stdout, done.stderr)))
        native = run([])
        self.wait_for_one()
        before = self.names()
        spared = run(["--spare"])
        self.assertNotEqual(before & self.names(), before, f"a plain start: {words} {spared}")
        self.assertEqual(native, spared)
        return native


def mentions(pid, text):
    """Whether a process lives that has it in its environment."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as environ:
            return text in environ.read() and not harness.gone(pid)
    except OSError:
        return False


def wait_gone(case, pid):
    deadline = time.monotonic() + harness.DEADLINE_S
    while not harness.gone(pid):
        case.assertLess(time.monotonic(), deadline, f"{pid} lives")
        time.sleep(0.01)
