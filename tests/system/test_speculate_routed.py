"""HEARTH_CTX=primary: cuCtxCreate gives the primary context. Every rule of contexts holds as in a
plain run, but for the differences that lib/README.md lists, each of which has its test here."""
import difflib
import sys

import harness
from harness import main
from speculation import READY, STEPS, SpeculationTest

PRIMARY = {"HEARTH_CTX": "primary"}
SECTIONS = ("init", "device", "primary", "reset", "flags", "stack", "created", "old", "memory",
            "module", "library", "launch", "stream", "event", "capture", "modes", "graph", "fork")
# What the rules print natively and routed: one handle for all, so that others keep it alive; and
# the primary context has the version of the newer entries.
DIFFERENT = """\
-cuCtxSynchronize, destroyed: 709
+cuCtxSynchronize, destroyed: 0
-cuCtxDestroy_v2, destroyed elsewhere: 709
+cuCtxDestroy_v2, destroyed elsewhere: 0
"""


class Routed(SpeculationTest):
    LEARNED = None

    def lines(self, *steps, **env):
        """What the steps print natively, and routed."""
        return [run(STEPS, *steps, **env).stdout.decode().splitlines()
                for run in (self.plain, lambda *words, **more: self.under(*words, **more,
                                                                          **PRIMARY))]

    def same(self, *steps, **env):
        return self.compare(STEPS, *steps, **env, **PRIMARY)

    def different(self, *steps, native, routed):
        """These lines, and no others."""
        plain, under = self.lines(*steps)
        self.assertEqual([line for line in zip(plain, under) if line[0] != line[1]],
                         list(zip(native, routed)), (plain, under))

    def test_every_rule(self):
        program = harness.PROGRAMS / "driver_rules"
        plain, under = self.plain(program, *SECTIONS), self.under(program, *SECTIONS, **PRIMARY)
        found = [line for line in difflib.ndiff(plain.stdout.decode().splitlines(1),
                                                under.stdout.decode().splitlines(1))
                 if line[0] in "-+"]
        self.assertEqual("".join(line[0] + line[2:] for line in found), DIFFERENT)

    def test_alone(self):
        self.same("init", "create=0", "stack", "work", "destroy", "stack", "destroy", "work")
        self.same("init", "create=0,4", "stack", "work", "create=0,4", "stack", "work")
        self.same("create=0", "init", "create=0", "work")

    def test_what_the_driver_refuses(self):
        self.same("init", "create=7", "create=-1", "create=0,512", "create=0,3", "create=0", "work")

    def test_beside_the_primary_context(self):
        self.same("init", "retain=0", "state=0", "create=0", "stack", "work", "destroy", "stack",
                  "work", "release=0", "state=0", "release=0")
        self.same("init", "create=0", "retain=0", "work", "destroy", "state=0", "retain=0", "work",
                  "release=0", "release=0", "state=0", "release=0", "retain=0", "work")

    def test_a_release_does_not_take_a_created_contexts_reference(self):
        self.same("init", "create=0", "release=0", "release=0", "work", "destroy", "release=0")

    def test_two_devices(self):
        self.same("init", "create=0", "create=1", "stack", "work", "destroy", "stack", "work",
                  SIMCUDA_DEVICES="2")

    def test_in_a_fork_child(self):
        self.same("init", "create=0", "fork", "create=0", "work", "destroy")
        self.same("fork", "init", "create=0", "work", "destroy")

    def test_a_failing_call(self):
        for fail in ("cuDevicePrimaryCtxRetain:2/main", "cuDevicePrimaryCtxRetain:46*1"):
            _, under = self.lines("init", "create=0", "create=0", "stack", SIMCUDA_FAIL=fail)
            code = fail.split(":")[1][:2].strip("/*")
            self.assertIn(f"create {code}: none", under)

    def test_one_context_instead_of_two(self):
        native, routed = self.lines("init", "create=0", "retain=0", "memory")
        self.assertEqual((native[-1], routed[-1]),
                         ("memory 0: 1052 MiB used", "memory 0: 528 MiB used"))

    def test_difference_the_primary_context_is_active(self):
        self.different("init", "create=0", "state=0", "v1flags=0,4",
                       native=("state 0: flags 0, active 0", "flags 0"),
                       routed=("state 0: flags 0, active 1", "flags 708"))

    def test_difference_the_flags_of_the_first_count(self):
        self.different("init", "create=0,4", "create=0,2", "stack",
                       native=("stack: device 0 0, flags 0 10, version 0 3020, depth 2",),
                       routed=("stack: device 0 0, flags 0 12, version 0 3020, depth 2",))
        self.different("init", "create=0,4", "retain=0",
                       native=("retain 0: a context, set 0, flags 0: 8",),
                       routed=("retain 0: a context, set 0, flags 0: 12",))

    def test_difference_a_reset_is_everybodys(self):
        native, routed = self.lines("init", "create=0", "reset=0", "work")
        self.assertEqual(native[-1], "work 0 0 0 0 0 0 0, 0 wrong")
        self.assertNotEqual(routed[-1], native[-1])

    def test_difference_a_destroy_pops_what_the_program_has_set_itself(self):
        self.different("init", "create=0", "retain=0", "destroy", "stack", native=(
            "stack: device 0 0, flags 0 8, version 0 3020, depth 1",), routed=(
            "stack: device 201 -1, flags 201 77, version 201 77, depth 0",))

    def test_difference_memory_stays_until_the_last_destroy(self):
        native, routed = self.python("a = create(); m = alloc(); b = create(); destroy(a)\n"
                                     "print(free(m))")
        self.assertEqual((native, routed), ("1", "0"))

    def test_difference_an_error_is_everybodys(self):
        native, routed = self.python("a = create(); b = create(); fault(); current(a)\n"
                                     "print(cuda.cuCtxSynchronize())")
        self.assertEqual((native, routed), ("0", "700"))

    def test_difference_one_handle(self):
        native, routed = self.python("print(create() == create())")
        self.assertEqual((native, routed), ("False", "True"))

    def python(self, code):
        script = self.dir / "script.py"
        script.write_text(PYTHON + code)
        done = [self.plain(sys.executable, script), self.under(sys.executable, script, **PRIMARY)]
        for run in done:
            self.assertEqual((run.returncode, run.stderr), (0, b""))
        return [run.stdout.decode().strip() for run in done]


PYTHON = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuInit(0)
def create():
    handle = ctypes.c_void_p()
    assert not cuda.cuCtxCreate_v2(ctypes.byref(handle), 0, 0)
    return handle.value
def destroy(handle):
    return cuda.cuCtxDestroy_v2(ctypes.c_void_p(handle))
def current(handle):
    return cuda.cuCtxSetCurrent(ctypes.c_void_p(handle))
def alloc():
    memory = ctypes.c_uint64()
    assert not cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4096))
    return memory
def free(memory):
    return cuda.cuMemFree_v2(memory)
def fault():
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    cuda.cuModuleLoadData(ctypes.byref(module), b"SIMCUDA1\\nkernel fault fault\\n")
    cuda.cuModuleGetFunction(ctypes.byref(function), module, b"fault")
    cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None)
    cuda.cuCtxSynchronize()
"""


class Ahead(SpeculationTest):
    """The primary context that a learned cuCtxCreate will ask for is made ahead."""
    LEARNED = ("sleep=40", "lookup", "init", "create=0,4")

    def test_it_is_handed_over(self):
        done = self.compare_steps(READY, "init", "create=0,4", "stack", "work", "destroy", "stack",
                                  **PRIMARY)
        self.assert_speculated(done)
        self.assertEqual(done.how["cuCtxCreate_v2"], "speculated", done.messages)

    def test_other_flags(self):
        done = self.compare_steps(READY, "init", "create=0,2", "stack", "work", **PRIMARY)
        self.assertEqual(done.how["cuCtxCreate_v2"], "squashed", done.messages)
        done = self.compare_steps(READY, "init", "create=0", "stack", "work", **PRIMARY)
        self.assertEqual(done.how["cuCtxCreate_v2"], "squashed", done.messages)

    def test_a_program_that_retains_it_first(self):
        self.compare_steps(READY, "init", "retain=0", "work", "create=0", "stack", "work",
                           "destroy", "release=0", "state=0", **PRIMARY)

    def test_a_changed_environment(self):
        self.compare_steps(READY, "env=CUDA_VISIBLE_DEVICES=0", "init", "create=0,4", "stack",
                           "work", **PRIMARY)


if __name__ == "__main__":
    main()
