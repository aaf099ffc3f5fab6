"""The groups of tools/gpu-check about work done ahead: that they run through on the simulated
driver, and that their comparison can fail."""
import contextlib
import io
import sys
import unittest

import harness
from rehearsal import Rehearsal

sys.path.insert(0, str(harness.SOURCE / "tests/gpu"))
from check import ahead  # noqa: E402 (path above)


class Rehearsals(Rehearsal):
    def rows(self, group):
        result = self.rehearsed(group)
        self.assertTrue(result["rows"])
        self.assertEqual([row["differences"] for row in result["rows"]],
                         [[] for row in result["rows"]])
        return {row["name"]: row for row in result["rows"]}, result["checks"]

    def test_exits(self):
        rows, _ = self.rows("exits")
        self.assertEqual(rows["C, squashed, then return"]["ways"], {"squashed": 10})

    def test_setenv(self):
        rows, _ = self.rows("setenv")
        self.assertGreater(rows["setenv, main"]["ways"].get("speculated", 0), 0)

    def test_constructor(self):
        rows, _ = self.rows("constructor")
        self.assertEqual(rows["32 threads"]["same"], rows["32 threads"]["runs"])

    def test_after_squash(self):
        rows, _ = self.rows("after-squash")
        self.assertEqual(rows["PTX JIT, number"]["ways"], {"squashed": 3})

    def test_spare(self):
        result = self.rehearsed("spare")
        self.assertEqual([name for name, holds in result["checks"].items() if not holds], [])
        self.assertTrue(result["programs"])

    def test_eager(self):
        rows, _ = self.rows("eager")
        self.assertIn("sigwait", rows)


def end(status=0, stdout=b"result 1\n", stderr=b"", how="speculated", seconds=1.0):
    records = [{"event": "call", "call": "cuInit", "how": how, "visible_us": 1500, "at_us": 10},
               {"event": "call", "call": "cuMemFree_v2", "how": "cold", "visible_us": 70000,
                "at_us": 9000},
               {"event": "exit", "first_result_us": 8000}]
    return ahead.End(status, stdout, stderr, seconds, records, 7)


class Judged(unittest.TestCase):
    def judged(self, *ends, natives=(end(how="cold"),)):
        with contextlib.redirect_stdout(io.StringIO()):
            return ahead.judge("program", list(natives), list(ends))

    def test_the_same(self):
        row = self.judged(end(), end(how="warm"))
        self.assertTrue(row["ok"])
        self.assertEqual(row["ways"], {"speculated": 1, "warm": 1})

    def test_what_differs_is_named(self):
        for other, text in ((end(status=-11), "status -11 against 0"),
                            (end(stdout=b"result 2\n"), "stdout b'result 2"),
                            (end(stderr=b"warning\n"), "stderr b'warning"),
                            (end(status="timeout"), "status 'timeout'")):
            row = self.judged(end(), other)
            self.assertFalse(row["ok"])
            self.assertEqual(row["same"], 1)
            self.assertIn(text, row["differences"][0])

    def test_as_one_of_the_native_runs(self):
        natives = (end(status=3), end(status=4))
        self.assertTrue(self.judged(end(status=4), natives=natives)["ok"])
        self.assertFalse(self.judged(end(status=5), natives=natives)["ok"])

    def test_without_runs_nothing_holds(self):
        self.assertFalse(self.judged()["ok"])

    def test_a_native_run_that_hangs_is_no_measure(self):
        hung = end(status="timeout")
        self.assertFalse(self.judged(hung, natives=(hung,))["ok"])

    def test_what_was_left_out_is_no_success(self):
        row = self.judged(end(), end(status=ahead.LEFT_OUT, stdout=b""))
        self.assertFalse(row["ok"])
        self.assertEqual((row["same"], row["left_out"], row["ways"]), (1, 1, {"speculated": 1}))

    def test_a_crash_tells_its_stack(self):
        row = self.judged(end(status=-11, stderr=b"crash: signal 11, code 1\n  at 1\n"))
        self.assertEqual(row["crashes"][0]["stderr"], ["crash: signal 11, code 1", "  at 1"])

    def test_a_childs_record_is_not_the_programs(self):
        own = end(how="squashed")
        own.records.insert(0, {"event": "call", "call": "cuInit", "how": "warm", "pid": 8})
        self.assertEqual(own.how("cuInit"), "squashed")

    def test_waited_until_the_first_result(self):
        self.assertEqual(end().waited_ms(), 1.5)
        self.assertEqual(end().waited_ms("cuMemFree_v2"), 0)


if __name__ == "__main__":
    harness.main()
