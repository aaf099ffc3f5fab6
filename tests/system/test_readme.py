"""What the README tells people to type, typed: each block that is marked as a test runs, in a
container with an installed Hearth and the simulated driver, as an unprivileged user."""
import os
import re
import subprocess
import unittest

import container
import first_screen
import harness
from dockerfile import Dockerfile

TEXT = (harness.SOURCE / "README.md").read_text()
BLOCK = re.compile(r"^<!-- test: (\S+) -->\n```\w+\n(.*?)^```$", re.M | re.S)
BLOCKS = dict(BLOCK.findall(TEXT))
TRAINED = b"trained on 523776 numbers\n"
HAS_DRIVER = any(map(os.path.exists, ("/dev/nvidiactl", "/proc/driver/nvidia", "/dev/dxg")))
# What Docker does not give, and the machine has to: a driver.
DRIVER = "/opt/driver/libcuda.so.1"
MACHINE = {"HEARTH_DRIVER": DRIVER, "LD_LIBRARY_PATH": "/opt/driver",
           "SIMCUDA_MACHINE": "/dev/shm/machine"}

# cc answers with the bare name where it has none.
ARCHIVE = subprocess.run(["cc", "-print-file-name=libjansson.a"], stdout=subprocess.PIPE, text=True,
                         check=False).stdout.strip()
C_LIBRARY = {"libc.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2"}


@container.needs_container
class ReadmeTest(harness.SystemTest):
    @classmethod
    def setUpClass(cls):
        cls.installed = container.install()

    def container(self, **options):
        made = container.Container(self.dir, self.installed, **options)
        made.add(harness.SIM, DRIVER)
        return made

    def shell(self, script, env=None):
        """Run a script of /bin/sh that stops at the first command that fails."""
        made = self.container(access="rw")
        made.add(harness.SOURCE / "tests/programs/train.py", "/app/train.py")
        return made.run(["sh", "-e", "-c", script],
                        env={**MACHINE, "HOME": "/tmp", "XDG_STATE_HOME": "/tmp/state",
                             **(env or {})})

    def image(self, name, command=None, env=None, **options):
        made = self.container(**options)
        dockerfile = Dockerfile(BLOCKS[name])
        self.assertEqual(dockerfile.user, container.USER)
        context = self.dir / "context"
        context.mkdir()
        (context / "hearth-root").symlink_to(self.installed)
        (context / "train.py").symlink_to(harness.SOURCE / "tests/programs/train.py")
        dockerfile.build(made, context)
        return dockerfile.run(made, env={**MACHINE, **(env or {})}, command=command)

    def assert_trained(self, done, times=1):
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, TRAINED * times, b""))

    def test_preload_in_a_shell(self):
        self.assert_trained(self.shell(BLOCKS["shell"]))

    def test_the_preload_is_at_work_in_that_shell(self):
        done = self.shell(BLOCKS["shell"] + "cat /tmp/log\n", env={"HEARTH_LOG": "/tmp/log"})
        self.assertIn(b'"call":"cuInit"', done.stdout)

    def test_wrapper(self):
        done = self.shell(BLOCKS["wrapper"])
        self.assertEqual((done.returncode, done.stdout), (0, TRAINED * 2), done.stderr)
        self.assertIn(b"cuInit", done.stderr)

    def test_look(self):
        done = self.shell(BLOCKS["look"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"cuInit", done.stdout)

    def test_jupyter(self):
        spec = "/tmp/.local/share/jupyter/kernels/python3"
        done = self.shell(f"mkdir -p {spec}\n"
                          f"echo '{{\"argv\": [\"python3\"]}}' >{spec}/kernel.json\n"
                          + BLOCKS["jupyter"] + f"cat {spec}/kernel.json\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"under Hearth from now on", done.stdout)
        self.assertTrue(done.stdout.endswith(b'{"argv": ["python3"]}\n'), done.stdout)

    def test_prove(self):
        done = self.shell(BLOCKS["prove"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"changed: passed", done.stdout)

    def test_spare(self):
        done = self.shell(BLOCKS["spare"])
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertIn(TRAINED, done.stdout)

    def test_leave(self):
        done = self.shell("hearth run true\n" + BLOCKS["leave"])
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_image_with_the_preload(self):
        self.assert_trained(self.image("docker-env"))

    def test_image_with_the_entry_point(self):
        self.assert_trained(self.image("docker-entrypoint"))

    def test_the_images_exit_status_is_the_programs(self):
        for name in ("docker-env", "docker-entrypoint"):
            with self.subTest(name=name):
                self.setUp()
                done = self.image(name, command=["sh", "-c", "exit 7"])
                self.assertEqual((done.returncode, done.stdout, done.stderr), (7, b"", b""))

    def test_the_program_or_the_entry_point_is_pid_1(self):
        for name, variable in (("docker-env", "$$"), ("docker-entrypoint", "$PPID")):
            with self.subTest(name=name):
                self.setUp()
                done = self.image(name, command=["sh", "-c", f"echo {variable}"])
                self.assertEqual((done.stdout, done.stderr), (b"1\n", b""))

    @unittest.skipUnless("/" in ARCHIVE, "there is no libjansson.a here to link with")
    def test_an_image_needs_the_c_library_alone(self):
        """python:3.12-slim has no jansson."""
        for name in ("hearth", "hearthd"):
            shown = self.run_program("readelf", "-d", self.installed / "usr/bin" / name).stdout
            needed = re.findall(r"\(NEEDED\).*\[(.+)\]", shown.decode())
            self.assertLessEqual(set(needed), C_LIBRARY, name)

    def test_shm_of_any_kind_does_no_harm(self):
        for shm in ("none", "4k", "64m"):
            with self.subTest(shm=shm):
                self.setUp()
                done = self.image("docker-env", shm=shm, access="rw",
                                  env={"SIMCUDA_MACHINE": "/tmp/machine"})
                self.assert_trained(done)

    def test_hearth_leaves_nothing_in_shm(self):
        done = self.image("docker-entrypoint", access="rw",
                          env={"SIMCUDA_MACHINE": "/tmp/machine"},
                          command=["sh", "-c", "python3 train.py; ls -A /dev/shm"])
        self.assert_trained(done)

    def test_image_without_the_library(self):
        """ENV is set but nobody mounted the library: the program runs all the same."""
        done = self.image("docker-env", env={"LD_PRELOAD": "/usr/lib/hearth/missing.so"})
        self.assertEqual((done.returncode, done.stdout), (0, TRAINED))
        self.assertIn(b"cannot be preloaded", done.stderr)


class BuildTree(harness.SystemTest):
    def test_path_of_the_build_tree(self):
        (self.dir / "build").symlink_to(harness.BUILD)
        done = self.run_program("sh", "-e", "-c", BLOCKS["path"] + "cd /\nhearth run echo ran\n"
                                "hearth stop\n", cwd=self.dir)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"ran\n", b""))


class FirstScreen(harness.SystemTest):
    """From a clone; the wheel's lines are test_wheel.py's."""

    @unittest.skipIf(HAS_DRIVER, "quickstart would run on the machine's own driver")
    def test_from_a_clone_to_a_report(self):
        commands = first_screen.lines("clone")
        self.assertEqual(len(commands), 3)
        for path in harness.SOURCE.iterdir():
            if path.name != "build":
                (self.dir / path.name).symlink_to(path)
        (self.dir / "build").symlink_to(harness.BUILD)
        first_screen.prepare(self.dir)
        told_nothing = {name: value for name, value in self.env.items()
                        if name != "HEARTH_DRIVER"}
        done = self.run_program("sh", "-e", "-c", commands[0], cwd=self.dir, env=told_nothing,
                                timeout=200)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(self.run_program, harness.HEARTH, "stop")
        done = self.run_program("sh", "-e", "-c", "exec 2>&1\n" + "\n".join(commands[1:]),
                                cwd=self.dir)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(first_screen.masked(done.stdout.decode()),
                         first_screen.masked(first_screen.BLOCKS["output"]))


class Text(unittest.TestCase):
    def test_the_first_screen_is_three_commands_twice_and_what_they_show(self):
        self.assertEqual(set(first_screen.BLOCKS), {"clone", "wheel", "output"})
        before = TEXT.partition("<!-- first screen: output -->")[0]
        self.assertLess(before.count("\n"), 60)

    def test_every_block_that_looks_like_use_is_tested(self):
        use = TEXT.partition("\n## Use\n")[2].partition("\n## ")[0]
        self.assertEqual(len(re.findall(r"^```\w", use, re.M)), len(BLOCK.findall(use)))

    def test_the_install_command_is_the_one_that_the_tests_use(self):
        self.assertIn("meson install -C build --destdir", TEXT)


if __name__ == "__main__":
    harness.main()
