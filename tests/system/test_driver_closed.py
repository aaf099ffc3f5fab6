"""A program that closes the driver before it ends, as libcudart does, ends as it should."""
import sys

import harness

PROGRAM = """
import _ctypes, ctypes, sys
driver = ctypes.CDLL(sys.argv[1])
print(driver.cuInit(0))
_ctypes.dlclose(driver._handle)
"""


class DriverClosed(harness.SystemTest):
    def closed(self, driver, env):
        done = self.run_program(sys.executable, "-c", PROGRAM, driver, env=env)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"0\n", b""))

    def test_simulated_driver(self):
        self.closed(harness.SIM, self.env)

    def test_under_the_preload(self):
        self.closed("libcuda.so.1", self.preloaded())


if __name__ == "__main__":
    harness.main()
