"""The program's end at any moment of the speculation: the same status, the same output, no hang."""
import random
import signal
import subprocess
import sys
import time

from harness import main
from speculation import READY, STEPS, SpeculationTest

ENDS = ("return", "exit", "_exit", "quick", "abort", "term", "kill", "exec")


class Exit(SpeculationTest):
    def test_every_end_at_every_moment(self):
        chance = random.Random(1)
        for end in ENDS:
            for _ in range(8):
                wait = chance.randrange(70)
                with self.subTest(f"{end} after {wait} ms"):
                    self.compare_steps(f"sleep={wait}", f"end={end}", SIMCUDA_SPEED="0.25")

    def test_every_end_of_a_program_that_has_used_the_driver(self):
        for end in ENDS:
            with self.subTest(end):
                self.compare_steps(READY, "init", f"end={end}")
                self.compare_steps(READY, "init", "retain=0", "work", f"end={end}")
                self.compare_steps(READY, "env=CUDA_VISIBLE_DEVICES=0", "init", "retain=0",
                                   f"end={end}")

    def test_every_end_just_after_the_first_call(self):
        chance = random.Random(2)
        for end in ENDS:
            for _ in range(4):
                wait = chance.randrange(60)
                with self.subTest(f"{end} after {wait} ms"):
                    self.compare_steps(f"sleep={wait}", "init", f"end={end}", SIMCUDA_SPEED="0.25")

    def test_while_the_thread_is_inside_the_driver(self):
        """Neither the driver's exit handlers nor the destructors of its objects run while a call
        of the speculation is in flight, whether the guess was right or wrong."""
        chance = random.Random(3)
        steps = {"unused": (), "used": ("init",), "replaced": ("env=CUDA_VISIBLE_DEVICES=", "init"),
                 "asked": ("env=CUDA_VISIBLE_DEVICES=", "init", "retain=0"),
                 "changed": ("init", "env=CUDA_LAUNCH_BLOCKING=1", "retain=0")}
        for name, first in steps.items():
            for end in ("return", "exit"):
                for _ in range(6):
                    wait = chance.randrange(10, 100)
                    with self.subTest(f"{name}, {end} after {wait} ms"):
                        done = self.compare_steps(
                            f"sleep={wait}", *first, f"end={end}",
                            SIMCUDA_SPEED="1", SIMCUDA_TIME="init=20,init_cold=0,init_idle=0,"
                            "init_hidden=0,retain=400,release=10,exit=0")
        self.assertIn("speculation: cuInit", done.messages)

    def test_exit_handlers_in_their_order(self):
        """The program's own, registered before and after its cuInit, and the driver's."""
        for steps in (("atexit", "init"), ("init", "atexit"), ("atexit", "init", "retain=0"),
                      ("atexit", "env=CUDA_VISIBLE_DEVICES=0", "init", "atexit"),
                      ("atexit", "init", "fork"), ("atexit", "fork", "init")):
            for end in ("return", "exit"):
                with self.subTest(f"{steps} {end}"):
                    self.compare_steps(READY, *steps, f"end={end}")

    def test_while_the_thread_is_inside_many_rounds(self):
        chance = random.Random(4)
        for _ in range(300):
            wait = chance.randrange(1, 40)
            first = chance.choice(((), ("init",), ("env=CUDA_VISIBLE_DEVICES=", "init")))
            with self.subTest(f"{first} after {wait} ms"):
                done = self.under(STEPS, f"sleep={wait}", *first, "end=exit", SIMCUDA_SPEED="0.1")
                self.assertEqual(done.returncode, 3, done.messages)

    def test_the_main_thread_ends_alone(self):
        for steps in ((), (READY,), (READY, "busythread=300"), (READY, "init=1")):
            with self.subTest(steps):
                begun = time.monotonic()
                done = self.compare_steps(*steps, "end=thread")
                self.assertLess(time.monotonic() - begun, 5)
                self.assertIn("speculation: cuInit 0", done.messages)
        done = self.compare_steps(READY, "end=thread", HEARTH_GIVE_BACK="1")

    def test_it_is_not_slower_to_leave_than_a_program_that_used_the_driver(self):
        begun = time.monotonic()
        self.under(STEPS, "sleep=150", "end=exit", SIMCUDA_SPEED="1")
        self.assertLess(time.monotonic() - begun, 1.5)

    def test_killed_from_outside(self):
        for wait in (0, 10, 30, 60):
            for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT):
                process = subprocess.Popen(
                    [STEPS, "sleep=20000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    env=self.preloaded(HEARTH_STATE_DIR=str(self.state()), SIMCUDA_SPEED="0.25"))
                time.sleep(wait / 1000)
                process.send_signal(number)
                self.assertEqual(process.communicate(timeout=10), (b"", b""))
                self.assertEqual(process.returncode, -number)


PYTHON = """
import atexit, ctypes, os, sys, threading, time
atexit.register(lambda: print("at exit", flush=True))
def late():
    time.sleep(5)
threading.Thread(target=late, daemon=True).start()
time.sleep(float(sys.argv[1]))
how = sys.argv[2]
if how == "init":
    cuda = ctypes.CDLL("libcuda.so.1")
    handle = ctypes.c_void_p()
    print(cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(handle), 0), flush=True)
elif how == "_exit":
    os._exit(7)
elif how == "exit":
    sys.exit(3)
elif how == "raise":
    raise KeyError(how)
elif how == "abort":
    os.abort()
elif how == "exec":
    os.execv("/bin/sh", ["sh", "-c", "echo replaced; exit 6"])
"""


class Python(SpeculationTest):
    LEARNED = None

    def test_every_end(self):
        script = self.dir / "script.py"
        script.write_text(PYTHON)
        learned = self.learn(sys.executable, script, "0.05", "init")
        for how in ("init", "_exit", "exit", "raise", "abort", "exec", "return"):
            for wait in ("0", "0.02", "0.05"):
                with self.subTest(f"{how} after {wait} s"):
                    done = self.compare(sys.executable, script, wait, how, SIMCUDA_SPEED="0.25",
                                        state=self.state(learned))
        self.assertIn("speculation: cuInit", done.messages)


if __name__ == "__main__":
    main()
