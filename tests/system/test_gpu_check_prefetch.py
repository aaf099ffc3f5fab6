"""The groups of tools/gpu-check about what is loaded ahead, rehearsed on the simulated driver."""
import harness
from rehearsal import Rehearsal


class Prefetch(Rehearsal):
    @harness.plain_only
    def test_prefetch(self):
        result = self.rehearsed("prefetch")
        model = result["models"]["cnn"]
        self.assertEqual(result["errors"], {})
        self.assertEqual((model["images"], model["images_left_out"]), (6, []))
        self.assertEqual(model["adopted"], [12, 12])
        self.assertGreater(model["loads_ms"], 20)
        self.assertLess(result["ms"]["cnn, learned"]["step 1"]["median"],
                        result["ms"]["cnn, native"]["step 1"]["median"] / 2)

    @harness.plain_only
    def test_parts(self):
        arms = self.rehearsed("prefetch-parts")["models"]["cnn"]
        for arm in ("native", "learned"):
            calls = {row["call"]: row["calls"] for row in arms[arm]["calls"]["calls"]}
            self.assertEqual(calls["cuLibraryLoadData"], 6, arm)
            self.assertEqual(calls["cuLaunchKernel"], 6, arm)


if __name__ == "__main__":
    harness.main()
