#!/usr/bin/env python3
"""What programs are run in: limits, logs that nobody reads, other libraries, the loader's own
settings. A program runs on as it would without Hearth."""
import os
import re
import resource
import signal
import subprocess
import sys
import unittest

import harness
from compiled import compile_c

SIMPLE = harness.PROGRAMS / "simple_driver"
QUICK = 10
FILE_LIMIT = 64 << 20  # the simulated machine's file is smaller
WEAK = """
extern int cuInit(unsigned int flags) __attribute__((weak));
int (*volatile kept)(unsigned int) = cuInit;
"""
OPENER = """
#include <dlfcn.h>
void *opened;
__attribute__((constructor)) static void start(void) { opened = dlopen("%s", RTLD_NOW); }
"""
LATER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
static int init(void *handle)
{
	int (*call)(unsigned int) = handle ? (int (*)(unsigned int))dlsym(handle, "cuInit") : NULL;
	return call ? call(0) : -1;
}
int main(void)
{
	void **opened = dlsym(RTLD_DEFAULT, "opened");
	int early = init(*opened);
	printf("early %%d, later %%d\\n", early, init(dlopen("%s", RTLD_NOW)));
	return 0;
}
"""


class Surroundings(harness.SystemTest):
    def setUp(self):
        super().setUp()
        self.env.update(SIMCUDA_SPEED="0")
        # The simulated machine's file is there before any limit is.
        self.plain = self.run_program(
            SIMPLE, env={**self.env, "LD_LIBRARY_PATH": str(harness.SIM.parent)})
        self.assertEqual(self.plain.returncode, 0, self.plain.stdout)

    def assert_as_plain(self, done):
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (0, self.plain.stdout, b""))

    def test_log_is_a_fifo_that_nobody_reads(self):
        log = self.dir / "fifo"
        os.mkfifo(log)
        self.assert_as_plain(self.run_program(
            SIMPLE, env=self.preloaded(HEARTH_LOG=str(log)), timeout=QUICK))

    def test_log_is_a_fifo_that_is_full(self):
        log = self.dir / "fifo"
        os.mkfifo(log)
        reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        writer = os.open(log, os.O_WRONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, writer)
        with self.assertRaises(BlockingIOError):
            while os.write(writer, b"x" * 4096):
                pass
        self.assert_as_plain(self.run_program(
            SIMPLE, env=self.preloaded(HEARTH_LOG=str(log)), timeout=QUICK))

    def test_messages_to_a_pipe_that_is_closed(self):
        reader, writer = os.pipe()
        os.close(reader)
        try:
            done = self.run_pipe(writer)
        finally:
            os.close(writer)
        self.assertEqual((done.returncode, done.stdout), (0, self.plain.stdout))

    def run_pipe(self, stderr):
        return subprocess.run([SIMPLE], env=self.preloaded(HEARTH_LOG_LEVEL="debug"),
                              stdout=subprocess.PIPE, stderr=stderr, timeout=QUICK, check=False)

    def limited(self, env):
        """With a limit on files, and the signal for that as programs have it: deadly."""
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_LIMIT, resource.RLIM_INFINITY))
        return self.run_program(SIMPLE, env=env, preexec_fn=limit)

    @harness.plain_only  # whose runtimes write files
    def test_a_limit_on_file_sizes(self):
        self.assert_as_plain(self.limited(
            {**self.env, "LD_LIBRARY_PATH": str(harness.SIM.parent)}))
        log = self.dir / "log"
        log.touch()
        os.truncate(log, FILE_LIMIT)
        self.assert_as_plain(self.limited(self.preloaded(HEARTH_LOG=str(log))))

    @harness.plain_only
    def test_the_loader_profiles(self):
        """It then keeps each object's SONAME from the start: there is no stepping aside."""
        found = {"LD_LIBRARY_PATH": str(harness.SIM.parent)}
        profile = {"LD_PROFILE": "libc.so.6", "LD_PROFILE_OUTPUT": str(self.dir)}
        env = {**self.env, **found, **profile}
        env.pop("HEARTH_DRIVER")
        for more in ({"HEARTH": "0"}, {"HEARTH": "1"}, {"HEARTH_DRIVER": str(harness.SIM)}):
            self.assert_as_plain(self.run_program(
                SIMPLE, env={**env, "LD_PRELOAD": harness.PRELOADS, **more}))

    @harness.plain_only
    def test_another_hearth_is_not_taken_for_the_driver(self):
        """Of another version, that is with another build-id; or the alias."""
        note = subprocess.run(["readelf", "-nW", harness.PRELOAD], stdout=subprocess.PIPE,
                              text=True, check=True).stdout
        own = bytes.fromhex(re.search(r"Build ID: ([0-9a-f]+)", note)[1])
        text = harness.PRELOAD.read_bytes()
        self.assertEqual(text.count(own), 1)
        other = self.dir / "libcuda.so.1"
        other.write_bytes(text.replace(own, own[::-1]))
        alias = harness.PRELOAD.with_name("libhearth-alias.so")
        (self.dir / alias.name).symlink_to(alias)
        found = str(harness.SIM.parent)
        for env in ({"HEARTH_DRIVER": str(other), "LD_LIBRARY_PATH": found},
                    {"HEARTH_DRIVER": str(alias), "LD_LIBRARY_PATH": found}):
            self.assert_as_plain(self.run_program(SIMPLE, env=self.preloaded(**env)))

    @unittest.skipIf(os.geteuid(), "only root can mount")
    @harness.plain_only
    def test_a_read_only_state_folder_is_called_so(self):
        state = self.dir / "state"
        mount = f'mount -t tmpfs -o ro none "{state}" && "{harness.HEARTH}" doctor --prove'
        if self.run_program("unshare", "-m", "true").returncode:
            self.skipTest("no mount namespaces here")
        done = self.run_program("unshare", "-m", "sh", "-c", mount)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"Read-only file system", done.stdout + done.stderr)

    def build_deep(self, text, main):
        """A program, and a library that the loader relocates and starts before ours: one that a
        library of the program NEEDs, and that does not NEED libcuda.so.1."""
        rpath = f"-Wl,-rpath,{self.dir},-rpath-link,{self.dir},--no-as-needed"
        deep = compile_c(self.dir / "libdeep.so", "-Wl,-z,now", text=text, shared=True)
        middle = compile_c(self.dir / "libmiddle.so", rpath, deep, text="", shared=True)
        return compile_c(self.dir / "program", rpath, middle, "-ldl", text=main)

    @harness.plain_only
    def test_an_early_library_that_refers_to_cuinit(self):
        program = self.build_deep(WEAK, "int main(void) { return 0; }")
        env = {**self.env, "LD_PRELOAD": harness.PRELOADS}
        for more in ({}, {"HEARTH": "0"}, {"HEARTH_DRIVER": ""}, {"LD_BIND_NOW": "1"}):
            done = self.run_program(program, env={**env, **more})
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""), more)

    @harness.plain_only
    def test_an_early_constructor_opens_the_driver(self):
        """And is switched off, or has one: the handle stays good."""
        (self.dir / "lib").mkdir()
        for name in ("libcuda.so.1", "libcuda.so"):
            (self.dir / "lib" / name).symlink_to(harness.SIM)
        for name in ("libcuda.so.1", "libcuda.so"):
            program = self.build_deep(OPENER % name, LATER % name)
            env = {**self.env, "LD_LIBRARY_PATH": str(self.dir / "lib")}
            plain = self.run_program(program, env=env)
            self.assertEqual(plain.stdout, b"early 0, later 0\n")
            for more in ({}, {"HEARTH": "0"}):
                done = self.run_program(
                    program, env={**env, "LD_PRELOAD": harness.PRELOADS, **more})
                self.assertEqual((done.returncode, done.stdout, done.stderr),
                                 (plain.returncode, plain.stdout, plain.stderr), (name, more))

    @harness.plain_only
    def test_pending_signals_stay_pending(self):
        """Ours are taken away again; the program's are not."""
        code = f"""
import ctypes, os, signal
cuda = ctypes.CDLL("libcuda.so.1")
signal.pthread_sigmask(signal.SIG_BLOCK, {{signal.SIGPIPE, signal.SIGXFSZ}})
os.kill(os.getpid(), signal.SIGPIPE)
assert cuda.cuInit(0) == 0
print(sorted(map(int, signal.sigpending())), sorted(map(int,
    signal.pthread_sigmask(signal.SIG_BLOCK, []))))
"""
        log = self.dir / "log"
        done = self.run_program(sys.executable, "-c", code,
                                env=self.preloaded(HEARTH_LOG=str(log)))
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(done.stdout, b"[13] [13, 25]\n")
        self.assertIn("cuInit", log.read_text())


if __name__ == "__main__":
    harness.main()
