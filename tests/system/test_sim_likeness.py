"""The simulated driver is like the H200's where that can be seen: in what a program's calls answer,
in the library's imports, in threads and descriptors. Not for sanitizer builds, which change the
last two, and whose runtimes do not bear the crashes and forks of the first."""
import subprocess
from pathlib import Path

import harness
import sim

RECORD = Path(__file__).parent / "driver_rules.txt"


class Likeness(sim.SimTest):
    def test_answers_as_the_h200_did(self):
        self.env["SIMCUDA_DEVICES"] = "2"
        done = self.run_program(harness.PROGRAMS / "driver_rules")
        self.assertEqual(done.stdout.decode().splitlines(), RECORD.read_text().splitlines())
        self.assertEqual(done.returncode, 0)

    def test_a_program_sees_the_same_under_hearth(self):
        env = {**self.env, "SIMCUDA_DEVICES": "2"}
        names = [line[3:] for line in RECORD.read_text().splitlines() if line.startswith("== ")]
        # That section copies the file that cuInit comes from, which would be Hearth's.
        names.remove("copy")
        plain, under = (self.run_program(harness.PROGRAMS / "driver_rules", *names, env=env)
                        for env in (env, {**env, "LD_PRELOAD": harness.PRELOADS}))
        self.assertEqual(under.stdout.decode().splitlines(), plain.stdout.decode().splitlines())
        self.assertEqual((under.returncode, under.stderr), (plain.returncode, plain.stderr))

    def test_its_getenv_is_an_ordinary_slot(self):
        text = subprocess.run(["readelf", "-rWd", harness.SIM], check=True,
                              capture_output=True, text=True).stdout
        for name in ("getenv", "dlopen", "pthread_create", "__register_atfork", "dladdr"):
            self.assertRegex(text, rf"R_X86_64_JUMP_SLO\w* .* {name}@")
        self.assertIn("SYMBOLIC", text)
        self.assertIn("[libcuda.so.1]", text)
        self.assertNotIn("BIND_NOW", text)

    def test_threads_and_descriptors_come_and_go(self):
        code = """
def see():
    names = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
             if os.path.lexists(f"/proc/self/fd/{fd}")]
    return len(os.listdir("/proc/self/task")), sum("/dev/nvidia" in name for name in names)
print(see(), cuda.cuInit(0), see(), context(), see(), cuda.cuDevicePrimaryCtxRelease_v2(0), see())
"""
        self.assertEqual(self.run_calls(code),
                         ["(1, 0) 0 (2, 4) 0 (3, 20) 0 (2, 4)"])


if __name__ == "__main__":
    harness.main()
