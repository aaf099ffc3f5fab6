"""What a spare does ahead on the GPU: a context, and what is loaded into it, that its program
finds; and when the program has what it would have had natively."""
import json
import shutil
import subprocess
import time

import harness
import images
import spares
from harness import main
from spares import PYTHON
from speculation import SpeculationTest

CUDA = """
import ctypes, os, sys
if len(sys.argv) > 2:
    os.environ["CUDA_VISIBLE_DEVICES"] = sys.argv[2]
cuda = ctypes.CDLL("libcuda.so.1")
context, count = ctypes.c_void_p(), ctypes.c_int()
print(cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), int(sys.argv[1])),
      cuda.cuDeviceGetCount(ctypes.byref(count)), count.value)
"""
AHEAD = {"cuInit": "speculated", "cuDevicePrimaryCtxRetain": "speculated"}
DEVICES = 2
GIVE_BACK_S = 1


class AheadTest(spares.SpareTest):
    """On the simulated driver, in real time: what is opened late lies where it lies on a GPU."""
    setUpClass = SpeculationTest.__dict__["setUpClass"]

    def setUp(self):
        super().setUp()
        self.state = self.dir / "state"
        shutil.copytree(self.proved, self.state, dirs_exist_ok=True)
        self.log = self.dir / "log"
        self.env.update(SIMCUDA_SPEED="1", SIMCUDA_DEVICES=str(DEVICES),
                        HEARTH_DRIVER=str(harness.SIM), HEARTH_LOG=str(self.log),
                        LD_LIBRARY_PATH=str(harness.SIM.parent), HEARTH_STATE_DIR=str(self.state),
                        HEARTH_GIVE_BACK=str(GIVE_BACK_S))
        self.program = self.work / "program.py"
        self.program.write_text(CUDA)

    def records(self, *words):
        """Hearth's records of a program in a spare, which comes out as natively."""
        native = self.run_program(*words, cwd=self.work,
                                  env={**self.env, "HEARTH": "0", "SIMCUDA_SPEED": "0"})
        self.log.unlink(missing_ok=True)
        done = self.adopt(*words)
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (native.returncode, native.stdout, native.stderr))
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def how(self, *words):
        """How the calls of a program were served."""
        return {record["call"]: record["how"]
                for record in reversed(self.records(PYTHON, self.program, *words))
                if record["event"] == "call"}

    def context(self):
        """On which device the waiting spare has one."""
        self.wait_for_one()
        line = self.hearth("spare", "status").stdout.decode().splitlines()[1].split()
        return line[4] + line[5] if line[4] == "GPU" else line[4]


class ToldTest(AheadTest):
    def test_a_context_is_there_at_the_programs_first_call(self):
        self.start("--gpu", "0")
        self.assertEqual(self.context(), "GPU0")
        time.sleep(GIVE_BACK_S + 0.3)  # it is not given back while nobody has come
        records = self.records(PYTHON, self.program, "0")
        self.assertEqual({record["call"]: record["how"] for record in records[:2]}, AHEAD)
        # The next one is not in its way: it is still to begin.
        line = self.hearth("spare", "status").stdout.decode().splitlines()[1].split()
        self.assertEqual(line[:2], ["0", "loading"])
        self.assertEqual({record["program"] for record in records}, {"program.py"})
        # From the program's start, not the spare's.
        self.assertLess(max(record.get("at_us", 0) for record in records), GIVE_BACK_S * 1e6)

    def test_on_the_device_that_was_named(self):
        self.start("--gpu", "1")
        self.assertEqual(self.context(), "GPU1")
        self.assertEqual(self.how("1"), AHEAD)
        self.assertEqual(self.how("0")["cuDevicePrimaryCtxRetain"], "cold")

    def test_a_device_that_is_not_there(self):
        self.start("--gpu", str(DEVICES))
        self.assertEqual(self.context(), "-")
        self.assertEqual(self.how("0")["cuInit"], "speculated")

    def test_a_program_that_chooses_its_devices_has_those(self):
        self.start("--gpu", "0")
        self.assertEqual(self.how("0", "1")["cuInit"], "squashed")

    def test_an_environment_with_other_devices_has_a_plain_start(self):
        self.start("--gpu", "0")
        self.log.unlink(missing_ok=True)
        done = self.assert_plain(PYTHON, self.program, "0",
                                 env={**self.env, "CUDA_VISIBLE_DEVICES": "1"})
        self.assertEqual(done.stdout, b"0 0 0 1\n")

    def test_nobody_asks_and_it_is_given_back(self):
        self.start("--gpu", "0")
        slow = self.work / "slow.py"
        slow.write_text(f"import time\ntime.sleep({GIVE_BACK_S + 1.5})\n" + CUDA)
        self.adopt(PYTHON, slow, "0")
        records = [json.loads(line) for line in self.log.read_text().splitlines()]
        self.assertEqual([record["how"] for record in records[:2]], ["speculated", "cold"])

    def test_it_gives_way_to_who_needs_the_memory(self):
        self.start("--gpu", "0")
        self.assertEqual(self.context(), "GPU0")
        user = self.work / "user.py"
        user.write_text(CUDA + "cuda.cuCtxSetCurrent(context)\nmemory = ctypes.c_uint64()\n"
                        "free, total = ctypes.c_size_t(), ctypes.c_size_t()\n"
                        "cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))\n"
                        "cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(\n"
                        "    free.value - (1 << 30)))\nprint('has', flush=True)\ninput()\n")
        with subprocess.Popen([PYTHON, user, "0"], env=self.env, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as process:
            process.stdout.readline(), process.stdout.readline()
            deadline = time.monotonic() + harness.DEADLINE_S
            while self.context() != "-":
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.1)
            process.communicate(b"\n")
        self.assertEqual(self.how("0"), {**AHEAD, "cuDevicePrimaryCtxRetain": "cold"})

    def test_a_program_with_descriptors_of_its_own(self):
        """At any number, also among the driver's: there the start is a plain one."""
        self.start("--gpu", "0")
        for number, is_free in ((3, True), (5, True), (400, True), (770, False)):
            with self.subTest(number=number):
                self.wait_for_one()
                text = f'exec {number}<<<word; exec "$@" < /dev/null'
                script = self.work / "reads.py"
                script.write_text(CUDA + f"print(os.read({number}, 9))\n")
                self.log.unlink(missing_ok=True)
                done = self.run_program("bash", "-c", text, "bash", harness.HEARTH, "run",
                                        "--spare", "--", PYTHON, script, "0", cwd=self.work)
                self.assertEqual((done.returncode, done.stdout),
                                 (0, b"0 0 0 2\nb'word\\n'\n"), done)
                how = json.loads(self.log.read_text().splitlines()[0])["how"]
                self.assertEqual(how == "speculated", is_free)

    def test_speculation_is_off(self):
        self.env["HEARTH_SPECULATE"] = "off"
        self.start("--gpu", "0")
        self.assertEqual(self.context(), "-")
        self.assertNotIn("speculated", self.how("0").values())


class LearnedTest(AheadTest):
    def setUp(self):
        super().setUp()
        self.env.update(SIMCUDA_DEVICES="1", SIMCUDA_SPEED="0")

    def test_by_its_kinds_programs(self):
        """Nothing, until a program of the kind has used a context; then what it used."""
        self.start()
        self.assertEqual(self.context(), "-")
        self.assertNotIn("speculated", self.how("0").values())
        # The one that has taken the first one's place began before that one had learned.
        self.how("0")
        self.assertEqual(self.context(), "GPU0")
        self.assertEqual(self.how("0"), AHEAD)

    def test_by_the_program_that_is_named(self):
        for _ in range(2):
            self.hearth("run", "--", PYTHON, self.program, "0")
        done = self.hearth("spare", "start", "--import", spares.IMPORTS, "--", PYTHON,
                           self.program, "0")
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(self.context(), "GPU0")
        before = self.profile()
        self.assertEqual(self.how("0"), AHEAD)
        # Its leads would say nothing about a plain start.
        self.assertEqual(before, self.profile())

    def profile(self):
        return {path.name: path.read_bytes()
                for path in (self.state / "profiles").iterdir() if path.is_file()}

    def test_images_are_loaded_ahead(self):
        loader = self.work / "loader.py"
        loader.write_text(images.LOADER)
        words = (PYTHON, loader, f"lib={images.PLUGIN}:0", f"kept={images.PLUGIN}:1",
                 "heap=.version 8.0", "sleep")
        self.start("--gpu", "0")
        adopted = []
        for _ in range(3):
            self.wait_for_one()
            records = self.records(*words)
            adopted.append([record["images_adopted"] for record in records
                            if record["event"] == "exit"][-1])
        self.assertEqual(adopted[0], 0)
        self.assertGreaterEqual(adopted[2], 2, adopted)


if __name__ == "__main__":
    main()
