"""`hearth run --eager`: speculation in a program's first run, and in that program alone."""
import json

from harness import HEARTH, PROGRAMS, SIM, SystemTest, main


class Eager(SystemTest):
    def setUp(self):
        super().setUp()
        self.env["HEARTH_SOCKET"] = str(self.dir / "broker")
        self.addCleanup(self.run_program, HEARTH, "stop")
        self.env["SIMCUDA_SPEED"] = "0.2"
        state = self.dir / "state/hearth"
        done = self.run_program(PROGRAMS / "undo_check", SIM, state)
        self.assertEqual(done.returncode, 0, done.stdout)

    def how(self, *words):
        """Runs it; returns how cuInit and the context were served."""
        log = self.dir / "log"
        log.unlink(missing_ok=True)
        plain = self.run_program(*words[words.index("--") + 1:],
                                 env={**self.env, "LD_LIBRARY_PATH": str(SIM.parent)})
        done = self.run_program(HEARTH, "run", "--log", log, *words)
        self.assertEqual((done.returncode, done.stdout), (plain.returncode, plain.stdout))
        calls = [json.loads(line) for line in log.read_text().splitlines()]
        return {call["call"]: call["how"] for call in calls if call["event"] == "call"}

    def test_first_run_finds_it_done(self):
        for more in ((), ("--report",)):
            with self.subTest(more=more):
                how = self.how(*more, "--eager", "--", PROGRAMS / "driver_steps", "lookup",
                               "sleep=600", "init", "retain=0")
                self.assertEqual(how["cuInit"], "speculated")
                self.assertEqual(how["cuDevicePrimaryCtxRetain"], "speculated")
                self.forget()

    def test_without_it_a_first_run_only_learns(self):
        how = self.how("--", PROGRAMS / "simple_driver", "after=600")
        self.assertIn(how["cuInit"], ("cold", "warm"))

    def test_does_not_hold_for_what_the_program_starts(self):
        how = self.how("--eager", "--", "/bin/sh", "-c",
                       f"{PROGRAMS / 'simple_driver'} after=600; exit $?")
        self.assertIn(how["cuInit"], ("cold", "warm"))

    def forget(self):
        done = self.run_program(HEARTH, "profile", "forget", "--all")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    main()
