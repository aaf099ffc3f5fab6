"""Who speculates gives way to who waits: a context takes no longer beside seven programs that make
theirs ahead, nobody sleeps for ever, and no child gets the file by which that is said."""
import fcntl
import os
import subprocess
import sys
import time

from harness import main
from speculation import STEPS, SpeculationTest

OTHERS = 7
TRIES = 3
STARTED_S = 0.06
MOST = 1.5  # times alone, on a machine that is busy; beside those who don't give way it is six

FORKS = """
import ctypes, os, threading, time
cuda = ctypes.CDLL("libcuda.so.1")
def turns():
    names = []
    for number in os.listdir("/proc/self/fd"):
        try:
            names.append(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:
            pass
    return sum(name.endswith(".turn") for name in names)
cuda.cuInit(0)
context = ctypes.c_void_p()
thread = threading.Thread(target=lambda: cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
thread.start()
while thread.is_alive() and not turns():
    time.sleep(0.001)
here = turns()
child = os.fork()
if child == 0:
    os._exit(turns())
status = os.waitpid(child, 0)[1]
thread.join()
print(here, status, turns(), bool(context.value))
"""


class GiveWay(SpeculationTest):
    SETTINGS = {"SIMCUDA_SPEED": "1"}

    def setUp(self):
        super().setUp()
        self.turn = self.dir / "no-broker.turn"

    def waited_ms(self):
        """What a program that calls at once waits for its context."""
        done = self.under(STEPS, "init", "retain=0", HEARTH_SPECULATE="off")
        return next(record["visible_us"] for record in done.records
                    if record.get("call") == "cuDevicePrimaryCtxRetain") / 1e3

    def beside_ms(self):
        """The same while others speculate."""
        others = [subprocess.Popen([STEPS, "lookup", "sleep=1000", "end=_exit"],
                                   env=self.preloaded(HEARTH_STATE_DIR=str(self.state())))
                  for _ in range(OTHERS)]
        try:
            time.sleep(STARTED_S)
            return self.waited_ms()
        finally:
            for other in others:
                other.kill()
                other.wait()

    def test_a_context_beside_seven_that_speculate(self):
        alone = min(self.waited_ms() for _ in range(TRIES))
        without = self.beside_ms()
        self.turn.touch()
        beside = min(self.beside_ms() for _ in range(TRIES))
        self.assertLess(beside, MOST * alone)
        self.assertGreater(without, 2 * alone, "nobody stood in the way")

    def hold(self):
        """Somebody waits, for ever."""
        file = open(self.turn, "w+b")
        self.addCleanup(file.close)
        fcntl.lockf(file, fcntl.LOCK_SH)

    def test_its_own_program_is_not_kept_waiting(self):
        self.turn.touch()
        self.hold()
        begun = time.monotonic()
        done = self.compare_steps("lookup", "sleep=300", "init", "retain=0", "copy")
        self.assertLess(time.monotonic() - begun, 2.5)
        self.assertEqual(done.how["cuInit"], "speculated")

    def test_nor_its_end(self):
        self.turn.touch()
        self.hold()
        begun = time.monotonic()
        self.compare_steps("lookup", "sleep=100", "end=exit")
        self.assertLess(time.monotonic() - begun, 2)

    def test_nobody_sleeps_for_ever(self):
        self.turn.touch()
        self.hold()
        done = self.compare_steps("lookup", "sleep=4500", "init", "retain=0", "copy")
        self.assertEqual(done.how["cuDevicePrimaryCtxRetain"], "speculated")
        hidden_us = next(record["hidden_us"] for record in done.records
                         if record.get("call") == "cuDevicePrimaryCtxRetain")
        self.assertLess(hidden_us, 1000000, "the sleep is not the driver's")

    def test_a_child_has_no_descriptor_of_it(self):
        self.turn.touch()
        for mode in ("off", "auto"):
            done = self.run_program(sys.executable, "-W", "ignore", "-c", FORKS,
                                    env=self.preloaded(HEARTH_SPECULATE=mode,
                                                       HEARTH_STATE_DIR=str(self.state())))
            self.assertEqual(done.stdout, b"1 0 0 True\n", (mode, done.stderr))

    def test_what_is_no_file_stops_nobody(self):
        os.mkfifo(self.turn)
        done = self.compare_steps("lookup", "sleep=300", "init", "retain=0", "copy")
        self.assertEqual(done.how["cuInit"], "speculated")


if __name__ == "__main__":
    main()
