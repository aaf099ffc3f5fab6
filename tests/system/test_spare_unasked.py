"""Spares that are kept unasked, with HEARTH_SPARE=auto: of which programs, with which imports,
within which budget."""
import json
import shutil
import time

import harness
import spare_programs
import spares
from harness import main
from spares import PYTHON, wait_gone
from speculation import SpeculationTest

SHOW = "import decimal, json, sys\nprint(decimal.Decimal(1) / 3, json.dumps([1]), sys.argv)\n"
AHEAD = "import sys\nahead = 'decimal' in sys.modules\nimport decimal\nprint('ran')\n" \
        "open('ahead', 'w').write(str(ahead))\n"
RUNS = 2  # plain ones, before a spare is kept


class UnaskedTest(spares.SpareTest):
    def setUp(self):
        super().setUp()
        self.env.update(HEARTH_SPARE="auto", HEARTH_STATE_DIR=str(self.dir / "state"))
        self.run = self.script("program.py", SHOW)

    def script(self, name, text):
        """What runs a program, as `hearth run` does, and returns whether a spare ran it."""
        (self.work / name).write_text(text)

        def run(*words, **options):
            env = {**self.env, "HEARTH_LOG_LEVEL": "info"}
            done = self.hearth("run", "--", PYTHON, name, *words, env=env, **options)
            lines = done.stderr.splitlines()
            self.assertEqual((done.returncode, [line for line in lines if
                                                not line.startswith(b"hearth[")]), (0, []), done)
            return done, not any(b": a plain start: " in line for line in lines)
        return run

    def plain(self, run, times=RUNS):
        for _ in range(times):
            self.assertFalse(run()[1])

    def wait_for_none(self):
        deadline = time.monotonic() + harness.DEADLINE_S
        while self.names():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def learned(self):
        return [path.read_text().splitlines() for path in (self.dir / "state/spares").iterdir()
                if not path.suffix]


class WhoseTest(UnaskedTest):
    def test_after_two_runs_and_with_its_imports_after_three(self):
        run = self.script("program.py", AHEAD)
        self.plain(run)
        for expected in ("False", "True", "True"):
            self.wait_for_one()
            done, is_spared = run()
            self.assertEqual((done.stdout, is_spared), (b"ran\n", True))
            self.assertEqual((self.work / "ahead").read_text(), expected)
        self.assertIn("decimal", self.learned()[0])

    def test_none_unless_asked_for(self):
        del self.env["HEARTH_SPARE"]
        for _ in range(4):
            self.run()
        self.assertFalse(self.spares.exists() and self.names())

    def test_each_program_has_its_own(self):
        self.plain(self.run)
        self.wait_for_one()
        other = self.script("other.py", SHOW)
        self.plain(other, 1)
        (self.work / "program.py").write_text(SHOW + "print('changed')\n")
        done, is_spared = self.run()
        self.assertFalse(is_spared)
        self.assertIn(b"changed", done.stdout)

    def test_none_for_a_program_that_changes_its_environment(self):
        """It may do so for what it imports then."""
        run = self.script("program.py", "import os\nos.environ['OMP_NUM_THREADS'] = '3'\n" + SHOW)
        self.plain(run)
        self.wait_for_one()
        self.assertTrue(run()[1])
        self.wait_for_none()
        self.plain(run, 2)
        self.assertEqual(self.learned(),
                         [["hearth spare 1: never: it changes its environment"]])

    def test_none_for_a_program_whose_imports_print(self):
        folder = self.dir / "site"
        folder.mkdir()
        (folder / "talks.py").write_text("print('imported')\n")
        self.env["PYTHONPATH"] = str(folder)
        run = self.script("program.py", "import talks\n")
        self.plain(run)
        self.wait_for_one()
        for is_spared in (True, False, False):
            done, was_spared = run()
            self.assertEqual((done.stdout, was_spared), (b"imported\n", is_spared))
            self.wait_for_none()

    def test_none_for_one_whose_imports_fail_ahead(self):
        folder = self.dir / "site"
        folder.mkdir()
        (folder / "needy.py").write_text("import sys\nassert sys.argv[-1] == 'x'\n")
        self.env["PYTHONPATH"] = str(folder)
        run = self.script("program.py", "import needy\nprint('fine')\n")
        for is_spared in (False, False, True, False, False):
            if is_spared:
                self.wait_for_one()
            done, was_spared = run("x")
            self.assertEqual((done.stdout, was_spared), (b"fine\n", is_spared))
            if is_spared:
                self.wait_for_none()

    def test_the_programs_own_modules_are_its_own(self):
        (self.work / "own.py").write_text("VALUE = 1\n")
        run = self.script("program.py", "import own\nprint(own.VALUE)\n")
        self.plain(run)
        for value in (1, 2, 3):
            self.wait_for_one()
            (self.work / "own.py").write_text(f"VALUE = {value}{' ' * value}\n")
            done, is_spared = run()
            self.assertEqual((done.stdout, is_spared), (b"%d\n" % value, True))


    def test_however_it_is_named(self):
        """A module and a text have their own, too."""
        (self.work / "shown.py").write_text(SHOW)
        for words in (["-m", "shown", "a"], ["-c", SHOW, "a"]):
            with self.subTest(words=words):
                outputs = []
                for is_spared in (False, False, True, True):
                    if is_spared:
                        self.wait_for_one()
                    done = self.hearth("run", "--", PYTHON, *words,
                                       env={**self.env, "HEARTH_LOG_LEVEL": "info"})
                    self.assertEqual(b": a plain start: " in done.stderr, not is_spared)
                    outputs.append((done.returncode, done.stdout))
                self.assertEqual(outputs, [outputs[0]] * 4)
                self.assertEqual(outputs[0][0], 0)
                self.hearth("spare", "stop")

    def test_it_is_forgotten_with_the_profiles(self):
        self.plain(self.run)
        self.wait_for_one()
        self.run()
        self.wait_for_one()
        self.hearth("spare", "stop")
        done = self.hearth("profile", "forget", "--all")
        self.assertEqual((done.returncode, list((self.dir / "state/spares").iterdir())), (0, []))
        self.plain(self.run, 1)
        self.assertEqual(self.waiting(), [])

    def test_a_list_that_others_could_have_written_is_none(self):
        self.plain(self.run)
        self.wait_for_one()
        self.run()
        self.wait_for_one()
        path = next(path for path in (self.dir / "state/spares").iterdir() if not path.suffix)
        path.write_text("hearth spare 1: imports\nsched\n")
        for mode, expected in ((0o620, False), (0o600, True)):
            path.chmod(mode)
            self.hearth("spare", "stop")
            self.assertFalse(self.run()[1])
            pid = self.wait_for_one()
            with open(f"/proc/{pid}/cmdline", "rb") as words:
                self.assertEqual(b"sched" in words.read().split(b"\0"), expected)


class SameTest(UnaskedTest):
    PROGRAMS = ("asyncio", "atexit", "atexit_error", "exception", "exit_3", "keyboard", "logging",
                "os_exit", "pickle", "pool_fork", "pool_spawn", "recursion", "thread_error",
                "warn_level")

    def test_programs_come_out_the_same_in_each_of_their_runs(self):
        """Natively, in the spare that learns, and in the one that has imported."""
        for name in self.PROGRAMS:
            with self.subTest(program=name):
                (self.work / f"its_{name}.py").write_text(spare_programs.SCRIPTS[name] + "\n")
                seen = []
                for _ in range(RUNS + 2):
                    if len(seen) >= RUNS and name != "os_exit":
                        self.wait_for_one()
                    done = self.hearth("run", "--", PYTHON, f"its_{name}.py")
                    seen.append((done.returncode, done.stdout,
                                 spares.ADDRESS.sub(b"0x", done.stderr)))
                self.assertEqual(seen, [seen[0]] * len(seen))
                self.hearth("spare", "stop")


class GpuTest(UnaskedTest):
    """On the simulated driver."""
    setUpClass = SpeculationTest.__dict__["setUpClass"]
    PROGRAM = ("import ctypes\ncuda = ctypes.CDLL('libcuda.so.1')\ncontext = ctypes.c_void_p()\n"
               "print(cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))\n")

    def setUp(self):
        super().setUp()
        shutil.copytree(self.proved, self.dir / "state", dirs_exist_ok=True)
        self.log = self.dir / "log"
        self.env.update(SIMCUDA_SPEED="0", SIMCUDA_DEVICES="1", HEARTH_LOG=str(self.log),
                        HEARTH_DRIVER=str(harness.SIM), LD_LIBRARY_PATH=str(harness.SIM.parent))
        self.cuda = self.script("cuda.py", self.PROGRAM)

    def how(self):
        """How the calls of the program in a spare were served."""
        self.wait_for_one()
        self.log.unlink(missing_ok=True)
        done, is_spared = self.cuda()
        self.assertEqual((done.stdout, is_spared), (b"0 0\n", True))
        return {json.loads(line)["how"] for line in self.log.read_text().splitlines()[:2]}

    def test_a_context_as_its_plain_runs_had(self):
        self.plain(self.cuda)
        self.assertEqual([self.how(), self.how()], [{"speculated"}] * 2)

    def test_no_context_where_none_is_allowed(self):
        self.env["HEARTH_SPARE_GPU_MIB"] = "783"
        self.plain(self.cuda)
        self.assertNotIn("speculated", self.how())

    def test_no_more_contexts_than_are_allowed(self):
        self.env["HEARTH_SPARE_GPU_MIB"] = "1000"
        self.plain(self.cuda)
        first = self.wait_for_one()
        self.plain(self.script("other.py", self.PROGRAM))
        wait_gone(self, first)
        self.assertTrue(self.wait_for_one())


class BudgetTest(UnaskedTest):
    def test_one_that_is_over_it_alone_is_not_kept(self):
        self.env["HEARTH_SPARE_MIB"] = "1"
        self.plain(self.run)
        self.wait_for_none()

    def test_the_one_that_has_waited_longest_goes_first(self):
        text = "import ctypes\nheap = ctypes.create_string_buffer(1 << 20)\n"
        self.plain(self.script("first.py", text))
        first = self.wait_for_one()
        time.sleep(1.1)  # ages are told in seconds
        row = next(line.split() for line in self.hearth("spare", "status").stdout.splitlines()
                   if line.split()[:1] == [b"%d" % first])
        self.env["HEARTH_SPARE_MIB"] = str(int(row[3]) * 5 // 2)  # for two, and not for three
        self.plain(self.script("second.py", text))
        self.plain(self.script("third.py", text))
        wait_gone(self, first)
        self.assertTrue(self.waiting())

    def test_it_ends_when_it_has_waited_too_long(self):
        self.env["HEARTH_SPARE_IDLE"] = "1"
        self.plain(self.run)
        wait_gone(self, self.wait_for_one())
        self.assertEqual(self.waiting(), [])

    def test_wrong_values_count_as_none(self):
        self.env["HEARTH_SPARE_MIB"] = "much"
        self.plain(self.run)
        self.wait_for_one()


if __name__ == "__main__":
    main()
