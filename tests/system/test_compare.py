"""`hearth compare` on the simulated driver."""
import json
import subprocess
import sys
import time

import harness

PROGRAM = [harness.PROGRAMS / "first_calls", harness.SOURCE / "tests/programs/add.simcuda"]
INIT = "import ctypes; ctypes.CDLL('libcuda.so.1').cuInit(0)"


class Compare(harness.SystemTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.run_program, harness.HEARTH, "stop")

    def compare(self, *words, env=None):
        return self.run_program(harness.HEARTH, "compare", *words, env=env)

    def compare_json(self, *words, env=None):
        result = self.compare("--json", *words, env=env)
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        return json.loads(result.stdout)

    def test_shows_what_the_keeper_saves(self):
        result = self.compare_json("-n", "2", "--", *PROGRAM)
        self.assertEqual((result["driver"], result["rounds"], result["notes"]),
                         ("simulated", 2, []))
        columns = {column["name"]: column for column in result["columns"]}
        self.assertEqual(list(columns), ["cuInit", "context", "other first calls",
                                         "waited in all", "whole program"])
        init = columns["cuInit"]
        # The simulated driver has the H200's times: 100 ms cold, 9 warm.
        self.assertGreater(init["native"]["least_us"], 90000)
        self.assertLess(init["hearth"]["median_us"], 50000)
        self.assertEqual(columns["context"]["device"], 0)
        for arm in ("native", "hearth"):
            self.assertEqual(len(init[arm]["samples_us"]), 2)
            for parts in zip(*(column[arm]["samples_us"] for column in result["columns"])):
                self.assertEqual(sum(parts[:3]), parts[3])
                self.assertLess(parts[3], parts[4])

    def test_table_is_headed_simulated(self):
        result = self.compare("-n", "1", "--", *PROGRAM)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(result.stdout.startswith(b"SIMULATED"))
        for word in (b"native", b"hearth", b"saved", b"cuInit", b"whole program"):
            self.assertIn(word, result.stdout)

    def test_contexts_of_devices_are_not_added_up(self):
        script = ("import ctypes; d = ctypes.CDLL('libcuda.so.1'); d.cuInit(0)\n"
                  "for n in 0, 1: d.cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), n)")
        env = {**self.env, "SIMCUDA_DEVICES": "2"}
        result = self.compare_json("-n", "1", "--", sys.executable, "-c", script, env=env)
        self.assertEqual([column["device"] for column in result["columns"]
                          if column["name"] == "context"], [0, 1])
        text = self.compare("-n", "1", "--", sys.executable, "-c", script, env=env).stdout
        self.assertIn(b"context, GPU 1", text)

    def test_names_another_process_that_keeps_the_gpu_warm(self):
        other = subprocess.Popen(
            [sys.executable, "-c", f"{INIT}; print('up', flush=True); input()"],
            env={**self.env, "LD_LIBRARY_PATH": str(harness.SIM.parent)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            self.assertEqual(other.stdout.readline(), b"up\n")
            notes = self.compare_json("-n", "1", "--", *PROGRAM)["notes"]
        finally:
            other.communicate(b"\n")
        self.assertIn(f"process {other.pid} (python", notes[0])
        self.assertIn("about as fast", notes[-1])

    def test_a_failing_program_ends_it(self):
        script = f"{INIT}; import sys; print('went\x1b wrong', file=sys.stderr); sys.exit(7)"
        result = self.compare("-n", "1", "--", sys.executable, "-c", script)
        self.assertEqual((result.returncode, result.stdout), (1, b""))
        self.assertIn(b"exit status 7", result.stderr)
        self.assertIn(b"  went? wrong\n", result.stderr)

    def test_failing_in_one_arm_names_it(self):
        """The program counts its runs; the third is the first one with Hearth."""
        count = self.dir / "count"
        script = (f"{INIT}; import os, sys; open({str(count)!r}, 'a').write('x')\n"
                  f"if os.path.getsize({str(count)!r}) == 3: os.abort()")
        result = self.compare("-n", "1", "--", sys.executable, "-c", script)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, rb"\(with Hearth\): killed by signal 6")

    def test_gives_the_keeper_back(self):
        """Also where the program fails in the native arm, the keeper being away."""
        count = self.dir / "count"
        script = (f"{INIT}; import os, sys; open({str(count)!r}, 'a').write('x')\n"
                  f"sys.exit(os.path.getsize({str(count)!r}) == 2)")
        result = self.compare("-n", "1", "--", sys.executable, "-c", script)
        self.assertIn(b"(native): exit status 1", result.stderr)
        deadline = time.monotonic() + 20
        while True:
            status = json.loads(self.run_program(harness.HEARTH, "status", "--json").stdout)
            if status["keeper"]["state"] == "warm":
                break
            self.assertIn(status["keeper"]["state"], ("starting",))
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        self.assertEqual(list((self.dir / "run").glob("hearth-*")), [])

    def test_a_program_without_cuda_is_refused(self):
        result = self.compare("-n", "1", "--", "true")
        self.assertEqual((result.returncode, result.stdout), (1, b""))
        self.assertIn(b"true: no CUDA call was seen", result.stderr)
        self.assertIn(b"No such file", self.compare("-n", "1", "no-such-program").stderr)

    def test_needs_a_driver(self):
        env = {**self.env, "HEARTH_DRIVER": "/nonexistent/libcuda.so.1"}
        result = self.compare("-n", "1", "--", *PROGRAM, env=env)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, b"hearth: compare needs the keeper, which is off: there is "
                                        b"no driver\n")

    def test_native_arm_does_nothing_ahead(self):
        seen = self.dir / "seen"
        script = (f"{INIT}; import os; print(*(os.environ.get(name, '-') for name in "
                  "('HEARTH_SPECULATE', 'HEARTH_CTX', 'HEARTH')), sep=' ')")
        self.compare("-n", "1", "--keep-output", seen, "--", sys.executable, "-c", script,
                     env={**self.env, "HEARTH_SPECULATE": "always", "HEARTH": "0"})
        self.assertEqual(seen.read_text().splitlines(),
                         ["off native -", "off native -", "always - -"])

    def test_output_is_kept_on_request(self):
        kept = self.dir / "kept"
        result = self.compare("-n", "1", "--keep-output", kept, "--", *PROGRAM)
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = kept.read_text().splitlines()
        self.assertEqual(len(lines), 3)
        self.assertEqual(len(set(lines)), 1)
        self.assertNotIn(lines[0].encode(), result.stdout)

    def test_usage(self):
        for words, named in ((("-n", "0", "true"), b"'0'"), (("-n", "x", "true"), b"'x'"),
                             ((), b"program is missing")):
            result = self.compare(*words)
            self.assertEqual(result.returncode, 2)
            self.assertIn(named, result.stderr)


if __name__ == "__main__":
    harness.main()
