"""The proof that speculation can be undone on a driver: hearthd's, once and out of everybody's way,
and `hearth doctor --prove`."""
import json
import os
import signal
import time
import unittest
from pathlib import Path

import container
import harness
from broker import DONE, RELEASE, BrokerTest

BUILD_ID = "[0-9a-f]{16,}"
SCENARIOS = ["pristine", "fork", "squash", "changed"]
ORDERLY_S = 10


def processes(name):
    """Pids of living processes whose name that is (PR_SET_NAME), of this test's user."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if ((folder / "comm").read_text().strip() == name
                    and (folder / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"):
                found.add(int(folder.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


class ProofTest(BrokerTest):
    def setUp(self):
        super().setUp()
        self.verdicts = self.dir / "state/hearth/undo"
        self.fast = {**self.env, "SIMCUDA_SPEED": "0"}

    def provers(self):
        """Proving processes and their children that belong to this test's machine."""
        found = set()
        for pid in processes("hearthd-prove"):
            try:
                if str(self.dir).encode() in Path(f"/proc/{pid}/environ").read_bytes():
                    found.add(pid)
            except OSError:
                continue
        return found

    def stored(self):
        """The names of the files in the folder of verdicts."""
        return sorted(os.listdir(self.verdicts)) if self.verdicts.exists() else []

    def verdict(self):
        names = self.stored()
        self.assertEqual(len(names), 1, names)
        self.assertRegex(names[0], f"^{BUILD_ID}$")
        return (self.verdicts / names[0]).read_text().splitlines()

    def until_proof(self, *states):
        return self.until(lambda: self.status()["proof"] in states, f"the proof is not {states}")

    def learned_run(self, env):
        """How the context of a program in its third run was served."""
        log = self.dir / "log"
        for _ in range(3):
            log.unlink(missing_ok=True)
            done = self.run_program(harness.BUILD / "bench/bench_start", "late",
                                    env={**env, "LD_PRELOAD": harness.PRELOADS,
                                         "HEARTH_LOG": str(log)})
            self.assertEqual(done.returncode, 0, done.stderr)
        return {record["call"]: record["how"]
                for record in map(json.loads, log.read_text().splitlines())
                if record["event"] == "call"}


class ByTheBroker(ProofTest):
    def test_it_proves_when_nobody_has_come_for_so_long(self):
        self.start("--prove-after=1", env=self.fast)
        self.until_keeper("warm")
        self.assertEqual(self.status()["proof"], "not proven")
        self.until_proof("passed")
        lines = self.verdict()
        self.assertEqual(lines[0], "hearth undo 1 passed")
        self.assertEqual([line.split(":")[0] for line in lines[1:]], SCENARIOS)
        self.assertEqual(self.provers(), set())

    def test_what_it_proved_lets_programs_speculate(self):
        env = {**self.env, "SIMCUDA_SPEED": "0.2"}
        self.start("--prove-after=1", env=env)
        self.until_keeper("warm")
        self.assertNotIn("speculated", self.learned_run(env).values())
        self.until_proof("passed")
        self.assertIn("speculated", self.learned_run(env).values())

    def test_not_while_a_client_is_there_nor_right_after_it(self):
        self.start("--prove-after=1", env=self.fast)
        client = self.start_client()
        self.until_keeper("warm")
        time.sleep(1.5)
        self.assertEqual((self.status()["proof"], self.stored()), ("not proven", []))
        client.stdin.close()
        client.wait()
        gone = time.monotonic()
        self.until_proof("proving", "passed")
        self.assertGreater(time.monotonic() - gone, 0.9)
        self.until_proof("passed")

    def test_never_where_that_is_asked_for(self):
        self.start("--prove-after=0", env=self.fast)
        self.until_keeper("warm")
        time.sleep(1)
        self.assertEqual((self.status()["proof"], self.stored()), ("not proven", []))

    def test_never_on_a_gpu_that_one_process_at_a_time_may_use(self):
        self.start("--prove-after=1", env={**self.fast, "SIMCUDA_COMPUTE_MODE": "0:exclusive"})
        self.until_keeper("warm")
        time.sleep(1.5)
        self.assertEqual((self.status()["proof"], self.stored()), ("not proven", []))

    def cpu_ticks(self, pid):
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    def test_a_proof_that_is_overdue_costs_no_time(self):
        broker = self.start("--prove-after=1", env={**self.fast, "SIMCUDA_COMPUTE_MODE":
                                                    "0:exclusive"})
        self.until_keeper("warm")
        time.sleep(1.2)
        for release in (False, True):
            if release:
                self.assertEqual(self.ask(RELEASE, code=1)[0], DONE)
            before = self.cpu_ticks(broker.pid)
            time.sleep(0.5)
            self.assertLess(self.cpu_ticks(broker.pid) - before, 10)  # of 50

    def test_a_driver_that_fails_is_disproved_once_and_nothing_is_done_ahead(self):
        env = {**self.fast, "SIMCUDA_FAIL": "cuMemAlloc_v2:700"}
        self.start("--prove-after=1", env=env)
        self.until_proof("failed")
        lines = self.verdict()
        self.assertEqual(lines[0], "hearth undo 1 failed")
        self.assertTrue(any('failed with 700 at "cuMemAlloc"' in line for line in lines), lines)
        before = (self.verdicts / self.stored()[0]).stat().st_mtime_ns
        self.assertNotIn("speculated", self.learned_run(self.env).values())
        time.sleep(1.5)
        self.assertEqual((self.verdicts / self.stored()[0]).stat().st_mtime_ns, before)
        self.assertEqual(self.status()["proof"], "failed")

    def test_a_stored_verdict_is_not_proved_again(self):
        self.start("--prove-after=1", env=self.fast)
        self.until_proof("passed")
        path = self.verdicts / self.stored()[0]
        path.write_text("hearth undo 1 failed\npristine: by hand\n")
        self.ask_to_stop()
        self.start("--prove-after=1", env=self.fast)
        self.until_proof("failed")
        time.sleep(1.5)
        self.assertEqual(path.read_text(), "hearth undo 1 failed\npristine: by hand\n")

    def ask_to_stop(self):
        self.run_program(harness.HEARTH, "stop")
        self.brokers[-1].wait(ORDERLY_S)

    def start_slow_proof(self):
        """A broker in the middle of a proof that takes a while."""
        broker = self.start("--prove-after=1", env={**self.env, "SIMCUDA_SPEED": "5"})
        self.until(lambda: len(self.provers()) > 1, "no proof has begun", 20)
        return broker

    def test_a_killed_broker_takes_its_proof_along(self):
        broker = self.start_slow_proof()
        broker.send_signal(signal.SIGKILL)
        broker.wait()
        self.until(lambda: not self.provers(), "the proof outlives its broker", 2)
        self.assertEqual(self.stored(), [])

    def test_a_stopped_broker_ends_its_proof_before_itself(self):
        broker = self.start_slow_proof()
        broker.send_signal(signal.SIGTERM)
        self.assertEqual(broker.wait(ORDERLY_S), 0)
        self.assertEqual((self.provers(), self.stored()), (set(), []))

    def test_a_release_before_it_keeps_it_from_starting_and_costs_no_time(self):
        broker = self.start("--prove-after=1", env=self.fast)
        self.until_keeper("warm")
        self.assertEqual(self.ask(RELEASE, code=1)[0], DONE)
        time.sleep(1.2)
        before = self.cpu_ticks(broker.pid)
        time.sleep(0.5)
        self.assertLess(self.cpu_ticks(broker.pid) - before, 10)  # of 50
        self.assertEqual((self.status()["proof"], self.stored()), ("not proven", []))

    def test_a_release_ends_it_too_and_it_begins_anew_afterwards(self):
        self.start_slow_proof()
        self.assertEqual(self.ask(RELEASE, code=1)[0], DONE)
        self.assertEqual((self.provers(), self.status()["proof"]), (set(), "not proven"))
        self.run_program(harness.HEARTH, "release", "--resume")
        self.until(lambda: self.status()["proof"] == "proving", "it does not begin anew", 20)

    def test_a_prover_that_is_killed_leaves_no_process_and_is_not_tried_again(self):
        broker = self.start_slow_proof()
        for pid in self.provers():
            if Path(f"/proc/{pid}/stat").read_text().split()[3] == str(broker.pid):
                os.kill(pid, signal.SIGKILL)
        self.until_proof("not proven")
        time.sleep(1.5)
        self.assertEqual((self.provers(), self.status()["proof"]), (set(), "not proven"))
        children = Path(f"/proc/{broker.pid}/task/{broker.pid}/children").read_text().split()
        self.assertEqual(children, [str(self.status()["keeper"]["pid"])])

    @unittest.skipIf(os.geteuid(), "only root may start the machine's broker")
    def test_the_machines_verdict_is_for_every_user_to_read(self):
        shared = self.dir / "shared"
        self.dir.chmod(0o755)
        self.start("--system", "--prove-after=1",
                   env={**self.fast, "HEARTH_SOCKET": str(self.dir / "socket"),
                        "HEARTH_STATE_DIR": str(shared)}, wait=False)
        self.socket = self.dir / "socket"
        self.until(self.serves, "it never served")
        self.until_proof("passed")
        folder = shared / "undo"
        [path] = folder.iterdir()
        self.assertEqual((folder.stat().st_mode & 0o777, path.stat().st_mode & 0o777),
                         (0o755, 0o644))


class OfTheMachine(ProofTest):
    """/var/lib/hearth, in a container whose user isn't root."""

    @container.needs_container
    @unittest.skipIf(os.geteuid(), "only root can make a file that is root's")
    def test_its_verdict_counts_for_every_user(self):
        self.run_program(harness.HEARTH, "doctor", "--prove", env=self.fast)
        path = self.verdicts / self.stored()[0]
        path.chmod(0o644)
        made = container.Container(self.dir, container.install(), access="rw")
        made.add(harness.SIM, "/opt/driver/libcuda.so.1")
        made.add(path, f"/var/lib/hearth/undo/{path.name}")
        done = made.run(["hearth", "doctor", "--json"], cwd="/",
                        env={"HEARTH_DRIVER": "/opt/driver/libcuda.so.1", "HOME": "/tmp"})
        [found] = [one for one in json.loads(done.stdout)["findings"]
                   if one["id"] == "speculation"]
        self.assertEqual(found["severity"], "ok")


class ByHand(ProofTest):
    def doctor(self, *words, **settings):
        done = self.run_program(harness.HEARTH, "doctor", *words, env={**self.fast, **settings})
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def finding(self):
        report = json.loads(self.doctor("--json")[1])
        [found] = [one for one in report["findings"] if one["id"] == "speculation"]
        return found["severity"], found["text"]

    def test_it_prints_its_lines_and_stores_the_verdict(self):
        self.assertEqual(self.finding()[0], "note")
        status, printed, _ = self.doctor("--prove")
        self.assertEqual(status, 0)
        self.assertEqual([line.split(":")[0] for line in printed.splitlines()[:4]], SCENARIOS)
        self.assertEqual(self.verdict()[1:], printed.splitlines()[:4])
        self.assertEqual(self.finding()[0], "ok")

    def test_a_failed_one_says_at_which_step_and_can_be_tried_again(self):
        status, printed, _ = self.doctor("--prove", "--json",
                                         SIMCUDA_FAIL="cuDevicePrimaryCtxRelease_v2:999")
        self.assertEqual((status, json.loads(printed)["proof"]), (1, "failed"))
        severity, text = self.finding()
        self.assertEqual(severity, "warning")
        self.assertIn('squash: failed with 999 at "release"', text)
        self.assertEqual(self.doctor("--prove")[0], 0)
        self.assertEqual(self.finding()[0], "ok")

    def test_a_broker_hears_of_it(self):
        self.start("--prove-after=0", env=self.fast)
        self.until_keeper("warm")
        self.assertEqual(self.status()["proof"], "not proven")
        self.assertEqual(self.doctor("--prove")[0], 0)
        self.until_proof("passed")

    def test_a_gpu_that_is_full_is_said_and_nothing_is_stored(self):
        status, _, complaint = self.doctor("--prove", SIMCUDA_FAIL="cuMemAlloc_v2:2")
        self.assertEqual((status, self.stored()), (1, []))
        self.assertIn("could not be run", complaint)

    def test_without_a_gpu_it_says_so(self):
        status, printed, complaint = self.doctor("--prove", HEARTH_DRIVER=str(self.dir / "none"))
        if printed:
            self.skipTest("this machine has a driver")
        self.assertEqual((status, printed), (1, ""))
        self.assertIn("no driver of a GPU", complaint)

    def test_it_is_of_this_machine_only(self):
        self.assertEqual(self.doctor("--prove", "--root", "/")[0], 2)
        self.assertEqual(self.doctor("--prove", "--", "true")[0], 2)

    def test_an_environment_that_would_be_in_its_way_is_not_passed_on(self):
        status, printed, _ = self.doctor("--prove", CUDA_VISIBLE_DEVICES="-1",
                                         LD_PRELOAD=harness.PRELOADS)
        self.assertEqual(status, 0, printed)


if __name__ == "__main__":
    harness.main()
