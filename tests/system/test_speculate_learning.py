"""What a run leaves for the next: also where it is killed, and nothing where it has nothing to do
with CUDA."""
import json
import signal
import subprocess
import sys

from harness import HEARTH, main
from speculation import READY, STEPS, SpeculationTest

LATE = (READY, "lookup", "init", "retain=0")


class Learning(SpeculationTest):
    LEARNED = None

    def section(self, state):
        """The program's one section, as `hearth profile show` has it."""
        listed = self.run_program(HEARTH, "profile", "list", "--json",
                                  env={**self.env, "HEARTH_STATE_DIR": str(state)})
        profiles = json.loads(listed.stdout)["profiles"]
        self.assertEqual(len(profiles), 1, listed.stdout)
        return profiles[0]["sections"][0]

    def test_one_that_is_killed_after_its_first_context(self):
        done = self.under(STEPS, *LATE, "work", "end=kill",
                          state=self.learn(STEPS, *LATE, "end=kill"))
        self.assertEqual(done.returncode, -signal.SIGKILL)
        self.assertEqual(done.how["cuInit"], "speculated", done.messages)
        self.assertEqual(done.how["cuDevicePrimaryCtxRetain"], "speculated")

    def test_hits_are_counted(self):
        state = self.learn(STEPS, *LATE, runs=4)
        self.assertEqual(self.section(state)["hits"], 3)
        self.assertEqual(self.section(state)["squashes"], 0)

    def test_squashes_are_counted_and_end(self):
        state = self.learn(STEPS, *LATE)
        squashing = (READY, "lookup", "env=CUDA_VISIBLE_DEVICES=0", "init", "retain=0")
        done = self.under(STEPS, *squashing, state=state)
        self.assertEqual(done.how["cuInit"], "squashed")
        self.assertEqual(self.section(state)["squashes"], 1)
        for _ in range(3):
            done = self.under(STEPS, *squashing, state=state)
            self.assertEqual(done.how["cuInit"], "cold")
        self.assertEqual(self.section(state)["squashes"], 1)

    def test_one_that_changes_its_identity_each_time_is_paused(self):
        state = self.learn(STEPS, *LATE)
        squashed = 0
        for _ in range(8):
            done = self.under(STEPS, READY, "lookup", "cpu=0", "init", "retain=0", state=state)
            squashed += done.how["cuInit"] == "squashed"
        self.assertLessEqual(squashed, 2)

    def test_contexts_that_nobody_asked_for_are_counted(self):
        state = self.learn(STEPS, *LATE)
        self.under(STEPS, READY, "lookup", state=state)
        self.assertEqual(self.section(state)["unused"], 1)

    def test_one_that_stopped_using_the_driver(self):
        state = self.learn(STEPS, *LATE)
        for _ in range(3):
            self.under(STEPS, READY, "lookup", state=state)
        done = self.under(STEPS, READY, "lookup", state=state)
        self.assertNotIn("speculation: cuInit", done.messages)

    def test_a_run_without_the_driver_does_not_end_it_for_ever(self):
        for runs in ((LATE, (READY, "lookup"), LATE, LATE), ((READY, "lookup"), LATE, LATE, LATE)):
            state = self.state(self.proved)
            for run in runs:
                self.under(STEPS, *run, state=state)
            seen = [self.under(STEPS, *LATE, state=state).how["cuInit"] for _ in range(8)]
            self.assertIn("speculated", seen)

    def test_fork_children_write_nothing(self):
        state = self.learn(STEPS, *LATE)
        before = self.section(state)
        self.under(STEPS, READY, "fork", "lookup", "init", "retain=0", "end=_exit", state=state)
        self.assertEqual(self.section(state)["runs"], before["runs"] + 1)

    def test_who_never_looks_up_cuInit_touches_nothing(self):
        state = self.dir / "untouched"
        for command in (("true",), (STEPS, "sleep=1"), (sys.executable, "-c", "pass"),
                        ("sh", "-c", "true; true")):
            self.run_program(*command, env=self.preloaded(HEARTH_STATE_DIR=str(state)))
        self.assertFalse(state.exists())
        known = self.learn(STEPS, *LATE)
        before = {path: path.stat().st_mtime_ns for path in known.rglob("*")}
        for command in (("true",), (sys.executable, "-c", "pass")):
            self.run_program(*command, env=self.preloaded(HEARTH_STATE_DIR=str(known)))
        self.assertEqual(before, {path: path.stat().st_mtime_ns for path in known.rglob("*")})

    def test_a_folder_that_cannot_be_written(self):
        blocked = self.dir / "file"
        blocked.write_text("")
        done = self.compare(STEPS, *LATE, "work", state=blocked)
        self.assertEqual(done.how["cuInit"], "cold")

    def test_many_runs_at_once(self):
        state = self.learn(STEPS, *LATE)
        processes = [subprocess.Popen([STEPS, *LATE], stdout=subprocess.DEVNULL,
                                      env=self.preloaded(HEARTH_STATE_DIR=str(state)))
                     for _ in range(8)]
        self.assertEqual([process.wait() for process in processes], [0] * 8)
        self.assertGreater(self.section(state)["runs"], 1)
        done = self.under(STEPS, *LATE, state=state)
        self.assertEqual(done.how["cuInit"], "speculated")


if __name__ == "__main__":
    main()
