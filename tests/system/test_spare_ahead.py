"""What a spare does ahead on the GPU: a context that its program finds, and when it finds none."""
import json
import shutil
import time

import harness
import spares
from spares import PYTHON
from speculation import SpeculationTest

CUDA = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
device = int(sys.argv[1]) if len(sys.argv) > 1 else 0
print(cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
"""
SETTLE_S = 1.2  # longer than HEARTH_GIVE_BACK in these tests


class AheadTest(spares.SpareTest):
    """On the simulated driver, whose undo was proved once for all."""
    setUpClass = SpeculationTest.__dict__["setUpClass"]

    def setUp(self):
        super().setUp()
        state = self.dir / "state"
        shutil.copytree(self.proved, state, dirs_exist_ok=True)
        self.env.update(SIMCUDA_SPEED="1", SIMCUDA_DEVICES="2", HEARTH_DRIVER=str(harness.SIM),
                        LD_LIBRARY_PATH=str(harness.SIM.parent), HEARTH_STATE_DIR=str(state),
                        HEARTH_GIVE_BACK="1", HEARTH_LOG=str(self.dir / "log"))
        self.program = self.work / "program.py"
        self.program.write_text(CUDA)

    def how(self, *words, run=None, **options):
        """How the calls of a program in a spare were served."""
        log = self.dir / "log"
        log.unlink(missing_ok=True)
        done = (run or self.adopt)(*words, **options)
        self.assertEqual((done.returncode, done.stdout), (0, b"0 0\n"), done)
        records = [json.loads(line) for line in log.read_text().splitlines()]
        self.records = [record for record in records if record["event"] == "call"]
        return {record["call"]: record["how"] for record in reversed(self.records)}

    def context(self):
        self.wait_for_one()
        lines = self.hearth("spare", "status").stdout.decode().splitlines()[1:]
        return lines[0].split()[3:5]

    def test_it_is_there_at_the_programs_first_call(self):
        self.start("--gpu", "0")
        self.assertEqual(self.context(), ["GPU", "0"])
        time.sleep(SETTLE_S)  # it is not given back while nobody has come
        how = self.how(PYTHON, self.program)
        self.assertEqual(how, {"cuInit": "speculated", "cuDevicePrimaryCtxRetain": "speculated"})
        # From the program's start, not the spare's.
        self.assertLess(max(record["at_us"] for record in self.records), SETTLE_S * 1e6)
