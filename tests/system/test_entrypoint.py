"""`hearth entrypoint`: a container's PID 1, in a pid namespace of its own where one can be made."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

import harness

INIT = ("import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))")
# Says which signals it gets, and ends at SIGTERM with 3.
LISTEN = """
import os, signal, sys
def heard(number, frame):
    print(number, flush=True)
    if number == signal.SIGTERM:
        sys.exit(3)
for number in map(int, sys.argv[1:]):
    signal.signal(number, heard)
print(os.getpid(), flush=True)
while True:
    signal.pause()
"""
# Leaves orphans behind that end at once, and waits until nobody is a zombie.
ORPHANS = """
import os, sys, time
for _ in range(50):
    if not os.fork():
        if not os.fork():
            os._exit(0)
        os._exit(0)
    os.wait()
def zombies():
    found = []
    for name in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{name}/stat') as file:
                state, parent = file.read().rpartition(')')[2].split()[:2]
        except OSError:
            continue
        if state == 'Z' and int(parent) == os.getppid():
            found.append(name)
    return found
end = time.monotonic() + 10
while zombies() and time.monotonic() < end:
    time.sleep(0.01)
sys.exit(len(zombies()))
"""


def why_no_namespace():
    if not shutil.which("unshare"):
        return "unshare is not here"
    done = subprocess.run([*unshare(), "true"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, stdin=subprocess.DEVNULL, check=False)
    return done.stdout.strip() if done.returncode else None


def unshare():
    user = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *user, "--pid", "--mount-proc", "--fork", "--kill-child"]


REASON = why_no_namespace()
needs_namespace = unittest.skipIf(REASON, f"no pid namespace can be made here: {REASON}")


class Entrypoint(harness.SystemTest):
    around = ()

    def setUp(self):
        super().setUp()
        self.addCleanup(self.run_program, harness.HEARTH, "stop")

    def entrypoint(self, *words, env=None, **options):
        return self.run_program(*self.around, harness.HEARTH, "entrypoint", *words,
                                env=env, **options)

    @staticmethod
    def heed_hangups():
        """What nohup starts ignores them, and so would all that it starts."""
        signal.signal(signal.SIGHUP, signal.SIG_DFL)

    def start(self, *words):
        process = subprocess.Popen([*self.around, harness.HEARTH, "entrypoint", *words],
                                   env=self.env, stdin=subprocess.DEVNULL,
                                   preexec_fn=self.heed_hangups,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        return process

    def pid(self, process):
        """The entrypoint's pid as we see it."""
        if not self.around:
            return process.pid
        children = f"/proc/{process.pid}/task/{process.pid}/children"
        with open(children, encoding="ascii") as file:
            return int(file.read().split()[0])

    def test_exit_status_is_the_programs(self):
        for script, status in (("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 128 + 15),
                               ("kill -KILL $$", 128 + 9)):
            with self.subTest(script=script):
                done = self.entrypoint("--", "sh", "-c", script)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (status, b"", b""))

    def test_own_failures(self):
        for words, status, text in ((["/none/program"], 127, b"/none/program"),
                                    (["/etc"], 126, b"/etc"), ([], 125, b"program is missing"),
                                    (["--wait", "x", "true"], 125, b"'x'")):
            with self.subTest(words=words):
                done = self.entrypoint(*words)
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertIn(text, done.stderr)

    def test_the_program_finds_a_warm_keeper(self):
        done = self.entrypoint(harness.HEARTH, "status", "--wait", "0", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(json.loads(done.stdout)["keeper"]["state"], "warm")

    def test_the_run_is_in_the_history_when_it_has_ended(self):
        done = self.entrypoint(sys.executable, "-c", INIT)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"0\n", b""))
        done = self.run_program(harness.HEARTH, "report", "--json")
        run = json.loads(done.stdout)["runs"][-1]
        self.assertEqual([record["how"] for record in run["records"]
                          if record["call"] == "cuInit"], ["warm"])

    def test_no_gpu_is_said_and_the_program_runs(self):
        for more, why in (({"HEARTH_DRIVER": "/none/libcuda.so.1"}, b"there is no driver"),
                          ({"SIMCUDA_DEVICES": "0"}, b"(CUDA error 100)")):
            with self.subTest(more=more):
                began = time.monotonic()
                done = self.entrypoint("--wait", "50", "echo", "ran", env={**self.env, **more})
                self.assertEqual((done.returncode, done.stdout), (0, b"ran\n"))
                self.assertIn(why, done.stderr)
                self.assertEqual(done.stderr.count(b"\n"), 1)
                self.assertLess(time.monotonic() - began, 30)

    def test_where_no_broker_can_be_started_nothing_is_waited_for(self):
        began, path = time.monotonic(), self.dir / "none/socket"
        done = self.entrypoint("--wait", "50", "echo", "ran",
                               env={**self.env, "HEARTH_SOCKET": str(path)})
        self.assertEqual((done.returncode, done.stdout), (0, b"ran\n"))
        self.assertIn(f"no broker could be started: hearthd: cannot serve at {path}: No such",
                      done.stderr.decode())
        self.assertEqual(done.stderr.count(b"\n"), 1)
        self.assertLess(time.monotonic() - began, 1.5)

    def test_the_wait_is_bounded(self):
        env = {**self.env, "SIMCUDA_FAIL": "cuInit:802*1000"}
        began = time.monotonic()
        done = self.entrypoint("--wait", "1", "echo", "ran", env=env)
        self.assertEqual((done.returncode, done.stdout), (0, b"ran\n"))
        self.assertIn(b"(CUDA error 802); going on without", done.stderr)
        self.assertGreaterEqual(time.monotonic() - began, 1)
        self.assertLess(time.monotonic() - began, 20)

    def test_zero_waits_for_nothing(self):
        done = self.entrypoint("--wait", "0", "echo", "ran",
                               env={**self.env, "HEARTH_DRIVER": "/none/libcuda.so.1"})
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"ran\n", b""))

    def test_switched_off_it_only_runs_the_program(self):
        done = self.entrypoint("sh", "-c", "echo ran", env={**self.env, "HEARTH": "0"})
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"ran\n", b""))
        self.assertEqual(self.run_program(harness.HEARTH, "status").returncode, 1)

    def test_orphans_are_reaped(self):
        done = self.entrypoint(sys.executable, "-c", ORPHANS)
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_every_signal_is_forwarded(self):
        numbers = [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
                   signal.SIGWINCH, signal.SIGALRM, signal.SIGRTMIN + 3]
        process = self.start(sys.executable, "-c", LISTEN,
                             *[str(int(number)) for number in [*numbers, signal.SIGTERM]])
        process.stdout.readline()
        for number in numbers:
            os.kill(self.pid(process), number)
            self.assertEqual(process.stdout.readline(), f"{int(number)}\n")
        os.kill(self.pid(process), signal.SIGTERM)
        self.assertEqual(process.stdout.readline(), f"{int(signal.SIGTERM)}\n")
        process.wait(harness.DEADLINE_S)
        self.assertEqual((process.returncode, process.stderr.read()), (3, ""))

    def start_waiting(self, *words):
        """One that waits for a keeper that fails again and again; returns once it has a broker."""
        self.env["SIMCUDA_FAIL"] = "cuInit:802*1000"
        process = self.start("--wait", "50", *words)
        end = time.monotonic() + 20
        while self.run_program(harness.HEARTH, "status").returncode and time.monotonic() < end:
            time.sleep(0.02)
        return process

    def test_a_signal_that_comes_before_the_program(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            with self.subTest(number=number):
                process = self.start_waiting("echo", "ran")
                began = time.monotonic()
                for _ in range(3):
                    os.kill(self.pid(process), number)
                process.wait(harness.DEADLINE_S)
                self.assertEqual((process.returncode, process.stdout.read(), process.stderr.read()),
                                 (128 + number, "", ""))
                self.assertLess(time.monotonic() - began, 10)
                self.assertEqual(self.run_program(harness.HEARTH, "status").returncode, 1)

    def test_another_signal_waits_for_the_program(self):
        self.env["SIMCUDA_FAIL"] = "cuInit:802*1000"
        process = self.start("--wait", "1", "sleep", "60")
        time.sleep(0.5)
        os.kill(self.pid(process), signal.SIGUSR1)
        process.wait(harness.DEADLINE_S)
        self.assertEqual(process.returncode, 128 + signal.SIGUSR1)

    def test_a_program_that_does_not_care_is_ended_by_sigterm(self):
        """As PID 1 itself it would not be: there, an unhandled signal is dropped."""
        process = self.start("sh", "-c", "echo up; exec sleep 60")
        process.stdout.readline()
        os.kill(self.pid(process), signal.SIGTERM)
        process.wait(harness.DEADLINE_S)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)

    def test_signals_are_as_they_were_for_the_program(self):
        script = "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status"
        expected = self.run_program(*self.around, "sh", "-c", script)
        done = self.entrypoint("sh", "-c", script)
        self.assertEqual(done.stdout, expected.stdout)

    def test_nothing_stays(self):
        self.entrypoint("true")
        self.assertEqual(self.run_program(harness.HEARTH, "status").returncode, 1)

    def test_a_broker_that_was_there_stays(self):
        self.run_program(harness.HEARTH, "run", "true")
        self.entrypoint("true")
        self.assertEqual(self.run_program(harness.HEARTH, "status").returncode, 0)


@needs_namespace
class Pid1(Entrypoint):
    around = tuple(unshare())

    def test_it_is_pid_1(self):
        done = self.entrypoint("sh", "-c", "echo $PPID")
        self.assertEqual((done.stdout, done.stderr), (b"1\n", b""))

    def test_what_it_leaves_is_ended_with_it(self):
        done = self.entrypoint("sh", "-c", "sleep 61 & exit 4", timeout=30)
        self.assertEqual(done.returncode, 4)

    # Here another namespace's broker is none that a program could be known to.
    test_a_broker_that_was_there_stays = None


if __name__ == "__main__":
    harness.main()
