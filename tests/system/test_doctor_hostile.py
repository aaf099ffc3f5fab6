"""`hearth doctor` on what is broken or means harm: it answers, or says why it can't, and ends."""
import json
import os
from pathlib import Path

import harness
from compiled import compile_c
from doctor_case import DoctorTest

MOST_ALLOCATIONS = 2000
FAILING = """
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
static int count, at = -1, has_failed;

static int fails(void)
{
	if (at < 0)
		at = getenv("FAIL_AT") ? atoi(getenv("FAIL_AT")) : 0;
	has_failed |= ++count == at;
	return count == at;
}

void *malloc(size_t size) { return fails() ? 0 : __libc_malloc(size); }
void *calloc(size_t n, size_t size) { return fails() ? 0 : __libc_calloc(n, size); }
void *realloc(void *old, size_t size) { return fails() ? 0 : __libc_realloc(old, size); }

__attribute__((destructor)) static void end(void)
{
	if (at > 0 && !has_failed && write(2, "none failed\\n", 12) < 0)
		_exit(9);
}
"""


class Hostile(DoctorTest):
    def test_damaged_programs_do_no_harm(self):
        whole = self.plain.read_bytes()
        step = len(whole) // 16
        damaged = [whole[:size] for size in (1, 4, 16, 63, 64, 200, *range(step, len(whole), step))]
        damaged += [whole[:at] + b"\xff" * 8 + whole[at + 8:] for at in range(16, 512, 24)]
        program = self.dir / "program"
        for content in damaged:
            program.write_bytes(content)
            program.chmod(0o755)
            self.doctor("--", program)

    def test_odd_first_lines_do_no_harm(self):
        for text in ("#!", "#!\n", "#! \t\n", "#!\0/bin/sh\n", "#!" + "/" * 300, "#!/bin/sh",
                     "#!/bin/sh \xff\x01 -x\n", "#! env -S ''\n", "#!/usr/bin/env -S\n",
                     "#!/usr/bin/env -u\n", "#!/usr/bin/env\n", "\x7fELF", ""):
            with self.subTest(text=text):
                self.doctor("--", self.script("a", text))

    def test_what_is_no_file_is_no_program(self):
        os.mkfifo(self.dir / "fifo", 0o755)
        self.assert_not_intercepted("not-found", self.dir / "fifo")
        self.assert_not_intercepted("not-found", self.dir)

    def test_memory_that_runs_out_at_any_moment(self):
        """Every allocation fails once: doctor ends, with a verdict or with a message."""
        if any(name in Path(self.hearth).read_bytes() for name in (b"__asan_init", b"__tsan_init")):
            self.skipTest("a sanitizer has its own allocator")
        failing = compile_c(self.dir / "libfail.so", "-ldl", shared=True, text=FAILING)
        words = [self.hearth, "doctor", "--json", "--", "env", "A=1", "timeout", "5",
                 self.script("a", f"#!/usr/bin/env -S {self.plain} -x\n")]
        whole = self.run_program(*words, env={**self.env, "LD_PRELOAD": str(failing)})
        for at in range(1, MOST_ALLOCATIONS):
            done = self.run_program(*words, env={**self.env, "LD_PRELOAD": str(failing),
                                                 "FAIL_AT": str(at)})
            if done.stderr.endswith(b"none failed\n"):
                self.assertEqual(done.stdout, whole.stdout)
                return
            self.assertIn(done.returncode, (0, 1), (at, done))
            if not done.stderr:
                json.loads(done.stdout)
        self.fail(f"more than {MOST_ALLOCATIONS} allocations")

    def test_hostile_names_reach_neither_terminal_nor_json_raw(self):
        name = self.dir / "a\x1b[31m\n"
        done = self.run_program(self.hearth, "doctor", "--", name)
        self.assertNotIn(b"\x1b", done.stdout)
        self.assert_not_intercepted("not-found", os.fsdecode(b"/nowhere/\xff\xfe"))


if __name__ == "__main__":
    harness.main()
