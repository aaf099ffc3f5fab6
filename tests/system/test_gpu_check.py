"""What tools/gpu-check is built on: masks found from plain runs, and the comparison of a plain and
a preloaded run. A comparison that cannot fail proves nothing: most tests here are about failing."""
import contextlib
import io
import json
import shutil
import sys
import unittest
from pathlib import Path

import harness
from rehearsal import Rehearsal

sys.path.insert(0, str(harness.SOURCE / "tests/gpu"))
from check import (arms, before_init, fidelity,  # noqa: E402 (path above)
                   first_step, mask, statistics_of)

RESULT = harness.SOURCE / "bench/results/2026-11-30-h200-before-init.json"


def masks_of(*outputs):
    return mask.find_masks("stdout", [output.encode() for output in outputs])


class FirstSteps(unittest.TestCase):
    """What is read from the records of one run."""

    def said(self, *records):
        first_us = 1_000_000
        lines = [{"event": "call", "call": call, "object": "x.so", "how": how, "visible_us": 500,
                  "ts": f"1970-01-01T00:00:{second:09.6f}Z"} for call, how, second in records]
        return {"step_at_us": [first_us, 2 * first_us], "records": lines}

    def test_only_loads_inside_the_step_count_as_its_loads(self):
        said = self.said(("cuLibraryLoadData", "cold", 0.5), ("cuLibraryLoadData", "cold", 1.5),
                         ("cuLaunchKernel", "cold", 1.6), ("cuLibraryLoadData", "cold", 2.5))
        self.assertEqual(first_step.load_ms(said), 0.5)
        self.assertEqual(list(first_step.parts(said)),
                         ["cuLibraryLoadData x.so", "cuLaunchKernel x.so"])

    def test_adoption_counts_every_load_of_the_run(self):
        said = self.said(("cuLibraryLoadData", "prefetched", 0.5),
                         ("cuLibraryLoadData", "cold", 1.5), ("cuInit", "prefetched", 1.6))
        self.assertEqual(first_step.adoption(said), (1, 2))

    def test_where_the_exit_line_counts_images_it_is_believed(self):
        said = self.said(("cuLibraryLoadData", "cold", 0.5))
        said["records"].append({"event": "exit", "images_asked": 30, "images_adopted": 28})
        self.assertEqual(first_step.adoption(said), (28, 30))


class Masks(unittest.TestCase):
    def test_equal_runs_need_none(self):
        self.assertEqual(masks_of("a 1\nb\n", "a 1\nb\n", "a 1\nb\n"), [])

    def test_numbers_that_vary_are_blurred_in_their_line_only(self):
        masks = masks_of("pid 12\nsize 7\n", "pid 999\nsize 7\n")
        self.assertEqual([str(one) for one in masks], ["stdout: blur 'pid #\\n'"])
        self.assertEqual(mask.apply_masks("stdout", b"pid 5\nsize 8\n", masks),
                         b"pid #\nsize 8\n")

    def test_a_line_that_comes_and_goes_is_dropped(self):
        masks = masks_of("W1130 20:01:02 warn\nend\n", "end\n", "W1130 20:01:03 warn\nend\n")
        self.assertEqual([one.kind for one in masks], ["drop"])
        self.assertEqual(mask.apply_masks("stdout", b"W0101 00:00:00 warn\nend\n", masks),
                         b"end\n")

    def test_lines_that_change_places_are_dropped(self):
        masks = masks_of("worker 1\nreader 22\nend\n", "reader 23\nend\nworker 2\n")
        self.assertEqual(mask.apply_masks("stdout", b"worker 3\nend\n", masks), b"end\n")

    def test_results_that_change_places_are_refused(self):
        with self.assertRaisesRegex(mask.MaskError, "order"):
            masks_of("result 1\nresult 2\n", "result 2\nresult 1\n")

    def test_a_result_is_never_masked(self):
        with self.assertRaisesRegex(mask.MaskError, "result loss 0.5"):
            masks_of("result loss 0.5\n", "result loss 0.6\n")

    def test_a_mask_does_not_reach_a_result_of_the_same_form(self):
        masks = [mask.Mask("stdout", "drop", b"result #\n")]
        self.assertEqual(mask.apply_masks("stdout", b"result 3\n", masks), b"result 3\n")

    def test_a_mask_holds_for_its_stream_only(self):
        masks = masks_of("t 1\n", "t 2\n")
        self.assertEqual(mask.apply_masks("stderr", b"t 3\n", masks), b"t 3\n")

    def test_too_many_masks_are_refused(self):
        letters = "abcdef"
        with self.assertRaisesRegex(mask.MaskError, "6 masks, at most 5"):
            masks_of(*["".join(f"{letter} {run}\n" for letter in letters) for run in "12"])

    def test_a_missing_last_newline_is_a_difference(self):
        self.assertIn("line 1", mask.first_difference(b"a\n", b"a"))


class TwoGpus(harness.SystemTest):
    def rehearse(self, *words):
        """A run of the tool itself on the simulated driver: its result of each group."""
        done = self.run_program(
            sys.executable, harness.SOURCE / "tools/gpu-check", "--sim", "--no-build",
            f"--build={harness.BUILD}", f"--work={self.dir / 'work'}", f"--out={self.dir}",
            *words, timeout=2 * harness.DEADLINE_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return {path.stem: json.loads(path.read_text()) for path in self.dir.glob("*.json")}

    @harness.plain_only
    def test_two_gpus(self):
        found = self.rehearse("--multi", "multi-init", "multi-peers")
        self.assertEqual(sorted(found), ["multi-init", "multi-peers"])
        self.assertEqual(len(found["multi-init"]["gpus"]), 2)
        for result in found.values():
            self.assertEqual((result["driver"], result["errors"]), ("simulated", {}))
        cold, warm = (found["multi-init"]["ms"][f"{arm}, 2 visible"]["cuInit"]["median"]
                      for arm in ("native", "keeper"))
        self.assertLess(warm, cold)

    def test_a_group_for_two_gpus_is_no_other_group(self):
        for words in (("multi-init",), ("--multi", "keeper")):
            with self.assertRaisesRegex(AssertionError, "no group"):
                self.rehearse(*words)


class Stub:
    """Stands for gpu-check's context and broker: a preloaded run gets one variable more."""

    def __init__(self, folder, env):
        self.folder, self.preload, self.env = Path(folder), "", env

    def environment(self, **more):
        return {**self.env, **more}

    def hearth_environment(self, _socket, **more):
        return {**self.env, "UNDER": "1", **more}


class BrokerStub(Stub):
    def fresh_state(self, name):
        (self.folder / f"state-{name}").mkdir()

    def environment(self, **more):
        return self.hearth_environment(None, **more)


class Comparison(harness.SystemTest):
    def judged(self, script, calls_driver=False):
        """The row of a shell script, compared as gpu-check compares."""
        program = fidelity.Program("script", ["/bin/sh", "-c", script], calls_driver=calls_driver,
                                   seconds=1)
        context = Stub(self.dir, self.env)
        broker = BrokerStub(self.dir, self.env)
        plain = [fidelity.run_once(context, broker, program, "plain", number)
                 for number in range(mask.RUNS)]
        return fidelity.judge(program, plain, {
            arm: fidelity.run_once(context, broker, program, arm, 0) for arm in fidelity.ARMS})

    def test_the_same_program_is_the_same(self):
        row = self.judged("echo result 5; echo pid $$; echo here $HOME >&2")
        self.assertEqual((row["differences"], row["status"]), ([], 0))
        self.assertEqual(row["masks"], ["stdout: blur 'pid #\\n'"])

    def test_other_output_is_a_difference(self):
        row = self.judged("echo result ${UNDER:-0}")
        self.assertFalse(row["same"])
        self.assertIn("result 0", row["differences"][0])

    def test_a_line_more_on_stderr_is_a_difference(self):
        self.assertFalse(self.judged("test -z $UNDER || echo hello >&2")["same"])

    def test_another_exit_status_is_a_difference(self):
        self.assertIn("exit status 4", self.judged("exit ${UNDER:+4}")["differences"][0])

    def test_a_signal_is_a_difference(self):
        self.assertIn("exit status -6", self.judged("test -z $UNDER || kill -6 $$")
                      ["differences"][0])

    def test_a_masked_line_that_says_something_else_is_a_difference(self):
        self.assertFalse(self.judged("echo ${UNDER:+other} pid $$")["same"])

    def test_a_hang_is_a_difference(self):
        self.assertIn("timeout", self.judged("test -z $UNDER || sleep 20")["differences"][0])

    def test_a_program_that_fails_alike_is_no_proof(self):
        self.assertEqual(self.judged("exit 3")["differences"], ["plain runs fail: exit status 3"])

    def test_plain_runs_that_end_differently_are_refused(self):
        self.assertIn("plain runs end differently",
                      self.judged("echo x >> $PWD/../../count; "
                                  "exit $(wc -l < $PWD/../../count)")["differences"][0])

    def test_a_learned_run_comes_after_those_that_teach(self):
        script = "echo x >> $HEARTH_STATE_DIR/runs; echo result $(wc -l < $HEARTH_STATE_DIR/runs)"
        program = fidelity.Program("script", ["/bin/sh", "-c", script], seconds=5)
        broker = BrokerStub(self.dir, self.env)
        run = fidelity.run_arm(broker, broker, program, "learned")
        self.assertEqual(run.stdout, b"result 3\n")

    def test_a_preload_that_saw_no_driver_call_is_no_proof(self):
        self.assertIn("saw no cuInit", self.judged("true", calls_driver=True)["differences"][0])

    def test_hearths_log_is_the_proof(self):
        row = self.judged("""test -z $HEARTH_LOG || echo '{"call":"cuInit"}' > $HEARTH_LOG""",
                          calls_driver=True)
        self.assertEqual((row["differences"], row["records"]), ([], {"alone": 1, "keeper": 1}))


class Rehearsals(Rehearsal):
    def test_rules(self):
        result = self.rehearsed("rules")
        self.assertEqual((result["record_differs"], result["preload_differs"]), ([], []))

    def test_before_init(self):
        entries = self.rehearsed("before-init")["entries"]
        self.assertEqual(entries["cuDeviceGetCount"], ["3", "3"])
        self.assertEqual(entries["cuMulticastCreate"], ["skipped", "skipped"])

    def test_calls(self):
        self.assertEqual(set(self.rehearsed("calls")["results"]),
                         {"exec true", "exec bash", "call"})

    def test_fidelity_other(self):
        result = self.rehearsed("fidelity-other")
        self.assertTrue(result["rows"] or result["skipped"])
        self.assertEqual([row["differences"] for row in result["rows"]],
                         [[] for row in result["rows"]])

    def test_keeper(self):
        medians = self.rehearsed("keeper")["ms"]
        self.assertLess(medians["keeper"]["cuInit"]["median"],
                        medians["native"]["cuInit"]["median"])

    def test_speculate(self):
        result = self.rehearsed("speculate")
        self.assertGreaterEqual(set(result["ms"]), {"C at once, native", "C after 150 ms, run 3"})
        self.assertEqual(result["undo"]["proof"], "passed")
        for run in result["served"]["C after 150 ms, run 3"]:
            self.assertEqual(run["cuInit"], "speculated")

    def test_an_unknown_group_is_named(self):
        done = self.run_program(sys.executable, harness.SOURCE / "tools/gpu-check", "nosuch")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"no group 'nosuch'", done.stderr)


class Spec(harness.SystemTest):
    def test_the_specs_column_is_what_the_h200_answered(self):
        spec = self.dir / "spec.tsv"
        shutil.copy(before_init.SPEC, spec)
        with contextlib.redirect_stderr(io.StringIO()) as said:
            before_init.merge(RESULT, spec)
        self.assertEqual(spec.read_bytes(), before_init.SPEC.read_bytes(), said.getvalue())

    def test_a_killed_call_leaves_the_column_to_the_other(self):
        self.assertEqual(before_init.chosen("signal:11", "3"), "3")
        self.assertEqual(before_init.chosen("400", "signal:6"), "400")
        self.assertEqual(before_init.chosen("1", "3"), "3/1")
        self.assertIsNone(before_init.chosen("absent", "absent"))


class Statistics(unittest.TestCase):
    def test_an_arm_that_fails_loses_only_its_own_figures(self):
        measured = arms.Arms()
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertTrue(measured.measure("good", lambda: {"step": 3}))
            self.assertFalse(measured.measure("bad", lambda: {}["step"]))
            result = measured.result({"limit": True}, simulated=False)
        self.assertEqual((measured.median("good", "step"), measured.p95("good", "step")), (3, 3))
        self.assertEqual(measured.median("bad", "step"), float("inf"))
        self.assertFalse(result["ok"])
        self.assertEqual(result["checks"], {"limit": True, "bad ran every time": False})

    def test_summary(self):
        self.assertEqual(statistics_of.summary([3, 1, 2, 10]),
                         {"runs": 4, "min": 1, "median": 2.5, "p90": 10, "max": 10})
        self.assertEqual(statistics_of.summary([]), {"runs": 0})

    def test_how_likely_an_order_is_by_chance(self):
        self.assertEqual(statistics_of.chance_of_slower([5, 6, 7, 8], [1, 2, 3, 4]), 1 / 70)
        self.assertEqual(statistics_of.chance_of_slower([1, 2], [3, 4]), 1)
        self.assertEqual(statistics_of.chance_of_slower([], [3]), 0)
        self.assertGreater(statistics_of.chance_of_slower([1, 4, 5], [2, 3, 6]), 0.4)

    def test_lower_quartile(self):
        self.assertEqual(statistics_of.lower_quartile([9, 1, 2, 3, 40, 50, 60, 70]), 2)
        self.assertEqual(statistics_of.lower_quartile([]), float("inf"))


if __name__ == "__main__":
    harness.main()
