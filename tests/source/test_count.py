"""The last line of tools/check: what tools/count_tests.py makes of what builds and tests left."""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import tree

UNITTEST = "...s.\n" + "-" * 70 + "\nRan 5 tests in 0.1s\n\n"
CRITERION = "\x1b[0;34m[====]\x1b[0m Synthesis: Tested: \x1b[1m4\x1b[0m | Passing: \x1b[1m{}" \
            "\x1b[0m | Failing: \x1b[1m{}\x1b[0m | Crashing: \x1b[1m{}\x1b[0m \n"


class Count(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = Path(folder.name)
        self.builds = []

    def add(self, name, result, tests=None):
        """A build, and (result, stderr) of each of its tests."""
        self.builds.append(f"{name} build {result}\n")
        if tests is not None:
            logs = self.work / name / "meson-logs"
            logs.mkdir(parents=True)
            (logs / "testlog.json").write_text("".join(
                json.dumps({"name": f"{name} {number}", "result": verdict, "stdout": "",
                            "stderr": stderr}) + "\n"
                for number, (verdict, stderr) in enumerate(tests)))

    def add_again(self, name, number, result):
        """That test's second result, alone."""
        (self.work / name / "meson-logs/testlog-again.json").write_text(json.dumps(
            {"name": f"{name} {number}", "result": result, "stdout": "", "stderr": ""}) + "\n")

    def count(self):
        """Exit status and last line."""
        (self.work / "builds").write_text("".join(self.builds))
        done = subprocess.run([sys.executable, tree.ROOT / "tools/count_tests.py", self.work],
                              stdout=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stdout.splitlines()[-1]

    def test_unittest_programs_count_their_tests(self):
        self.add("gcc", "OK", [("OK", UNITTEST + "OK (skipped=1)\n")])
        self.assertEqual(self.count(), (0, "5 passed, 0 failed, 1 skipped"))

    def test_failures_and_errors_count_as_failed(self):
        self.add("gcc", "OK", [("FAIL", UNITTEST + "FAILED (failures=1, errors=1, skipped=1)\n")])
        self.assertEqual(self.count(), (1, "3 passed, 2 failed, 1 skipped"))

    def test_criterion_programs_count_their_tests(self):
        self.add("gcc", "OK", [("OK", CRITERION.format(4, 0, 0)),
                               ("FAIL", CRITERION.format(2, 2, 1))])
        self.assertEqual(self.count(), (1, "7 passed, 2 failed, 0 skipped"))

    def test_a_crash_is_one_of_criterions_failures(self):
        self.add("gcc", "OK", [("FAIL", CRITERION.format(3, 1, 1))])
        self.assertEqual(self.count(), (1, "4 passed, 1 failed, 0 skipped"))

    def test_what_passes_alone_has_passed(self):
        self.add("gcc", "OK", [("OK", ""), ("FAIL", "")])
        self.add_again("gcc", 1, "OK")
        self.assertEqual(self.count(), (0, "3 passed, 0 failed, 0 skipped"))

    def test_what_fails_twice_has_failed(self):
        self.add("gcc", "OK", [("OK", ""), ("FAIL", "")])
        self.add_again("gcc", 1, "FAIL")
        self.assertEqual(self.count(), (1, "2 passed, 1 failed, 0 skipped"))

    def test_programs_that_say_nothing_count_once(self):
        self.add("gcc", "OK", [("OK", ""), ("SKIP", "")])
        self.assertEqual(self.count(), (0, "2 passed, 0 failed, 1 skipped"))

    def test_a_program_that_dies_after_its_last_test_has_failed(self):
        for verdict in ("FAIL", "TIMEOUT", "ERROR", "INTERRUPT"):
            with self.subTest(verdict=verdict):
                self.setUp()
                self.add("gcc", "OK", [(verdict, UNITTEST + "OK\n")])
                self.assertEqual(self.count(), (1, "5 passed, 1 failed, 0 skipped"))

    def test_builds_count(self):
        self.add("gcc", "OK", [])
        self.add("clang", "SKIP")
        self.add("asan", "FAIL")
        self.assertEqual(self.count(), (1, "1 passed, 1 failed, 1 skipped"))

    def test_a_build_whose_tests_did_not_run_has_failed(self):
        self.add("gcc", "OK")
        self.assertEqual(self.count(), (1, "1 passed, 1 failed, 0 skipped"))

    def test_nothing_is_not_success(self):
        self.add("clang", "SKIP")
        self.assertEqual(self.count()[0], 1)


if __name__ == "__main__":
    tree.main()
