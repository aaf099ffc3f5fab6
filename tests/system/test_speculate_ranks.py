"""Several GPUs: each rank of a launcher has a context on its own one and nowhere else, in the first
run and in later ones; processes that no rule holds for have none before they ask. Where a process
has contexts is what the simulated machine's accounts say."""
import json
import subprocess
import sys
import unittest

import harness
from speculation import SpeculationTest

GPU_PROGRAMS = harness.SOURCE / "tests/gpu"
RUNS, FEW = 5, 3
NAMES = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
# A process that finds nothing done ahead waits so long for it, in seconds; one that is to find it,
# longer. Each rank waits a little more than the one before it: of two that learn at the same moment
# one may be lost.
SHORT, LONG, MORE = 0.4, 5, 0.1

# Takes a device as scripts do: looks cuInit up, has other things to do, asks for its device. Prints
# where it had contexts when it had not yet asked, after cuInit, and with its device.
USE = f"""
import ctypes, json, os, sys, time
sys.path.insert(0, {str(GPU_PROGRAMS)!r})
import gpus_of
def use(device, wait):
    def contexts():
        return gpus_of.of_process(os.getpid())
    cuda = ctypes.CDLL("libcuda.so.1")
    cuda.cuInit
    end = time.monotonic() + wait
    while time.monotonic() < end and not contexts():
        time.sleep(.03)
    line = [contexts()]
    codes = [cuda.cuInit(0)]
    line.append(contexts())
    codes.append(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), device))
    line.append(contexts())
    os.write(1, (json.dumps([device, *line, codes]) + "\\n").encode())
"""
RANK = USE + "use(int(sys.argv[1]), float(sys.argv[2]))\n"
CHILDREN = USE + """
import multiprocessing
def main():
    context = multiprocessing.get_context(sys.argv[1])
    children = [context.Process(target=use, args=(device, float(sys.argv[2])))
                for device in range(int(sys.argv[3]))]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert not any(child.exitcode for child in children)
if __name__ == "__main__":
    main()
"""


class Ranks(SpeculationTest):
    LEARNED = None
    DEVICES = "4"

    def setUp(self):
        super().setUp()
        self.script = self.dir / "rank.py"
        self.script.write_text(RANK)
        self.folder = self.state(self.proved)

    def environment(self, is_plain=False, **env):
        """One that leads to this test's profiles, or a plain one."""
        if is_plain:
            return {**self.env, **env}
        return self.preloaded(HEARTH_STATE_DIR=str(self.folder), **env)

    def launch(self, devices=range(4), wait=SHORT, name="LOCAL_RANK", **env):
        """All ranks at once, each with its device; what each printed."""
        ranks = [subprocess.Popen(
            [sys.executable, self.script, str(device), str(wait + rank * MORE)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True,
            env=self.environment(**{name: str(rank)}, **env))
            for rank, device in enumerate(devices)]
        said = [rank.communicate(timeout=harness.DEADLINE_S)[0] for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0] * len(ranks))
        return [json.loads(line) for line in said]

    def check(self, lines, ahead, gpus="0123"):
        """Each has what it asked for when it has asked, and before it that or nothing."""
        for device, before, after_init, after, codes in lines:
            own = [gpus[device]]
            self.assertEqual((before, after_init, after, codes),
                             (own if ahead else [], own if ahead else [], own, [0, 0]), lines)

    def test_torchruns_ranks_ten_times(self):
        self.check(self.launch(is_plain=True), ahead=False)
        for run in range(10):
            self.check(self.launch(wait=LONG if run else SHORT), ahead=run > 0)

    def test_the_ranks_of_other_launchers(self):
        for name in NAMES[1:]:
            with self.subTest(name):
                self.folder = self.state(self.proved)
                self.check(self.launch(name=name), ahead=False)
                self.check(self.launch(name=name, wait=LONG), ahead=True)

    def test_as_its_user_asked_for(self):
        self.check(self.launch(wait=LONG, HEARTH_SPECULATE="always"), ahead=True)

    def test_fewer_ranks_than_devices(self):
        self.check(self.launch(range(2)), ahead=False)
        self.check(self.launch(range(2), wait=LONG), ahead=True)
        self.check(self.launch(range(4), wait=LONG), ahead=True)

    def test_ranks_that_see_one_device_each(self):
        """As `srun --gpus-per-task=1` leaves them."""
        for run in range(6):
            gpu = run % 4
            lines = self.launch([0], wait=LONG if run else SHORT, CUDA_VISIBLE_DEVICES=str(gpu))
            self.check(lines, ahead=run > 0, gpus=str(gpu))

    def test_a_rule_that_does_not_hold(self):
        for devices in ((3, 2, 1, 0), (1, 2, 3, 0), (0, 0, 0, 0), (0, 1, 0, 1), (0, 1, 2, 1)):
            with self.subTest(devices):
                self.folder = self.state(self.proved)
                for _ in range(3):
                    self.check(self.launch(devices), ahead=False)

    def test_three_clean_runs_after_it(self):
        for devices in ((1, 0), (0, 0), (1, 1)):
            with self.subTest(devices):
                self.folder = self.state(self.proved)
                self.check(self.launch(devices), ahead=False)
                for _ in range(3):
                    self.check(self.launch(range(2)), ahead=False)
                self.check(self.launch(range(2), wait=LONG), ahead=True)

    def test_without_a_rank(self):
        """Two visible devices and no rule: none may get the first one's context."""
        for run in range(RUNS):
            self.check(self.launch([run % 2], name="NOTHING"), ahead=False)

    def test_permuted_devices(self):
        """The same GPUs as in the plain run, learned under another order, and asked for."""
        self.launch()
        for value, gpus in (("1,0", "10"), ("3,1,2,0", "3120"), ("2,3", "23"), ("0,1", "01")):
            for env in ({}, {"HEARTH_SPECULATE": "always"}):
                with self.subTest(value, **env):
                    env["CUDA_VISIBLE_DEVICES"] = value
                    devices = range(len(gpus))
                    self.check(self.launch(devices, is_plain=True, **env), ahead=False, gpus=gpus)
                    self.check(self.launch(devices, wait=LONG, **env), ahead=True, gpus=gpus)


class Children(Ranks):
    """Children of a parent that may itself be a rank: the variable says nothing about them."""

    def setUp(self):
        super().setUp()
        self.script.write_text(CHILDREN)

    def run_children(self, how, count=2, **env):
        done = self.run_program(sys.executable, self.script, how, str(SHORT), str(count),
                                env=self.environment(**env))
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(sorted(line[0] for line in lines), list(range(count)))
        return lines

    def check_runs(self, how, runs=RUNS, **env):
        self.check(self.run_children(how, is_plain=True, **env), ahead=False)
        for _ in range(runs):
            self.check(self.run_children(how, **env), ahead=False)

    def test_spawned(self):
        self.check_runs("spawn")

    def test_of_a_fork_server(self):
        self.check_runs("forkserver")

    def test_spawned_by_a_rank(self):
        self.check_runs("spawn", LOCAL_RANK="0")

    def test_forked_by_a_rank(self):
        self.check_runs("fork", FEW, LOCAL_RANK="1")

    def test_spawned_where_it_was_asked_for(self):
        self.check_runs("spawn", FEW, HEARTH_SPECULATE="always")


def load_tests(loader, _tests, _pattern):
    """Children are not to run what they inherit."""
    suite = unittest.TestSuite(loader.loadTestsFromTestCase(Ranks))
    suite.addTests(Children(name) for name in loader.getTestCaseNames(Children)
                   if name not in vars(Ranks))
    return suite


if __name__ == "__main__":
    harness.main()
