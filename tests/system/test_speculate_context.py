"""The primary context that was made ahead: a program that asks first, changes or destroys it gets
what it would have had, and one that never asks is given back its memory."""
import subprocess
import time

from harness import main
from speculation import READY, STEPS, SpeculationTest

INIT, RETAIN = "cuInit", "cuDevicePrimaryCtxRetain"


class Context(SpeculationTest):
    def steps(self, *steps, how, **env):
        done = self.compare_steps(READY, *steps, **env)
        self.assert_speculated(done)
        self.assertEqual(done.how.get(RETAIN), how, done.messages)
        return done

    def test_the_state_before_the_retain_is_inactive(self):
        self.steps("init", "state=0", "state=0", "retain=0", "state=0", "work", how="speculated")

    def test_the_references_are_the_programs(self):
        self.steps("init", "retain=0", "retain=0", "release=0", "state=0", "release=0", "state=0",
                   "release=0", "retain=0", "work", how="speculated")

    def test_flags_that_nobody_guessed(self):
        for flags in (1, 2, 4, 8, 16):
            for entry in ("flags", "v1flags"):
                with self.subTest(f"{entry} {flags}"):
                    self.steps("init", f"{entry}=0,{flags}", "state=0", "retain=0", "state=0",
                               "work", how="squashed")

    def test_flags_as_they_are(self):
        self.steps("init", "flags=0,0", "state=0", "retain=0", "state=0", "work", how="speculated")
        self.steps("init", "v1flags=0,0", "state=0", "retain=0", "state=0", how="speculated")

    def test_flags_there_and_back(self):
        self.steps("init", "flags=0,4", "flags=0,0", "state=0", "retain=0", "state=0",
                   how="squashed")

    def test_wrong_flags(self):
        self.steps("init", "flags=0,512", "state=0", "retain=0", "state=0", how="squashed")

    def test_flags_after_the_retain(self):
        self.steps("init", "retain=0", "v1flags=0,4", "state=0", "flags=0,4", "state=0", "work",
                   how="speculated")

    def test_reset_and_release_before_the_retain(self):
        for first in ("reset=0", "release=0"):
            with self.subTest(first):
                self.steps("init", first, "state=0", "retain=0", "state=0", "work", how="squashed")

    def test_reset_afterwards(self):
        self.steps("init", "retain=0", "work", "reset=0", "state=0", "retain=0", "state=0", "work",
                   how="speculated")

    def test_a_context_of_its_own_beside_it(self):
        self.steps("init", "create=0", "work", "state=0", "retain=0", "work", how="speculated")

    def test_many_retains(self):
        self.steps("init", *["retain=0"] * 20, *["release=0"] * 21, "state=0", how="speculated")

    def test_wrong_arguments(self):
        self.compare_steps(READY, "init", "retain=7", "state=7", "release=7", "retain=-1",
                           "state=-1", "flags=7,4", "reset=-1", "retain=0", "work")

    def test_while_it_is_being_made(self):
        for wait in (12, 20, 28):
            for steps in (("state=0", "retain=0"), ("flags=0,4", "state=0", "retain=0"),
                          ("flags=0,0", "retain=0"), ("reset=0", "retain=0"),
                          ("release=0", "retain=0"), ("create=0", "retain=0"),
                          ("retain=0", "retain=0", "release=0", "release=0", "release=0")):
                with self.subTest(f"{steps} after {wait} ms"):
                    self.compare_steps(f"sleep={wait}", "init", *steps, "state=0", "work",
                                       SIMCUDA_SPEED="0.15")

    def test_before_it_is_begun(self):
        for _ in range(10):
            for steps in (("state=0", "retain=0"), ("flags=0,4", "state=0", "retain=0"),
                          ("release=0", "state=0", "retain=0"), ("flags=0,4", "state=0", "sleep=5",
                                                                 "state=0", "retain=0")):
                with self.subTest(steps):
                    self.compare_steps("sleep=1", "init", *steps, "state=0", "release=0", "state=0",
                                       "release=0")


class LearnedFlags(SpeculationTest):
    LEARNED = ("sleep=40", "lookup", "init", "flags=0,4", "retain=0")

    def steps(self, *steps, how):
        done = self.compare_steps(READY, *steps)
        self.assert_speculated(done)
        self.assertEqual(done.how.get(RETAIN), how, done.messages)

    def test_the_same_flags(self):
        self.steps("init", "state=0", "flags=0,4", "state=0", "retain=0", "state=0", "work",
                   "release=0", "state=0", how="speculated")

    def test_other_flags(self):
        self.steps("init", "flags=0,2", "state=0", "retain=0", "state=0", "work", how="squashed")
        self.steps("init", "flags=0,0", "state=0", "retain=0", "state=0", "work", how="squashed")

    def test_no_flags(self):
        self.steps("init", "state=0", "retain=0", "state=0", "work", how="squashed")

    def test_the_same_flags_and_then_something_else(self):
        self.steps("init", "flags=0,4", "reset=0", "state=0", "retain=0", "state=0", how="squashed")
        self.steps("init", "flags=0,4", "release=0", "state=0", "retain=0", "state=0",
                   how="squashed")
        self.steps("init", "flags=0,4", "flags=0,2", "state=0", "retain=0", "state=0",
                   how="squashed")

    def test_the_same_flags_and_a_changed_environment(self):
        self.steps("init", "flags=0,4", "env=CUDA_LAUNCH_BLOCKING=1", "state=0", "retain=0",
                   "state=0", how="squashed")


class Created(SpeculationTest):
    """A program that makes its own context, which was made ahead."""
    LEARNED = ("sleep=40", "lookup", "init", "create=0,4")
    CREATE = "cuCtxCreate_v2"

    def steps(self, *steps, how):
        done = self.compare_steps(READY, *steps)
        self.assert_speculated(done)
        self.assertEqual(done.how.get(self.CREATE), how, done.messages)

    def test_it_is_adopted(self):
        self.steps("init", "stack", "create=0,4", "stack", "work", "destroy", "stack", "destroy",
                   "work", how="adopted")

    def test_another_kind(self):
        self.steps("init", "create=0,2", "stack", "work", "destroy", "stack", how="squashed")
        self.steps("init", "create=0", "stack", "work", "destroy", "stack", how="squashed")

    def test_two_of_them(self):
        self.steps("init", "create=0,4", "create=0,4", "stack", "work", "destroy", "stack", "work",
                   how="adopted")

    def test_beside_the_primary_context(self):
        self.steps("init", "state=0", "retain=0", "stack", "create=0,4", "stack", "work",
                   "destroy", "stack", "work", "release=0", "state=0", how="adopted")
        self.steps("init", "flags=0,2", "reset=0", "release=0", "state=0", "create=0,4", "stack",
                   how="adopted")

    def test_wrong_arguments(self):
        self.compare_steps(READY, "init", "create=7,4", "create=0,512", "create=0,4", "stack")

    def test_a_changed_environment(self):
        self.steps("env=CUDA_VISIBLE_DEVICES=0", "init", "create=0,4", "stack", "work", how="cold")

    def test_one_that_never_asks(self):
        done = self.compare_steps("sleep=1200", "init", "stack", "memory", "create=0,4", "memory",
                                  HEARTH_GIVE_BACK="1")
        self.assertIn("is given back", done.messages)

    def test_while_it_is_being_made(self):
        for wait in (12, 20, 28):
            self.compare_steps(f"sleep={wait}", "init", "create=0,4", "stack", "work", "destroy",
                               "stack", SIMCUDA_SPEED="0.15")


class TwoDevices(SpeculationTest):
    DEVICES = "2"

    def test_without_a_rule_there_is_no_context(self):
        done = self.compare_steps(READY, "init", "state=0", "state=1", "retain=1", "work")
        self.assert_speculated(done, context=False)
        self.assertEqual(done.how[INIT], "speculated")
        self.assertNotIn("context on device", done.messages)

    def test_the_launchers_rank(self):
        for rank in ("0", "1"):
            done = self.compare_steps(READY, "init", "state=0", "state=1", f"retain={rank}",
                                      "state=0", "state=1", "work", LOCAL_RANK=rank)
            self.assertEqual(done.how[RETAIN], "speculated", done.messages)
            self.assertIn(f"context on device {rank}: 0", done.messages)

    def test_another_device_than_the_launcher_said(self):
        done = self.compare_steps(READY, "init", "retain=1", "state=0", "state=1", "work",
                                  "retain=0", "state=0", "work", LOCAL_RANK="0")
        self.assertIn("context on device 0: 0", done.messages)

    def test_a_rank_that_is_no_device(self):
        for rank in ("2", "x", "-1", ""):
            done = self.compare_steps(READY, "init", "retain=0", "work", LOCAL_RANK=rank)
            self.assertNotIn("context on device", done.messages)

    def test_one_wrong_device_means_three_runs_without(self):
        state = self.state()
        self.under(STEPS, READY, "lookup", "init", "retain=1", state=state, LOCAL_RANK="0")
        for _ in range(3):
            done = self.under(STEPS, READY, "lookup", "init", "retain=0", state=state,
                              LOCAL_RANK="0")
            self.assertIn("a wrong device lately", done.messages)
        done = self.under(STEPS, READY, "lookup", "init", "retain=0", state=state, LOCAL_RANK="0")
        self.assertEqual(done.how[RETAIN], "speculated", done.messages)


class Room(SpeculationTest):
    def test_no_context_where_memory_is_short(self):
        done = self.compare_steps(READY, "init", "state=0", "retain=0", "work",
                                  SIMCUDA_MEMORY_MIB="2200")
        self.assertIn("no room on device 0", done.messages)

    def test_no_context_on_an_exclusive_device(self):
        for mode in ("exclusive", "prohibited"):
            done = self.compare_steps(READY, "init", "state=0", "retain=0",
                                      SIMCUDA_COMPUTE_MODE=mode)
            self.assertNotIn("context on device 0: 0", done.messages)


class GiveBack(SpeculationTest):
    def used_mib(self):
        """Of the simulated machine, without what the asking process itself takes."""
        done = self.plain(STEPS, "init", "retain=0", "memory")
        return int(done.stdout.decode().rsplit(":", 1)[1].split()[0]) - 528

    def start(self, *steps, **env):
        settings = self.preloaded(HEARTH_STATE_DIR=str(self.state()), **env)
        process = subprocess.Popen([STEPS, *steps], env=settings, stdout=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def wait_for(self, *mib, limit_s=30):
        end = time.monotonic() + limit_s
        while (used := self.used_mib()) not in mib and time.monotonic() < end:
            time.sleep(0.05)
        self.assertIn(used, mib)

    def test_a_program_that_never_asks(self):
        begun = time.monotonic()
        process = self.start("sleep=20000", HEARTH_GIVE_BACK="1")
        self.wait_for(528)
        self.wait_for(4)
        self.assertLess(time.monotonic() - begun, 10)
        self.assertIsNone(process.poll())

    def test_one_that_asks_afterwards(self):
        done = self.compare_steps("sleep=1200", "init", "state=0", "retain=0", "state=0", "work",
                                  HEARTH_GIVE_BACK="1")
        self.assertIn("is given back", done.messages)
        self.assertEqual((done.how[INIT], done.how[RETAIN]), ("speculated", "cold"))

    def test_one_that_asks_while_it_is_given_back(self):
        for steps in (("state=0", "retain=0"), ("release=0", "retain=0"), ("flags=0,4", "retain=0"),
                      ("retain=0", "state=0", "work", "release=0", "release=0")):
            for wait in (1045, 1070):
                self.compare_steps(f"sleep={wait}", "init", *steps, "state=0",
                                   HEARTH_GIVE_BACK="1", SIMCUDA_SPEED="0.3")

    def test_a_squash_leaves_no_context_behind(self):
        process = self.start(READY, "env=CUDA_VISIBLE_DEVICES=0", "init", "retain=0", "sleep=60000")
        # Nor more than the 4 MiB of an old copy that had come as far as its own cuInit.
        self.wait_for(528, 532)
        self.assertIsNone(process.poll())


if __name__ == "__main__":
    main()
