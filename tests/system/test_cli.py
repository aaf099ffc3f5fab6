"""`hearth` with the real preload, broker and simulated driver: run, report, status, release,
stop."""
import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import harness

PROGRAM = [harness.PROGRAMS / "first_calls", harness.SOURCE / "tests/programs/add.simcuda"]
RUNNERS = ("run", "entrypoint")  # their exit status is the program's
SPAWN_LIMIT_S = 0.1  # lib/broker/spawn.h
# cuInit, then it says so and waits.
HANG = ("import ctypes, time; ctypes.CDLL('libcuda.so.1').cuInit(0); print('up', flush=True); "
        "time.sleep(60)")


class Cli(harness.SystemTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.hearth, "stop")

    def hearth(self, *words, status=None, **options):
        result = self.run_program(harness.HEARTH, *words, **options)
        if status is not None:
            self.assertEqual(result.returncode, status, result.stderr.decode())
        return result

    def status(self):
        return json.loads(self.hearth("status", "--json").stdout)

    def wait_for(self, condition):
        deadline = time.monotonic() + 20
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def start_broker(self):
        self.hearth("run", "true", status=0)
        self.wait_for(lambda: self.status().get("keeper", {}).get("state") == "warm")

    def test_run_starts_a_broker_that_ends_up_warm(self):
        self.start_broker()
        status = self.status()
        self.assertTrue(status["running"])
        self.assertEqual(len(status["devices"]), 1)
        self.assertIn("SIMULATED", status["devices"][0]["name"])
        self.assertIn(b"within 10 min\n", self.hearth("status", status=0).stdout)

    def test_the_very_first_program_meets_the_broker(self):
        """Though it calls the driver at once. On a busy machine a broker may need longer than the
        program is made to wait for it; so most of the times will do."""
        met = 0
        for _ in range(5):
            self.hearth("run", *PROGRAM, status=0)
            met += not self.hearth("report").returncode
            self.hearth("stop", status=0)
            (self.dir / "state/hearth/runs.jsonl").unlink(missing_ok=True)
        self.assertGreaterEqual(met, 3)

    def test_a_broker_that_cannot_start_is_not_waited_for(self):
        """It ends; what would hold us is only one that hangs."""
        env = {**self.env, "HEARTH_SOCKET": str(self.dir / "missing/socket")}
        took = []
        for _ in range(5):
            began = time.monotonic()
            self.hearth("run", "true", env=env, status=0)
            took.append(time.monotonic() - began)
        self.assertLess(min(took), SPAWN_LIMIT_S)

    def test_run_with_hearth_off_starts_no_broker(self):
        self.hearth("run", "true", env={**self.env, "HEARTH": "0"}, status=0)
        self.hearth("run", "true", env={**self.env, "HEARTH": "0"}, status=0)
        self.hearth("status", status=1)

    def test_a_broker_for_another_driver_is_named(self):
        """Whatever it was started with stays; the program's own driver is used."""
        copy = self.dir / "libcuda.so.1"
        shutil.copy(harness.SIM, copy)
        for other in ("/none/libcuda.so.1", str(copy)):
            with self.subTest(other=other):
                env = {**self.env, "HEARTH_DRIVER": other}
                self.hearth("run", "true", env=env, status=0)
                self.wait_for(lambda: self.status()["keeper"]["state"] in ("warm", "off"))
                said = "no driver" if other.startswith("/none") else other
                said = f"keeps {said} warm, not HEARTH_DRIVER={harness.SIM}".encode()
                result = self.hearth("run", *PROGRAM, status=0)
                self.assertEqual(result.stderr.count(said), 1, result.stderr)
                self.assertEqual(self.hearth("run", "true", env=env, status=0).stderr, b"")
                self.assertIn(said, self.hearth("doctor").stdout)
                self.assertIn(said, self.hearth("compare", "-n", "1", "true", status=1).stderr)
                self.hearth("stop", status=0)

    def test_output_is_the_programs_alone(self):
        result = self.hearth("run", *PROGRAM, status=0)
        plain = self.run_program(*PROGRAM, env={
            **self.env, "LD_LIBRARY_PATH": str(harness.SIM.parent)})
        self.assertEqual((result.stdout, result.stderr), (plain.stdout, plain.stderr))

    @harness.plain_only  # no shell that forks bears TSan's runtime
    def test_capture_ends_with_the_program(self):
        """The first run starts the broker, which must keep nobody's pipe."""
        for command in (f"x=$({harness.HEARTH} run echo out); echo $x",
                        f"{harness.HEARTH} run echo out 2>&1 | cat",
                        f"echo out | {harness.HEARTH} run cat"):
            with self.subTest(command=command):
                self.hearth("stop")
                result = self.run_program("timeout", "5", "sh", "-c", command)
                self.assertEqual((result.returncode, result.stdout), (0, b"out\n"))

    def test_broker_is_nobodys_child_and_keeps_no_descriptor(self):
        inherited = os.open(self.dir, os.O_RDONLY)
        os.set_inheritable(inherited, True)
        self.hearth("run", "sh", "-c", "wait", status=0, pass_fds=[inherited])
        os.close(inherited)
        self.wait_for(lambda: self.status()["running"])
        pid = self.status()["pid"]
        targets = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        self.assertNotIn(str(self.dir), targets)
        self.assertEqual(os.readlink(f"/proc/{pid}/cwd"), "/")
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        self.assertNotIn(b"LD_PRELOAD", environment)

    def test_report_option_shows_the_first_calls(self):
        result = self.hearth("run", "--report", "--task", "exp1", *PROGRAM, status=0)
        text = result.stderr.decode()
        for word in ("first_calls", "task exp1", "cuInit", "cuDevicePrimaryCtxRetain", "in all",
                     "First result"):
            self.assertIn(word, text)
        self.assertNotIn(b"cuInit", result.stdout)
        self.assertEqual(list((self.dir / "run").glob("hearth-report*")), [])

    def test_report_option_as_json_adds_up(self):
        result = self.hearth("run", "--json", *PROGRAM, status=0)
        runs = json.loads(result.stderr)["runs"]
        self.assertEqual(len(runs), 1)
        waited = sum(record["visible_us"] for record in runs[0]["records"])
        self.assertEqual(runs[0]["cuda_visible_us"], waited)
        self.assertLessEqual(waited, runs[0]["duration_us"])
        self.assertEqual(runs[0]["exit"], "exited")

    def test_report_option_after_sigkill(self):
        result = self.hearth("run", "--report", sys.executable, "-c",
                             "import ctypes, os; ctypes.CDLL('libcuda.so.1').cuInit(0); "
                             "os.kill(os.getpid(), 9)")
        self.assertEqual(result.returncode, -signal.SIGKILL)
        self.assertRegex(result.stderr.decode(), r"killed\n(.*\n)*cuInit ")

    def test_report_option_keeps_the_users_log(self):
        log = self.dir / "log"
        log.write_text('{"damaged\n')
        for _ in range(2):
            result = self.hearth("run", "--json", "--log", log, *PROGRAM, status=0)
            self.assertEqual(len(json.loads(result.stderr)["runs"]), 1)
        result = self.hearth("report", "--json", log, status=0)
        report = json.loads(result.stdout)
        self.assertEqual((len(report["runs"]), report["damaged_lines"]), (2, 1))
        self.assertIn(b"1 damaged line was skipped", self.hearth("report", log).stderr)

    def test_report_option_reads_one_log_per_process(self):
        odd = self.dir / "a*[b]%d"
        odd.mkdir()
        log = str(odd).replace("%", "%%") + "/log.%h.%p"
        for _ in range(2):
            result = self.hearth("run", "--json", "--log", log, *PROGRAM, status=0)
            self.assertEqual(len(json.loads(result.stderr)["runs"]), 1)
        self.assertEqual(len(list(odd.iterdir())), 2)

    def test_report_says_where_no_cuda_was_seen(self):
        result = self.hearth("run", "--report", "true", status=0)
        self.assertIn(b"no CUDA call was seen", result.stderr)

    def test_history_has_the_last_runs(self):
        if not Path(f"/var/lib/hearth/{os.getuid()}").exists():  # what a broker of the machine kept
            self.hearth("report", status=1)
        self.start_broker()
        for task in ("one", "two", "three"):
            self.hearth("run", "--task", task, *PROGRAM, status=0)

        def tasks(*options):
            runs = json.loads(self.hearth("report", "--json", *options).stdout)["runs"]
            return [run["task"] for run in runs]

        self.wait_for(lambda: tasks("-n", "9")[-1:] == ["three"])
        self.assertEqual(tasks(), ["three"])
        self.assertEqual(tasks("-n", "2"), ["two", "three"])
        text = self.hearth("report", status=0).stdout.decode()
        self.assertIn("warm: the keeper saved about", text)

    def test_history_has_a_killed_program(self):
        self.start_broker()
        process = subprocess.Popen([harness.HEARTH, "run", sys.executable, "-c", HANG],
                                   env=self.env, stdout=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"up\n")
        process.kill()
        process.communicate()
        self.wait_for(lambda: self.hearth("report").returncode == 0)
        run = json.loads(self.hearth("report", "--json").stdout)["runs"][0]
        self.assertEqual((run["pid"], run["records"][0]["call"]), (process.pid, "cuInit"))

    def test_report_waits_until_a_run_is_written(self):
        """Asked for while the history's thread is still at it."""
        self.hearth("run", *PROGRAM, status=0)
        self.hearth("report", status=0)
        with open(self.dir / "state/hearth/runs.lock", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.hearth("run", "--task", "written-late", *PROGRAM, status=0)
            unlock = threading.Timer(0.2, fcntl.flock, (lock, fcntl.LOCK_UN))
            unlock.start()
            shown = self.hearth("report", status=0).stdout
            unlock.join()
        self.assertIn(b"written-late", shown)

    def test_report_forgets_all_runs(self):
        """Also one that the broker has still to write; what comes later is kept again."""
        self.start_broker()
        self.hearth("run", *PROGRAM, status=0)
        self.hearth("report", status=0)
        with open(self.dir / "state/hearth/runs.lock", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.hearth("run", "--task", "written-late", *PROGRAM, status=0)
            unlock = threading.Timer(0.2, fcntl.flock, (lock, fcntl.LOCK_UN))
            unlock.start()
            self.assertEqual(self.hearth("report", "--clear", status=0).stdout, b"")
            unlock.join()
        self.assertFalse((self.dir / "state/hearth/runs.jsonl").exists())
        self.hearth("report", "--clear", status=0)  # nothing there is forgotten too
        self.hearth("run", "--task", "later", *PROGRAM, status=0)
        runs = json.loads(self.hearth("report", "--json", "-n", "9").stdout)["runs"]
        self.assertEqual([run["task"] for run in runs], ["later"])

    def test_report_forgets_no_log(self):
        log = self.dir / "log"
        log.write_text("mine")
        for words in ((log,), ("-n", "1"), ("--json",)):
            self.hearth("report", "--clear", *words, status=2)
        self.assertEqual(log.read_text(), "mine")

    def test_report_refuses_what_it_cannot_read(self):
        result = self.hearth("report", self.dir / "none", status=1)
        self.assertIn(b"none: No such file", result.stderr)
        result = self.hearth("report", "-n", "many", status=2)
        self.assertIn(b"'many'", result.stderr)

    def test_report_reads_any_log(self):
        """Bytes changed, cut out and put in at random: no crash, nothing that a terminal obeys."""
        log = self.dir / "log"
        self.hearth("run", "--log", log, "--task", "one", *PROGRAM, status=0)
        whole, dice = log.read_bytes(), random.Random(7)
        for _ in range(40):
            text = bytearray(whole)
            for _ in range(dice.randint(1, 20)):
                at = dice.randrange(len(text))
                change = dice.choice(("byte", "cut", "insert"))
                if change == "byte":
                    text[at] = dice.randrange(256)
                elif change == "cut":
                    del text[at:at + dice.randint(1, 40)]
                else:
                    text[at:at] = bytes(dice.choice(b'0123456789-"{}[],:\x1b') for _ in range(9))
            for options in ((), ("--json",)):
                result = self.hearth("report", *options, "-", stdin=None, input=bytes(text))
                self.assertIn(result.returncode, (0, 1), bytes(text))
                self.assertEqual([byte for byte in result.stdout if byte < 32 and byte != 10], [])

    def test_status_shows_clients(self):
        process = subprocess.Popen([harness.HEARTH, "run", "--task", "exp\x1b7", sys.executable,
                                    "-c", HANG], env=self.env, stdout=subprocess.PIPE)
        try:
            process.stdout.readline()
            self.hearth("status", status=0)
            # The first client may have come before the broker; the second one cannot.
        finally:
            process.kill()
            process.communicate()
        self.start_broker()
        process = subprocess.Popen([harness.HEARTH, "run", "--task", "exp\x1b7", sys.executable,
                                    "-c", HANG], env=self.env, stdout=subprocess.PIPE)
        try:
            process.stdout.readline()
            text = self.hearth("status", status=0).stdout.decode()
            self.assertRegex(text, rf"(?m)^ *{process.pid}  python\S*  exp\?7 ")
            self.assertIn("The keeper", text.replace("the keeper", "The keeper"))
            self.assertIn("stays while it has clients", text)
        finally:
            process.kill()
            process.communicate()

    def test_release_and_resume(self):
        self.start_broker()
        self.hearth("release", status=0)
        keeper = self.status()["keeper"]
        self.assertEqual((keeper["state"], keeper["pid"]), ("released", 0))
        self.assertIsNotNone(keeper["starts_in_s"])
        self.hearth("release", "--until-resume", status=0)
        self.assertIsNone(self.status()["keeper"]["starts_in_s"])
        self.hearth("release", "--resume", status=0)
        self.wait_for(lambda: self.status()["keeper"]["state"] == "warm")

    def test_status_waits_for_a_warm_keeper(self):
        result = self.hearth("status", "--wait", "0", status=2)
        self.assertIn(b"no broker runs", result.stderr)
        waiting = subprocess.Popen([harness.HEARTH, "status", "--json", "--wait", "20"],
                                   env=self.env, stdout=subprocess.PIPE)
        self.hearth("run", "true", status=0)
        shown = json.loads(waiting.communicate(timeout=30)[0])
        self.assertEqual((waiting.returncode, shown["keeper"]["state"]), (0, "warm"))
        self.assertIn(b"keeper: warm", self.hearth("status", "--wait", "0", status=0).stdout)
        self.hearth("release", "--until-resume", status=0)
        result = self.hearth("status", "--wait", "1", status=2)
        self.assertIn(b"not warm after 1 s: the keeper is released by `hearth release`, "
                      b"until `hearth release --resume`\n", result.stderr)
        self.assertRegex(result.stdout, rb"keeper: released for \d+ s "
                         rb"\(by `hearth release`, until `hearth release --resume`\)\n")

    def test_status_waits_no_longer_where_the_broker_dies_or_hangs(self):
        self.env["SIMCUDA_FAIL"] = "cuInit:802*1000"
        self.hearth("run", "true", status=0)
        pid = self.status()["pid"]
        os.kill(pid, signal.SIGSTOP)
        for seconds, most in ((0, 3), (1, 2.5)):
            began = time.monotonic()
            result = self.hearth("status", "--wait", seconds, status=2)
            self.assertEqual(result.stderr.count(b"does not answer: Connection timed out"), 1)
            self.assertLess(time.monotonic() - began, most)
        os.kill(pid, signal.SIGCONT)
        waiting = subprocess.Popen([harness.HEARTH, "status", "--wait", "2"], env=self.env,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.2)
        os.kill(pid, signal.SIGKILL)
        self.assertIn(b"no broker runs", waiting.communicate(timeout=30)[1])
        self.assertEqual(waiting.returncode, 2)

    def test_status_does_not_wait_where_no_gpu_can_be_kept(self):
        for more, why in (({"HEARTH_DRIVER": "/none/libcuda.so.1"}, b"is off: there is no driver"),
                          ({"SIMCUDA_DEVICES": "0"}, b"(CUDA error 100)")):
            with self.subTest(more=more):
                env = {**self.env, **more}
                self.hearth("run", "true", env=env, status=0)
                result = self.hearth("status", "--wait", "60", env=env, status=1, timeout=20)
                self.assertIn(why, result.stderr)
                self.hearth("stop", status=0)
        for wrong in ("-1", "soon", "86401"):
            self.assertIn(wrong.encode(),
                          self.hearth("status", "--wait", wrong, status=2).stderr)

    def test_stop_ends_it_at_once(self):
        self.start_broker()
        pid = self.status()["pid"]
        self.hearth("stop", status=0)
        self.wait_for(lambda: harness.gone(pid))
        result = self.hearth("status", status=1)
        self.assertIn(b"no broker runs", result.stderr)
        self.assertIn(str(self.dir / "run").encode(), result.stderr)
        self.hearth("stop", status=1)

    def test_a_silent_broker_does_not_hold_us(self):
        script = ("import socket, sys, time; s = socket.socket(socket.AF_UNIX, "
                  "socket.SOCK_SEQPACKET); s.bind(sys.argv[1]); s.listen(9); "
                  "print('up', flush=True); time.sleep(60)")
        path = self.dir / "silent"
        silent = subprocess.Popen([sys.executable, "-c", script, path], stdout=subprocess.PIPE)
        try:
            silent.stdout.readline()
            env = {**self.env, "HEARTH_SOCKET": str(path)}
            result = self.hearth("status", env=env, status=1, timeout=10)
            self.assertIn(str(path).encode(), result.stderr)
            self.assertEqual(self.hearth("run", *PROGRAM, env=env, timeout=10).returncode, 0)
        finally:
            silent.kill()
            silent.communicate()

    def test_an_address_that_can_be_none_is_named(self):
        for value, why in (("relative/socket", "is no absolute path"),
                           ("/" + 107 * "x", "is longer than")):
            env = {**self.env, "HEARTH_SOCKET": value}
            said = f"HEARTH_SOCKET={value} {why}".encode()
            for words in (("status",), ("status", "--json"), ("stop",), ("release",)):
                with self.subTest(words=words):
                    self.assertIn(said, self.hearth(*words, env=env, status=1).stderr)
            self.assertIn(said, self.hearth("doctor", env=env).stdout)
            done = self.run_program(harness.HEARTHD, "--foreground", env=env)
            self.assertEqual(done.returncode, 1)
            self.assertIn(said, done.stderr)
            self.hearth("run", "true", env=env, status=0)

    def test_help_and_usage(self):
        commands = [line.split()[0] for line in
                    self.hearth("help", status=0).stdout.decode().splitlines()
                    if line.startswith("  ") and line.split()[0] != "command"]
        self.assertIn("compare", commands)
        for command in commands:
            with self.subTest(command=command):
                shown = self.hearth(command, "--help", status=0).stdout.decode()
                self.assertTrue(shown.startswith(f"usage: hearth {command}"))
                self.assertEqual(self.hearth("help", command).stdout.decode(), shown)
                result = self.hearth(command, "--no-such-option")
                self.assertEqual(result.returncode, 125 if command in RUNNERS else 2)
                self.assertIn(b"--no-such-option", result.stderr)
        self.assertIn(b"'nonsense'", self.hearth("nonsense", status=2).stderr)
        self.assertIn(b"'nonsense'", self.hearth("help", "nonsense", status=2).stderr)
        for words in (("help", "run", "nonsense"), ("help", "env", "nonsense"),
                      ("--version", "nonsense")):
            self.assertIn(b"'nonsense'", self.hearth(*words, status=2).stderr, words)
        for words in (("--help",), ("-h",), ("help", "--help"), ("help", "help")):
            self.assertEqual(self.hearth(*words, status=0).stdout,
                             self.hearth("help").stdout, words)
        self.assertIn(b"usage", self.hearth(status=2).stderr)

    def test_help_env_lists_the_table(self):
        names = [line.split("(")[1].split(",")[0] for line in
                 (harness.SOURCE / "lib/base/env.def").read_text().splitlines()
                 if line.startswith(("SETTING(", "OTHER("))]
        shown = self.hearth("help", "env", status=0).stdout.decode()
        for name in names:
            self.assertRegex(shown, rf"(?m)^{name}(=|$)")

    def test_version_is_mesons(self):
        self.assertRegex(self.hearth("--version", status=0).stdout, rb"^hearth \d+\.\d+\.\d+\n$")

    def test_full_stdout_is_an_error(self):
        with open("/dev/full", "wb") as full:
            for words in (("help",), ("--version",), ("help", "env"), ("help", "run")):
                done = subprocess.run([harness.HEARTH, *words], stdout=full,
                                      stderr=subprocess.DEVNULL, check=False, env=self.env)
                self.assertEqual(done.returncode, 1, words)


if __name__ == "__main__":
    harness.main()
