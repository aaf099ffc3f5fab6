"""The benches' command lines, and that each runs on the simulated driver as bench/README.md has
it."""
import json

import harness

BENCH = harness.BUILD / "bench"
COMMANDS = {"exec": ("--preload", harness.PRELOAD, "--", "true"),
            "call": ("--driver", harness.SIM),
            "start": ("--driver", harness.SIM),
            "storm": ("--preload", harness.PRELOAD, "--driver", harness.SIM)}


class BenchTest(harness.SystemTest):
    def setUp(self):
        super().setUp()
        self.env["SIMCUDA_SPEED"] = "0.01"

    def test_each_runs(self):
        for name, words in COMMANDS.items():
            with self.subTest(name=name):
                env = self.preloaded() if name == "call" else self.env
                done = self.run_program(BENCH / f"bench_{name}", "-n", "2", "--json", *words,
                                        env=env)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIsInstance(json.loads(done.stdout), dict)

    def test_a_wrong_number_is_named(self):
        for name, words in COMMANDS.items():
            for number in ("0", "x", "2x", "", "-1", "1000001"):
                done = self.run_program(BENCH / f"bench_{name}", "-n", number, *words)
                self.assertEqual((done.returncode, done.stdout), (2, b""), (name, number))
                self.assertIn(f"-n: '{number}'".encode(), done.stderr)

    def test_help(self):
        for name in COMMANDS:
            done = self.run_program(BENCH / f"bench_{name}", "--help")
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertTrue(done.stdout.startswith(f"usage: bench_{name} ".encode()))


if __name__ == "__main__":
    harness.main()
