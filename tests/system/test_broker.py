"""The broker's life: one per socket, started and stopped cleanly, with nobody's descriptors."""
import functools
import os
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

import harness
from broker import BrokerTest, DONE, REFUSED, STOP, cpu_seconds, descriptors, others_of, pages_of


class Life(BrokerTest):
    def test_a_program_joins_and_leaves_nothing_open(self):
        self.start()
        alone = self.probe(env={**self.env, "HEARTH_SOCKET": str(self.dir / "none")})
        rc, _, slot, _, left_open = self.join()
        self.assertEqual((rc, slot, left_open), (0, 1, alone[4]))

    def test_without_a_broker_the_page_is_private(self):
        rc, _, slot, state, _ = self.probe("record", "3")
        self.assertEqual((rc, slot, state), (-2, 0, 0))

    def test_of_two_started_at_once_one_serves_and_the_other_is_content(self):
        for _ in range(10):
            both = [self.start("--retain=none", wait=False) for _ in range(2)]
            self.until(lambda: any(broker.poll() is not None for broker in both),
                       "neither of two brokers gave way")
            self.until(self.serves, "nobody serves")
            ended = [broker for broker in both if broker.poll() is not None]
            self.assertEqual([broker.returncode for broker in ended], [0])
            self.assertEqual(self.ask(STOP)[0], DONE)
            for broker in both:
                self.assertEqual(broker.wait(10), 0)

    def test_stop_removes_the_socket_and_ends_the_keeper(self):
        broker = self.start()
        self.until_keeper("warm")
        keeper = self.status()["keeper"]["pid"]
        self.assertEqual(self.ask(STOP)[0], DONE)
        self.assertEqual(broker.wait(10), 0)
        self.assertFalse(self.socket.exists())
        self.assertTrue(harness.gone(keeper))

    def test_sigterm_is_a_clean_end(self):
        broker = self.start()
        broker.terminate()
        self.assertEqual(broker.wait(10), 0)
        self.assertFalse(self.socket.exists())

    def test_a_killed_broker_takes_its_keeper_along_and_is_replaced(self):
        broker = self.start()
        self.until_keeper("warm")
        keeper = self.status()["keeper"]["pid"]
        broker.kill()
        broker.wait()
        self.until(lambda: harness.gone(keeper), "the keeper stays")
        self.assertTrue(self.socket.exists())
        self.start()
        self.assertEqual(self.join()[0], 0)

    def test_a_new_one_right_after_a_stop_serves(self):
        for _ in range(5):
            first = self.start()
            self.ask(STOP)
            second = self.start(wait=False)
            first.wait(10)
            self.until(self.serves, "the second broker does not serve")
            self.assertIsNone(second.poll())
            second.terminate()
            second.wait(10)

    def test_it_leaves_when_idle_but_not_before(self):
        broker = self.start("--idle=1", "--retain=none")
        client = self.start_client()
        started = time.monotonic()
        with self.assertRaises(subprocess.TimeoutExpired):
            broker.wait(1.5)
        self.assertIsNone(self.status()["leaves_in_s"])
        client.stdin.close()
        client.wait()
        self.assertEqual(broker.wait(10), 0)
        self.assertGreater(time.monotonic() - started, 2.4)
        self.assertFalse(self.socket.exists())

    def test_it_leaves_with_its_socket(self):
        broker = self.start("--retain=none")
        self.socket.unlink()
        self.assertEqual(broker.wait(10), 0)

    def test_it_replaces_nothing_but_a_socket(self):
        self.socket.parent.mkdir(mode=0o700)
        self.socket.write_text("precious")
        done = self.run_program(harness.HEARTHD, "--foreground")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"File exists", done.stderr)
        self.assertEqual(self.socket.read_text(), "precious")

    def test_it_refuses_a_symlink_in_its_folders_place(self):
        (self.dir / "elsewhere").mkdir(mode=0o700)
        self.socket.parent.symlink_to(self.dir / "elsewhere")
        done = self.run_program(harness.HEARTHD, "--foreground")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(os.listdir(self.dir / "elsewhere"), [])

    def test_wrong_arguments_are_named(self):
        for words, named in ((["--idle=soon"], b"soon"), (["--retain=all"], b"all"),
                             (["--job=x"], b"'x'"), (["more"], b"more"), (["--odd"], b"odd")):
            done = self.run_program(harness.HEARTHD, *words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(named, done.stderr)
        self.assertIn(b"--retain", self.run_program(harness.HEARTHD, "--help").stdout)
        self.assertRegex(self.run_program(harness.HEARTHD, "--version").stdout, rb"^hearthd \d")


class Detached(BrokerTest):
    def stop(self):
        self.assertEqual(self.ask(STOP)[0], DONE)
        self.until(lambda: not self.socket.exists(), "the broker stays")

    def test_it_keeps_nobodys_descriptors(self):
        # Captured output ends only when nobody holds it any more; so does the extra pipe.
        extra, inherited = os.pipe()
        ours = os.readlink(f"/proc/self/fd/{inherited}")
        started = time.monotonic()
        done = self.run_program(harness.HEARTHD, "--idle=30", pass_fds=[inherited], timeout=20)
        os.close(inherited)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))
        self.assertEqual(os.read(extra, 1), b"")
        os.close(extra)
        self.assertLess(time.monotonic() - started, 20)
        self.until_keeper("warm")
        status = self.status()
        for pid in (status["pid"], status["keeper"]["pid"]):
            held = descriptors(pid)
            self.assertEqual({held[fd] for fd in (0, 1, 2)}, {"/dev/null"})
            self.assertNotIn(ours, held.values())
            self.assertEqual(os.readlink(f"/proc/{pid}/cwd"), "/")
        self.assertEqual(os.getsid(status["pid"]), status["pid"])
        self.stop()

    def test_the_limits_of_who_started_it_are_not_its_own(self):
        def limit(soft, hard):
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            resource.setrlimit(resource.RLIMIT_CPU, (1, resource.RLIM_INFINITY))
        for hard in (resource.RLIM_INFINITY, 0):
            with self.subTest(hard=hard):
                broker = subprocess.Popen(
                    [harness.HEARTHD, "--foreground", "--retain=none"], env=self.env,
                    stderr=subprocess.PIPE, preexec_fn=functools.partial(limit, 0, hard))
                self.brokers.append(broker)
                if hard:
                    self.until(self.serves, "it never served")
                    limits = resource.prlimit(broker.pid, resource.RLIMIT_CPU)
                    self.assertEqual(limits[0], limits[1])
                    broker.kill()
                said = broker.communicate(timeout=10)[1]
                self.assertEqual(broker.returncode, -signal.SIGKILL if hard else 1)
                self.assertEqual(bool(said), not hard, said)

    def test_it_works_with_stdio_closed(self):
        done = subprocess.run(["sh", "-c", f"exec {harness.HEARTHD} 0<&- 1>&- 2>&-"],
                              env=self.env, timeout=20, check=False)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.join()[0], 0)
        self.stop()

    def test_its_failure_is_said_by_the_command(self):
        self.socket.parent.mkdir(mode=0o755)
        done = self.run_program(harness.HEARTHD)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, f"hearthd: {self.socket.parent} is not a folder that is "
                                      "yours alone\n".encode())

    def test_the_environment_of_broker_and_keeper_is_clean(self):
        env = {**self.env, "CUDA_VISIBLE_DEVICES": "", "HEARTH_TASK": "x",
               "HEARTH_LOG": "/nowhere", "LD_PRELOAD": ""}
        self.assertEqual(self.run_program(harness.HEARTHD, env=env).returncode, 0)
        self.until_keeper("warm")
        with open(f"/proc/{self.status()['keeper']['pid']}/environ", "rb") as file:
            names = {entry.split(b"=")[0] for entry in file.read().split(b"\0") if entry}
        self.assertIn(b"HEARTH_DRIVER", names)
        for name in (b"CUDA_VISIBLE_DEVICES", b"HEARTH_TASK", b"HEARTH_LOG", b"LD_PRELOAD"):
            self.assertNotIn(name, names)
        self.stop()


class Job(BrokerTest):
    def test_it_leaves_with_its_batch_job(self):
        # The kernel calls a process after the file it runs: this is the job's keeper.
        keeper = self.dir / "slurmstepd"
        keeper.write_text(f"#!/bin/sh\n{harness.HEARTHD} --retain=none\nread end\n")
        keeper.chmod(0o755)
        job = subprocess.Popen([keeper], env={**self.env, "SLURM_JOB_ID": "7"},
                               stdin=subprocess.PIPE)
        self.until(self.serves, "no broker")
        self.assertEqual(self.status()["job_pid"], job.pid)
        job.stdin.close()
        job.wait()
        self.until(lambda: not self.socket.exists(), "the broker outlives its job")

    def test_a_job_that_is_over_starts_none(self):
        gone = subprocess.Popen(["true"])
        gone.wait()
        done = self.run_program(harness.HEARTHD, f"--job={gone.pid}")
        self.assertEqual(done.returncode, 1)
        self.assertIn(str(gone.pid).encode(), done.stderr)


class Slots(BrokerTest):
    def test_a_killed_clients_slot_is_free_at_once(self):
        self.start("--retain=none")
        clients = [self.start_client() for _ in range(8)]
        self.assertEqual(sorted(client.joined[2] for client in clients), list(range(1, 9)))
        worst = 0
        for client in clients:
            before = self.status()["client_count"]
            client.send_signal(signal.SIGKILL)
            client.wait()
            killed = time.monotonic()
            self.until(lambda: self.status()["client_count"] < before, "the slot stays taken")
            worst = max(worst, time.monotonic() - killed)
        self.assertLess(worst, 0.1)
        self.assertEqual(self.join()[2], 1)

    def test_a_stopped_client_keeps_its_slot(self):
        self.start("--retain=none")
        client = self.start_client()
        client.send_signal(signal.SIGSTOP)
        time.sleep(0.3)
        self.assertEqual(self.status()["client_count"], 1)
        client.send_signal(signal.SIGCONT)

    def test_a_program_that_joins_again_has_one_slot(self):
        self.start("--retain=none")
        client = self.start_client("again", "again")
        client.stdout.readline()
        client.stdout.readline()
        self.assertEqual(self.status()["client_count"], 1)

    def test_a_program_of_a_full_broker_goes_alone(self):
        # As many descriptors as it needs for itself and a few clients. The pages that it has made
        # ahead stand in the way first.
        broker = self.start("--retain=none")
        self.until(lambda: pages_of(broker.pid) > 100, "no pages are made ahead")
        own = others_of(broker.pid)
        subprocess.run(["prlimit", f"--pid={broker.pid}", f"--nofile={own + 4}:{own + 4}"],
                       check=True)
        clients = [self.start_client() for _ in range(8)]
        joined = [client for client in clients if client.joined[0] == 0]
        self.assertTrue(0 < len(joined) < 8)
        self.assertLess(pages_of(broker.pid), 8)
        # Connections that it cannot take must not keep it busy either.
        waiting = [self.connect() for _ in range(8)]
        before = cpu_seconds(broker.pid)
        time.sleep(0.5)
        self.assertLess(cpu_seconds(broker.pid) - before, 0.2)
        for end in waiting:
            end.close()
        for client in clients:
            client.stdin.close()
            client.wait()
        self.until(lambda: self.probe()[0] == 0, "it does not recover")


@harness.as_another
class Users(BrokerTest):
    OTHER = harness.OTHER_USER

    def test_a_program_refuses_another_users_broker(self):
        self.dir.chmod(0o755)
        place = self.dir / "other"
        place.mkdir()
        os.chown(place, self.OTHER, self.OTHER)
        self.socket = place / "socket"
        env = {**self.env, "HEARTH_SOCKET": str(self.socket),
               "HEARTH_STATE_DIR": str(place / "state")}
        self.start("--retain=none", env=env, user=self.OTHER)
        self.assertEqual(self.probe(env=env)[0], -1)
        self.join(env=env, user=self.OTHER)

    def test_the_machines_broker_serves_every_user_and_keeps_their_runs_apart(self):
        self.dir.chmod(0o755)
        self.socket = self.dir / "system/socket"
        state = self.dir / "system-state"
        env = {**self.env, "HEARTH_SOCKET": str(self.socket), "HEARTH_STATE_DIR": str(state)}
        self.start("--system", env=env)
        self.assertEqual(self.socket.stat().st_mode & 0o777, 0o666)
        self.join("record", "1", env=env)
        self.join("record", "2", env=env, user=self.OTHER)
        for uid, records in ((0, 1), (self.OTHER, 2)):
            self.history = state / str(uid) / "runs.jsonl"
            self.assertEqual(len(self.until_runs(1)[0]["records"]), records)
            self.assertEqual((self.history.stat().st_uid, self.history.stat().st_mode & 0o777),
                             (uid, 0o600))
        # Others may not command it, and see their own clients only.
        self.start_client(env=env)
        script = ("import sys, os; sys.path.insert(0, sys.argv[1])\n"
                  "import broker, pathlib; os.setuid(65534)\n"
                  "test = broker.BrokerTest()\n"
                  "test.socket = pathlib.Path(sys.argv[2])\n"
                  "status = test.status()\n"
                  "print(test.ask(broker.STOP)[:2], status['client_count'], status['clients'])\n")
        done = self.run_program("python3", "-c", script, os.path.dirname(__file__), self.socket)
        self.assertEqual(done.stdout.decode().strip(), f"({REFUSED}, 1) 1 []", done.stderr)

    def test_without_a_runtime_folder_it_is_in_tmp_and_nowhere_else(self):
        uid = 100000 + os.getpid()  # nobody's, and no other test's
        self.dir.chmod(0o755)
        os.chown(self.dir / "state", uid, uid)
        folder = Path(f"/tmp/hearth-{uid}")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.env.pop("XDG_RUNTIME_DIR")
        self.socket = folder / "socket"
        broker = self.start("--retain=none", user=uid)
        self.assertEqual(folder.stat().st_mode & 0o777, 0o700)
        self.join(user=uid)
        broker.terminate()
        broker.wait(10)
        # Somebody was there first: neither broker nor program goes in.
        shutil.rmtree(folder)
        elsewhere = self.dir / "elsewhere"
        elsewhere.mkdir(mode=0o777)
        for plant in (lambda: folder.symlink_to(elsewhere), folder.mkdir):
            plant()
            done = self.run_program(harness.HEARTHD, "--foreground", user=uid)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(self.probe(user=uid)[0], -2)
            self.assertEqual(os.listdir(elsewhere), [])
            if folder.is_symlink():
                folder.unlink()

    def test_a_users_planted_symlink_is_not_followed_by_root(self):
        self.dir.chmod(0o755)
        self.socket = self.dir / "system/socket"
        state = self.dir / "system-state"
        target = self.dir / "target"
        env = {**self.env, "HEARTH_SOCKET": str(self.socket), "HEARTH_STATE_DIR": str(state)}
        self.start("--system", "--retain=none", env=env)
        own = state / str(self.OTHER)
        own.mkdir()
        os.chown(own, self.OTHER, self.OTHER)
        (own / "runs.jsonl").symlink_to(target)
        self.probe("record", "1", env=env, user=self.OTHER)
        self.assertEqual(self.ask(STOP)[0], DONE)
        self.until(lambda: self.brokers[0].poll() is not None, "it does not end")
        self.assertFalse(target.exists())


if __name__ == "__main__":
    harness.main()
