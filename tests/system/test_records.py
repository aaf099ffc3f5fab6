"""First-call records as HEARTH_LOG shows them: which calls, whose, how long, and when no more."""
import json
import os
import socket
import stat

import harness

# The driver API in Python, for programs that need more than a fixed sequence of calls.
PRELUDE = """
import ctypes, os, sys
cuda = ctypes.CDLL("libcuda.so.1")
def retain(device):
    context = ctypes.c_void_p()
    rc = cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    return rc or cuda.cuCtxSetCurrent(context)
def alloc():
    pointer = ctypes.c_uint64()
    return cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(256))
"""


class Records(harness.SystemTest):
    def setUp(self):
        super().setUp()
        self.log = self.dir / "log"
        self.env["SIMCUDA_SPEED"] = "0.01"

    def run_logged(self, *command, expect=0, **more):
        """The lines of HEARTH_LOG, by event: calls, exits."""
        more.setdefault("HEARTH_LOG", str(self.log))
        done = self.run_program(*command, env=self.preloaded(**more))
        self.assertEqual((done.returncode, done.stderr), (expect, b""))
        self.output = done.stdout.decode()
        lines = ([json.loads(line) for line in self.log.read_text().splitlines()]
                 if self.log.exists() else [])
        return ([line for line in lines if line["event"] == "call"],
                [line for line in lines if line["event"] == "exit"])

    def run_python(self, code, **more):
        return self.run_logged("python3", "-c", PRELUDE + code, **more)

    def driver_calls(self, symbol):
        return (self.dir / "calls").read_text().count(f'"{symbol}"')

    def test_a_whole_program(self):
        calls, exits = self.run_logged(harness.PROGRAMS / "simple_driver", HEARTH_TASK="exp 1")
        self.assertEqual([call["call"] for call in calls], [
            "cuInit", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuMemAlloc_v2",
            "cuMemcpyHtoD_v2", "cuModuleLoadData", "cuLaunchKernel", "cuMemcpyDtoH_v2",
            "cuCtxSynchronize"][:len(calls)])
        self.assertGreaterEqual(len(calls), 8)
        self.assertIsNone(calls[0]["device"])
        self.assertEqual({call["device"] for call in calls[1:]}, {0})
        for line in calls + exits:
            self.assertEqual((line["v"], line["task"], line["program"]),
                             (1, "exp 1", "simple_driver"))
            self.assertRegex(line["ts"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
        self.assertEqual([call["at_us"] for call in calls],
                         sorted(call["at_us"] for call in calls))
        self.assertEqual({(call["rc"], call["how"]) for call in calls}, {(0, "cold")})
        (end,) = exits
        self.assertEqual(end["cuda_visible_us"], sum(call["visible_us"] for call in calls))
        self.assertEqual(end["native_estimate_us"],
                         end["cuda_visible_us"] + end["cuda_hidden_us"])
        copy = next(call for call in calls if call["call"] == "cuMemcpyDtoH_v2")
        self.assertEqual(end["first_result_us"], copy["at_us"] + copy["visible_us"])

    def test_no_handler_stays_after_the_first(self):
        """One question for the current device a handled call, and none after the firsts."""
        self.run_python("cuda.cuInit(0); retain(0)\nfor i in range(50): assert alloc() == 0",
                        SIMCUDA_LOG=str(self.dir / "calls"))
        self.assertEqual(self.driver_calls("cuMemAlloc_v2"), 50)
        self.assertLessEqual(self.driver_calls("cuCtxGetDevice"), 4)

    def test_a_first_that_fails_does_not_keep_the_handlers(self):
        calls, _ = self.run_python(
            "cuda.cuInit(0); assert retain(0) == 2 and retain(0) == 0\n"
            "assert alloc() == 2\nfor i in range(50): assert alloc() == 0",
            SIMCUDA_FAIL="cuDevicePrimaryCtxRetain:2*1,cuMemAlloc_v2:2*1",
            SIMCUDA_LOG=str(self.dir / "calls"))
        self.assertLessEqual(self.driver_calls("cuCtxGetDevice"), 6)
        for name in ("cuDevicePrimaryCtxRetain", "cuMemAlloc_v2"):
            self.assertEqual([call["rc"] for call in calls if call["call"] == name], [2, 0])

    def test_each_device_has_its_first(self):
        code = """
cuda.cuInit(0)
for device in (0, 0, 2, 1, 0):
    assert retain(device) == 0
    assert alloc() == 0 and alloc() == 0
"""
        calls, _ = self.run_python(code, SIMCUDA_DEVICES="3")
        for name in ("cuMemAlloc_v2", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent"):
            self.assertEqual([call["device"] for call in calls if call["call"] == name],
                             [0, 2, 1], name)

    def test_failures_are_seen(self):
        calls, exits = self.run_python(
            "print([cuda.cuInit(0) for i in range(4)], retain(7), retain(0), alloc())",
            SIMCUDA_FAIL="cuInit:802*2,cuMemAlloc_v2:2")
        self.assertEqual(self.output, "[802, 802, 0, 0] 101 0 2\n")
        self.assertEqual([(call["call"], call["rc"]) for call in calls],
                         [("cuInit", 802), ("cuInit", 0), ("cuDevicePrimaryCtxRetain", 101),
                          ("cuDevicePrimaryCtxRetain", 0), ("cuCtxSetCurrent", 0),
                          ("cuMemAlloc_v2", 2)])
        self.assertIsNone(exits[0]["first_result_us"])

    def test_nothing_before_cuinit(self):
        calls, exits = self.run_python("print(alloc(), retain(0), cuda.cuCtxSynchronize())")
        self.assertEqual(self.output, "3 3 3\n")
        self.assertEqual((calls, exits), ([], []))

    def test_waits_are_results_only_after_work(self):
        code = """
cuda.cuInit(0); retain(0); alloc()
assert cuda.cuCtxSynchronize() == 0
pointer = ctypes.c_uint64()
cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(256))
if len(sys.argv) > 1:
    assert cuda.cuMemcpyHtoD_v2(pointer, b"x" * 16, ctypes.c_size_t(16)) == 0
assert cuda.cuCtxSynchronize() == 0
"""
        _, exits = self.run_python(code)
        self.assertIsNone(exits[0]["first_result_us"])
        self.log.unlink()
        calls, exits = self.run_logged("python3", "-c", PRELUDE + code, "copy")
        self.assertGreater(exits[0]["first_result_us"], calls[-1]["at_us"])

    def test_fork_child_writes_nothing_of_its_own(self):
        """The child's driver answers 3, as natively; no record and no exit line bear its pid."""
        code = """
cuda.cuInit(0); retain(0)
print(os.getpid())
sys.stdout.flush()
if os.fork() == 0:
    print(alloc(), retain(0))
    sys.exit(0)
os.wait()
assert alloc() == 0
"""
        calls, exits = self.run_python(code)
        pid, child = self.output.splitlines()
        self.assertEqual(child, "3 3")
        self.assertEqual({line["pid"] for line in calls + exits}, {int(pid)})
        self.assertEqual(len(exits), 1)
        self.assertIn(("cuMemAlloc_v2", 0), [(call["call"], call["rc"]) for call in calls])

    def test_fork_before_the_first_call(self):
        """Each process has its own first call, its own page, its own exit line."""
        code = """
for i in range(3):
    if os.fork() == 0:
        assert cuda.cuInit(0) == 0 and retain(0) == 0 and alloc() == 0
        sys.exit(0)
for i in range(3):
    assert os.wait()[1] == 0
"""
        calls, exits = self.run_python(code)
        self.assertEqual(len({line["pid"] for line in exits}), 3)
        self.assertEqual(sorted(call["call"] for call in calls).count("cuMemAlloc_v2"), 3)

    def test_a_loaded_image_is_named(self):
        image = b"SIMCUDA1\\nkernel fill fill\\n"
        code = f"""
cuda.cuInit(0); retain(0)
module = ctypes.c_void_p()
path = sys.argv[1] if len(sys.argv) > 1 else None
assert cuda.cuModuleLoadData(ctypes.byref(module), b"{image.decode()}") == 0
open("{self.dir}/kernels.bin", "wb").write(b"{image.decode()}")
assert cuda.cuModuleLoad(ctypes.byref(module), b"{self.dir}/kernels.bin") == 0
"""
        calls, _ = self.run_python(code)
        by_name = {call["call"]: call for call in calls}
        self.assertEqual(by_name["cuModuleLoadData"]["size"], 26)
        self.assertNotIn("object", by_name["cuModuleLoadData"])
        self.assertEqual(by_name["cuModuleLoad"]["object"], "kernels.bin")

    def test_slow_loads_are_all_recorded(self):
        code = """
cuda.cuInit(0); retain(0)
module = ctypes.c_void_p()
for i in range(3):
    assert cuda.cuModuleLoadData(ctypes.byref(module), b"SIMCUDA1\\nkernel fill fill\\n") == 0
"""
        calls, _ = self.run_python(code, SIMCUDA_SPEED="1",
                                   SIMCUDA_TIME="init_cold=1,retain=1,library_mib=200000")
        loads = [call for call in calls if call["call"] == "cuModuleLoadData"]
        self.assertEqual(len(loads), 3)

    def test_names_of_programs(self):
        script = self.dir / "train.py"
        script.write_text(PRELUDE + "cuda.cuInit(0)\n")
        for words, name in ((("-W", "ignore", script, "--secret=1"), "train.py"),
                            (("-m", "train"), "train"), (("-c", script.read_text()), "python")):
            calls, _ = self.run_logged("python3", *words, PYTHONPATH=str(self.dir))
            self.assertRegex(calls[-1]["program"], rf"^{name}[0-9.]*$")
            self.assertNotIn("secret", self.log.read_text())

    def test_log_file(self):
        calls, _ = self.run_python("cuda.cuInit(0); print(os.getpid())",
                                   HEARTH_LOG=f"{self.dir}/a-%p-%h-%%-%x")
        path = self.dir / f"a-{self.output.strip()}-{socket.gethostname()}-%-%x"
        self.assertTrue(path.exists(), list(self.dir.iterdir()))
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertEqual(calls, [])

    def test_a_long_task(self):
        """Is cut; no line is lost by it, however much of it has to be escaped."""
        for task in ("x" * 3000, '"' * 1000, "\x01" * 2000):
            self.log.unlink(missing_ok=True)
            calls, exits = self.run_python("assert cuda.cuInit(0) == 0", HEARTH_TASK=task)
            self.assertEqual([line["task"] for line in calls + exits], [task[:63]] * 2)

    def test_log_that_cannot_be_written(self):
        for path in (f"{self.dir}/none/log", "/dev/full", str(self.dir), "/" + "x" * 5000):
            self.run_python("assert cuda.cuInit(0) == 0", HEARTH_LOG=path)

    def test_no_descriptor_stays(self):
        code = "before = os.listdir('/proc/self/fd')\ncuda.cuInit(0); retain(0); alloc()\n" \
               "print(len(before), len(os.listdir('/proc/self/fd')))"
        plain = self.run_program("python3", "-c", PRELUDE + code, env={
            **self.env, "LD_LIBRARY_PATH": str(harness.SIM.parent)})
        self.run_python(code)
        self.assertEqual(self.output, plain.stdout.decode())


if __name__ == "__main__":
    harness.main()
