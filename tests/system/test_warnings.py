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

    def under(self, number=1, **conditions):
        return run(number, record("cuInit", "warm"), conditions=conditions)

    def test_eager_loading(self):
        self.assert_one("CUDA_MODULE_LOADING=EAGER", self.under(eager=True))
        self.assertEqual(self.report(self.under(eager=False)), [])

    def test_connections(self):
        self.assert_one("CUDA_DEVICE_MAX_CONNECTIONS=32", self.under(connections=32))
        for count in (1, 8, None, -3, "32", 2**40):
            self.assertEqual(self.report(self.under(connections=count)), [])

    def test_a_jit_cache_that_keeps_nothing(self):
        for cache, words in (("locked", "can't be written"), ("off", "CUDA_CACHE_DISABLE"),
                             ("nowhere", "HOME and CUDA_CACHE_PATH are unset")):
            self.assert_one(words, self.under(jit_cache=cache))
        for cache in ("good", None, "", 3, "bogus"):
            self.assertEqual(self.report(self.under(jit_cache=cache)), [])

    def nvidia_smi(self, *lines):
        """Stands for it; says what it is told, and notes that it was asked."""
        tool = self.dir / "bin/nvidia-smi"
        tool.parent.mkdir(exist_ok=True)
        tool.write_text(f"#!/bin/sh\necho >>{self.dir}/asked\n" +
                        "".join(f"echo '{line}'\n" for line in lines))
        tool.chmod(0o755)
        self.env["PATH"] = f"{tool.parent}:{self.env['PATH']}"

    def test_persistence_mode(self):
        self.nvidia_smi("0, Disabled, Default", "1, Disabled, Default", "2, Enabled, Default")
        self.assert_one("persistence mode is off for GPU 0, 1:", run(1, record("cuInit")))
        many = [run(number, record("cuInit")) for number in range(9)]
        (self.dir / "asked").unlink()
        self.assertEqual(len(self.report(*many, count=9)), 1)
        self.assertEqual((self.dir / "asked").read_text(), "\n")
        self.nvidia_smi("0, Enabled, Default")
        self.assertEqual(self.report(run(1, record("cuInit"))), [])

    def test_the_machine_is_asked_only_about_a_cuinit_that_took_long(self):
        self.nvidia_smi("0, Disabled, Default")
        self.assertEqual(self.report(run(1, record("cuInit", "warm")),
                                     run(2, record("cuInit", visible_us=9000)), count=2), [])
        self.assertFalse((self.dir / "asked").exists())

    def rank(self, number, rank, *contexts, start=0, visible=None, devices=4):
        made = [record("cuDevicePrimaryCtxRetain", device=device) for device in contexts]
        return run(number, *made, start=START.format(start), devices=devices,
                   conditions={"rank": rank, "visible": visible})

    def test_a_context_on_another_ranks_gpu(self):
        for order in ((1, 0), (0, 1), (0,)):
            self.assert_one("rank 1 made a context on GPU 0, where rank 0 works",
                            self.rank(1, 0, 0), self.rank(2, 2, 2), self.rank(3, 1, *order))

    def test_contexts_that_are_a_ranks_own(self):
        for runs in (
                # Each has one, and not all are where one would expect them.
                (self.rank(1, 0, 0), self.rank(2, 1, 1)),
                (self.rank(1, 0, 1), self.rank(2, 1, 0)),
                # Each has two.
                (self.rank(1, 0, 0, 1), self.rank(2, 1, 2, 3)),
                # No launcher; one after the other.
                (self.rank(1, None, 0), self.rank(2, None, 0, 1)),
                (self.rank(1, 0, 0, start=1), self.rank(2, 1, 0, 1, start=5)),
                # Each sees others, or one alone: 0 is not the same for them.
                (self.rank(1, 0, 0, visible=1), self.rank(2, 1, 0, visible=2)),
                (self.rank(1, 0, 0, devices=1), self.rank(2, 1, 0, devices=1))):
            self.assertEqual(self.report(*runs), [])

    def test_as_json(self):
        path = self.dir / "runs.jsonl"
        path.write_text(json.dumps(self.under(eager=True)) + "\n")
        shown = self.run_program(harness.HEARTH, "report", "--json", path).stdout
        (found,) = json.loads(shown)["runs"][0]["warnings"]
        self.assertEqual((set(found), found["id"]), ({"id", "text", "remedy"}, "eager-loading"))
        # What it prints it reads.
        path.write_text(json.dumps(json.loads(shown)["runs"][0]) + "\n")
        self.assertEqual(self.run_program(harness.HEARTH, "report", "--json", path).stdout, shown)

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
            self.assertIn("EAGER", self.assert_warned("eager-loading", CUDA_MODULE_LOADING=value))
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

    def test_what_the_latest_run_shows(self):
        folder = self.dir / "state/hearth"
        folder.mkdir(parents=True)
        jit = [record("cuInit"), record("cuModuleLoadData", "jit", 0, 2300000)]
        runs = [run(1, *jit), run(2, *jit), run(3, record("cuInit"), program="other.py")]
        (folder / "runs.jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs[:2]))
        self.assertEqual(self.assert_warned("ptx-jit"),
                         "train.py: PTX is compiled at every start, here for 2300 ms")
        (folder / "runs.jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs))
        for name in ("ptx-jit", "squashed", "rank"):
            self.assert_silent(name)
        done = self.run_program(harness.HEARTH, "doctor", "--", "python3", "dir/train.py")
        self.assertIn(b"train.py: PTX is compiled at every start", done.stdout)

    def test_what_the_latest_run_does_to_ranks_and_guesses(self):
        """Each provoked; and absent in the test above."""
        context = record("cuDevicePrimaryCtxRetain", "squashed", 0)
        runs = [run(number, context, devices=2, conditions={"rank": number % 2},
                    start=START.format(number // 2)) for number in range(4)]
        folder = self.dir / "state/hearth"
        folder.mkdir(parents=True)
        (folder / "runs.jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs))
        self.assertIn("train.py: rank 1 made a context on GPU 0", self.assert_warned("rank"))
        self.assertIn("undone in 4 of the latest runs", self.assert_warned("squashed"))


if __name__ == "__main__":
    harness.main()
