"""Programs made of numbers, which load, use, unload, capture, reset and end: each is run plain and
with what the ones before it taught loaded ahead, and comes out the same.

HEARTH_TEST_PROGRAMS is how many; 1,000 take a minute."""
import concurrent.futures
import os

import harness
from harness import main
from speculation import STEPS, SpeculationTest

PLUGIN = harness.PROGRAMS / "image_plugin_1.so"
PROGRAMS = int(os.environ.get("HEARTH_TEST_PROGRAMS", "1000"))
LENGTH = 30
# So many run at once, each kind of them with a state folder of its own.
KINDS = (
    # Everything is ready, or nothing is.
    {"SIMCUDA_SPEED": "0"},
    # The program meets the thread at its work.
    {"SIMCUDA_SPEED": "0.01"},
)


class Random(SpeculationTest):
    LEARNED = ()

    def one(self, seed, state, env):
        nvml = ["nvml"] * (seed % 3)  # before the first call, after it, or not at all
        steps = ("lookup", f"sleep={seed % 25}", *nvml[1:], "init", *nvml[:1], "retain=0",
                 f"images={PLUGIN}", f"random={seed},{LENGTH}", "state=0", "stack")
        plain = self.run_program(STEPS, *steps, env={**self.env, **env})
        done = self.run_program(STEPS, *steps, env=self.preloaded(
            HEARTH_STATE_DIR=str(state), HEARTH_LOG_LEVEL="debug", **env))
        messages = done.stderr.decode()
        self.assertEqual((plain.returncode, plain.stdout.decode()),
                         (done.returncode, done.stdout.decode()), (seed, env, messages))
        return messages.count("is handed over")

    def kind(self, number):
        """Every so-manyth program."""
        state, env = self.state(self.proved), KINDS[number]
        env = {**env, "SIMCUDA_MACHINE": str(self.dir / f"machine-{number}")}
        return [self.one(seed, state, env) for seed in range(number, PROGRAMS, len(KINDS))]

    def test_programs(self):
        with concurrent.futures.ThreadPoolExecutor(len(KINDS)) as pool:
            results = list(pool.map(self.kind, range(len(KINDS))))
        taken = [sum(result) for result in results]
        print(f"{PROGRAMS} programs; images handed over: {taken}, "
              f"in {[sum(map(bool, result)) for result in results]} programs")
        for count in taken:
            self.assertGreater(count, PROGRAMS // 10)


if __name__ == "__main__":
    main()
