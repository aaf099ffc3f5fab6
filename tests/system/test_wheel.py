"""The wheel: built by tools/wheel and by `pip install .`, installed into a venv without root, used,
and gone when uninstalled. Needs PyPI for the compiler and pip's build tools."""
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

import first_screen
import harness

FLOOR = (2, 17)
BUILD_S = 280
FIRST_CALL = "import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))"
README_WHEEL = re.search(r"install (dist/\S+)$", first_screen.lines("wheel")[1]).group(1)
INSTALLED = {"bin/hearth", "bin/hearthd", "lib/hearth/libhearth.so",
             "lib/hearth/libhearth-alias.so"}


def run(*words, env=None, cwd=harness.SOURCE):
    return subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, cwd=cwd,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          env=env, timeout=BUILD_S)


def wheel(source, *words):
    done = run(source / "tools/wheel", *words)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return Path(done.stdout.strip())


def copy_of_the_sources(folder):
    """What git knows, elsewhere: another path must make no difference. No git in it, so that it
    is told the date that git has."""
    names = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").stdout
    for name in filter(None, names.split("\0")):
        if (harness.SOURCE / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(harness.SOURCE / name, folder / name)
    (folder / ".git").symlink_to(harness.SOURCE / ".git")
    (folder / "build/wheel").mkdir(parents=True)
    (folder / "build/wheel/venv").symlink_to(harness.SOURCE / "build/wheel/venv")


def files_of(folder):
    """{path: digest}, pip's own caches of compiled modules left out."""
    found = {}
    for path in Path(folder).rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            found[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


class Venv(harness.SystemTest):
    def make_venv(self):
        """Takes seconds: only where something is installed."""
        self.venv = self.dir / "venv"
        done = run(sys.executable, "-m", "venv", self.venv)
        if done.returncode:
            self.skipTest(f"python3 -m venv: {done.stderr.strip()}")
        # Also as root: nothing outside of the venv may be touched.
        self.env.update(HOME=str(self.dir), PATH=f"{self.venv}/bin:{self.env['PATH']}")

    def pip(self, *words):
        done = run("pip", "--disable-pip-version-check", *words, env=self.env)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def use(self):
        self.addCleanup(self.run_program, harness.HEARTH, "stop")  # where an assertion fails
        done = self.run_program("hearth", "run", "--report", "python3", "-c", FIRST_CALL)
        self.assertEqual((done.returncode, done.stdout), (0, b"0\n"), done.stderr)
        self.assertIn(b"cuInit", done.stderr)
        done = self.run_program("hearth", "report")
        self.assertIn(b"cuInit", done.stdout, done.stderr)
        self.assertEqual(self.run_program("hearth", "stop").returncode, 0)


class Wheel(Venv):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not run("sh", "-c", "cc -print-file-name=libjansson.a").stdout.startswith("/"):
            raise unittest.SkipTest("there is no libjansson.a here to link with")
        fetched = run(harness.SOURCE / "tools/wheel", "--fetch")
        if fetched.returncode:
            raise unittest.SkipTest(f"PyPI cannot be had: {fetched.stderr.strip()[-200:]}")
        cls.wheel = wheel(harness.SOURCE, harness.SOURCE / "build/wheel/out")

    def unpacked(self):
        zipfile.ZipFile(self.wheel).extractall(self.dir / "unpacked")
        return [path for path in (self.dir / "unpacked").rglob("*")
                if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]

    def test_built_twice_elsewhere_it_is_the_same(self):
        with tempfile.TemporaryDirectory(prefix="hearth-copy-") as folder:
            copy_of_the_sources(Path(folder))
            second = wheel(Path(folder))
            self.assertEqual(second.name, self.wheel.name)
            # Where the README's lines look for it.
            self.assertEqual(list(Path(folder).glob(README_WHEEL)), [second])
            self.assertEqual(second.read_bytes(), self.wheel.read_bytes())

    def test_it_is_for_any_linux_with_the_floor(self):
        self.assertTrue(self.wheel.name.endswith(
            "py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"), self.wheel.name)
        done = run(harness.SOURCE / "build/wheel/venv/bin/auditwheel", "show", self.wheel)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('"manylinux_2_17_x86_64"', " ".join(done.stdout.split()))
        self.assertNotIn("not self-contained", done.stdout)

    def test_every_object_needs_the_c_library_alone_and_of_the_floor(self):
        objects = self.unpacked()
        self.assertEqual(len(objects), len(INSTALLED))
        allowed = {"libc.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libhearth.so",
                   "libhearth-alias.so", "ld-linux-x86-64.so.2"}
        for path in objects:
            with self.subTest(path=path.name):
                shown = run("readelf", "-dV", path).stdout
                self.assertLessEqual(set(re.findall(r"\(NEEDED\).*\[(.+)\]", shown)), allowed)
                for version in re.findall(r"GLIBC_(\d+)\.(\d+)", shown):
                    self.assertLessEqual(tuple(map(int, version)), FLOOR)
                self.assertNotIn("GLIBC_PRIVATE", shown)

    def test_it_names_no_folder_of_the_machine_that_built_it(self):
        for path in self.unpacked():
            self.assertNotIn(str(harness.SOURCE).encode(), path.read_bytes(), path.name)

    def test_there_is_no_python_module_in_it(self):
        names = zipfile.ZipFile(self.wheel).namelist()
        self.assertEqual([name for name in names if name.endswith((".py", ".pth"))], [])

    def test_the_readmes_lines(self):
        """From the wheel to a report: the README's first screen, typed."""
        self.env["HOME"] = str(self.dir)
        commands = first_screen.lines("wheel")
        self.assertEqual(len(commands), 3)
        first_screen.prepare(self.dir)
        (self.dir / "dist").mkdir()
        shutil.copy(self.wheel, self.dir / "dist")
        self.addCleanup(self.run_program, harness.HEARTH, "stop")
        # pip is told to look for nothing newer elsewhere.
        self.env["PIP_NO_INDEX"] = "1"
        done = self.run_program("sh", "-e", "-c", "\n".join(commands[:2]), cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.run_program("sh", "-c", "exec 2>&1\n" + commands[2], cwd=self.dir)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(first_screen.masked(done.stdout.decode()),
                         first_screen.masked(first_screen.BLOCKS["output"]))

    def test_installed_used_and_gone(self):
        self.make_venv()
        before = files_of(self.venv)
        self.pip("install", "--no-index", self.wheel)
        new = set(files_of(self.venv)) - set(before)
        self.assertLessEqual(INSTALLED, new)
        self.use()
        self.pip("uninstall", "--yes", "hearth-cuda")
        self.assertEqual(files_of(self.venv), before)
        self.assertFalse((self.venv / "lib/hearth").exists())


class FromTheClone(Venv):
    def test_pip_install_from_the_clone(self):
        self.make_venv()
        done = run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest",
                   self.dir / "probe", "meson-python")
        if done.returncode:
            self.skipTest(f"PyPI cannot be had: {done.stderr.strip()[-200:]}")
        with tempfile.TemporaryDirectory(prefix="hearth-copy-") as folder:
            copy_of_the_sources(Path(folder))
            before = files_of(self.venv)
            self.pip("install", folder)
            self.assertLessEqual(INSTALLED, set(files_of(self.venv)))
            self.use()
            self.pip("uninstall", "--yes", "hearth-cuda")
            self.assertEqual(files_of(self.venv), before)


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    harness.main()
