"""`hearth mps`: a daemon kept, shown, limited and ended, with real processes and kills. The daemon
is the stand-in (mps_standin.py; test_mps_standin.py holds it to what the real one did)."""
import json
import os
import signal
import stat
import subprocess

import harness
from mps import MpsTest, is_there

CLIENT_GONE = harness.DEADLINE_S


class Kept(MpsTest):
    def test_five_rounds_leave_nothing(self):
        for _ in range(5):
            roll = self.start()
            pids = [roll["supervisor"], roll["daemon"], roll["servers"][0]["pid"]]
            done = self.mps("stop")
            self.assertEqual((done.returncode, done.stderr), (0, b""), done)
            self.assertEqual([pid for pid in pids if is_there(pid)], [])
            self.assertFalse(self.place.exists())
        self.assertEqual(self.mps("status").returncode, 1)

    def test_the_server_is_up_before_the_first_client(self):
        server = self.start()["servers"][0]
        self.assertEqual((server["state"], server["uid"], server["clients"]),
                         ("ACTIVE", os.geteuid(), []))
        self.attached(1)
        self.assertEqual(self.server()["pid"], server["pid"])

    def test_folders_are_the_users_alone(self):
        old = os.umask(0)
        self.addCleanup(os.umask, old)
        self.start()
        for folder in (self.place, self.place / "pipe", self.place / "log"):
            info = folder.stat()
            self.assertEqual((info.st_uid, stat.S_IMODE(info.st_mode)), (os.geteuid(), 0o700))

    def test_a_folder_of_somebody_else_is_refused(self):
        if os.geteuid():
            self.skipTest("needs root")
        self.place.mkdir(parents=True, mode=0o700)
        self.place.parent.chmod(0o700)
        os.chown(self.place, harness.OTHER_USER, harness.OTHER_USER)
        done = self.mps("start")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{self.place}: Operation not permitted", done.stderr.decode())

    def test_a_second_start_is_refused(self):
        self.start()
        done = self.mps("start")
        self.assertEqual((done.returncode, done.stderr),
                         (1, b"hearth: mps: a daemon runs already: `hearth mps status`\n"))

    def test_starts_at_once_make_one_daemon(self):
        starts = [subprocess.Popen([harness.HEARTH, "mps", "start"], env=self.env,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                  for _ in range(4)]
        codes = [start.wait(harness.DEADLINE_S) for start in starts]
        self.assertEqual(sorted(codes), [0, 1, 1, 1])
        self.assertEqual(len(self.roll()["servers"]), 1)

    def test_without_the_program_it_says_where_it_looked(self):
        (self.dir / "bin/nvidia-cuda-mps-control").unlink()
        done = self.mps("start")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"nvidia-cuda-mps-control is neither in PATH", done.stderr)

    def test_a_daemon_that_does_not_start_is_told_with_its_words(self):
        (self.dir / "bin/nvidia-cuda-mps-control").write_text("#!/bin/sh\necho no luck; exit 1\n")
        done = self.mps("start")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"nvidia-cuda-mps-control: no luck", done.stderr)
        self.assertEqual(self.mps("status").returncode, 1)

    def test_a_daemon_left_by_a_killed_supervisor_is_taken_over(self):
        roll = self.start()
        client, = self.attached(1)
        os.kill(roll["supervisor"], signal.SIGKILL)
        self.wait_until(lambda: not self.roll()["running"], "the supervisor lives")
        self.assertTrue(is_there(roll["daemon"]))
        again = self.start()
        self.assertEqual(again["daemon"], roll["daemon"])
        self.assertEqual(self.clients(), [client.pid])

    def test_a_killed_server_comes_back_and_clients_get_806(self):
        roll = self.start()
        client = self.client("work", "end=_exit")
        self.wait_until(self.clients, "no client")
        os.kill(roll["servers"][0]["pid"], signal.SIGKILL)
        self.wait_until(lambda: self.roll()["restarts"] == 1 and self.server()
                        and self.roll()["phase"] == "active", "no server")
        self.assertIn(b" 806", client.communicate(b"1", timeout=CLIENT_GONE)[0])
        again = self.roll()
        self.assertEqual((again["daemon"], again["restarts"]), (roll["daemon"], 1))
        self.assertIn(f"the server (pid {roll['servers'][0]['pid']}) ended", again["why"])
        self.attached(1)

    def test_a_killed_daemon_comes_back_with_its_limits(self):
        roll = self.start("--threads", "30%")
        os.kill(roll["daemon"], signal.SIGKILL)
        self.wait_until(lambda: self.roll()["daemon"] not in (0, roll["daemon"]) and
                        self.roll()["phase"] == "active", "no daemon")
        again = self.roll()
        self.assertEqual((again["restarts"], again["limits"]), (1, {"threads": 30}))
        self.assertEqual(self.ask("get_default_active_thread_percentage"), "30.0\n")

    def test_the_pause_before_a_try_grows(self):
        roll = self.start()
        control = self.dir / "bin/nvidia-cuda-mps-control"
        kept = control.read_text()
        control.write_text("#!/bin/sh\nexit 1\n")
        control.chmod(0o755)
        os.kill(roll["daemon"], signal.SIGKILL)
        state = self.place / "state"
        self.wait_until(lambda: json.loads(state.read_text())["restarts"] == 2, "one try")
        found = json.loads(state.read_text())
        self.assertEqual(found["phase"], "waiting")
        self.assertIn(found["next_s"], (1, 2))  # of 2
        control.write_text(kept)
        self.wait_until(lambda: json.loads(state.read_text())["phase"] == "active", "no daemon")

    def ask(self, command):
        return self.run_program(
            self.dir / "bin/nvidia-cuda-mps-control", stdin=None, input=f"{command}\n".encode(),
            env={**self.env, "CUDA_MPS_PIPE_DIRECTORY": str(self.place / "pipe")}).stdout.decode()


class Shown(MpsTest):
    def test_clients_are_joined_with_tasks(self):
        self.start()
        program = subprocess.Popen(
            [harness.HEARTH, "run", "--task", "sweep 7", "--", harness.PROGRAMS / "driver_steps",
             "init", "retain=0", "work", "sleep=60000"],
            env={**self.env, "CUDA_MPS_PIPE_DIRECTORY": str(self.place / "pipe")},
            stdout=subprocess.DEVNULL)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        self.wait_until(self.clients, "no client")
        client, = self.server()["clients"]
        self.assertEqual((client["pid"], client["program"], client["task"]),
                         (program.pid, "driver_steps", "sweep 7"))
        text = self.mps("status").stdout.decode()
        self.assertRegex(text, rf"(?m)^ *{program.pid} .* driver_steps +sweep 7 ")
        self.assertEqual(json.loads(self.mps("clients", "--json").stdout)[0]["clients"], [client])

    def test_logs_show_the_last_lines(self):
        self.start()
        text = self.mps("logs", "--lines", "3").stdout.decode().split("\n")
        self.assertEqual(text[0], f"{self.place}/log/control.log:")
        self.assertEqual(text[4], f"{self.place}/log/server.log:")

    def test_env_is_what_a_container_needs(self):
        self.start()
        pipe = f"{self.place}/pipe"
        docker = self.mps("env", "--docker").stdout.decode().splitlines()
        self.assertEqual(docker, [
            "--gpus all", "--ipc host", f"--user {os.geteuid()}:{os.getegid()}",
            f"--volume {pipe}:{pipe}", f"--env CUDA_MPS_PIPE_DIRECTORY={pipe}"])
        compose = self.mps("env", "--compose").stdout.decode()
        for line in ("    ipc: host\n", f"      - {pipe}:{pipe}\n",
                     f"      CUDA_MPS_PIPE_DIRECTORY: {pipe}\n"):
            self.assertIn(line, compose)
        self.assertEqual(self.mps("env", "--shell").stdout.decode(),
                         f"export CUDA_MPS_PIPE_DIRECTORY='{pipe}'\n")
        for words in ([], ["--docker", "--compose"]):
            self.assertEqual(self.mps("env", *words).returncode, 2)

    def test_a_daemon_that_hangs_is_told(self):
        roll = self.start()
        os.kill(roll["daemon"], signal.SIGSTOP)
        self.addCleanup(os.kill, roll["daemon"], signal.SIGCONT)
        roll = self.roll()
        self.assertIsNone(roll["servers"])
        self.assertIn("does not answer", roll["why"])

    def test_wrong_command_lines_are_refused(self):
        for words in ([], ["other"], ["start", "stop"], ["start", "--mem", "2"],
                      ["start", "--mem", "-1G"], ["start", "--threads", "0"],
                      ["start", "--threads", "101%"], ["start", "--mem", "1G", "--device", "x"]):
            with self.subTest(words=words):
                self.assertEqual(self.mps(*words).returncode, 2)
        self.assertFalse(self.place.exists())
        for words in (["stop"], ["clients"], ["limit"], ["env", "--docker"]):
            with self.subTest(words=words):
                done = self.mps(*words)
                self.assertEqual(done.returncode, 1)
                self.assertIn(b"no daemon of Hearth's runs", done.stderr)


class Limits(MpsTest):
    def limits(self, *words):
        done = self.mps("limit", "--json", *words)
        self.assertEqual((done.returncode, done.stderr), (0, b""), done)
        return json.loads(done.stdout)

    def ask(self, command):
        return Kept.ask(self, command)

    def test_limits_reach_the_daemon_and_its_server(self):
        server = self.start("--mem", "2GiB")["servers"][0]["pid"]
        self.assertEqual(self.ask("get_default_device_pinned_mem_limit 0"), "2G\n")
        self.assertEqual(self.limits("--mem", "1.5GiB", "--threads", "40%"),
                         {"memory": {"0": "1536M"}, "threads": 40})
        self.assertEqual(self.ask(f"get_device_pinned_mem_limit {server} 0"), "1536M\n")
        self.assertEqual(self.ask(f"get_active_thread_percentage {server}"), "40.0\n")
        self.assertEqual(self.limits("--mem", "512MB", "--device", "1")["memory"],
                         {"0": "1536M", "1": "512M"})

    def test_none_lifts_a_limit(self):
        self.start("--mem", "2GiB")
        self.assertEqual(self.limits("--mem", "none")["memory"], {"0": "0"})
        self.assertEqual(self.ask("get_default_device_pinned_mem_limit 0"), "")

    def test_a_new_start_has_none_of_the_last_ones(self):
        self.start("--mem", "2GiB")
        self.mps("stop")
        self.assertEqual(self.start()["limits"], {})


class Ended(MpsTest):
    def test_stop_lists_clients_and_refuses(self):
        roll = self.start()
        client, = self.attached(1)
        done = self.mps("stop")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{client.pid}", done.stderr.decode())
        self.assertIn(b"`hearth mps stop --force`", done.stderr)
        self.assertTrue(is_there(roll["daemon"]))
        self.assertEqual(self.clients(), [client.pid])

    def test_force_terminates_clients_and_kills_those_that_stay(self):
        self.start()
        stays = self.client()
        self.wait_until(self.clients, "no client")
        done = self.mps("stop", "--force")
        self.assertEqual((done.returncode, done.stderr), (0, b""), done)
        self.assertIn(b"was terminated, and killed since it stayed", done.stdout)
        self.assertEqual(stays.wait(CLIENT_GONE), -signal.SIGKILL)
        self.assertFalse(self.place.exists())

    def test_ending_one_lets_its_siblings_go_on(self):
        self.start()
        ended = self.client("work", "end=_exit")
        sibling = self.client("work", "end=_exit")
        self.wait_until(lambda: len(self.clients()) == 2, "no sibling")
        ending = subprocess.Popen([harness.HEARTH, "mps", "clients", "--end", str(ended.pid)],
                                  env=self.env, stdout=subprocess.PIPE)
        self.wait_until(lambda: self.clients() == [sibling.pid], "it is still listed")
        self.assertIn(b" 810", ended.communicate(b"1", timeout=CLIENT_GONE)[0])
        self.assertEqual(ending.communicate()[0].decode(),
                         f"client {ended.pid} was terminated\n")
        text = sibling.communicate(b"1", timeout=CLIENT_GONE)[0]
        self.assertEqual(text.count(b"work 0 0 0 0 0 0 0, 0 wrong"), 2, text)

    def test_what_is_no_client_is_not_touched(self):
        self.start()
        done = self.mps("clients", "--end", str(os.getpid()))
        self.assertEqual((done.returncode, done.stderr.decode()),
                         (1, f"hearth: mps: {os.getpid()} is no client of this daemon\n"))


if __name__ == "__main__":
    harness.main_in_own_run()
