"""What is validated before a spare is used: all else has a plain start."""
import ctypes
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import harness
import spares
from spares import PYTHON, wait_gone

# linux/prctl.h, linux/mempolicy.h; the numbers of asm/unistd_64.h
PR_SET_CHILD_SUBREAPER, PR_SET_THP_DISABLE, MPOL_INTERLEAVE = 36, 41, 3
SYS_SET_MEMPOLICY, SYS_GET_MEMPOLICY = 238, 239


class ValidatedTest(spares.SpareTest):
    """What has to be the same; with any other the start is a plain one, and right."""

    def test_the_environment(self):
        self.start()
        for change in ({"A_NEW_ONE": "1"}, {"HOME": "/nowhere"}, {"PYTHONHASHSEED": "1"},
                       {"OMP_NUM_THREADS": "1"}, {"LC_ALL": "C"}):
            with self.subTest(change=change):
                name, value = next(iter(change.items()))
                done = self.assert_plain(PYTHON, "-c", f"import os; print(os.environ[{name!r}])",
                                         env={**self.env, **change})
                self.assertEqual(done.stdout.decode(), f"{value}\n")

    def test_harmless_variables_may_differ_and_are_the_programs(self):
        self.start()
        change = {"SHLVL": "7", "OLDPWD": "/x", "SSH_TTY": "y", "WINDOWID": "3"}
        done = self.adopt(PYTHON, "-c", "import os\nfor n in 'SHLVL','OLDPWD','SSH_TTY','WINDOWID':"
                          "\n    print(os.environ[n], flush=True)\nos.system('echo $SSH_TTY')",
                          env={**self.env, **change})
        self.assertEqual(done.stdout, b"7\n/x\ny\n3\ny\n")

    def test_the_interpreters_options(self):
        self.start()
        for flags in (["-O"], ["-u"], ["-X", "utf8"], ["-W", "error"], ["-E"], ["-I"]):
            with self.subTest(flags=flags):
                self.assert_plain(PYTHON, *flags, "-c", "1")

    def test_another_interpreter(self):
        self.start()
        other = self.work / "python3"
        other.symlink_to(PYTHON)
        done = self.assert_plain(other, "-c", "import sys; print(sys.executable)")
        self.assertEqual(done.stdout.decode(), f"{other}\n")

    def test_what_else_is_inherited(self):
        libc = ctypes.CDLL(None)

        def write_filter():
            Path("/proc/self/coredump_filter").write_text("0x7", encoding="ascii")
        changes = {"huge pages": lambda: libc.prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0),
                   "its descendants'": lambda: libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0),
                   "what a core holds": write_filter}
        if shutil.which("ionice"):
            changes["the disk"] = lambda: subprocess.run(
                ["ionice", "-c3", "-p", str(os.getpid())], check=True)
        if (policy := ctypes.c_int(-1)) and not libc.syscall(
                SYS_GET_MEMPOLICY, ctypes.byref(policy), None, 0, None, 0):
            changes["memory"] = lambda: libc.syscall(
                SYS_SET_MEMPOLICY, MPOL_INTERLEAVE, ctypes.byref(ctypes.c_ulong(1)), 8)
        self.start()
        for name, change in changes.items():
            with self.subTest(change=name):
                self.assert_plain(PYTHON, "-c", "1", preexec_fn=change)

    def test_limits_and_priority(self):
        self.start()
        done = self.assert_plain(
            PYTHON, "-c", "import resource as r; print(r.getrlimit(r.RLIMIT_NOFILE))",
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200)))
        self.assertEqual(done.stdout, b"(200, 200)\n")
        done = self.assert_plain(PYTHON, "-c", "import os; print(os.nice(0))",
                                 preexec_fn=lambda: os.nice(3))
        self.assertEqual(int(done.stdout), os.nice(0) + 3)
        self.assert_plain(PYTHON, "-c", "1", preexec_fn=lambda: signal.pthread_sigmask(
            signal.SIG_BLOCK, [signal.SIGUSR1]))

    def test_a_file_that_stands_before_an_imported_module(self):
        self.start()
        name = spares.IMPORTS.partition(",")[0]
        (self.work / f"{name}.py").write_text("print('the neighbour')\n")
        (self.work / "program.py").write_text(f"import {name}\n")
        for words in (["program.py"], ["-c", f"import {name}"], ["-m", "program"]):
            with self.subTest(words=words):
                self.assertEqual(self.assert_plain(PYTHON, *words).stdout, b"the neighbour\n")
        (self.work / f"{name}.py").rename(self.work / f"{name}.c")  # which python does not import
        self.adopt(PYTHON, "program.py")

    def test_what_is_no_program_text(self):
        self.start()
        import zipfile
        with zipfile.ZipFile(self.work / "archive.py", "w") as archive:
            archive.writestr("__main__.py", "print('zipped')\n")
        (self.work / "folder").mkdir()
        (self.work / "folder/__main__.py").write_text("print('folder')\n")
        self.assertEqual(self.assert_plain(PYTHON, "archive.py").stdout, b"zipped\n")
        self.assertEqual(self.assert_plain(PYTHON, "folder").stdout, b"folder\n")
        (self.work / "latin.py").write_bytes(b"print('x') # \xe9\n")
        self.assertIn(b"Non-UTF-8", self.assert_plain(PYTHON, "latin.py").stderr)
        self.assertEqual(self.assert_plain(PYTHON, "missing.py").returncode, 2)
        self.assertEqual(self.assert_plain(PYTHON, "-", stdin=subprocess.DEVNULL).returncode, 0)
        self.assertEqual(self.assert_plain("true").returncode, 0)

    def assert_plain_by(self, *words):
        self.wait_for_one()
        before = self.names()
        done = self.run_program(*words, cwd=self.work)
        self.assertEqual(before, self.names(), words)
        return done

    def test_a_text_that_comes_by_a_descriptor(self):
        self.start()
        program = self.work / "p.py"
        program.write_text("print('ran')\n")
        for name in "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "/dev/../dev/stdin":
            with self.subTest(name=name), program.open() as file:
                self.assertEqual(self.assert_plain(PYTHON, name, stdin=file).stdout, b"ran\n")
        for number in range(3, 10):
            with self.subTest(number=number):
                done = self.assert_plain_by("bash", "-c", f'exec {number}<p.py "$@"', "bash",
                                         harness.HEARTH, "run", "--spare", "--", PYTHON,
                                         f"/dev/fd/{number}")
                self.assertEqual(done.stdout, b"ran\n")
        os.mkfifo(self.work / "fifo.py")
        done = self.assert_plain_by("bash", "-c", '(sleep 0.5; cat p.py) > fifo.py & exec "$@"',
                                 "bash", harness.HEARTH, "run", "--spare", "--", PYTHON, "fifo.py")
        self.assertEqual(done.stdout, b"ran\n")

    def test_closed_streams(self):
        self.start()
        (self.work / "p.py").write_text("import sys; sys.exit(7 + (sys.stdout is None))")
        self.assertEqual(self.assert_plain(
            PYTHON, "p.py", preexec_fn=lambda: os.close(1)).returncode, 8)

    def test_a_terminal_that_is_not_the_sessions(self):
        self.start()
        outer, inner = os.openpty()
        self.addCleanup(os.close, outer)
        done = self.assert_plain(PYTHON, "-c", "import sys; print(sys.stdin.isatty())", stdin=inner)
        os.close(inner)
        self.assertEqual(done.stdout, b"True\n")

    def library(self):
        folder = self.dir / "site"
        folder.mkdir()
        (folder / "upgraded.py").write_text("VERSION = 1\n")
        self.env["PYTHONPATH"] = str(folder)
        return folder

    def start_with_library(self):
        folder = self.library()
        done = self.hearth("spare", "start", "--import", "upgraded", "--", PYTHON)
        self.assertEqual(done.returncode, 0, done)
        return folder

    def test_a_library_that_was_upgraded_is_never_handed_out(self):
        folder = self.start_with_library()
        words = PYTHON, "-c", "import upgraded; print(upgraded.VERSION)"
        self.assertEqual(self.adopt(*words).stdout, b"1\n")
        before = self.wait_for_one()
        path = folder / "upgraded.py"
        times = path.stat()
        path.write_text("VERSION = 2\n")  # of the same size,
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # and time
        shutil.rmtree(folder / "__pycache__", ignore_errors=True)  # which fools python too
        self.assertEqual(self.assert_plain(*words).stdout, b"2\n")
        wait_gone(self, before)
        # Another spare has taken that one's place, with what is there now.
        self.assertEqual(self.adopt(*words).stdout, b"2\n")

    def test_a_module_that_was_installed_where_it_is_looked_for(self):
        folder = self.start_with_library()
        (folder / "newer.py").write_text("VALUE = 5\n")
        done = self.assert_plain(PYTHON, "-c", "import newer; print(newer.VALUE)")
        self.assertEqual(done.stdout, b"5\n")

    def test_folders_that_a_later_start_would_look_into(self):
        self.env["HOME"] = str(self.dir)
        # Of the system's python, since a venv's looks into none of the user's.
        python = "/usr/bin/python3"
        done = self.hearth("spare", "start", "--import", "json", "--", python)
        self.assertEqual(done.returncode, 0, done)
        # The user's, which is not there yet; then a list of more, of the same inode.
        user = Path(self.run_program(python, "-m", "site", "--user-site").stdout.decode().strip())
        user.mkdir(parents=True)
        (user / "newer.py").write_text("VALUE = 5\n")
        listed = user / "listed.pth"
        listed.write_text("# none\n")
        done = self.assert_plain(python, "-c", "import newer; print(newer.VALUE)")
        self.assertEqual(done.stdout, b"5\n")
        (self.library() / "listed.py").write_text("VALUE = 6\n")
        del self.env["PYTHONPATH"]
        self.adopt(python, "-c", "import newer")
        self.wait_for_one()
        listed.write_text(f"{self.dir / 'site'}\n")
        done = self.assert_plain(python, "-c", "import listed; print(listed.VALUE)")
        self.assertEqual(done.stdout, b"6\n")

    def test_a_plain_start_costs_little_more(self):
        self.start()
        env = {**self.env, "OTHER": "1"}

        def once(*option):
            began = time.monotonic()
            self.run_program(harness.HEARTH, "run", *option, "--", "/bin/true", env=env)
            return time.monotonic() - began
        costs = [(once("--spare") - once()) * 1000 for _ in range(15)]
        self.assertLess(statistics.median(costs), 5)


if __name__ == "__main__":
    sys.exit(harness.main())
