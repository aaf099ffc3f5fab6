"""The undo self-test: it passes on a driver that can be undone, else it names the step."""
from harness import PROGRAMS, SIM, SystemTest, main


class Undo(SystemTest):
    def check(self, **settings):
        done = self.run_program(PROGRAMS / "undo_check", SIM, env={**self.env, **settings})
        lines = dict(line.split(": ", 1) for line in done.stdout.decode().splitlines())
        return done.returncode, lines

    def test_every_scenario_passes(self):
        status, lines = self.check(SIMCUDA_SPEED="0")
        self.assertEqual(list(lines), ["pristine", "fork", "squash", "changed"])
        self.assertEqual([text.split()[0] for text in lines.values()], ["passed"] * 4, lines)
        self.assertEqual(status, 0)

    def test_many_times_since_the_drivers_thread_races_with_the_squash(self):
        for _ in range(10):
            status, lines = self.check(SIMCUDA_SPEED="0")
            self.assertEqual(status, 0, lines)

    def test_a_failing_driver_is_not_proved(self):
        status, lines = self.check(SIMCUDA_SPEED="0", SIMCUDA_FAIL="cuInit:999")
        self.assertEqual(status, 1)
        for text in lines.values():
            self.assertIn("failed with 999 at \"speculative cuInit\"", text)

    def test_a_context_that_does_not_compute_is_found(self):
        status, lines = self.check(SIMCUDA_SPEED="0", SIMCUDA_FAIL="cuMemAlloc_v2:700")
        self.assertEqual(status, 1)
        self.assertIn("failed with 700 at \"cuMemAlloc\"", lines["squash"])
        self.assertIn("passed", lines["changed"])

    def test_a_full_or_absent_gpu_says_nothing_about_the_driver(self):
        for call, code in (("cuMemAlloc_v2", 2), ("cuInit", 100), ("cuDevicePrimaryCtxRetain", 46)):
            status, lines = self.check(SIMCUDA_SPEED="0", SIMCUDA_FAIL=f"{call}:{code}")
            self.assertEqual(status, 2, lines)
            self.assertTrue(any(text.startswith(f"not run with {code}")
                                for text in lines.values()), lines)


if __name__ == "__main__":
    main()
