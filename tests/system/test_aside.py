"""Where Hearth cannot help it leaves no trace, and programs that never touch CUDA never notice."""
import os
import shutil
import unittest

import harness

# Signs of an NVIDIA driver in the kernel: on such a machine Hearth does not step aside.
SIGNS = ("/dev/nvidiactl", "/proc/driver/nvidia", "/dev/dxg", "/dev/nvmap", "/dev/nvhost-ctrl")
HAS_GPU = any(harness.Path(sign).exists() for sign in SIGNS)


class Aside(harness.SystemTest):
    def setUp(self):
        super().setUp()
        del self.env["HEARTH_DRIVER"]
        (self.dir / "lib").mkdir()

    def same(self, program, *arguments, **more):
        """Plain and preloaded runs are equal; returns the lines."""
        plain = self.run_program(program, *arguments, env={**self.env, **more})
        under = self.run_program(program, *arguments, env=self.preloaded(**more))
        self.assertEqual((plain.returncode, plain.stdout, plain.stderr),
                         (under.returncode, under.stdout, under.stderr))
        return under.stdout.decode().splitlines()

    def link(self, *names):
        for name in names:
            (self.dir / "lib" / name).symlink_to(harness.SIM)
        return str(self.dir / "lib")

    def traces(self, **more):
        return self.same(harness.PROGRAMS / "traces", **more)

    @unittest.skipIf(HAS_GPU, "this machine has a GPU")
    def test_no_driver_at_all(self):
        lines = self.traces()
        self.assertIn("weak cudaSetDevice not found", lines[0])
        self.assertIn("cannot open shared object file", lines[5])

    @unittest.skipIf(HAS_GPU, "this machine has a GPU")
    def test_library_without_a_device(self):
        """As in a CUDA image on a machine without a GPU: the real library is found."""
        lines = self.traces(LD_LIBRARY_PATH=self.link("libcuda.so.1", "libcuda.so"))
        self.assertIn("libcuda.so.1 opened, cuInit there", lines)
        self.assertIn("libcuda.so opened, cuInit there", lines)

    @unittest.skipIf(HAS_GPU, "this machine has a GPU")
    def test_stubs_folder(self):
        stubs = self.dir / "lib/stubs"
        stubs.mkdir()
        (stubs / "libcuda.so").symlink_to(harness.SIM)
        lines = self.traces(LD_LIBRARY_PATH=str(stubs))
        self.assertIn("libcuda.so opened, cuInit there", lines)

    @unittest.skipIf(HAS_GPU, "this machine has a GPU")
    def test_driver_by_a_relative_path(self):
        """HEARTH_DRIVER is not understood so: as if it were unset, and there is no driver."""
        lines = self.traces(HEARTH_DRIVER=os.path.relpath(harness.SIM))
        self.assertIn("cannot open shared object file", lines[5])

    def test_switched_off(self):
        for name in ((), ("libcuda.so.1",), ("libcuda.so.1", "libcuda.so")):
            with self.subTest(names=name):
                self.link(*(set(name) - {path.name for path in (self.dir / "lib").iterdir()}))
                self.traces(LD_LIBRARY_PATH=str(self.dir / "lib"), HEARTH="0")

    @unittest.skipIf(HAS_GPU, "this machine has a GPU")
    def test_linked_program_runs_on_its_driver(self):
        """Bound to us already, it cannot be stepped aside from: it gets plain pass-through."""
        path, log = self.link("libcuda.so.1"), self.dir / "log"
        for program in ("bound", "bound_now"):
            for switch in ("0", "1"):
                with self.subTest(program=program, HEARTH=switch):
                    self.same(harness.PROGRAMS / program, LD_LIBRARY_PATH=path, HEARTH=switch,
                              SIMCUDA_CANARY="ca11ab1e", HEARTH_LOG=str(log))
        self.assertFalse(log.exists())

    @unittest.skipIf(HAS_GPU, "this machine has a GPU")
    def test_linked_program_without_a_driver(self):
        """The loader would not start it. With the preload it starts, and gets code 34."""
        done = self.run_program(harness.PROGRAMS / "bound", env=self.preloaded())
        self.assertEqual(done.stdout.splitlines()[-1], b"cuInit 34")

    def test_programs_that_never_touch_cuda(self):
        for command in (["bash", "-c", "echo $((6 * 7)); exit 3"], ["ls", "/"],
                        ["env", "-u", "LD_PRELOAD", "printenv", "HOME"], ["git", "--version"],
                        ["perl", "-e", "print 42"], ["python3", "-c", "print(42)"],
                        ["sh", "-c", "ls / | sort | head -n 3"], ["grep", "root", "/etc/passwd"]):
            if not shutil.which(command[0]):
                continue
            for driver in (None, harness.SIM):
                more = {"HEARTH_DRIVER": str(driver)} if driver else {}
                with self.subTest(command=command[0], driver=driver):
                    self.same(*command, LD_BIND_NOW="1", **more)

    def page_faults(self, env):
        """The fewest of several runs of true, which is all that a loader and a libc do."""
        faults = []
        for _ in range(9):
            pid = os.posix_spawn("/bin/true", ["true"], env)
            faults.append(os.wait4(pid, 0)[2].ru_minflt)
        return min(faults)

    def test_start_touches_few_pages(self):
        """What it costs every process there is, in a unit that a busy machine does not change."""
        plain = self.page_faults(self.env)
        for driver in (None, harness.SIM):
            more = {"HEARTH_DRIVER": str(driver)} if driver else {}
            with self.subTest(driver=driver):
                self.assertLess(self.page_faults(self.preloaded(**more)) - plain, 30)

    def test_no_device_node_is_opened(self):
        """A program that opens the library and never calls it costs no driver."""
        log = self.dir / "calls"
        code = "import ctypes; ctypes.CDLL('libcuda.so.1').cuInit"
        done = self.run_program("python3", "-c", code, env=self.preloaded(
            HEARTH_DRIVER=str(harness.SIM), SIMCUDA_LOG=str(log)))
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertFalse(log.exists())

    def test_a_value_that_is_not_understood(self):
        done = self.run_program("true", env=self.preloaded(HEARTH="maybe"))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))
        done = self.run_program("true", env=self.preloaded(HEARTH="maybe",
                                                           HEARTH_LOG_LEVEL="error"))
        self.assertIn(b"HEARTH=maybe", done.stderr)


if __name__ == "__main__":
    harness.main()
