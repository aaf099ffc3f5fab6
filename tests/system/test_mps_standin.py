"""The stand-in for MPS's daemon against what the real one did (mps_transcript.json), and what
becomes of programs in each state that a pipe folder may be in."""
import json
import os
import signal
import socket
import stat
import subprocess
from pathlib import Path

import harness
import mps

SEEN = json.loads(Path(__file__).with_name("mps_transcript.json").read_text())


class StandinTest(mps.MpsTest):
    """A stand-in in folders of the test's own: self.pipe and self.log."""

    def setUp(self):
        super().setUp()
        self.pipe, self.log = self.dir / "pipe", self.dir / "log"
        for folder in (self.pipe, self.log):
            folder.mkdir(mode=0o755)
        self.names = {**self.env, "CUDA_MPS_PIPE_DIRECTORY": str(self.pipe),
                      "CUDA_MPS_LOG_DIRECTORY": str(self.log)}
        self.addCleanup(self.end)

    def control(self, *words, text="", **options):
        return self.run_program(self.dir / "bin/nvidia-cuda-mps-control", *words, env=self.names,
                                stdin=None, input=text.encode(), **options)

    def daemon(self, *words, **options):
        self.assertEqual(self.control(*words, "-d", **options).returncode, 0)
        return self.pid()

    def pid(self):
        return int((self.pipe / "nvidia-cuda-mps-control.pid").read_text())

    def end(self):
        try:
            os.kill(self.pid(), signal.SIGKILL)
        except (OSError, ValueError):
            pass

    def ask(self, command):
        done = self.control(text=f"{command}\n")
        self.assertEqual((done.returncode, done.stderr), (0, b""), command)
        return done.stdout.decode()

    def start_server(self):
        self.ask(f"start_server -uid {os.geteuid()}")
        server = self.ask("get_server_list").strip()
        self.ask(f"get_server_status {server}")  # waits until it is up
        return server

    def compare(self, part, **names):
        def fill(text):
            for name, value in names.items():
                text = text.replace(name, value)
            return text
        for command, answer in SEEN[part]:
            with self.subTest(command=command):
                self.assertEqual(self.ask(fill(command)), fill(answer))


class Likeness(StandinTest):
    def test_files(self):
        self.daemon()
        self.assertEqual({path.name: stat.filemode(path.lstat().st_mode)
                          for path in self.pipe.iterdir()}, SEEN["files"])
        self.assertEqual(sorted(os.listdir(self.log)), SEEN["logs"])
        self.ask("quit")
        self.assertEqual(sorted(os.listdir(self.pipe)), SEEN["files after quit"])

    def test_answers(self):
        self.daemon()
        again = self.control("-d")
        self.assertEqual((again.returncode, again.stdout.decode()),
                         tuple(SEEN["second daemon"].values()))
        self.compare("no server", OWN=str(os.geteuid()))
        server = self.ask("get_server_list").strip()
        self.compare("server", OWN=str(os.geteuid()), SERVER=server)
        client = self.client(pipe=self.pipe)
        self.wait_until(lambda: self.ask(f"get_client_list {server}"), "no context")
        self.assertEqual(self.ask("ps").splitlines()[0].split(), SEEN["ps columns"])
        self.compare("client", SERVER=server, CLIENT=str(client.pid))

    def test_quit_waits_for_clients_and_lets_none_make_its_first_context(self):
        daemon = self.daemon()
        works = self.client(pipe=self.pipe, SIMCUDA_SPEED="0")
        server = self.ask("get_server_list").strip()
        self.wait_until(lambda: self.ask(f"get_client_list {server}"), "no context")
        idle = subprocess.Popen([mps.STEPS, "init", "input", "retain=0"], env=self.names,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.wait_until(lambda: f"{{PID: {idle.pid}," in (self.log / "server.log").read_text(),
                        "it is no client")
        asker = subprocess.Popen(self.dir / "bin/nvidia-cuda-mps-control", env=self.names,
                                 stdin=subprocess.PIPE)
        asker.stdin.write(b"quit\n")
        asker.stdin.close()
        self.wait_until(lambda: "Cmd:quit" in (self.log / "control.log").read_text(), "no quit")
        code = SEEN["codes of clients"]["quit with clients"]["context after quit"]
        self.assertIn(f"retain {code}",
                      idle.communicate(b"1", timeout=harness.DEADLINE_S)[0].decode())
        self.assertIsNone(asker.poll())
        asker.kill()
        asker.wait()
        self.assertIn(b"work 0 ", works.communicate(b"1", timeout=harness.DEADLINE_S)[0])
        self.assertEqual(self.ask("get_server_list"), f"{server}\n")
        self.assertEqual(self.pid(), daemon)

    def test_without_a_daemon(self):
        done = self.control(text="get_server_list\n")
        self.assertEqual((done.returncode, done.stderr.decode()),
                         tuple(SEEN["no daemon"].values()))


class Programs(StandinTest):
    def setUp(self):
        super().setUp()
        (self.dir / "others").mkdir()
        os.chmod(self.dir / "others", 0o777)
        self.others = {"SIMCUDA_MACHINE": str(self.dir / "others/machine")}

    def init(self, pipe, user=None):
        """What cuInit gives, to us or to another user, who has a simulated machine of its own."""
        names = {**self.env, "CUDA_MPS_PIPE_DIRECTORY": str(pipe), **(self.others if user else {})}
        done = self.run_program(mps.STEPS, "init", "retain=0", "work", env=names, user=user)
        return int(done.stdout.split()[1])

    def stale(self):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sock.bind(str(self.pipe / "control"))
        sock.close()
        return self.pipe

    def test_where_no_daemon_is_they_run_without(self):
        (self.dir / "empty").mkdir()
        cases = {"no folder": self.dir / "none", "empty folder": self.dir / "empty",
                 "stale socket": self.stale(), "relative path": "none", "a file": "/etc/passwd",
                 "too long": "/tmp/" + "x" * 200}
        for name, pipe in cases.items():
            with self.subTest(name):
                self.assertEqual(self.init(pipe), SEEN["cuInit of clients"][name])

    @harness.as_another
    def test_out_of_reach(self):
        self.daemon()
        self.pipe.chmod(0o700)
        self.assertEqual(self.init(self.pipe, user=harness.OTHER_USER),
                         SEEN["cuInit of clients"]["out of reach"])
        self.assertEqual(self.ask("get_server_list"), "")

    @harness.as_another
    def test_a_stranger_is_refused_and_costs_the_user_its_server(self):
        for folder in (self.pipe, self.log):
            os.chown(folder, harness.OTHER_USER, harness.OTHER_USER)
        self.daemon(user=harness.OTHER_USER)
        self.ask(f"start_server -uid {harness.OTHER_USER}")
        self.assertTrue(self.ask("get_server_list"))
        self.assertEqual(self.init(self.pipe),
                         SEEN["cuInit of clients"]["stranger at a user's daemon"])
        self.assertEqual(self.ask("get_server_list"), "")

    @harness.as_another
    def test_another_user_waits_until_the_server_is_free(self):
        self.daemon()
        server = self.start_server()
        ours = self.client(pipe=self.pipe)
        self.wait_until(lambda: self.ask(f"get_client_list {server}"), "no context")
        other = subprocess.Popen([mps.STEPS, "init"], env={**self.names, **self.others},
                                 user=harness.OTHER_USER, stdout=subprocess.PIPE)
        self.addCleanup(other.stdout.close)
        self.wait_until(lambda: "will not shutdown" in (self.log / "control.log").read_text(),
                        "nobody asked for the server")
        self.assertIsNone(other.poll())
        ours.kill()
        self.assertEqual(other.communicate(timeout=harness.DEADLINE_S)[0], b"cuInit 0\n")

    @harness.as_another
    def test_a_multiuser_server_takes_all(self):
        self.daemon("-multiuser-server")
        self.client(pipe=self.pipe)
        self.assertEqual(self.init(self.pipe, user=harness.OTHER_USER), 0)
        self.assertEqual(len(self.ask("get_server_list").split()), 1)


if __name__ == "__main__":
    harness.main_in_own_run()
