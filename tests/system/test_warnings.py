"""What `hearth report` and `hearth doctor` warn about, once each and with a remedy: each provoked,
and each absent where there is no cause."""
import json
import sys

import harness

START = "2026-11-30T18:00:{:02}.000000Z"
# Changes what the driver reads between the first lookup and the first call.
CHANGES = """
import ctypes, os, time
cuda = ctypes.CDLL("libcuda.so.1")
init = cuda.cuInit
time.sleep(0.05)
os.environ["CUDA_VISIBLE_DEVICES"] = "0"
assert not init(0)
"""


def record(call, how="cold", device=None, visible_us=100000, **more):
    return {"call": call, "how": how, "device": device, "at_us": 1000, "hidden_us": 0, "rc": 0,
            "visible_us": visible_us, **more}


def run(number, *records, program="train.py", devices=1, **more):
    return {"v": 1, "event": "run", "pid": 100 + number, "task": "", "program": program,
            "start": START.format(number), "duration_us": 500000, "exit": "exited",
            "devices": devices, "records": list(records), **more}


class Report(harness.SystemTest):
    def report(self, *runs, count=1):
        path = self.dir / "runs.jsonl"
        path.write_text("".join(json.dumps(run) + "\n" for run in runs))
        done = self.run_program(harness.HEARTH, "report", "-n", count, path)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        text = done.stdout.decode()
        self.assertEqual(text.count("warning: "), text.count("  remedy: "))
        return [line for line in text.splitlines() if line.startswith("warning: ")]

    def assert_one(self, words, *runs):
        warnings = self.report(*runs)
        self.assertEqual(len(warnings), 1, warnings)
        self.assertIn(words, warnings[0])

    def test_nothing_to_warn_about(self):
        self.assertEqual(self.report(run(1, record("cuInit"), record("cuCtxCreate_v4", device=0),
                                         record("cuModuleLoadData", "cold", 0))), [])

    def jit(self, number, **more):
        return run(number, record("cuInit"), record("cuModuleLoadData", "jit", 0, 2300000), **more)

    def test_ptx_compiled_at_every_start(self):
        self.assert_one("PTX is compiled at every start, here for 2300 ms", self.jit(1),
                        self.jit(2))

    def test_ptx_compiled_once_is_as_it_should_be(self):
        self.assertEqual(self.report(self.jit(1)), [])
        self.assertEqual(self.report(self.jit(1, program="other.py"), self.jit(2)), [])
        self.assertEqual(self.report(self.jit(1), run(2, record("cuInit"))), [])

    def squashed(self, number):
        return run(number, record("cuInit", "squashed"))

    def test_squashed_again_and_again(self):
        self.assert_one("had to be undone in 3 of the latest runs",
                        *[self.squashed(number) for number in range(3)])

    def test_squashed_now_and_then(self):
        hit = [run(number, record("cuInit", "speculated")) for number in range(5)]
        self.assertEqual(self.report(*hit, self.squashed(6)), [])
        self.assertEqual(self.report(self.squashed(1), self.squashed(2)), [])
        self.assertEqual(self.report(*[self.squashed(number) for number in range(3)],
                                     run(9, record("cuInit", "speculated"))), [])

    def test_why_it_was_squashed(self):
        script = self.dir / "changes.py"
        script.write_text(CHANGES)
        for _ in range(2):
            done = self.run_program(harness.HEARTH, "run", sys.executable, script)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.run_program(harness.HEARTH, "stop")
        again = [run(number, record("cuInit", "squashed"), program="changes.py")
                 for number in range(3)]
        self.assert_one("changes the driver's environment before its first call", *again)

    def test_many_visible_gpus(self):
        cold = record("cuInit", visible_us=2700000)
        self.assert_one("8 GPUs were visible, and cuInit took 2700 ms", run(1, cold, devices=8))

    def test_few_visible_gpus_or_a_keeper(self):
        cold, warm = record("cuInit", visible_us=270000), record("cuInit", "warm", None, 60000)
        self.assertEqual(self.report(run(1, cold, devices=1)), [])
        self.assertEqual(self.report(run(1, warm, devices=8)), [])
        self.assertEqual(self.report(run(1, record("cuInit", visible_us=9000), devices=8)), [])

    def rank(self, number, *devices, start=0):
        made = [record("cuDevicePrimaryCtxRetain", device=device) for device in devices]
        return run(number, *made, start=START.format(start))

    def test_a_context_on_another_ranks_gpu(self):
        self.assert_one("a context on GPU 0 too", self.rank(1, 0), self.rank(2, 2),
                        self.rank(3, 1, 0))

    def test_contexts_that_are_a_programs_own(self):
        self.assertEqual(self.report(self.rank(1, 0), self.rank(2, 1)), [])
        # One process on two GPUs; and two of them, one after the other.
        self.assertEqual(self.report(self.rank(1, 0, 1)), [])
        self.assertEqual(self.report(self.rank(1, 0, start=1), self.rank(2, 0, 1, start=5)), [])

    def test_each_run_has_its_own(self):
        text = self.report(self.jit(1), self.jit(2), self.jit(3), count=3)
        self.assertEqual(len(text), 2)


class Doctor(harness.SystemTest):
    def findings(self, **env):
        done = self.run_program(harness.HEARTH, "doctor", "--json", env={**self.env, **env})
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return json.loads(done.stdout)["findings"]

    def assert_warned(self, name, **env):
        found = [finding for finding in self.findings(**env) if finding["id"] == name]
        self.assertEqual([finding["severity"] for finding in found], ["warning"])
        self.assertTrue(found[0]["remedy"])
        return found[0]["text"]

    def assert_silent(self, name, **env):
        self.assertNotIn(name, [finding["id"] for finding in self.findings(**env)
                                if finding["severity"] != "ok"])

    def test_eager_loading(self):
        for value in ("EAGER", "eager"):
            self.assertIn(value, self.assert_warned("eager-loading", CUDA_MODULE_LOADING=value))
        self.assert_silent("eager-loading", CUDA_MODULE_LOADING="LAZY")
        self.assert_silent("eager-loading")

    def test_connections(self):
        self.assertIn("=32", self.assert_warned("connections", CUDA_DEVICE_MAX_CONNECTIONS="32"))
        for value in ("1", "8", "", "many"):
            self.assert_silent("connections", CUDA_DEVICE_MAX_CONNECTIONS=value)
        self.assert_silent("connections")

    def test_the_jit_cache(self):
        (self.dir / "file").touch()
        self.assert_warned("jit-cache", CUDA_CACHE_PATH=str(self.dir / "file/cache"))
        self.assert_warned("jit-cache", CUDA_CACHE_DISABLE="1")
        self.assert_silent("jit-cache", CUDA_CACHE_PATH=str(self.dir / "cache"))

    def test_visible_gpus(self):
        for devices, is_warned in (("4", True), ("1", False)):
            env = {**self.env, "SIMCUDA_DEVICES": devices}
            self.run_program(harness.HEARTH, "run", "true", env=env)
            self.run_program(harness.HEARTH, "status", "--wait", "20", env=env)
            try:
                if is_warned:
                    self.assertRegex(self.assert_warned("visible-gpus", SIMCUDA_DEVICES=devices),
                                     r"^4 GPUs are visible: .* takes \d+ ms")
                    self.assert_silent("visible-gpus", CUDA_VISIBLE_DEVICES="0")
                else:
                    self.assert_silent("visible-gpus", SIMCUDA_DEVICES=devices)
            finally:
                self.run_program(harness.HEARTH, "stop", env=env)
        self.assert_silent("visible-gpus")


if __name__ == "__main__":
    harness.main()
