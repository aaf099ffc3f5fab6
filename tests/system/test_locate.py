"""The real driver is the file that the loader would have found: the loader itself is asked."""
import shutil

import harness


class Locate(harness.SystemTest):
    def setUp(self):
        super().setUp()
        del self.env["HEARTH_DRIVER"]

    def program(self, name):
        """A copy of a program, so that $ORIGIN is the test's own folder."""
        return shutil.copy(harness.PROGRAMS / name, self.dir / name)

    def put(self, folder, file=harness.SIM, name="libcuda.so.1"):
        """A copy of a driver in a folder of the test's."""
        path = self.dir / folder
        path.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, path / name)
        return str(path)

    def find(self, program, *arguments, cwd=None, **more):
        """Where Hearth finds it and where the loader does, by real path."""
        done = self.run_program(self.program(program), *arguments, env={**self.env, **more},
                                cwd=cwd)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        ours, loaders = done.stdout.decode().splitlines()
        return ours, loaders

    def agree(self, expected, program, *arguments, **more):
        path = str((self.dir / expected / "libcuda.so.1").resolve())
        self.assertEqual(self.find(program, *arguments, **more), (path, path))

    def test_library_path(self):
        first, second = self.put("first"), self.put("second")
        self.agree("first", "locate_probe", LD_LIBRARY_PATH=f"/none:{first}:{second}")
        self.agree("second", "locate_probe", LD_LIBRARY_PATH=f"{second}/:{first}")

    def test_relative_library_path(self):
        self.put("here/lib")
        self.agree("here/lib", "locate_probe", LD_LIBRARY_PATH="lib", cwd=self.dir / "here")
        self.agree("here/lib", "locate_probe", LD_LIBRARY_PATH=":/none",
                   cwd=self.dir / "here/lib")

    def test_rpath_comes_before_the_library_path_and_runpath_after(self):
        path = self.put("path")
        self.put("rpath")
        self.put("runpath")
        self.agree("rpath", "locate_probe_rpath", LD_LIBRARY_PATH=path)
        self.agree("path", "locate_probe_runpath", LD_LIBRARY_PATH=path)
        self.agree("runpath", "locate_probe_runpath")

    def test_the_callers_own_path_counts(self):
        self.put("plugin_rpath")
        self.put("plugin_runpath")
        for name in ("rpath", "runpath"):
            plugin = self.program(f"locate_plugin_{name}.so")
            self.agree(f"plugin_{name}", "locate_probe", plugin)

    def test_the_programs_rpath_counts_for_a_plugin_without_runpath(self):
        self.put("rpath")
        self.agree("rpath", "locate_probe_rpath", self.program("locate_plugin_rpath.so"))

    def test_the_programs_runpath_does_not(self):
        self.put("runpath")
        ours, loaders = self.find("locate_probe_runpath", self.program("locate_plugin_runpath.so"))
        self.assertEqual(ours, loaders)

    def test_another_architecture_is_passed_over(self):
        other, right = self.put("other"), self.put("right")
        with open(f"{other}/libcuda.so.1", "r+b") as file:
            file.seek(4)
            file.write(b"\x01")  # ELFCLASS32
        self.agree("right", "locate_probe", LD_LIBRARY_PATH=f"{other}:{right}")

    def test_a_file_that_is_no_library(self):
        """The loader gives up there; we go on to one that works."""
        (self.dir / "text").mkdir()
        (self.dir / "text/libcuda.so.1").write_text("INPUT(libcuda.so)\n" + " " * 100)
        right = self.put("right")
        ours, _ = self.find("locate_probe", LD_LIBRARY_PATH=f"{self.dir}/text:{right}")
        self.assertEqual(ours, f"{right}/libcuda.so.1")

    def test_stubs_are_what_the_loader_finds(self):
        """Their file is libcuda.so; where somebody made it libcuda.so.1, the program gets it."""
        only, right = self.put("stubs", name="libcuda.so"), self.put("right")
        self.agree("right", "locate_probe", LD_LIBRARY_PATH=f"{only}:{right}")
        self.put("stubs")
        self.agree("stubs", "locate_probe", LD_LIBRARY_PATH=f"{only}:{right}")

    def test_hearth_driver(self):
        right = self.put("named", name="driver.so") + "/driver.so"
        ours, _ = self.find("locate_probe", HEARTH_DRIVER=right, LD_LIBRARY_PATH=self.put("lib"))
        self.assertEqual(ours, right)
        for wrong in ("/none", str(self.dir), "relative", "/dev/null", "/etc/passwd"):
            self.agree("lib", "locate_probe", HEARTH_DRIVER=wrong,
                       LD_LIBRARY_PATH=self.put("lib"))

    def test_a_driver_that_lacks_entries(self):
        """dlsym answers NULL for them as soon as the driver is open; before, they say 500."""
        driver = self.put("old", harness.PROGRAMS / "old_driver.so")
        code = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
early = cuda.cuMemFree_v2
print(cuda.cuMemAlloc_v2(None, 1), cuda.cuInit(0), cuda.cuMemAlloc_v2(None, 1), early(None))
cuda = ctypes.CDLL("libcuda.so.1")
for name in ("cuMemAlloc_v2", "cuMemFree_v2", "cuLaunchKernelEx", "cuGetProcAddress_v2"):
    print(name, hasattr(cuda, name))
print(cuda.cuGetProcAddress_v2(b"", None, 0, 0, None))
"""
        done = self.run_program("python3", "-c", code, env=self.preloaded(
            HEARTH_DRIVER=f"{driver}/libcuda.so.1"))
        self.assertEqual(done.stderr, b"")
        self.assertEqual(done.stdout.decode().splitlines(), [
            "3 0 2 500", "cuMemAlloc_v2 True", "cuMemFree_v2 False", "cuLaunchKernelEx False",
            "cuGetProcAddress_v2 True", "34"])


if __name__ == "__main__":
    harness.main()
