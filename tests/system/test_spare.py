"""What a spare is used for and what not, whose it is, and what is left when somebody is killed."""
import contextlib
import ctypes
import json
import os
import resource
import shutil
import signal
import stat
import statistics
import subprocess
import sys
import time
from pathlib import Path

import harness
import spares
from spares import PYTHON, wait_gone

SHOW = "import os, sys; print(os.getpid(), sorted(os.environ.items()))"
OWN_ERROR = 125
# linux/prctl.h, linux/mempolicy.h; the numbers of asm/unistd_64.h
PR_SET_CHILD_SUBREAPER, PR_SET_THP_DISABLE, MPOL_INTERLEAVE = 36, 41, 3
SYS_SET_MEMPOLICY, SYS_GET_MEMPOLICY = 238, 239


class UsedTest(spares.SpareTest):
    def test_a_spare_runs_one_program_and_another_takes_its_place(self):
        self.start()
        first = self.wait_for_one()
        done = self.adopt(PYTHON, "-c", "import os; print(os.getpid())")
        self.assertEqual((done.returncode, done.stdout), (0, b"%d\n" % first))
        second = self.wait_for_one()
        self.assertNotEqual(first, second)
        wait_gone(self, first)
        done = self.adopt(PYTHON, "-c", "import os; print(os.getpid())")
        self.assertEqual(done.stdout, b"%d\n" % second)

    def test_it_has_imported(self):
        self.start()
        name = spares.IMPORTS.partition(",")[0]
        done = self.adopt(PYTHON, "-c", f"import sys; print({name!r} in sys.modules)")
        self.assertEqual(done.stdout, b"True\n")

    def test_a_folder_that_is_gone(self):
        self.hearth("spare", "start", "--import", "multiprocessing.process", "--", PYTHON)
        gone = self.work / "gone"
        gone.mkdir()
        self.wait_for_one()
        done = self.adopt(PYTHON, "-c", "import multiprocessing.process as p\n"
                          "print(p.ORIGINAL_DIR)", preexec_fn=gone.rmdir, cwd=gone)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"None\n", b""))

    def test_logged_times_begin_with_the_program(self):
        self.hearth("spare", "start", "--import", "logging", "--", PYTHON)
        self.wait_for_one()
        time.sleep(1.5)
        done = self.adopt(PYTHON, "-c", "import logging\nprint(logging.LogRecord("
                          "'', 0, '', 0, '', (), None).relativeCreated < 1000)")
        self.assertEqual(done.stdout, b"True\n")

    def test_several_wait_where_several_are_asked_for(self):
        self.start("--count", "3")
        self.assertEqual(len(self.waiting()), 3)
        running = [subprocess.Popen([harness.HEARTH, "run", "--spare", "--", PYTHON, "-c",
                                     "import os; print(os.getpid()); input()"], env=self.env,
                                    cwd=self.work, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                   for _ in range(3)]
        pids = {program.stdout.readline() for program in running}
        for program in running:
            program.communicate(b"\n", timeout=harness.DEADLINE_S)
            self.assertEqual(program.returncode, 0)
        self.assertEqual(len(pids), 3)

    def test_stop_ends_those_that_wait_and_nothing_is_left(self):
        self.start("--count", "2")
        waiting = self.waiting()
        done = self.hearth("spare", "stop")
        self.assertEqual((done.returncode, done.stdout), (0, b"2 ended\n"))
        for pid in waiting:
            wait_gone(self, pid)
        self.assertEqual(self.names(), set())
        self.assertEqual(self.waiting(), [])

    def test_they_let_go_of_the_gpus(self):
        self.start("--count", "2")
        waiting = self.waiting()
        done = self.hearth("release", "--until-resume")
        self.assertIn(b"2 spares ended\n", done.stdout)
        for pid in waiting:
            wait_gone(self, pid)
        self.assertEqual(self.names(), set())
        self.start()
        self.hearth("release", "--resume")
        self.assertEqual(len(self.waiting()), 1)

    def test_it_ends_when_it_has_waited_too_long(self):
        self.start("--idle", "1")
        wait_gone(self, self.wait_for_one())
        self.assertEqual(self.waiting(), [])

    def test_a_module_that_cannot_be_imported_is_told(self):
        done = self.hearth("spare", "start", "--import", "no_such", "--", PYTHON)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"no_such: ModuleNotFoundError: No module named 'no_such'", done.stderr)
        self.assertEqual(self.names(), set())

    def test_one_is_kept_for_the_next_start_by_the_same_parent(self):
        run = [harness.HEARTH, "run", "--spare", "--keep", "decimal", "--", PYTHON, "-c",
               "import sys; print('decimal' in sys.modules)"]
        shell = subprocess.Popen(["bash", "-c", 'while read; do "$@"; done', "bash", *run],
                                 env=self.env, cwd=self.work, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE)
        self.addCleanup(shell.wait)
        self.addCleanup(shell.stdout.close)
        self.addCleanup(shell.stdin.close)
        for shown in b"False\n", b"True\n", b"True\n":
            shell.stdin.write(b"\n")
            shell.stdin.flush()
            self.assertEqual(shell.stdout.readline(), shown)
            waiting = self.wait_for_one()
        self.assertEqual(len(self.waiting()), 1)
        shell.stdin.close()
        shell.wait(harness.DEADLINE_S)
        wait_gone(self, waiting)

    def test_wrong_command_lines_are_refused(self):
        for words in (["start", "--import", "a,,b"], ["start", "--count", "0"], ["other"],
                      ["stop", "x"], ["start", "--gpu", "64"]):
            with self.subTest(words=words):
                done = self.hearth("spare", *words)
                self.assertEqual(done.returncode, 2, done)
        for words in (["--spare", "--report"], ["--keep", "json"], ["--spare", "--keep", "-x"]):
            done = self.hearth("run", *words, "--", PYTHON, "-c", "1")
            self.assertEqual(done.returncode, OWN_ERROR)


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


class PrivateTest(spares.SpareTest):
    def test_nothing_of_one_program_is_seen_by_the_next(self):
        self.start()
        left = ("import os, sys, builtins, random, tempfile\nos.environ['LEFT'] = '1'\n"
                "builtins.left = sys.left = 1\nos.chdir('/tmp')\nos.umask(0o77)\n"
                "sys.modules['left'] = sys\nopen('/dev/null')\nprint(random.random())")
        shown = ("import os, sys, builtins, random\nprint(random.random())\n"
                 "print('LEFT' in os.environ, hasattr(builtins, 'left'), hasattr(sys, 'left'),\n"
                 "      'left' in sys.modules, os.getcwd() == os.environ.get('WORK'), os.umask(0))")
        first = self.adopt(PYTHON, "-c", left).stdout
        second = self.adopt(PYTHON, "-c", shown).stdout.splitlines()
        self.assertNotEqual(first.split(), [second[0]])
        self.assertTrue(second[1].startswith(b"False False False False False 18"), second)

    @harness.as_another
    def test_another_user_cannot_reach_it(self):
        self.start()
        for folder in (self.dir, self.dir / "run"):
            os.chmod(folder, 0o755)

        def be_another():
            os.setgroups([])
            os.setgid(harness.OTHER_USER)
            os.setuid(harness.OTHER_USER)
        sockets = [self.spares / name for name in self.names()]
        reach = ("import socket, sys\ns = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
                 "try:\n    s.connect(sys.argv[1])\nexcept PermissionError:\n    print('refused')")
        done = self.run_program("/usr/bin/python3", "-c", reach, sockets[0],
                                preexec_fn=be_another, cwd="/")
        self.assertEqual((done.returncode, done.stdout), (0, b"refused\n"), done)
        # Even where the folders are open, whoever connects is asked for.
        for folder in (self.dir / "run/hearth", self.spares):
            os.chmod(folder, 0o755)
        os.chmod(sockets[0], 0o777)
        answered = reach + ("\nelse:\n    s.settimeout(5)\n    s.send(bytes.fromhex(sys.argv[2]))\n"
                            "    print(s.recv(9))")
        status = (0x52505348).to_bytes(4, "little") + (4).to_bytes(4, "little") + \
            (9).to_bytes(4, "little") + bytes(24 + 512)
        mine = self.run_program("/usr/bin/python3", "-c", answered, sockets[0], status.hex())
        self.assertIn(b"HSPR", mine.stdout)
        done = self.run_program("/usr/bin/python3", "-c", answered, sockets[0], status.hex(),
                                preexec_fn=be_another, cwd="/")
        self.assertNotIn(b"HSPR", done.stdout)
        # And so is a client whose folder others can enter.
        self.assertIn(self.hearth("spare", "status").returncode, (0, 1))
        self.assertEqual(self.waiting(), [])
        for folder in (self.dir / "run/hearth", self.spares, self.dir / "run"):
            os.chmod(folder, 0o700)

    def test_the_folder_is_the_users_alone(self):
        self.start()
        self.assertEqual(stat.S_IMODE(self.spares.stat().st_mode), 0o700)


class KilledTest(spares.SpareTest):
    """Whoever is killed, the user sees a native run or a clear status, and nothing is left."""

    def holder(self):
        return int(next(iter(self.names())).rpartition(".")[2])

    def run_slow(self, text="print('began', flush=True)\nimport time\ntime.sleep(60)"):
        self.wait_for_one()
        program = subprocess.Popen(
            [harness.HEARTH, "run", "--spare", "--", PYTHON, "-c", "import os\n"
             "print(os.getpid(), os.getppid(), flush=True)\n" + text],
            env=self.env, cwd=self.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.addCleanup(program.stdout.close)
        self.addCleanup(lambda: program.poll() is None and program.kill())
        pid, holder = map(int, program.stdout.readline().split())
        return program, pid, holder

    def test_a_killed_spare_is_no_hang(self):
        self.start()
        os.kill(self.wait_for_one(), signal.SIGKILL)
        done = self.hearth("run", "--spare", "--", PYTHON, "-c", "print('ran')")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"ran\n", b""))
        self.wait_for_one()

    def test_a_killed_holder_takes_its_spare_with_it(self):
        self.start()
        pid = self.wait_for_one()
        os.kill(self.holder(), signal.SIGKILL)
        wait_gone(self, pid)
        done = self.hearth("run", "--spare", "--", PYTHON, "-c", "print('ran')")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"ran\n", b""))
        self.assertEqual(self.waiting(), [])
        self.assertEqual(self.names(), set())

    def test_a_stopped_holder_or_spare_is_left_alone(self):
        self.start()
        for victim in (self.wait_for_one(), self.holder()):
            os.kill(victim, signal.SIGSTOP)
            began = time.monotonic()
            done = self.hearth("run", "--spare", "--", PYTHON, "-c", "print('ran')")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"ran\n", b""))
            self.assertLess(time.monotonic() - began, 5)
            with contextlib.suppress(ProcessLookupError):  # a spare is replaced
                os.kill(victim, signal.SIGCONT)
            self.wait_for_one()

    def test_a_killed_client_kills_the_program(self):
        self.start()
        program, pid, holder = self.run_slow()
        program.kill()
        wait_gone(self, pid)
        wait_gone(self, holder)

    def test_a_killed_program_is_the_clients_end(self):
        self.start()
        for number in (signal.SIGKILL, signal.SIGTERM):
            program, pid, holder = self.run_slow()
            os.kill(pid, number)
            self.assertEqual(program.wait(harness.DEADLINE_S), -number)
            wait_gone(self, holder)

    def test_a_holder_that_is_killed_ends_program_and_client(self):
        self.start()
        program, pid, holder = self.run_slow()
        os.kill(holder, signal.SIGKILL)
        self.assertEqual(program.wait(harness.DEADLINE_S), -signal.SIGKILL)
        wait_gone(self, pid)

    def test_a_client_that_leaves_in_the_middle_starts_nothing(self):
        self.start()
        for delay_ms in range(1, 13):
            self.wait_for_one()
            program = subprocess.Popen(
                [harness.HEARTH, "run", "--spare", "--", PYTHON, "-c",
                 "import time; time.sleep(60)"], env=self.env, stdin=subprocess.DEVNULL)
            time.sleep(0.001 * delay_ms)
            program.kill()
            program.wait()
        ours = str(self.dir).encode()
        deadline = time.monotonic() + harness.DEADLINE_S
        self.wait_for_one()
        self.hearth("spare", "stop")
        self.hearth("stop")
        while left := [pid for pid in os.listdir("/proc")
                       if pid.isdigit() and spares.mentions(pid, ours)]:
            self.assertLess(time.monotonic(), deadline, left)
            time.sleep(0.02)

    def test_stops_and_goes_on_together(self):
        self.start()
        program, pid, _ = self.run_slow("import time\ntime.sleep(1)\nprint('on')")
        program.send_signal(signal.SIGTSTP)
        _, status = os.waitpid(program.pid, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(status))
        with open(f"/proc/{pid}/stat", encoding="ascii") as text:
            self.assertEqual(text.read().rpartition(")")[2].split()[0], "T")
        program.send_signal(signal.SIGCONT)
        self.assertEqual(program.stdout.readline(), b"on\n")
        self.assertEqual(program.wait(harness.DEADLINE_S), 0)


class DifferentTest(spares.SpareTest):
    """What stays different, as lib/README.md lists it."""

    def both(self, text):
        self.start()
        native = self.hearth("run", "--", PYTHON, "-c", text).stdout
        spared = self.adopt(PYTHON, "-c", text).stdout
        return json.loads(native), json.loads(spared)

    def test_parent_session_and_client(self):
        native, spared = self.both(
            "import os, json; print(json.dumps([os.getppid(), os.getsid(0)]))")
        self.assertEqual(native, [os.getpid(), os.getsid(0)])
        self.assertEqual(spared[0], spared[1])  # its holder, which leads a session
        self.assertNotIn(spared[0], native)

    def test_start_time_and_what_was_used(self):
        native, spared = self.both("import json, sys, time; print(json.dumps(["
                                   "time.process_time(), 'decimal' in sys.modules or "
                                   "'numpy' in sys.modules]))")
        self.assertFalse(native[1])
        self.assertTrue(spared[1])

    def test_command_line_in_proc(self):
        native, spared = self.both("import json; print(json.dumps(open('/proc/self/cmdline').read()"
                                   ".split(chr(0))[1:3]))")
        self.assertEqual([native[0], spared[0]], ["-c", "-c"])
        self.assertIn("spares", spared[1])
        self.assertNotIn("spares", native[1])

    def test_one_frame_below_the_program(self):
        native, spared = self.both("import json, sys; f = sys._getframe(); n = 0\n"
                                   "while f:\n    n += 1; f = f.f_back\nprint(json.dumps(n))")
        self.assertEqual((native, spared), (1, 2))


if __name__ == "__main__":
    sys.exit(harness.main())
