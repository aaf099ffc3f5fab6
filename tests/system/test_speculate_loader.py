"""cuInit under the loader's lock and from many threads, while the speculation is anywhere: no
deadlock, the right results, and at most a second late."""
import time

from harness import PROGRAMS, main
from speculation import READY, STEPS, SpeculationTest

CONSTRUCTOR = f"plugin={PROGRAMS / 'init_constructor.so'}"
LATE_S = 1.0


class Loader(SpeculationTest):
    def check(self, *steps, **env):
        begun = time.monotonic()
        plain = self.plain(STEPS, *steps, **env)
        between = time.monotonic()
        under = self.under(STEPS, *steps, **env)
        took = time.monotonic() - between - (between - begun)
        self.assertEqual((plain.returncode, plain.stdout.decode(), plain.stderr),
                         (under.returncode, under.stdout.decode(), under.stderr), under.messages)
        self.assertLess(took, LATE_S + 0.5, under.messages)  # half a second for a busy machine
        return under

    def test_a_constructor_at_every_moment(self):
        """Before, inside and after the speculation's cuInit and its retain."""
        for wait in range(0, 70, 10):
            with self.subTest(f"{wait} ms"):
                self.check(f"sleep={wait}", CONSTRUCTOR, "init", "work", SIMCUDA_SPEED="0.25")

    def test_a_constructor_afterwards(self):
        done = self.check(READY, CONSTRUCTOR, "init", "retain=0", "work")
        self.assertEqual(done.how["cuInit"], "speculated")

    def test_a_driver_that_takes_the_loaders_lock(self):
        for lock in ("init", "retain", "both"):
            for wait in (0, 10, 35, 60):
                with self.subTest(f"{lock} after {wait} ms"):
                    self.check(f"sleep={wait}", CONSTRUCTOR, "init", "retain=0", "work",
                               SIMCUDA_SPEED="0.25", SIMCUDA_LOADER_LOCK=lock)

    def test_a_program_that_holds_the_lock_while_the_thread_wants_it(self):
        """The constructor waits before it calls, so that the thread is caught inside cuInit or the
        retain."""
        slow = PROGRAMS / "init_constructor_slow.so"
        for lock in ("none", "init", "retain", "both"):
            for wait in (0, 3):
                with self.subTest(f"{lock} after {wait} ms"):
                    self.check(f"sleep={wait}", f"plugin={slow}", "init", "retain=0", "work",
                               SIMCUDA_SPEED="0.1", SIMCUDA_LOADER_LOCK=lock)

    def test_from_32_threads(self):
        for wait in range(0, 60, 12):
            with self.subTest(f"{wait} ms"):
                self.check(f"sleep={wait}", "storm=32", "init", "devices", "retain=0", "work",
                           SIMCUDA_SPEED="0.25")
        for steps in (("env=CUDA_VISIBLE_DEVICES=0",), ("env=CUDA_VISIBLE_DEVICES=",), ("close",)):
            self.check(READY, *steps, "storm=32", "init", "devices", "retain=0", "work")

    def test_from_32_threads_with_retains(self):
        for wait in range(0, 60, 12):
            with self.subTest(f"{wait} ms"):
                self.check(f"sleep={wait}", "storms=32", "state=0", "work", SIMCUDA_SPEED="0.25")


if __name__ == "__main__":
    main()
