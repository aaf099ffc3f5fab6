"""`hearth doctor` against what really happens: each command is judged, then run in the very same
environment, with the simulated driver. What HEARTH_LOG holds afterwards decides who was right."""
import json
import os
import shutil
import struct
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import harness
from compiled import compile_c

NOBODY = 65534
VFS_CAP_REVISION_2, VFS_CAP_EFFECTIVE, CAP_NET_RAW = 0x02000000, 1, 13
OPENS = """
#include <dlfcn.h>
#include <stdio.h>
#ifndef DRIVER
#define DRIVER "libcuda.so.1"
#endif
int main(void)
{
	void *driver = dlopen(DRIVER, RTLD_NOW);
	int (*init)(unsigned) = driver ? (int (*)(unsigned))dlsym(driver, "cuInit") : 0;

	printf("cuInit: %d\\n", init ? init(0) : -1);
	return 0;
}
"""
LINKED = "int cuInit(unsigned); int main(void) { return cuInit(0); }"


class Reality(harness.SystemTest):
    @classmethod
    def setUpClass(cls):
        """What is run lies where everybody may read it, since some of it runs as somebody else."""
        cls.made = Path(tempfile.mkdtemp(prefix="hearth-reality-"))
        cls.addClassCleanup(shutil.rmtree, cls.made, ignore_errors=True)
        cls.made.chmod(0o755)
        for folder in ("bin", "lib/hearth", "driver"):
            (cls.made / folder).mkdir(parents=True)
        cls.hearth = shutil.copy(harness.HEARTH, cls.made / "bin")
        cls.library = shutil.copy(harness.PRELOAD, cls.made / "lib/hearth")
        shutil.copy(harness.PRELOAD.with_name("libhearth-alias.so"), cls.made / "lib/hearth")
        cls.driver = shutil.copy(harness.SIM, cls.made / "driver/libcuda.so.1")
        (cls.made / "driver/libcuda.so").symlink_to("libcuda.so.1")
        cls.opens = compile_c(cls.made / "opens", "-ldl", text=OPENS)

    def setUp(self):
        super().setUp()
        self.dir.chmod(0o777)
        self.log = self.dir / "log"
        self.env.update(LD_PRELOAD=str(self.library), HEARTH_DRIVER=str(self.driver),
                        LD_LIBRARY_PATH=f"{self.made}/driver", HEARTH_LOG=str(self.log),
                        HEARTH_SOCKET=str(self.dir / "no-broker"),
                        SIMCUDA_MACHINE=str(self.dir / "machine"))

    def happens(self, *words, **options):
        """Whether Hearth saw the command's cuInit."""
        done = self.run_program(*words, **options)
        self.done = done
        calls = [json.loads(line).get("call") for line in
                 (self.log.read_text().splitlines() if self.log.exists() else [])]
        return "cuInit" in calls

    def judged(self, *words, env=None, **options):
        """Whether doctor says so, and its findings."""
        done = self.run_program(self.hearth, "doctor", "--json", "--", *words, env=env, **options)
        answer = json.loads(done.stdout)
        self.assertEqual(done.returncode, 0 if answer["intercepted"] else 1)
        self.log.unlink(missing_ok=True)
        return answer["intercepted"], {item["id"] for item in answer["findings"]}

    def check(self, expected, *words, env=None, **options):
        verdict, findings = self.judged(*words, env=env, **options)
        real = self.happens(*words, env=env, **options)
        self.assertEqual((verdict, real), (expected, expected), (findings, self.done))
        return findings

    def script(self, name, text):
        path = self.dir / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def test_a_plain_program(self):
        self.check(True, self.opens)
        self.assertEqual(self.done.stdout, b"cuInit: 0\n")

    def test_wrappers_and_scripts(self):
        for words in (["timeout", "-k", "1", "50", self.opens],
                      ["nice", "-n", "1", "nohup", self.opens],
                      ["env", "A=1", "stdbuf", "-o", "L", self.opens],
                      ["setsid", "-w", self.opens],
                      ["sh", "-c", str(self.opens)],
                      ["/lib64/ld-linux-x86-64.so.2", self.opens],
                      [self.script("a", f"#!{self.opens} -x\n")],
                      [self.script("b", f"#!/usr/bin/env -S A=1 {self.opens}\n")],
                      [self.script("c", f"#!/bin/sh\nexec {self.opens}\n")]):
            with self.subTest(words=words):
                self.check(True, *words)

    def test_hearth_run_puts_it_back(self):
        self.env["PATH"] = f"{self.made}/bin:{os.environ['PATH']}"
        keep = [f"{name}={self.env[name]}" for name in (
            "HEARTH_DRIVER", "HEARTH_LOG", "HEARTH_SOCKET", "SIMCUDA_MACHINE")]
        self.check(True, "env", "-i", *keep, self.hearth, "run", self.opens)
        self.check(False, "env", "-i", *keep, self.opens)

    def test_environments_that_drop_it(self):
        for words in (["env", "-u", "LD_PRELOAD", self.opens],
                      ["env", "LD_PRELOAD=", self.opens],
                      ["env", "HEARTH=0", self.opens],
                      [self.script("a", f"#!/usr/bin/env -S -u LD_PRELOAD {self.opens}\n")]):
            with self.subTest(words=words):
                self.check(False, *words)
                self.assertEqual(self.done.stdout, b"cuInit: 0\n")

    def test_static(self):
        for kind in ("-static", "-static-pie"):
            with self.subTest(kind=kind):
                self.assertIn("static", self.check(False, compile_c(
                    self.dir / kind, kind, text="int main(void) { return 0; }")))

    def privileged(self, mode=0, capabilities=False):
        if os.geteuid():
            self.skipTest("only root can make such a program")
        program = Path(shutil.copy(self.opens, self.dir / "program"))
        program.chmod(0o755 | mode)
        if capabilities:
            os.setxattr(program, "security.capability", struct.pack(
                "<5I", VFS_CAP_REVISION_2 | VFS_CAP_EFFECTIVE, 1 << CAP_NET_RAW, 0, 0, 0))
        return program, {"user": NOBODY, "group": NOBODY, "extra_groups": []}

    def test_more_rights_than_the_caller(self):
        for expected, how in (("setuid", {"mode": 0o4000}), ("setgid", {"mode": 0o2000}),
                              ("file-capabilities", {"capabilities": True})):
            with self.subTest(how=how):
                program, options = self.privileged(**how)
                self.assertIn(expected, self.check(False, program, **options))

    def test_more_rights_that_change_nothing(self):
        """The caller's own setuid program, root with a capable file, no group execution, and a
        caller that gave up the right to gain any."""
        program, options = self.privileged(mode=0o4000)
        self.check(True, program)
        program, options = self.privileged(capabilities=True)
        self.check(True, program)
        program, options = self.privileged()
        program.chmod(0o2705)
        self.check(True, program, **options)
        program.chmod(0o4755)
        self.check(True, "setpriv", "--no-new-privs", program, **options)

    def test_a_setuid_wrapper(self):
        nice = shutil.which("nice")
        self.privileged()
        wrapper = shutil.copy(nice, self.dir / "nice")
        os.chmod(wrapper, 0o4755)
        options = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        self.assertIn("sudo", self.check(False, wrapper, self.opens, **options))

    @unittest.skipUnless(shutil.which("musl-gcc"), "no musl-gcc here")
    def test_musl(self):
        program = compile_c(self.dir / "program", text=OPENS, compiler=["musl-gcc"])
        self.assertIn("musl", self.check(False, program))

    def test_32_bit(self):
        try:
            program = compile_c(self.dir / "program", "-m32", "-ldl", text=OPENS)
        except subprocess.CalledProcessError:
            self.skipTest("the compiler makes no 32-bit programs here")
        self.assertIn("32-bit", self.check(False, program))

    def test_search_paths_to_a_real_driver(self):
        for tags in ("--disable-new-dtags", "--enable-new-dtags"):
            for text, options in ((OPENS, ["-ldl"]),
                                  (LINKED, [f"-L{self.made}/driver", "-lcuda"])):
                with self.subTest(tags=tags, options=options):
                    program = compile_c(self.dir / "program", f"-Wl,{tags}",
                                        f"-Wl,-rpath,{self.made}/driver", *options, text=text)
                    self.assertIn("rpath", self.check(True, program))

    def test_a_needed_driver_by_its_path(self):
        """As a library without a SONAME is NEEDed: by the path that the linker was given. The file
        is loaded, but symbols are looked up in preloaded libraries first."""
        nameless = compile_c(self.dir / "libcuda.so.1", shared=True,
                             text="int cuInit(unsigned flags) { return 77; }")
        for text in (LINKED, OPENS.replace("DRIVER, RTLD_NOW", "0, RTLD_NOW"), OPENS):
            with self.subTest(text=text):
                program = compile_c(self.dir / "program", "-Wl,--no-as-needed", nameless, "-ldl",
                                    text=text)
                self.assertIn("needed-path", self.check(True, program))
                self.assertEqual(self.done.returncode, 0)

    def test_a_driver_opened_by_its_path(self):
        """A string proves nothing, so it is a warning; but it is right."""
        program = compile_c(self.dir / "program", f'-DDRIVER="{self.driver}"', "-ldl", text=OPENS)
        verdict, findings = self.judged(program)
        self.assertIn("absolute-path", findings)
        self.assertTrue(verdict)
        self.assertFalse(self.happens(program))
        self.assertEqual(self.done.stdout, b"cuInit: 0\n")

    def test_another_preload(self):
        other = compile_c(self.dir / "libother.so", shared=True, text="int other;")
        for expected, first in ((True, other), (True, "/nowhere/libother.so"),
                                (False, self.driver)):
            with self.subTest(first=first):
                self.check(expected, self.opens, env={
                    **self.env, "LD_PRELOAD": f"{first}:{self.library}"})
        self.check(True, self.opens, env={
            **self.env, "LD_PRELOAD": f"{self.library} {self.driver}"})

    def test_a_preload_without_its_alias(self):
        """It is NEEDed, so that the loader ends the program."""
        lone = shutil.copy(self.library, self.dir / "libhearth.so")
        self.assertIn("preload", self.check(False, "env", f"LD_PRELOAD={lone}", self.opens))
        self.assertEqual(self.done.returncode, 127)

    def test_a_file_system_that_runs_nothing(self):
        place = self.dir / "noexec"
        place.mkdir()
        mount = ("mount -t tmpfs -o noexec none $1 && cp $2 ${2%/*}/libhearth-alias.so $1 && "
                 "shift 2 && exec \"$@\"")
        env = {name: value for name, value in self.env.items() if name != "LD_PRELOAD"}
        inside = ["unshare", "-mr", "sh", "-c", mount, "sh", place, self.library]
        if self.run_program(*inside, "true", env=env).returncode:
            self.skipTest("no mount namespaces here")
        words = ["env", f"LD_PRELOAD={place}/libhearth.so", self.opens]
        done = self.run_program(*inside, self.hearth, "doctor", "--json", "--", *words, env=env)
        found = {item["id"]: item for item in json.loads(done.stdout)["findings"]}
        self.assertIn("noexec", found["preload"]["text"])
        self.assertEqual(done.returncode, 1)
        self.assertFalse(self.happens(*inside, *words, env=env))
        self.assertEqual(self.done.stdout, b"cuInit: 0\n")

    def test_the_broker_that_runs(self):
        self.env.pop("HEARTH_SOCKET")
        self.env["PATH"] = f"{self.made}/bin:{os.environ['PATH']}"
        shutil.copy(harness.HEARTHD, self.made / "bin")
        self.assertIn("none runs", self.broker_text())
        self.run_program(self.hearth, "run", self.opens)
        self.addCleanup(self.run_program, self.hearth, "stop")
        deadline = time.monotonic() + harness.DEADLINE_S
        while "keeper warm" not in self.broker_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertIn(f"{self.dir}/run/hearth/socket, keeper warm", self.broker_text())

    def broker_text(self):
        done = self.run_program(self.hearth, "doctor", "--json")
        return next(item["text"] for item in json.loads(done.stdout)["findings"]
                    if item["id"] == "broker")

    def test_asan(self):
        """What aborts is the runtime as a library; linked in, it bears a preload."""
        for compiler, options, expected in (("gcc", [], False),
                                            ("gcc", ["-static-libasan"], True),
                                            ("clang", [], True)):
            with self.subTest(compiler=compiler, options=options):
                self.check(expected, self.asan_program(compiler, *options))

    def asan_program(self, compiler, *options):
        if not shutil.which(compiler):
            self.skipTest(f"no {compiler} here")
        try:
            return compile_c(self.dir / "program", "-fsanitize=address", *options, "-ldl",
                             text=OPENS, compiler=[compiler])
        except subprocess.CalledProcessError:
            self.skipTest(f"{compiler} has no AddressSanitizer here")

    def test_asan_that_was_told_to_bear_it(self):
        program = self.asan_program("gcc")
        self.check(True, program, env={
            **self.env, "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"})

    def test_no_driver(self):
        if any(os.path.exists(path) for path in ("/dev/nvidiactl", "/dev/dxg", "/dev/nvmap")):
            self.skipTest("this machine has a driver")
        env = {name: value for name, value in self.env.items() if name != "HEARTH_DRIVER"}
        self.assertIn("no-gpu", self.check(False, self.opens, env=env))


if __name__ == "__main__":
    harness.main()
