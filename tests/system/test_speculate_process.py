"""Programs to which a second thread, an open descriptor or a changed identity could matter: as
natively, also where everything is speculated."""
import os
import sys

import harness
from harness import main
from speculation import READY, STEPS, SpeculationTest

AFTERWARDS = ("init", "devices", "retain=0", "work")


class Process(SpeculationTest):
    def steps(self, *steps, **env):
        done = self.compare_steps(*steps, **env)
        self.assertIn("speculation: cuInit", done.messages)
        return done

    def test_signals_go_to_the_program(self):
        for wait in ("sleep=0", "sleep=15", READY):
            self.compare_steps(wait, "sigwait", "sigwait", *AFTERWARDS, SIMCUDA_SPEED="0.25")

    def test_descriptors_closed_or_replaced(self):
        for step in ("close", "replace"):
            with self.subTest(step):
                done = self.steps(READY, step, *AFTERWARDS)
                self.assertIn("descriptors changed", done.messages)
                self.steps(READY, step, "end=exit")
                self.steps(READY, step, "sleep=20", "end=return")
                self.steps(READY, "init", step, "end=_exit")

    def test_descriptors_closed_while_it_opens_them(self):
        for wait in range(0, 60, 6):
            self.compare_steps(f"sleep={wait}", "close", "init", SIMCUDA_SPEED="0.25")

    def test_the_next_descriptor_has_the_number_it_would_have_had(self):
        self.steps(READY, "next", "next", *AFTERWARDS)
        self.steps(READY, "next", "fork", "next", *AFTERWARDS)
        self.steps(READY, "lookup", "next", "end=exit")
        done = self.steps(READY, "next", "env=CUDA_VISIBLE_DEVICES=0", "next", "init")
        self.assertIn("squash: ", done.messages)

    def test_a_childs_numbers(self):
        """The child's, which come first; the parent's high ones are the driver's."""
        runs = [run(STEPS, READY, "fork", "numbers", "end=_exit")
                for run in (self.plain, self.under)]
        plain, under = [done.stdout.decode().splitlines()[:2] for done in runs]
        self.assertEqual(plain, under)
        self.assertIn("next 3, open: 0 1 2", plain)

    def test_where_few_descriptors_are_allowed(self):
        for limit in (40, 256, 1000, 1024, 4096):
            with self.subTest(limit):
                done = self.compare("sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh", STEPS, READY,
                                    *AFTERWARDS, "end=exit")
                self.assertIn("speculation: cuInit 0", done.messages)

    def test_where_the_high_numbers_are_taken(self):
        """A program that has its own files there."""
        script = "for fd in $(seq 768 1000); do eval \"exec $fd</dev/null\"; done; exec \"$@\""
        self.compare("bash", "-c", script, "bash", STEPS, READY, *AFTERWARDS, "end=exit")

    def test_affinity(self):
        done = self.steps(READY, "cpu=0", *AFTERWARDS)
        self.assertIn("processors changed", done.messages)

    @harness.as_another
    def test_another_user(self):
        os.chmod(self.dir, 0o777)
        done = self.steps(READY, "uid=65534", *AFTERWARDS)
        self.assertIn("user, root folder or processors changed", done.messages)

    @harness.as_another
    def test_another_user_while_the_thread_is_inside(self):
        """setuid signals every thread of the process, also those that block all signals."""
        for wait in (2, 20, 40):
            self.compare_steps(f"sleep={wait}", "uid=65534", "sleep=20", "end=exit",
                               SIMCUDA_SPEED="0.25")


class Wrapped(SpeculationTest):
    """Tools in front of the program, which are preloaded too; everything is asked for."""
    LEARNED = None

    def under_all(self, *command):
        """As `hearth run --eager` would exec it."""
        return self.compare("sh", "-c", 'HEARTH_SPECULATE=always:$$ exec "$@"', "sh", *command)

    def check(self, *tool):
        done = self.under_all(*tool, STEPS, "lookup", READY, *AFTERWARDS)
        self.assertEqual(done.how["cuInit"], "speculated", done.messages)
        return done

    def test_nothing_in_front(self):
        self.check()

    def test_env_and_nice(self):
        self.check("env", "A=B")
        self.check("nice", "-n", "1")

    def test_taskset(self):
        self.check("taskset", "-c", "0")

    @harness.as_another
    def test_setpriv(self):
        os.chmod(self.dir, 0o777)
        self.under_all("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", STEPS,
                       "lookup", READY, *AFTERWARDS)

    def test_unshare(self):
        """unshare(CLONE_NEWUSER) fails in a process with two threads."""
        plain = self.plain("unshare", "-U", "true")
        if plain.returncode:
            self.skipTest("no user namespaces here")
        done = self.under_all("unshare", "-U", "sh", "-c", "echo inside")
        self.assertEqual(done.stdout, b"inside\n")

    def test_a_tool_that_takes_its_time(self):
        done = self.under_all(sys.executable, "-c", "import time; time.sleep(.1); print(1)")
        self.assertEqual(done.stdout, b"1\n")


if __name__ == "__main__":
    main()
