"""Children of a program whose driver has been initialised ahead: they begin as a plain program's
children do, with the descriptors of those, and never hang."""
import re
import sys

from harness import main
from speculation import READY, STEPS, SpeculationTest

# How far the program has come before it forks, and where the speculation is then.
READY_AND_UNUSED = (READY,)
INITIALISED = (READY, "init")
RETAINED = (READY, "init", "retain=0")
CHILD = ("fds", "count", "init", "devices", "retain=0", "work")


class Fork(SpeculationTest):
    maxDiff = None

    def test_the_child_begins_by_itself_and_the_parent_keeps_its_own(self):
        done = self.compare_steps(READY, "fork", "count", "init", "devices", "retain=0", "work")
        self.assert_speculated(done)
        how = [record["how"] for record in done.records if record.get("call") == "cuInit"]
        self.assertCountEqual(how, ["cold", "speculated"])

    def test_a_program_that_initialised_the_driver_itself(self):
        for steps in (INITIALISED, RETAINED):
            done = self.compare_steps(*steps, "fork", "count", "init", "retain=0", "state=0",
                                      "release=0", "work")
            self.assert_speculated(done)

    def test_a_child_whose_threads_begin_at_once(self):
        for _ in range(5):
            self.compare_steps(READY, "fork", "storm=16", "devices", "retain=0", "work")
            self.compare_steps(READY, "clone", "storms=8", "devices")
            self.compare_steps(READY, "fork", "fork", "storm=8", "fork", "init")

    def test_children_of_children(self):
        self.compare_steps(READY, "fork", "fork", "init", "retain=0", "work")
        self.compare_steps(READY, "fork", "init", "fork", "init", "retain=0", "work")

    def test_a_child_that_changes_the_environment(self):
        for value in ("", "0", "-1"):
            self.compare_steps(READY, "fork", f"env=CUDA_VISIBLE_DEVICES={value}", "init",
                               "devices", "retain=0", "work")

    def test_without_handlers(self):
        """A bare system call."""
        for steps in (READY_AND_UNUSED, INITIALISED, RETAINED):
            self.compare_steps(*steps, "clone", "count", "init", "retain=0", "work")

    def test_a_bare_child_that_has_put_its_own_files_in_their_place(self):
        self.compare_steps(READY, "clone", "replace", "init", "retain=0", "work")

    def test_the_childs_descriptors(self):
        for steps in (READY_AND_UNUSED, INITIALISED, RETAINED):
            with self.subTest(steps):
                plain = self.plain(STEPS, *steps, "fork", "fds", "init", "fds", "end=_exit")
                under = self.under(STEPS, *steps, "fork", "fds", "init", "fds", "end=_exit")
                lines = []
                for done in (plain, under):
                    text = done.stdout.decode()
                    begin = text.index("in the child")
                    lines.append(text[begin:text.index("child ended")].replace(
                        str(self.dir), "DIR"))
                self.assertEqual(lines[0], lines[1], under.messages)

    def counts(self, *runs):
        """How many files the child had."""
        return [re.search(r"([0-9]+) files", done.stdout.decode()).group(1) for done in runs]

    def test_a_bare_childs_descriptors_after_its_first_call(self):
        for steps in (READY_AND_UNUSED, INITIALISED, RETAINED):
            with self.subTest(steps):
                plain = self.plain(STEPS, *steps, "clone", "init", "fds", "end=_exit")
                under = self.under(STEPS, *steps, "clone", "init", "fds", "end=_exit")
                self.assertEqual(*self.counts(plain, under), under.messages)

    def test_descriptors_while_the_context_is_being_made(self):
        for wait in (30, 60, 90):
            for how in ("fork", "clone"):
                with self.subTest(f"{how} after {wait} ms"):
                    plain = self.plain(STEPS, "sleep=1", "init", how, "init", "fds", "end=_exit")
                    under = self.under(STEPS, "sleep=1", "init", f"sleep={wait}", how, "init",
                                       "fds", "end=_exit",
                                       SIMCUDA_SPEED="1", SIMCUDA_TIME="init_cold=0,init_idle=0,"
                                       "init=0,retain=400")
                    self.assertEqual(*self.counts(plain, under), under.messages)

    def test_another_program(self):
        for steps in (READY_AND_UNUSED, INITIALISED, RETAINED):
            self.compare_steps(*steps, "vfork", "init", "retain=0", "work")
            self.compare_steps(*steps, "fork", "end=exec")

    def test_in_the_middle_of_its_calls(self):
        for wait in range(0, 60, 6):
            # A bare system call has no way to wait until the thread has left the loader.
            for how in ("fork", "clone") if wait > 10 else ("fork",):
                with self.subTest(f"{how} after {wait} ms"):
                    self.compare_steps(f"sleep={wait}", how, "count", "init", "retain=0", "work",
                                       SIMCUDA_SPEED="0.2")

    def test_many_children(self):
        """200 rounds from the very start, where the driver takes a tenth of its times; then from a
        parent that has used it."""
        done = self.compare_steps("forks=200", "init", "retain=0", "work", SIMCUDA_SPEED="0.1")
        self.assert_speculated(done)
        done = self.compare_steps(READY, "init", "retain=0", "forks=50", "work")
        self.assertIn("50 children got 3", done.stdout.decode())

    def test_a_program_that_forks_first_is_not_speculated_again(self):
        state = self.state()
        for _ in range(2):
            done = self.under(STEPS, "lookup", READY, "fork", "init", "retain=0", state=state)
        self.assertNotIn("speculation: cuInit", done.messages)
        self.assertIn("forks before", done.messages)


PYTHON = """
import ctypes, multiprocessing, os, subprocess, sys, time
def use(number):
    cuda = ctypes.CDLL("libcuda.so.1")
    handle, free, total = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
    return [cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(handle), 0),
            cuda.cuCtxSetCurrent(handle),
            cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), 1 << 20)]
def files(number):
    return len(os.listdir("/proc/self/fd"))
first, second = sys.argv[1].split("-")
def begin(how):
    time.sleep(0.04)
    if how == "used":
        print(use(0))
    elif how == "found":
        ctypes.CDLL("libcuda.so.1").cuInit
begin(first)
if second == "os":
    pid = os.fork()
    if not pid:
        print("child", use(0), flush=True)
        os._exit(5)
    print(os.waitpid(pid, 0)[1])
elif second == "pool":
    with multiprocessing.get_context("fork").Pool(3) as pool:
        print(pool.map(use, range(6), chunksize=1)[:1])
elif second == "spawn":
    print(subprocess.run([sys.executable, "-c", "print(3)"], capture_output=True).stdout)
    print(subprocess.run("exit 3", shell=True).returncode)
elif second == "files":
    with multiprocessing.get_context("fork").Pool(1) as pool:
        print(pool.map(files, [0]))
print(use(0))
"""


class Python(SpeculationTest):
    LEARNED = None

    def test_every_way_to_a_child(self):
        script = self.dir / "script.py"
        script.write_text(PYTHON)
        learned = self.learn(sys.executable, script, "used-none")
        for first in ("unused", "found", "used"):
            for second in ("os", "pool", "spawn", "files"):
                with self.subTest(f"{first}-{second}"):
                    done = self.compare(sys.executable, script, f"{first}-{second}",
                                        state=self.state(learned))
                    self.assert_speculated(done)


if __name__ == "__main__":
    main()
