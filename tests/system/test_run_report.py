"""What `hearth run --report` says below its table: what stood in Hearth's way, and the warnings
that `hearth report` has too."""
import json
import shutil
import sys

import harness

NO_BROKER = "warning: no broker could be started, so nothing is kept warm: "
USE = """
import ctypes, sys
cuda, handle = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p
context, module = handle(), handle()
assert not cuda.cuInit(0)
assert not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
assert not cuda.cuCtxSetCurrent(context)
for name in sys.argv[1:]:
    with open(name, "rb") as file:
        assert not cuda.cuModuleLoadData(ctypes.byref(module), file.read() + bytes(1))
print("used")
"""
PTX = ".version 8.0\n.target sm_90\n.visible .entry compiled() {}"


class RunReport(harness.SystemTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.run_program, harness.HEARTH, "stop")
        self.script = self.dir / "use.py"
        self.script.write_text(USE)
        self.ptx = self.dir / "code.ptx"
        self.ptx.write_text(PTX)

    def report(self, *words, hearth=harness.HEARTH, options=(), **env):
        words = words or (sys.executable, self.script)
        done = self.run_program(hearth, "run", "--report", *options, *words,
                                env={**self.env, **env})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr.decode()

    def warnings(self, *words, **env):
        text = self.report(*words, **env)
        self.assertEqual(text.count("warning: "), text.count("  remedy: "), text)
        return [line for line in text.splitlines() if line.startswith("warning: ")]

    def assert_one(self, words, found):
        self.assertEqual(len(found), 1, found)
        self.assertIn(words, found[0])

    def test_nothing_is_wrong(self):
        self.assertEqual(self.warnings(), [])
        self.assertEqual(self.warnings(), [])  # now one runs already

    def test_no_broker_can_be_started(self):
        self.assert_one(f"{NO_BROKER}hearthd: cannot serve at {self.dir}/none/socket: No such file",
                        self.warnings(HEARTH_SOCKET=f"{self.dir}/none/socket"))
        long = f"/{'x' * 120}"
        self.assert_one(f"{NO_BROKER}hearthd: HEARTH_SOCKET={long} is ",
                        self.warnings(HEARTH_SOCKET=long))

    def copy(self):
        """A folder with a hearth that finds no hearthd; its library is where it looks."""
        for place in ("bin", "lib/hearth"):
            (self.dir / place).mkdir(parents=True)
        for library in harness.PRELOAD.parent.glob("*.so"):
            shutil.copy(library, self.dir / "lib/hearth")
        shutil.copy(harness.HEARTH, self.dir / "bin")
        return self.dir / "bin"

    def test_there_is_no_broker_to_start(self):
        hearth = self.copy() / "hearth"
        self.assertIn(NO_BROKER + "hearthd", self.report(hearth=hearth))
        broker = hearth.parent / "hearthd"
        for text, mode, why in ((f"#!{self.dir}/none\n", 0o755, "No such file"),
                                ("", 0o644, "Permission"),
                                ("#!/bin/sh\nexit 3\n", 0o755, "did not say why"),
                                ("#!/bin/sh\necho so it is >&2; exit 1\n", 0o755, "so it is")):
            broker.write_text(text)
            broker.chmod(mode)
            line = next(line for line in self.report(hearth=hearth).splitlines()
                        if line.startswith(NO_BROKER))
            self.assertIn(why, line)

    def test_a_broker_that_is_slow_to_start_may_say_something(self):
        """Nobody listens any more by then: that is no reason to end."""
        slow = self.copy() / "hearthd"
        slow.write_text(f"#!/bin/sh\nsleep 0.3\nexec {harness.HEARTHD} \"$@\"\n")
        slow.chmod(0o755)
        self.env["HEARTH_STATE_DIR"] = "relative"
        self.run_program(slow.parent / "hearth", "run", "true")
        done = self.run_program(harness.HEARTH, "status", "--wait", "20")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_without_report_nothing_is_said(self):
        done = self.run_program(harness.HEARTH, "run", "echo", "ran",
                                env={**self.env, "HEARTH_SOCKET": f"{self.dir}/none/socket"})
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"ran\n", b""))

    def test_switched_off(self):
        text = self.report(HEARTH="0", LD_LIBRARY_PATH=str(harness.SIM.parent))
        self.assertIn("warning: HEARTH=0: Hearth is switched off", text)
        self.assertNotIn("no CUDA call was seen", text)
        self.assertNotIn("broker", text)

    def test_no_cuda_call(self):
        self.assertIn("no CUDA call was seen", self.report("true"))

    def test_as_json(self):
        env = {"HEARTH_SOCKET": f"{self.dir}/none/socket", "CUDA_MODULE_LOADING": "EAGER"}
        shown = json.loads(self.report(options=["--json"], **env))
        self.assertEqual([found["id"] for found in shown["warnings"]], ["broker"])
        self.assertEqual([[found["id"] for found in run["warnings"]] for run in shown["runs"]],
                         [["eager-loading"]])
        self.assertEqual(json.loads(self.report(options=["--json"]))["warnings"], [])

    def in_both(self, words, *program, **env):
        """The same in `hearth report`, which has it from the broker."""
        self.assert_one(words, self.warnings(*program, **env))
        done = self.run_program(harness.HEARTH, "report")
        self.assertEqual(done.stdout.decode().count("warning: "), 1, done.stdout)
        self.assertIn(words, done.stdout.decode())

    def test_eager_loading(self):
        self.in_both("CUDA_MODULE_LOADING=EAGER", CUDA_MODULE_LOADING="eager")
        self.assertEqual(self.warnings(CUDA_MODULE_LOADING="LAZY"), [])

    def test_connections(self):
        self.in_both("CUDA_DEVICE_MAX_CONNECTIONS=32", CUDA_DEVICE_MAX_CONNECTIONS="32")
        self.assertEqual(self.warnings(CUDA_DEVICE_MAX_CONNECTIONS="8"), [])

    def compile(self, number, *files):
        """On a simulated machine whose own cache is empty."""
        self.env["SIMCUDA_MACHINE"] = str(self.dir / f"machine-{number}")
        return (sys.executable, self.script, *files)

    def test_a_jit_cache_that_keeps_nothing(self):
        blocked = f"{self.ptx}/cache"
        self.in_both("the JIT cache can't be written", *self.compile(1, self.ptx),
                     CUDA_CACHE_PATH=blocked)
        self.run_program(harness.HEARTH, "report", "--clear")
        self.assertEqual(self.warnings(*self.compile(2), CUDA_CACHE_PATH=blocked), [])
        self.assertEqual(self.warnings(*self.compile(3, self.ptx),
                                       CUDA_CACHE_PATH=str(self.dir / "cache")), [])

    def test_ptx_compiled_at_every_start(self):
        env = {"CUDA_CACHE_PATH": str(self.dir / "cache")}
        self.assertEqual(self.warnings(*self.compile(1, self.ptx), **env), [])
        self.in_both("PTX is compiled at every start", *self.compile(2, self.ptx), **env)
        self.assertEqual(self.warnings(*self.compile(2, self.ptx), **env), [])


if __name__ == "__main__":
    harness.main()
