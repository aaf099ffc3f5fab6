"""Before the program's own cuInit the driver that is ready must not show; and what fails there,
fails as it would have."""
from harness import PROGRAMS, SOURCE, main
from speculation import READY, STEPS, SpeculationTest

INIT_CODES = (2, 46, 100, 101, 802, 803, 804, 805, 807)
RETAIN_CODES = (2, 46, 101, 709)
BEFORE_INIT = (PROGRAMS / "before_init", SOURCE / "lib/driver/driver_api.tsv", "40")
STEPS_OF_ALL = ("init", "count", "retain=0", "state=0", "init", "retain=0", "state=0", "work")


class BeforeInit(SpeculationTest):

    def test_every_entry_answers_as_in_a_plain_run(self):
        state = self.learn(*BEFORE_INIT, "init")
        for how in ("dlsym", "address"):
            done = self.compare(*BEFORE_INIT, how, state=self.state(state))
            self.assert_speculated(done, context=False)
            self.assertGreater(len(done.stdout.splitlines()), 600)

    def test_the_driver_can_be_used_after_all_that(self):
        state = self.learn(*BEFORE_INIT, "init")
        done = self.compare(*BEFORE_INIT, "dlsym", "init", state=state)
        self.assert_speculated(done, context=False)
        self.assertEqual(done.how["cuInit"], "speculated")

    def test_export_tables(self):
        """Their pointers are a copy's own: only the one that runtimes ask for may come early."""
        rest = ("count", "init", "devices", "retain=0", "work")
        done = self.compare_steps(READY, "table=0", *rest, "table=1")
        self.assertEqual(done.how["cuInit"], "speculated")
        for steps in ((READY, "table=1"), ("table=1", READY), (READY, "fork", "table=1"),
                      (READY, "table=1", "fork"), ("sleep=2", "table=1")):
            with self.subTest(steps):
                done = self.compare_steps(*steps, *rest)
                self.assertNotIn("speculated", [r.get("how") for r in done.records
                                                if "fork" not in steps])

    def test_nvml_before_the_first_call(self):
        """Its table may come early: what was done ahead stays, and is undone later, and a fork
        child is as natively, with the table in NVML's hands."""
        rest = ("nvml", "init", "nvml", "devices", "retain=0", "work", "nvml")
        done = self.compare_steps(READY, "nvml", *rest)
        self.assert_speculated(done)
        self.assertEqual(done.how["cuInit"], "speculated")
        done = self.compare_steps(READY, "nvml", "env=CUDA_VISIBLE_DEVICES=1", *rest)
        self.assertIn("squash: CUDA_VISIBLE_DEVICES changed", done.messages)
        self.assertEqual(done.how["cuInit"], "squashed")
        for steps in (("nvml", READY), ("sleep=2", "nvml"), (READY, "nvml", "fork"),
                      (READY, "nvml", "clone"),
                      (READY, "fork", "nvml"), (READY, "nvml", "table=1")):
            with self.subTest(steps):
                self.compare_steps(*steps, *rest)

    def test_calls_that_need_no_cuInit(self):
        done = self.compare_steps(READY, "version", "error", "count", "state=0", "release=0",
                                  "retain=0", "flags=0,4", "work", "init=1", "count", "init",
                                  "version", "count", "state=0", "retain=0", "state=0", "work")
        self.assert_speculated(done)
        self.assertEqual(done.how["cuInit"], "cold")  # the first record is that of cuInit(1)

    def test_while_the_thread_is_inside(self):
        for wait in (2, 15, 40):
            self.compare_steps(f"sleep={wait}", "version", "count", "state=0", "retain=0", "init=1",
                               "count", "init", "count", "retain=0", "work", SIMCUDA_SPEED="0.2")


class Failures(SpeculationTest):
    def check(self, fail, *steps):
        done = self.compare_steps(READY, *(steps or STEPS_OF_ALL), SIMCUDA_FAIL=fail)
        self.assertIn("speculation: cuInit", done.messages)
        return done

    def test_of_the_speculation_alone(self):
        for code in INIT_CODES:
            done = self.check(f"cuInit:{code}/other")
            self.assertIn(f"speculation: cuInit {code}", done.messages)
            self.assertEqual(done.how["cuInit"], "cold")
        for code in RETAIN_CODES:
            done = self.check(f"cuDevicePrimaryCtxRetain:{code}/other")
            self.assertEqual(done.how["cuInit"], "speculated")
            self.assertEqual(done.how["cuDevicePrimaryCtxRetain"], "cold")

    def test_of_every_call(self):
        for code in INIT_CODES:
            self.check(f"cuInit:{code}")
        for code in RETAIN_CODES:
            self.check(f"cuDevicePrimaryCtxRetain:{code}")

    def test_of_the_programs_first_call(self):
        """Where the speculation has failed too, so that the program's call is made."""
        for code in INIT_CODES:
            self.check(f"cuInit:{code}/other,cuInit:{code}*1/main")
        for code in RETAIN_CODES:
            self.check(f"cuDevicePrimaryCtxRetain:{code}/other,"
                       f"cuDevicePrimaryCtxRetain:{code}*1/main")

    def test_of_the_programs_calls_alone_after_a_squash(self):
        for code in INIT_CODES:
            self.check(f"cuInit:{code}*1/main", "env=CUDA_VISIBLE_DEVICES=0", *STEPS_OF_ALL)
        for code in RETAIN_CODES:
            self.check(f"cuDevicePrimaryCtxRetain:{code}*1/main", "env=CUDA_VISIBLE_DEVICES=0",
                       *STEPS_OF_ALL)

    def test_a_failed_speculation_is_no_miss(self):
        state = self.state()
        for _ in range(3):
            self.under(STEPS, READY, "lookup", "init", "retain=0", state=state,
                       SIMCUDA_FAIL="cuInit:802/other")
        done = self.under(STEPS, READY, "lookup", "init", "retain=0", state=state)
        self.assertEqual(done.how["cuInit"], "speculated", done.messages)


if __name__ == "__main__":
    main()
