"""Programs at a terminal come out the same natively and through a spare, driven by a real shell at
a real pty; and whoever is killed, the terminal is as it was and nothing is left."""
import fcntl
import os
import re
import resource
import signal
import subprocess
import termios
import time
import unittest
from pathlib import Path

import harness
import shell_session
import spares
import terminal_programs

NUMBER = re.compile(r"^(\[\d+\][+-]? *)\d+|(?<=job 1\[)\d+", re.M)  # as bash shows a process's
# Shown or not by the moment at which the shell hears of it, before it lists its jobs.
NOTICE = re.compile(r"\n\n\[1\]\+  Stopped[^\n]*(?=\n\[1\]\+ +\d+ Stopped)")
ALLOWS = Path("/proc/sys/dev/tty/legacy_tiocsti")
CAN_TYPE = not os.geteuid() or not ALLOWS.exists() or ALLOWS.read_text() == "1\n"
RUN = '"$H" run $OPTION -- "$P" p.py'


class TerminalTest(spares.SpareTest):
    def setUp(self):
        super().setUp()
        self.env.update(shell_session.ENVIRONMENT, H=str(harness.HEARTH), P=spares.PYTHON)
        limits = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, limits[1]))  # "core dumped" is the machine's
        self.addCleanup(resource.setrlimit, resource.RLIMIT_CORE, limits)

    def session(self, option):
        session = shell_session.Session(self.env, self.work)
        self.addCleanup(session.end)
        session.command(f"OPTION={option}")
        return session

    def take_steps(self, session, line, steps):
        line = line.replace("RUN_IN", RUN.replace("$OPTION", "$@")).replace("RUN", RUN)
        session.type(line + "\n")
        session.wait(line + "\n")
        for text, typed in steps:
            if text:
                session.wait(text.replace("RUN", RUN))
            if text and "topped" in text:
                session.wait(shell_session.PROMPT)
            # It has shown that, and nothing will say that it waits.
            time.sleep(0.05 if text else 0.3)
            if isinstance(typed, tuple):
                session.resize(*typed)
            else:
                session.type(typed)


class AlikeTest(TerminalTest):
    def outcome(self, session, line, steps):
        """What was shown, and how the program and the terminal were left."""
        at = len(session.shown)
        self.take_steps(session, line, steps)
        session.wait("\n" + shell_session.PROMPT) if steps else session.wait(shell_session.PROMPT)
        status = session.command("echo $?")
        settings = session.command("stty -g; jobs")
        session.command("stty sane")
        session.resize(shell_session.ROWS, shell_session.COLUMNS)
        return (status, settings, spares.ADDRESS.sub(b"0x", session.shown[at:].encode()).decode())

    def check(self, sessions, line, source, steps):
        (self.work / "p.py").write_text(source + "\n")
        native = self.outcome(sessions[0], line, steps)
        self.wait_for_one()
        before = self.names()
        spared = self.outcome(sessions[1], line, steps)
        self.assertNotEqual(before & self.names(), before, f"a plain start: {spared}")
        self.assertEqual(*(tuple(NUMBER.sub("N", NOTICE.sub("", text)) for text in outcome)
                           for outcome in (native, spared)))

    def test_programs(self):
        self.start()
        sessions = self.session(""), self.session("--spare")
        for name, (source, steps) in terminal_programs.PROGRAMS.items():
            with self.subTest(program=name):
                self.check(sessions, "RUN", source, steps)

    def test_command_lines(self):
        self.start()
        sessions = self.session(""), self.session("--spare")
        for name, (line, source, steps) in terminal_programs.LINES.items():
            with self.subTest(program=name):
                self.check(sessions, line, source, steps)

    @unittest.skipUnless(CAN_TYPE, "the kernel lets nobody put back what was typed")
    def test_typed_ahead(self):
        self.start()
        sessions = self.session(""), self.session("--spare")
        source = "import time\nprint('began', flush=True)\ntime.sleep(0.3)"
        self.check(sessions, "RUN", source,
                   [("began", "echo ahead\n"), (shell_session.PROMPT + "echo ahead", "")])


def lead():
    """Before an exec: lead a session, with stdin for its terminal."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class AloneTest(TerminalTest):
    """Without a shell, which would have put the terminal right: the client leads the session."""

    def begin(self, text, option="--spare"):
        """The client, the terminal's two ends, and what the program has shown first: its pid and
        its parent's."""
        self.wait_for_one()
        outer, inner = os.openpty()
        for end in outer, inner:
            self.addCleanup(os.close, end)
        self.settings = termios.tcgetattr(inner)
        program = subprocess.Popen(
            [harness.HEARTH, "run", *option.split(), "--", spares.PYTHON, "-c",
             "import os, sys, time\nprint(os.getpid(), os.getppid(), flush=True)\n" + text],
            env=self.env, cwd=self.work, stdin=inner, stdout=inner, stderr=inner, preexec_fn=lead)
        self.addCleanup(lambda: program.poll() is None and (program.kill(), program.wait()))
        return (program, outer, inner, *map(int, self.line(outer).split()))

    def line(self, outer):
        shown = b""
        while not shown.endswith(b"\n"):
            shown += os.read(outer, 1)
        return shown

    def assert_settings(self, inner):
        deadline = time.monotonic() + harness.DEADLINE_S
        while termios.tcgetattr(inner) != self.settings:
            self.assertLess(time.monotonic(), deadline, termios.tcgetattr(inner))
            time.sleep(0.01)

    def test_whoever_is_killed_the_terminal_is_as_it_was(self):
        self.start()
        for victim in ("client", "holder", "program"):
            with self.subTest(victim=victim):
                program, _, inner, pid, holder = self.begin("time.sleep(60)")
                self.assertNotEqual(termios.tcgetattr(inner), self.settings)  # it is raw
                os.kill({"client": program.pid, "holder": holder, "program": pid}[victim],
                        signal.SIGKILL)
                self.assertEqual(program.wait(harness.DEADLINE_S), -signal.SIGKILL)
                for other in pid, holder:
                    spares.wait_gone(self, other)
                self.assert_settings(inner)
                if victim == "holder":
                    self.start()  # none has taken its place

    def test_a_signal_to_the_client_is_the_programs_alone(self):
        self.start()
        program, outer, inner, _, _ = self.begin(
            "import signal\nsignal.signal(15, lambda *a: sys.exit(9))\nprint(flush=True)\n"
            "signal.pause()")
        self.line(outer)
        program.terminate()
        self.assertEqual(program.wait(harness.DEADLINE_S), 9)
        self.assert_settings(inner)

    def test_a_terminal_that_hangs_up(self):
        self.start()
        program, outer, _, pid, holder = self.begin("time.sleep(60)")
        os.dup2(os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC), outer)
        self.assertEqual(program.wait(harness.DEADLINE_S), -signal.SIGHUP)
        for other in pid, holder:
            spares.wait_gone(self, other)

    def test_a_program_that_minds_no_hang_up(self):
        self.start()
        program, outer, _, _, _ = self.begin(
            "import signal\nsignal.signal(1, signal.SIG_IGN)\nprint(flush=True)\n"
            "end = time.monotonic() + 30\n"
            "while time.monotonic() < end:\n    time.sleep(0.02)\n    try:\n"
            "        os.write(1, b'.')\n    except OSError:\n"
            "        sys.exit(5 if os.read(0, 9) == b'' else 6)")
        self.line(outer)
        os.dup2(os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC), outer)
        self.assertEqual(program.wait(harness.DEADLINE_S), 5)

    def test_what_it_leaves_behind_lives_on(self):
        self.start()
        program, outer, inner, _, holder = self.begin(
            "import subprocess\nprint(subprocess.Popen(['sleep', '60']).pid, flush=True)")
        left = int(self.line(outer))
        self.addCleanup(os.kill, left, signal.SIGKILL)
        self.assertEqual(program.wait(harness.DEADLINE_S), 0)
        spares.wait_gone(self, holder)
        self.assert_settings(inner)
        self.assertFalse(harness.gone(left))

    def test_what_a_killed_client_leaves_is_nothing(self):
        self.start()
        program, outer, _, _, _ = self.begin(
            "import subprocess\nprint(subprocess.Popen(['sleep', '60']).pid, flush=True)\n"
            "time.sleep(60)")
        left = int(self.line(outer))
        program.kill()
        program.wait(harness.DEADLINE_S)
        spares.wait_gone(self, left)

    def test_the_terminals_name_is_different(self):
        self.start()
        names = []
        for option in "", "--spare":
            program, outer, inner, _, _ = self.begin("print(os.ttyname(0), flush=True)", option)
            names.append(self.line(outer).decode().strip())
            self.assertEqual(names[-1] == os.ttyname(inner), option == "")
            program.wait()
        self.assertTrue(names[1].startswith("/dev/pts/"), names)

    def test_it_leads_a_group_in_a_script_too(self):
        self.start()
        (self.work / "p.py").write_text("import os\nprint(os.getpgrp() == os.getpid())")
        for option, shown in ("", "False\n"), ("--spare", "True\n"):
            line = f"bash -c '{RUN.replace('$OPTION', option)}; true'"
            self.assertEqual(self.session("").command(line), shown)

    def test_a_client_that_is_killed_at_any_moment(self):
        self.start()
        for delay_ms in range(2, 18, 2):
            self.wait_for_one()
            outer, inner = os.openpty()
            self.settings = termios.tcgetattr(inner)
            program = subprocess.Popen(
                [harness.HEARTH, "run", "--spare", "--", spares.PYTHON, "-c",
                 "import time; time.sleep(60)"], env=self.env, stdin=inner, stdout=inner,
                stderr=inner, preexec_fn=lead)
            time.sleep(0.001 * delay_ms)
            program.kill()
            program.wait(harness.DEADLINE_S)
            self.assert_settings(inner)
            os.close(outer)
            os.close(inner)

    def test_without_a_terminal_of_its_own_the_program_has_none(self):
        self.start()
        done = self.adopt(spares.PYTHON, "-c", "import os\ntry:\n    os.open('/dev/tty', 2)\n"
                          "except OSError:\n    print('none', os.getpgrp() == os.getppid())",
                          preexec_fn=os.setsid)
        self.assertEqual(done.stdout, b"none False\n")


if __name__ == "__main__":
    harness.main()
