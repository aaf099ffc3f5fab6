"""The speculation where it is right: learned in one run, ready for the program's calls in the
next; and the settings that forbid it or ask for it."""
from harness import SIM, main
from speculation import READY, STEPS, SpeculationTest

INIT, RETAIN = "cuInit", "cuDevicePrimaryCtxRetain"
RETAIN_0 = "retain=0"


class HappyPath(SpeculationTest):
    SETTINGS = {}  # the driver takes the times that an H200 takes
    LEARNED = None

    def check(self, *steps):
        state = self.learn(STEPS, *steps)
        for _ in range(2):
            done = self.under(STEPS, *steps, state=state)
            self.assertEqual(done.returncode, 0)
            self.assertEqual((done.how[INIT], done.how[RETAIN]), ("speculated", "speculated"),
                             done.messages)
            waited = {record["call"]: (record["visible_us"], record["hidden_us"])
                      for record in done.records if record["event"] == "call"}
            for call in (INIT, RETAIN):
                self.assertLess(waited[call][0], 20000)
                self.assertGreater(waited[call][1], 80000)
        return done

    def test_a_program_that_looks_up_late_is_served_from_its_start(self):
        done = self.check("sleep=500", "lookup", "init", RETAIN_0, "work")
        self.assertIn("the lookup comes too late", done.messages)

    def test_a_program_that_looks_up_early_is_served_from_then(self):
        done = self.check("lookup", "sleep=500", "init", RETAIN_0, "work")
        self.assertIn("the lookup comes early enough", done.messages)

    def test_one_that_calls_sooner_than_it_is_ready_waits_for_the_rest_alone(self):
        state = self.learn(STEPS, "sleep=500", "lookup", "init", RETAIN_0)
        done = self.under(STEPS, "sleep=50", "lookup", "init", RETAIN_0, "work", state=state)
        self.assertEqual(done.how[INIT], "speculated")
        record = next(record for record in done.records if record.get("call") == INIT)
        self.assertLess(record["visible_us"], 90000)
        self.assertGreater(record["hidden_us"], 20000)


class Settings(SpeculationTest):
    def run_it(self, **env):
        return self.compare_steps(READY, "lookup", "init", RETAIN_0, "work", **env)

    def test_auto_does_what_was_learned(self):
        done = self.run_it()
        self.assertEqual((done.how[INIT], done.how[RETAIN]), ("speculated", "speculated"))

    def test_off_does_nothing(self):
        done = self.run_it(HEARTH_SPECULATE="off")
        self.assertEqual((done.how[INIT], done.how[RETAIN]), ("cold", "cold"))
        self.assertNotIn("speculation", done.messages)

    def test_off_learns_nothing(self):
        state = self.learn(STEPS, READY, "lookup", "init", HEARTH_SPECULATE="off")
        self.assertFalse((state / "profiles").exists())

    def test_a_driver_whose_undo_is_not_proved_is_left_alone(self):
        state = self.state()
        for verdict in (state / "undo").iterdir():
            verdict.unlink()
        done = self.under(STEPS, READY, "lookup", "init", state=state)
        self.assertEqual(done.how[INIT], "cold")
        self.assertIn("undo is not proven", done.messages)

    def test_a_driver_whose_undo_failed_is_left_alone(self):
        state = self.state()
        for verdict in (state / "undo").iterdir():
            verdict.write_text("hearth undo 1 failed\n")
        done = self.under(STEPS, READY, "lookup", "init", state=state)
        self.assertEqual(done.how[INIT], "cold")

    def test_another_driver_build_is_another_matter(self):
        other = SIM.with_name("libcuda-other.so.1")
        done = self.under(STEPS, READY, "lookup", "init", HEARTH_DRIVER=str(other))
        self.assertEqual(done.how[INIT], "cold")
        self.assertNotIn("speculation: cuInit", done.messages)

    def test_a_tool_that_injects_itself_is_left_alone(self):
        for name in ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"):
            with self.subTest(name):
                done = self.run_it(**{name: "/nowhere/libtool.so"})
                self.assertEqual(done.how[INIT], "cold")


class Always(SpeculationTest):
    LEARNED = None
    STEPS = ("lookup", READY, "init", RETAIN_0, "work")

    def test_without_it_a_program_that_is_not_known_is_not_speculated(self):
        self.assertEqual(self.under(STEPS, *self.STEPS).how[INIT], "cold")

    def test_it_holds_for_the_first_process_of_a_session(self):
        done = self.under(STEPS, *self.STEPS, wrap=("setsid", "-w"), HEARTH_SPECULATE="always")
        self.assertEqual((done.how[INIT], done.how[RETAIN]), ("speculated", "speculated"),
                         done.messages)

    def test_it_does_not_hold_for_others(self):
        done = self.under(STEPS, *self.STEPS, HEARTH_SPECULATE="always")
        self.assertEqual(done.how[INIT], "cold")

    def exec_as(self, who, *words):
        """A shell that becomes the program, with its own pid or another one in the variable."""
        return ("sh", "-c", f"HEARTH_SPECULATE=always:{who} exec \"$@\"", "sh", *words)

    def test_with_a_pid_it_holds_for_that_process(self):
        done = self.under(STEPS, *self.STEPS, wrap=self.exec_as("$$"))
        self.assertEqual((done.how[INIT], done.how[RETAIN]), ("speculated", "speculated"),
                         done.messages)

    def test_with_a_pid_it_does_not_hold_for_its_children(self):
        child = self.exec_as("$$", "sh", "-c", "\"$@\"; :", "sh")
        done = self.under(STEPS, *self.STEPS, wrap=child)
        self.assertEqual(done.how[INIT], "cold")


if __name__ == "__main__":
    main()
