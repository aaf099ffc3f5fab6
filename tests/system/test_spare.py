"""What a spare is used for, whose it is, and what is left when somebody is killed."""
import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import time

import harness
import spares
from spares import PYTHON, wait_gone

SHOW = "import os, sys; print(os.getpid(), sorted(os.environ.items()))"
OWN_ERROR = 125


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

    @harness.plain_only
    def test_whoever_looks_while_one_begins_leaves_it_its_name(self):
        late = harness.PROGRAMS / "late_listen.so"
        with subprocess.Popen([harness.HEARTH, "spare", "start", "--", PYTHON],
                              env={**self.env, "LD_PRELOAD": str(late)}) as start:
            while start.poll() is None:
                self.hearth("spare", "status")
        self.assertEqual(start.returncode, 0)
        self.assertEqual(self.hearth("spare", "stop").stdout, b"1 ended\n")

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
