"""The group mps of tools/gpu-check: that it runs through on the simulated driver and the stand-in
for MPS's daemon, and that its checks can fail."""
import sys

import harness
from rehearsal import Rehearsal

sys.path.insert(0, str(harness.SOURCE / "tests/gpu"))
from check import mps, mps_states, mps_turns  # noqa: E402 (path above)
from check.arms import Arms  # noqa: E402


class Rehearsed(Rehearsal):
    def test_it_runs_through(self):
        self.env["SIMCUDA_SPEED"] = "0.1"
        result = self.rehearsed("mps")
        self.assertEqual(result["errors"], {})
        self.assertEqual(set(result["checks"].values()), {True}, result["states"])
        self.assertEqual({row["state"]: row["cuInit"] for row in result["states"]}["stale socket"],
                         0)
        self.assertEqual(result["ratios"]["Hearth+MPS / MPS, 4 at once"]["runs"], 2)


class Checks(harness.SystemTest):
    def checks(self, rows, **rates):
        arms = Arms()
        for arm, rate in rates.items():
            for count in mps_turns.JOBS[False]:
                for noise in (0.9, 1.1, 1):
                    arms.measure(arm.replace("_", "+"),
                                 lambda: {f"{count} at once": rate * noise})
        arms.figures["life"] = {"stop": [1] * mps.ROUNDS}
        return mps._checks(arms, rows, {}, False)

    def test_they_can_fail(self):
        init, codes = mps_states.expected()
        good = [{"state": name, "cuInit": init.get(name, 0), "codes": codes.get(name, {}),
                 "says it": True} for name in {**init, **codes}]
        other = {**good[-1], "codes": {step: 999 for step in good[-1]["codes"]}}
        rates = {"plain": 10, "MPS": 20, "Hearth": 10, "Hearth_MPS": 20}
        self.assertEqual(set(self.checks(good, **rates).values()), {True})
        wrong, silent = [{**good[0], "cuInit": 805}], [{**good[0], "says it": False}]
        for rows, worse in ((wrong, {}), ([other], {}), (silent, {}), (good, {"MPS": 14}),
                            (good, {"Hearth_MPS": 19.7})):
            with self.subTest(rows=rows, worse=worse):
                held = self.checks(rows, **{**rates, **worse})
                self.assertEqual(list(held.values()).count(False), 1, held)


if __name__ == "__main__":
    harness.main_in_own_run()
