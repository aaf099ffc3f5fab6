"""What every system test stands on: where the built things are, a runtime folder of its own, and
programs run with a deadline. Standard library only."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ.get("HEARTH_BUILD", Path(__file__).resolve().parents[2] / "build"))
SOURCE = Path(__file__).resolve().parents[2]
PRELOAD = BUILD / "lib/preload/libhearth.so"
SIM = BUILD / "lib/sim/libcuda.so.1"
HEARTH = BUILD / "tools/hearth"
HEARTHD = BUILD / "tools/hearthd"
PROGRAMS = BUILD / "tests/programs"
DEADLINE_S = 60
OWN_RUN = "HEARTH_TEST_OWN_RUN"  # set in a process whose /run is its own
# A sanitizer's runtime, which has to come first in a process that takes our library built with it.
RUNTIME = os.environ.get("HEARTH_TEST_RUNTIME")
PRELOADS = f"{RUNTIME} {PRELOAD}" if RUNTIME else str(PRELOAD)

# For a test that no sanitizer's runtime may have a part in: it compares LD_PRELOAD or what is
# loaded, opens libraries in ways that the runtime forbids, or has a time limit of its own.
plain_only = unittest.skipIf(RUNTIME, "not with a sanitizer's runtime")


def gone(pid):
    """Whether a process has ended. In a container whose first process waits for nobody, its entry
    stays in /proc."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


OTHER_USER = 65534
# For a test that runs something of the build as another user.
CAN_BE_ANOTHER = os.geteuid() == 0 and all(
    folder.stat().st_mode & 0o1 for folder in (BUILD.resolve(), *BUILD.resolve().parents))
as_another = unittest.skipUnless(CAN_BE_ANOTHER, "not root, or others cannot reach the build")


class SystemTest(unittest.TestCase):
    """One behaviour each. self.dir is a fresh 0700 folder; self.env an environment in which
    nothing of the host's Hearth or CUDA settings is left, with the simulated driver and a
    simulated machine of the test's own."""
    maxDiff = None  # a sanitizer's report is one side of some

    def setUp(self):
        self.dir = Path(tempfile.mkdtemp(prefix="hearth-test-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.env = {name: value for name, value in os.environ.items()
                    if not name.startswith(("HEARTH", "CUDA", "SIMCUDA", "LD_", "XDG_"))}
        for name in ("run", "state"):
            (self.dir / name).mkdir(mode=0o700)
        # A folder of another user's in PATH would make "not found" a "permission denied".
        self.env["PATH"] = os.pathsep.join(
            folder for folder in self.env.get("PATH", os.defpath).split(os.pathsep)
            if os.access(folder, os.X_OK))
        self.env.update(XDG_RUNTIME_DIR=str(self.dir / "run"),
                        XDG_STATE_HOME=str(self.dir / "state"),
                        SIMCUDA_MACHINE=str(self.dir / "machine"),
                        HEARTH_DRIVER=str(SIM))
        # From 3.12 on it warns of every fork beside a thread, a driver's too.
        self.env["PYTHONWARNINGS"] = "ignore:This process:DeprecationWarning"
        if RUNTIME:
            self.env["LD_PRELOAD"] = RUNTIME

    def preloaded(self, **more):
        """The environment of a program under libhearth.so."""
        return {**self.env, "LD_PRELOAD": PRELOADS, **more}

    def run_program(self, *command, env=None, timeout=DEADLINE_S, **options):
        """Run to the end; returns the CompletedProcess, output as bytes."""
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run([str(word) for word in command], env=env or self.env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout,
                              check=False, **options)

    def assert_same(self, *command, env=None):
        """Exit status, stdout and stderr are the same with and without the preload. The plain run
        finds the simulated driver through LD_LIBRARY_PATH, as a real one would be found."""
        env = dict(env or self.env)
        env["LD_LIBRARY_PATH"] = f"{SIM.parent}:{env.get('LD_LIBRARY_PATH', '')}".rstrip(":")
        plain = self.run_program(*command, env=env)
        under = self.run_program(*command, env={**env, "LD_PRELOAD": PRELOADS})
        self.assertEqual((plain.returncode, plain.stdout, plain.stderr),
                         (under.returncode, under.stdout, under.stderr))
        return under


def main():
    unittest.main(module=sys.modules["__main__"], verbosity=1)


def main_in_own_run():
    """The same in a mount namespace with a /run of its own, where root can have one: what is at
    /run/hearth is the machine's, and would be seen by other tests that run beside these."""
    command = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs own-run /run && exec "$@"', "sh"]
    if not os.environ.get(OWN_RUN) and subprocess.run(
            [*command, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
        os.execvpe(command[0], [*command, sys.executable, *sys.argv], {**os.environ, OWN_RUN: "1"})
    main()
