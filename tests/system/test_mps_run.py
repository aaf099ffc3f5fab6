"""`hearth run --mps` and `hearth doctor --mps`: who becomes a client, and what is said where that
cannot be. The codes that programs get are those of mps_transcript.json."""
import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import harness
import mps

SEEN = json.loads(Path(__file__).with_name("mps_transcript.json").read_text())
SAYS = 3.0  # s: so soon is said what a program would wait for
PLAIN = b"CUDA_MPS_PIPE_DIRECTORY=/dev/null/none\n"


class Run(mps.MpsTest):
    def run_mps(self, *words, **options):
        return self.hearth("run", "--mps", *words, **options)

    def mps_names(self, *words, **options):
        """The variables that a program gets, and what was said."""
        done = self.run_mps(*words, "--", "env", **options)
        self.assertEqual(done.returncode, 0, done)
        names = dict(line.split("=", 1) for line in done.stdout.decode().splitlines()
                     if line.startswith("CUDA_"))
        return names, done.stderr.decode()

    def test_the_program_is_a_client(self):
        self.start()
        program = subprocess.Popen([harness.HEARTH, "run", "--mps", "--", mps.STEPS, "init",
                                    "retain=0", "work", "input"], env=self.env,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.wait_until(lambda: self.clients() == [program.pid], "it is no client")
        status = json.loads(self.hearth("status", "--json").stdout)
        self.assertEqual([client["mps"] for client in status["clients"]], [True])
        self.assertEqual(program.communicate(b"1", timeout=harness.DEADLINE_S)[1], b"")
        self.assertEqual(program.returncode, 0)

    def test_limits_are_the_clients_variables(self):
        self.start()
        names, said = self.mps_names("--mem", "2GiB", "--threads", "50%", "--priority", "low")
        self.assertEqual((names, said), ({
            "CUDA_MPS_PIPE_DIRECTORY": f"{self.place}/pipe",
            "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=2G",
            "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "50", "CUDA_MPS_CLIENT_PRIORITY": "1"}, ""))

    def test_devices_are_named_by_uuid(self):
        self.env["SIMCUDA_DEVICES"] = "2"
        self.start()
        self.hearth("run", "--", "true")
        self.hearth("status", "--wait", "30")
        devices = json.loads(self.hearth("status", "--json").stdout)["devices"]
        for numbers, wanted in (("1", [1]), ("1,0", [1, 0]), ("0", [0])):
            names, _ = self.mps_names(env={**self.env, "CUDA_VISIBLE_DEVICES": numbers})
            self.assertEqual(names["CUDA_VISIBLE_DEVICES"],
                             ",".join(devices[number]["uuid"] for number in wanted))
        for value in ("0,7", "GPU-1234", "", "-1", "0x"):
            names, _ = self.mps_names(env={**self.env, "CUDA_VISIBLE_DEVICES": value})
            self.assertEqual(names["CUDA_VISIBLE_DEVICES"], value)

    def test_without_a_daemon_it_runs_plainly_and_says_so_once(self):
        done = self.run_mps("--", "sh", "-c", "env | grep ^CUDA_MPS; exit 7")
        self.assertEqual((done.returncode, done.stdout), (7, PLAIN))
        self.assertEqual(done.stderr.decode(),
                         "hearth: --mps: sh runs without MPS: no daemon of Hearth's runs, and "
                         "CUDA_MPS_PIPE_DIRECTORY names none: hearth mps start\n")

    def test_wrong_wishes_are_refused(self):
        for words in (["--mps", "--mem", "2"], ["--mps", "--threads", "0%"],
                      ["--mps", "--priority", "high"], ["--mem", "2GiB"]):
            with self.subTest(words=words):
                done = self.hearth("run", *words, "--", "true")
                self.assertEqual(done.returncode, 125, done)
                self.assertEqual(done.stderr.count(b"\n"), 1)

    def test_a_program_that_is_no_client_after_all_says_so(self):
        done = self.hearth("run", "--", mps.STEPS, "init",
                           env={**self.env, "CUDA_MPS_PIPE_DIRECTORY": "/nowhere",
                                "HEARTH_LOG_LEVEL": "error"})
        self.assertEqual(done.stdout, b"cuInit 0\n")
        self.assertIn("MPS: no client, though CUDA_MPS_PIPE_DIRECTORY=/nowhere; "
                      "`hearth doctor --mps` says why\n", done.stderr.decode())

    @harness.as_another
    def test_only_users_that_root_lists_get_the_machines(self):
        # The folder is the machine's own: only where nothing of it is there.
        if os.path.exists("/run/hearth"):
            self.skipTest("/run/hearth is in use")
        self.addCleanup(subprocess.run, ["rmdir", "/run/hearth"], stderr=subprocess.DEVNULL)
        self.addCleanup(self.mps, "stop", "--system", "--force")
        done = self.mps("start", "--system", "--users", str(harness.OTHER_USER))
        self.assertEqual(done.returncode, 0, done)
        env = {**self.env, "XDG_RUNTIME_DIR": "/nowhere", "HEARTH": "0"}
        for uid, is_in in ((harness.OTHER_USER, True), (harness.OTHER_USER - 1, False)):
            done = self.run_mps("--", "env", env=env, user=uid, cwd="/")
            self.assertEqual(PLAIN not in done.stdout, is_in, done)
            self.assertEqual(b"is none of those" in done.stderr, not is_in, done)


class Doctor(mps.MpsTest):
    def doctor(self, folder=None, env=None, **options):
        env = {**self.env, **(env or {})}
        if folder is not None:
            env["CUDA_MPS_PIPE_DIRECTORY"] = str(folder)
        done = self.hearth("doctor", "--mps", "--json", env=env, cwd="/", **options)
        return {one["id"]: one for one in json.loads(done.stdout)["findings"]}

    def assert_both(self, folder, severity, text, remedy, **options):
        """Doctor's words; and `hearth run --mps` runs plainly, soon, for that reason."""
        found = self.doctor(folder, **options)["mps"]
        self.assertEqual(found["severity"], severity, found)
        self.assertIn(text, found["text"])
        self.assertIn(remedy, found["remedy"] or "")
        began = time.monotonic()
        done = self.hearth("run", "--mps", "--", "env", cwd="/", env={
            **self.env, "CUDA_MPS_PIPE_DIRECTORY": str(folder), "HEARTH": "0"}, **options)
        self.assertLess(time.monotonic() - began, SAYS)
        self.assertIn(text, done.stderr.decode())
        self.assertIn(PLAIN, done.stdout)

    def test_where_no_daemon_is(self):
        empty, stale = self.dir / "empty", self.dir / "stale"
        empty.mkdir()
        stale.mkdir()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
            sock.bind(str(stale / "control"))
        for folder, text, remedy in (
                (self.dir / "none", "is not there", "hearth mps start"),
                (empty, "has no socket `control`", "mount"),
                (stale, "is stale, no daemon listens there", "hearth mps start"),
                ("none", "is no absolute path", "set it to the folder"),
                ("/tmp/" + "x" * 200, "longer than a socket's path can be", "shorter name")):
            with self.subTest(text):
                self.assert_both(folder, "warning", text, remedy)

    def test_nothing_set_and_nothing_there(self):
        found = self.doctor()["mps"]
        self.assertEqual((found["severity"], found["remedy"]),
                         ("note", "hearth mps start, then hearth run --mps -- PROGRAM"))

    def test_a_daemon_in_order(self):
        self.start()
        findings = self.doctor()
        self.assertEqual(findings["mps"]["severity"], "ok")
        self.assertIn(f"serves uid {os.geteuid()}, with 0 clients", findings["mps"]["text"])
        self.assertEqual(findings["mps-setting"]["remedy"],
                         f"export CUDA_MPS_PIPE_DIRECTORY={self.place}/pipe")

    def test_as_many_clients_as_the_server_takes(self):
        self.start()
        self.env["SIMCUDA_SPEED"] = "0"
        clients = self.attached(SEEN["most clients"])
        self.assert_both(self.place / "pipe", "warning", "has 48 clients: it takes no more than",
                         "hearth mps clients lists them")
        done = self.hearth("run", "--", mps.STEPS, "init", "retain=0",
                           env={**self.env, "CUDA_MPS_PIPE_DIRECTORY": f"{self.place}/pipe",
                                "HEARTH_LOG_LEVEL": "error"})
        code = SEEN["codes of clients"]["full"]["context"]
        self.assertIn(f"cuInit 0\nretain {code}", done.stdout.decode())
        self.assertIn(f"{code}: the GPU has no room for another MPS client", done.stderr.decode())
        self.assertIn(SEEN["full, in server.log"], self.mps("logs").stdout.decode())
        clients[0].communicate(b"1", timeout=harness.DEADLINE_S)
        done = self.hearth("run", "--mps", "--", "env")
        self.assertIn(f"CUDA_MPS_PIPE_DIRECTORY={self.place}/pipe\n", done.stdout.decode())

    def test_a_dead_server_comes_back_with_the_first_client(self):
        roll = self.start()
        os.kill(roll["supervisor"], signal.SIGKILL)
        os.kill(roll["servers"][0]["pid"], signal.SIGKILL)
        self.wait_until(lambda: self.doctor(self.place / "pipe")["mps"]["severity"] == "note",
                        "the server lives")
        found = self.doctor(self.place / "pipe")["mps"]
        self.assertIn("has no server yet", found["text"])
        self.start()

    def test_a_daemon_that_hangs(self):
        roll = self.start()
        os.kill(roll["daemon"], signal.SIGSTOP)
        self.addCleanup(os.kill, roll["daemon"], signal.SIGCONT)
        self.assert_both(self.place / "pipe", "problem", "does not answer: programs wait",
                         f"kill -9 {roll['daemon']}")

    def test_a_daemon_of_another_protocol_is_left_alone(self):
        self.start()
        control = self.dir / "bin/nvidia-cuda-mps-control"
        kept = control.read_text()
        self.addCleanup(control.write_text, kept)
        control.write_text("#!/bin/sh\necho 'Unknown command \"get_server_list\"'\n")
        found = self.doctor(self.place / "pipe")["mps"]
        self.assertEqual(found["severity"], "note")
        self.assertIn("does not answer as protocol v2 has it", found["text"])
        done = self.hearth("run", "--mps", "--", "env")
        self.assertIn(f"CUDA_MPS_PIPE_DIRECTORY={self.place}/pipe\n", done.stdout.decode())

    @harness.as_another
    def test_a_folder_out_of_reach(self):
        self.start()
        self.assert_both(self.place / "pipe", "warning", "is out of reach for uid 65534",
                         "as the daemon's user", user=harness.OTHER_USER)

    def daemon(self, user=None):
        """A daemon that is not Hearth's, in a folder that all can reach."""
        pipe, log = self.dir / "pipe", self.dir / "log"
        for folder in (pipe, log):
            folder.mkdir(mode=0o755)
            os.chown(folder, user or 0, user or 0)
        names = {**self.env, "CUDA_MPS_PIPE_DIRECTORY": str(pipe),
                 "CUDA_MPS_LOG_DIRECTORY": str(log)}
        control = self.dir / "bin/nvidia-cuda-mps-control"
        self.run_program(control, "-d", env=names, user=user)
        pid = int((pipe / "nvidia-cuda-mps-control.pid").read_text())
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        self.run_program(control, env=names, user=user, stdin=None,
                         input=f"start_server -uid {user or 0}\n".encode())
        return pipe

    @harness.as_another
    def test_the_server_of_another_user(self):
        pipe, others = self.daemon(), self.dir / "others"
        others.mkdir(mode=0o700)
        os.chown(others, harness.OTHER_USER, harness.OTHER_USER)
        client = self.client(pipe=pipe)
        self.wait_until(lambda: "with 1 clients" in self.doctor(pipe)["mps"]["text"], "no client")
        self.assert_both(pipe, "problem", "is uid 0's, with an unknown number of clients: a "
                         "program of uid 65534 waits", "hearth mps start",
                         user=harness.OTHER_USER)
        # A program that comes there by itself does wait; that is said before.
        env = {**self.env, "CUDA_MPS_PIPE_DIRECTORY": str(pipe), "XDG_RUNTIME_DIR": str(others),
               "HEARTH_STATE_DIR": str(others), "SIMCUDA_MACHINE": str(others)}
        self.addCleanup(self.hearth, "stop", env=env, user=harness.OTHER_USER, cwd="/")
        program = subprocess.Popen(
            [harness.HEARTH, "run", "--", mps.STEPS, "init"], user=harness.OTHER_USER, cwd="/",
            env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        began = time.monotonic()
        self.assertIn(b"a program of uid 65534 waits until they have ended",
                      program.stderr.readline())
        self.assertLess(time.monotonic() - began, SAYS)
        self.assertIsNone(program.poll())
        client.kill()
        self.assertIn(b"cuInit 0", program.communicate(timeout=harness.DEADLINE_S)[0])

    @harness.as_another
    def test_the_daemon_of_another_user(self):
        pipe = self.daemon(harness.OTHER_USER)
        self.assert_both(pipe, "problem", "cuInit of a program of uid 0 is 805",
                         "run it as uid 65534")
        done = self.hearth("run", "--", mps.STEPS, "init",
                           env={**self.env, "CUDA_MPS_PIPE_DIRECTORY": str(pipe),
                                "HEARTH_LOG_LEVEL": "error"})
        self.assertEqual(done.stdout, b"cuInit 805\n")
        self.assertIn("cuInit: 805: no MPS server took this program", done.stderr.decode())

    def test_the_clients_variables(self):
        for name, value, finding in (
                ("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "2G", "mps-memory"),
                ("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=2", "mps-memory"),
                ("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=2G,", "mps-memory"),
                ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "0", "mps-threads"),
                ("CUDA_VISIBLE_DEVICES", "0,1", "mps-devices")):
            with self.subTest(value=value):
                self.assertIn(value, self.doctor(env={name: value})[finding]["text"])
        for name, value in (("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=2G,1=512MB"),
                            ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "50"),
                            ("CUDA_VISIBLE_DEVICES", "GPU-12")):
            with self.subTest(value=value):
                self.assertLessEqual(set(self.doctor(env={name: value})),
                                     {"mps", "mps-program", "no-gpu", "driver", "device-nodes",
                                      "persistence", "platform"})

    def test_each_code_is_explained(self):
        for code in range(805, 811):
            done = self.hearth("doctor", "--code", str(code), "--json")
            found, = json.loads(done.stdout)["findings"]
            self.assertTrue(found["text"].startswith(f"{code}: "))
            self.assertTrue(found["remedy"])
        self.assertEqual(self.hearth("doctor", "--code", "804").returncode, 2)


if __name__ == "__main__":
    harness.main_in_own_run()
