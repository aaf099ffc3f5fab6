"""`hearth run`: LD_PRELOAD, exit statuses, signals, descriptors. The library stands in an
installation of the test's own, so that its path and its absence can be chosen."""
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time

import harness

BYSTANDER = harness.PROGRAMS / "libbystander.so"
PRINT = "import os; print(os.environ.get('LD_PRELOAD'))"


class Run(harness.SystemTest):
    def setUp(self):
        super().setUp()
        self.hearth = self.install("opt")

    def install(self, name, library=BYSTANDER):
        """hearth under name/bin, a library under name/lib/hearth. Returns the command."""
        root = self.dir / name
        (root / "bin").mkdir(parents=True)
        (root / "lib/hearth").mkdir(parents=True)
        shutil.copy(harness.HEARTH, root / "bin/hearth")
        if library:
            for file in ("libhearth.so", "libhearth-alias.so"):
                shutil.copy(library, root / "lib/hearth" / file)
        return root / "bin/hearth"

    def library(self, name="opt"):
        return str(self.dir / name / "lib/hearth/libhearth.so")

    def listed(self, *libraries):
        """An LD_PRELOAD of these; in a sanitizer build its runtime is first."""
        runtime = [harness.RUNTIME] if harness.RUNTIME else []
        return ":".join(runtime + [str(library) for library in libraries])

    def preload_of(self, *words, **more):
        result = self.run_program(*words, sys.executable, "-c", PRINT, env={**self.env, **more})
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        return result.stdout.decode().strip()

    def test_sets_the_preload(self):
        self.assertEqual(self.preload_of(self.hearth, "run"), self.listed(self.library()))

    def test_keeps_the_users_preload_first(self):
        mine = self.listed(BYSTANDER)
        self.assertEqual(self.preload_of(self.hearth, "run", LD_PRELOAD=mine),
                         f"{mine}:{self.library()}")
        result = self.run_program(self.hearth, "run", "--", "sh", "-c", "echo $BYSTANDER",
                                  env={**self.env, "LD_PRELOAD": mine})
        self.assertEqual(result.stdout, b"loaded\n")

    def test_nested_wraps_preload_once(self):
        self.assertEqual(
            self.preload_of(self.hearth, "run", self.hearth, "run", "--", self.hearth, "run"),
            self.listed(self.library()))

    def test_another_installation_takes_the_place_of_the_first(self):
        other = self.install("other")
        self.assertEqual(self.preload_of(self.hearth, "run", other, "run"),
                         self.listed(self.library("other")))

    def test_refuses_a_missing_library(self):
        hearth = self.install("bare", library=None)
        result = self.run_program(hearth, "run", "true")
        self.assertEqual((result.returncode, result.stdout), (125, b""))
        self.assertIn(b"libhearth.so is missing", result.stderr)
        self.assertIn(str(hearth).encode(), result.stderr)

    def test_refuses_a_library_without_its_alias(self):
        """libhearth.so needs it: the loader would let no program start."""
        (self.dir / "opt/lib/hearth/libhearth-alias.so").unlink()
        result = self.run_program(self.hearth, "run", "true")
        self.assertEqual(result.returncode, 125)
        self.assertIn(b"libhearth-alias.so: No such file", result.stderr)

    def test_refuses_an_unreadable_library(self):
        """As another user, since root reads everything."""
        if os.geteuid() != 0:
            self.skipTest("needs root, to be somebody else")
        self.dir.chmod(0o755)
        (self.dir / "opt/lib/hearth/libhearth.so").chmod(0)
        result = self.run_program("setpriv", "--reuid=1234", "--regid=1234", "--clear-groups",
                                  self.hearth, "run", "true")
        self.assertEqual(result.returncode, 125)
        self.assertIn(b"libhearth.so: Permission denied", result.stderr)

    def test_refuses_a_library_that_the_loader_would_complain_about(self):
        (self.dir / "opt/lib/hearth/libhearth.so").write_bytes(b"\x7fELF, but no more of it")
        result = self.run_program(self.hearth, "run", "true")
        self.assertEqual(result.returncode, 125)
        self.assertIn(self.library().encode(), result.stderr)

    def test_refuses_a_path_that_the_preload_cannot_hold(self):
        for name in ("with space", "with:colon", "with$dollar"):
            with self.subTest(name=name):
                result = self.run_program(self.install(name), "run", "true")
                self.assertEqual(result.returncode, 125)
                self.assertIn(self.library(name).encode(), result.stderr)

    def test_exit_statuses(self):
        (self.dir / "text").write_text("no program")
        for report in ((), ("--report",)):
            for words, status in ((("true",), 0), (("sh", "-c", "exit 7"), 7),
                                  (("/nonexistent/program",), 127), (("no-such-program",), 127),
                                  ((self.dir / "text",), 126), ((self.dir,), 126)):
                with self.subTest(words=words, report=report):
                    result = self.run_program(self.hearth, "run", *report, *words)
                    self.assertEqual(result.returncode, status)
                    self.assertEqual(b"hearth: " in result.stderr, status > 7 or bool(report))

    def test_unknown_option_is_an_error_of_our_own(self):
        result = self.run_program(self.hearth, "run", "--bogus", "true")
        self.assertEqual(result.returncode, 125)
        self.assertIn(b"--bogus", result.stderr)
        result = self.run_program(self.hearth, "run")
        self.assertEqual(result.returncode, 125)

    def test_options_behind_the_program_are_the_programs(self):
        for dashes in ((), ("--",)):
            result = self.run_program(self.hearth, "run", *dashes, "echo", "--report", "--", "x")
            self.assertEqual((result.stdout, result.stderr), (b"--report -- x\n", b""))

    def test_is_replaced_by_the_program(self):
        process = subprocess.Popen([self.hearth, "run", "sh", "-c", "echo $$"], env=self.env,
                                   stdout=subprocess.PIPE)
        self.assertEqual(int(process.communicate(timeout=20)[0]), process.pid)

    def test_passes_task_and_log_on(self):
        script = "import os; print(os.environ['HEARTH_TASK'], os.environ['HEARTH_LOG'])"
        result = self.run_program(self.hearth, "run", "--task", "exp 1", "--log", "log.%p",
                                  sys.executable, "-c", script, cwd=self.dir)
        self.assertEqual(result.stdout.decode(), f"exp 1 {self.dir}/log.%p\n")

    def test_a_log_that_cannot_be_is_named(self):
        for log, why in ((self.dir / "missing/log", b"No such file"), (self.dir, b"Is a directory"),
                         ("missing/log", b"No such file"), (f"{self.dir}/run/log/", b"No such")):
            with self.subTest(log=log):
                done = self.run_program(self.hearth, "run", "--log", log, "echo", cwd=self.dir)
                self.assertEqual((done.returncode, done.stdout), (125, b""))
                self.assertIn(f"--log {log}: ".encode() + why, done.stderr)
        done = self.run_program(self.hearth, "run", "--log", f"{self.dir}/%h/log", "true")
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_death_by_signal_is_mirrored(self):
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGQUIT):
            for report in ((), ("--report",)):
                with self.subTest(number=number, report=report):
                    result = self.run_program(self.hearth, "run", *report, "sh", "-c",
                                              f"kill -{int(number)} $$")
                    self.assertEqual(result.returncode, -number)

    def test_report_forwards_signals(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP):
            with self.subTest(number=number):
                process = subprocess.Popen(
                    [self.hearth, "run", "--report", "sh", "-c",
                     f"trap 'echo got; exit 3' {int(number)}; echo ready; "
                     "while :; do sleep 0.05; done"],
                    env=self.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                self.assertEqual(process.stdout.readline(), b"ready\n")
                process.send_signal(number)
                out, _ = process.communicate(timeout=20)
                self.assertEqual((out, process.returncode), (b"got\n", 3))

    def test_ignored_sigchld_does_not_lose_the_status(self):
        result = self.run_program(
            sys.executable, "-c",
            "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); "
            "os.execv(sys.argv[1], sys.argv[1:])",
            self.hearth, "run", "--report", "sh", "-c", "exit 9")
        self.assertEqual(result.returncode, 9)

    def test_killing_the_reporter_kills_the_program(self):
        process = subprocess.Popen([self.hearth, "run", "--report", "sh", "-c", "echo; exec cat"],
                                   env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdout.readline()
        process.kill()
        self.assertEqual(process.stdout.read(), b"")  # ends only when the program is gone
        process.stdin.close()
        process.stdout.close()
        process.wait()

    def test_report_stops_and_continues_with_the_program(self):
        process = subprocess.Popen([self.hearth, "run", "--report", "sh", "-c",
                                    "kill -STOP $$; echo on"], env=self.env,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        pid, status = os.waitpid(process.pid, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(status))
        process.send_signal(signal.SIGCONT)
        out, _ = process.communicate(timeout=20)
        self.assertEqual((out, process.returncode), (b"on\n", 0))

    def test_report_leaves_the_terminal_to_the_program(self):
        """Ctrl-C reaches the program once, and the program can read the terminal."""
        script = ("import signal, sys, time\n"
                  "seen = []\n"
                  "signal.signal(signal.SIGINT, lambda *_: seen.append(1))\n"
                  "print('read', sys.stdin.readline().strip(), flush=True)\n"
                  "deadline = time.monotonic() + 20\n"
                  "while not seen and time.monotonic() < deadline: time.sleep(0.01)\n"
                  "time.sleep(0.3)\n"
                  "print('interrupts', len(seen), flush=True)\n")
        pid, terminal = pty.fork()
        if not pid:
            os.execve(self.hearth, ["hearth", "run", "--report", sys.executable, "-c", script],
                      self.env)
        output = b""

        def read_until(text):
            nonlocal output
            deadline = time.monotonic() + 30
            while text not in output and time.monotonic() < deadline:
                if select.select([terminal], [], [], 1)[0]:
                    output += os.read(terminal, 4096)
            self.assertIn(text, output)

        os.write(terminal, b"hello\n")
        read_until(b"read hello")
        os.write(terminal, b"\x03")
        read_until(b"interrupts 1")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        os.close(terminal)

    @harness.plain_only  # no shell that forks bears TSan's runtime
    def test_ends_under_capture_and_pipes(self):
        """Nobody's descriptors are kept by what `hearth run` starts."""
        command = f"x=$({self.hearth} run echo out); echo $x"
        result = self.run_program("timeout", "5", "sh", "-c", command)
        self.assertEqual((result.returncode, result.stdout), (0, b"out\n"))
        # As ssh does: three pipes, read to their end by somebody else.
        result = self.run_program("sh", "-c", f"{self.hearth} run cat | cat 2>&1",
                                  stdin=subprocess.PIPE, timeout=5)
        self.assertEqual(result.returncode, 0)


if __name__ == "__main__":
    harness.main()
