"""Files that a program touched are read ahead in its next run: those parts alone, and only where
that is known to be its way. A file's pages in memory are what the kernel says of them."""
import ctypes
import json
import mmap
import os
import shutil
import time

import harness
from harness import main
from speculation import SpeculationTest, STEPS

PLUGIN = harness.PROGRAMS / "libtouched_plugin.so"
MIB = 1 << 20
SECONDS = 10
LIBC = ctypes.CDLL(None, use_errno=True)


def resident(path):
    """For each page of a file, whether it is in memory (man 2 mincore)."""
    with open(path, "rb") as file:
        with mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE) as mapped:
            start = (ctypes.c_char * 0).from_buffer(mapped)
            count = (len(mapped) + mmap.PAGESIZE - 1) // mmap.PAGESIZE
            pages = (ctypes.c_ubyte * count)()
            code = LIBC.mincore(ctypes.c_void_p(ctypes.addressof(start)),
                                ctypes.c_size_t(len(mapped)), pages)
            del start
            if code:
                raise OSError(ctypes.get_errno(), "mincore")
            return [page & 1 for page in pages]


def drop(path):
    """Out of memory with it, where the file system can."""
    fd = os.open(path, os.O_RDWR)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


class ReadAhead(SpeculationTest):
    """A program that opens a library of 16 MiB in the run it is learned from, not in the next."""
    LEARNED = None

    def setUp(self):
        super().setUp()
        self.package = self.dir / "lib/site-packages/package"
        (self.package / "__pycache__").mkdir(parents=True)
        self.plugin = self.package / "part.cpython-311-x86_64-linux-gnu.so"
        shutil.copyfile(PLUGIN, self.plugin)
        self.module = self.package / "__pycache__/one.cpython-311.pyc"
        self.unread = self.package / "__pycache__/two.cpython-311.pyc"
        for path, is_read in ((self.module, True), (self.unread, False)):
            path.write_bytes(b"x" * 65536)
            status = path.stat()
            os.utime(path, ns=(status.st_mtime_ns + is_read * 10**9, status.st_mtime_ns))
        self.files = (self.plugin, self.module, self.unread)
        drop(self.plugin)
        if any(resident(self.plugin)):
            self.skipTest("files on this file system cannot leave memory")

    def learned(self, *steps):
        """The state folder after one run with the plugin."""
        return self.learn(STEPS, f"plugin={self.plugin}", "lookup", "init", *steps)

    def cold(self):
        for path in self.files:
            drop(path)
            self.assertFalse(any(resident(path)), path)

    def run_without(self, state, *steps, **env):
        """The same program, which this time opens nothing; returns what it printed."""
        self.cold()
        return self.under(STEPS, "sleep=300", "init", *steps, state=state, **env)

    def touched_pages(self):
        """Of the plugin: in memory at its beginning, around 8 MiB, and in all."""
        pages = resident(self.plugin)
        middle = 8 * MIB // mmap.PAGESIZE
        return any(pages[:32]), any(pages[middle:middle + 64]), sum(pages)

    def await_touched(self, state):
        """The same, once both were read: at the lowest priority, so that on a busy machine a run
        may end before, and another one goes on."""
        end = time.monotonic() + SECONDS
        self.run_without(state)
        while not all(self.touched_pages()[:2]) and time.monotonic() < end:
            self.under(STEPS, "sleep=300", "init", state=state)
        return self.touched_pages()

    def await_pages(self, path):
        """The kernel reads in its own time."""
        end = time.monotonic() + SECONDS
        while not any(resident(path)) and time.monotonic() < end:
            time.sleep(0.01)
        return any(resident(path))

    def test_what_was_touched_is_read_and_not_the_rest(self):
        state = self.learned("retain=0")
        begin, middle, count = self.await_touched(state)
        self.assertTrue(begin)
        self.assertTrue(middle)
        self.assertLess(count * mmap.PAGESIZE, 12 * MIB)

    def test_profile_show_lists_them(self):
        self.env["HEARTH_STATE_DIR"] = str(self.learned("retain=0"))
        shown = self.run_program(harness.HEARTH, "profile", "show", STEPS.name, "--json").stdout
        files = {row["path"]: row for row in json.loads(shown)["profiles"][0]["files"]}
        row = files[str(self.plugin)]
        self.assertEqual(row["size"], self.plugin.stat().st_size)
        self.assertEqual(row["ranges"][0][0], 0)
        for offset, size in row["ranges"]:
            self.assertTrue(0 < size <= row["size"] - offset, row)
        self.assertEqual(files[str(self.module)], {"path": str(self.module), "size": 65536,
                                                   "ranges": None})
        self.assertNotIn(str(self.unread), files)
        shown = self.run_program(harness.HEARTH, "profile", "show", STEPS.name).stdout.decode()
        self.assertRegex(shown, f"\nreads ahead what is not in memory: {len(files)} files, ")
        self.assertIn(f"  {self.plugin}\n", shown)
        self.assertRegex(shown, rf"\n +64 KiB +64 KiB  {self.module}\n")

    def test_modules_that_were_read_are_read_and_others_are_not(self):
        self.run_without(self.learned("retain=0"))
        self.assertTrue(self.await_pages(self.module))
        self.assertFalse(any(resident(self.unread)))

    def test_nothing_is_read_under_speculate_off(self):
        state = self.learned("retain=0")
        self.run_without(state, HEARTH_SPECULATE="off")
        self.assertFalse(any(resident(self.plugin)))
        self.assertFalse(any(resident(self.module)))

    def test_a_program_without_a_context_is_not_learned(self):
        state = self.learned()
        self.run_without(state)
        self.assertFalse(any(resident(self.plugin)))

    def test_another_program_of_the_executable_reads_nothing(self):
        state = self.learned("retain=0")
        self.cold()
        self.under(STEPS, "--other", "sleep=300", "init", state=state)
        self.assertFalse(any(resident(self.plugin)))

    def test_one_that_forks_before_is_left_alone(self):
        state = self.learn(STEPS, f"plugin={self.plugin}", "forks=1", "lookup", "init", "retain=0")
        self.run_without(state)
        self.assertFalse(any(resident(self.plugin)))

    def change(self):
        with open(self.plugin, "ab") as file:
            file.write(b"more")

    def test_a_file_that_has_changed_is_not_read(self):
        state = self.learned("retain=0")
        self.change()
        self.run_without(state)
        self.assertFalse(any(resident(self.plugin)))
        self.assertTrue(self.await_pages(self.module))

    def test_a_change_is_learned_in_a_run_in_which_nothing_is_due(self):
        state = self.learned("retain=0")
        for _ in range(2):
            self.learn(STEPS, f"plugin={self.plugin}", "lookup", "init", "retain=0", state=state)
            self.change()
        self.learn(STEPS, "sleep=100", f"plugin={self.plugin}", "lookup", "init", "retain=0",
                   state=state)
        self.run_without(state)
        self.assertTrue(self.await_pages(self.plugin))

    def test_the_program_sees_no_descriptor_of_it(self):
        state = self.learn(STEPS, f"plugin={self.plugin}", "lookup", "sleep=100", "init",
                           "retain=0")
        plain = self.run_program(STEPS, "fds", "sleep=20", "fds", env=self.env)
        for _ in range(5):
            self.cold()
            done = self.under(STEPS, "fds", "sleep=20", "fds", state=state)
            self.assertEqual(done.stdout, plain.stdout)


if __name__ == "__main__":
    main()
