"""The generator, with awkward specs: what it refuses, and what its assembly does when built."""
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import tree

DRIVER = tree.ROOT / "lib/driver"
sys.path.insert(0, str(DRIVER))
import generate  # noqa: E402  (the path is made above)
import spec  # noqa: E402

HEADER = "\t".join(spec.COLUMNS)
CC = os.environ.get("CC") or shutil.which("cc") or "gcc"

# A resolver that spoils every register it may, and targets that tell what reached them.
RUNTIME = r"""
#include "driver/stubs.h"
#include <string.h>
static unsigned int last_row;
static uintptr_t target;
uintptr_t route_resolve(unsigned int row, const void *caller)
{
	last_row = row;
	if (!caller)
		return 0;
	__asm__ volatile("xorl %%edi, %%edi\n xorl %%esi, %%esi\n xorl %%edx, %%edx\n"
		"xorl %%ecx, %%ecx\n xorl %%r8d, %%r8d\n xorl %%r9d, %%r9d\n xorl %%r10d, %%r10d\n"
		"pxor %%xmm0, %%xmm0\n pxor %%xmm1, %%xmm1\n pxor %%xmm6, %%xmm6\n"
		"pxor %%xmm7, %%xmm7" ::: "rdi", "rsi", "rdx", "rcx", "r8", "r9", "r10", "xmm0",
		"xmm1", "xmm6", "xmm7", "memory");
	return target;
}
#define VISIBLE __attribute__((visibility("default")))
static double sum(long a, long b, long c, long d, long e, long f, double g, double h, double i,
	double j, double k, double l, double m, double n, long o, long p)
{
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j +
	       11 * k + 12 * l + 13 * m + 14 * n + 15 * o + 16 * p;
}
VISIBLE unsigned int get_last_row(void) { return last_row; }
VISIBLE void set_target(void) { target = (uintptr_t)sum; }
VISIBLE void set_slot(unsigned int row) { driver_slots[row] = (uintptr_t)sum; }
VISIBLE void set_generic(unsigned int i) { driver_generic_slots[i] = (uintptr_t)sum; }
VISIBLE void *get_generic(unsigned int i) { return (void *)stubs_generic(i); }
VISIBLE void *get_stub(unsigned int row) { return (void *)stubs_address(row); }
VISIBLE void *get_handler(unsigned int row) { return (void *)stubs_handler(row); }
VISIBLE int find(const char *name, int version, unsigned long flags)
{
	return tables_find_request(name, version, flags);
}
VISIBLE int find_symbol(const char *symbol) { return tables_find_symbol(symbol); }
"""


def row(public, symbol, since=2000, variant="legacy", arity=1, kind="pass"):
    cells = {"public_name": public, "abi_symbol": symbol, "since": since, "arity": arity,
             "stream_variant": variant, "group": "core", "class": kind}
    return "\t".join(str(cells.get(name, 3)) for name in spec.COLUMNS)


class Refusals(unittest.TestCase):
    def refuse(self, *lines, header=HEADER):
        with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
            file.write("\n".join((header, *lines)) + "\n")
            file.flush()
            with self.assertRaises(spec.SpecError) as caught:
                spec.read(file.name)
        return str(caught.exception)

    def test_each_message_names_line_and_value(self):
        good = row("cuA", "cuA")
        for line, value in ((row("cu-B", "cuB"), "cu-B"), (row("cuB", "cuB", since="new"), "new"),
                            (row("cuB", "cuB", variant="ptxx"), "ptxx"),
                            (row("cuB", "cuB", kind="grab"), "grab"),
                            (row("cuC", "cuA"), "cuA"), (row("cuB", "cuB", arity=-1), "-1"),
                            (good + "\t1", f"{len(spec.COLUMNS) + 1} cells")):
            message = self.refuse(good, line)
            self.assertIn(value, message)
            self.assertIn(":3:", message)

    def test_columns(self):
        self.assertIn("public", self.refuse(header="public\tabi"))

    def test_more_names_than_offsets_reach(self):
        lines = [row(f"cu{'x' * 200}{i}", f"cu{'y' * 200}{i}") for i in range(400)]
        with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
            file.write("\n".join((HEADER, *lines)) + "\n")
            file.flush()
            rows = spec.read(file.name)
        with self.assertRaises(spec.SpecError):
            generate.tables(rows)


class Build(unittest.TestCase):
    """A library made of an awkward spec: names that begin alike, gaps between versions, variants
    without a plain row, no arguments, many arguments."""
    LINES = (row("cuA", "cuA_v3", 12000, arity=3), row("cuA", "cuA", 2000, arity=0),
             row("cuAB", "cuAB"), row("cuA", "cuA_v2", 4000), row("cu", "cu"),
             row("cuA", "cuA_v2_ptsz", 7000, "ptsz"), row("cuP", "cuP_ptds", 7000, "ptds"),
             row("cuZ", "cuZ", 65000, arity=16, kind="handle"), row("cuF", "cuF", kind="first"))

    def make(self, folder, *extra):
        path = Path(folder)
        (path / "spec.tsv").write_text("\n".join((HEADER, *self.LINES)) + "\n")
        for what, name in (("rows", "driver_rows.h"), ("stubs", "stubs.S"),
                           ("tables", "tables.c")):
            done = subprocess.run([sys.executable, DRIVER / "generate.py", what,
                                   path / "spec.tsv", path / name], check=False,
                                  stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 0, done.stderr)
        (path / "runtime.c").write_text(RUNTIME + "\n".join(extra))
        return subprocess.run(
            [CC, "-shared", "-fPIC", "-fvisibility=hidden", "-std=gnu17", "-D_GNU_SOURCE",
             f"-I{path}", f"-I{tree.ROOT}/lib", "-Wl,-z,defs", "-Wl,-Bsymbolic",
             "-o", path / "all.so", path / "stubs.S", path / "tables.c", path / "runtime.c",
             DRIVER / "tables.c"], stderr=subprocess.PIPE, text=True, check=False)

    def test_missing_handler_is_a_link_error(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.make(folder, "int first_cuF(void); int first_cuF(void) { return 1; }")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("handle_cuZ", done.stderr)

    def library(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        done = self.make(folder.name, "int first_cuF(void); int first_cuF(void) { return 41; }",
                         "int handle_cuZ(void); int handle_cuZ(void) { return 42; }")
        self.assertEqual(done.returncode, 0, done.stderr)
        return ctypes.CDLL(str(Path(folder.name) / "all.so"))

    def call_sum(self, function):
        """Call with every register for arguments in use, and two words on the stack."""
        function.restype = ctypes.c_double
        function.argtypes = [ctypes.c_long] * 6 + [ctypes.c_double] * 8 + [ctypes.c_long] * 2
        values = list(range(1, 17))
        self.assertEqual(function(*values), sum((i + 1) * v for i, v in enumerate(values)))

    def test_an_empty_slot_resolves_and_keeps_every_argument(self):
        library = self.library()
        library.set_target()
        for number, line in enumerate(self.LINES):
            self.call_sum(getattr(library, line.split("\t")[1]))
            self.assertEqual(library.get_last_row(), number)

    def test_a_full_slot_is_jumped_through(self):
        library = self.library()
        library.set_slot(2)
        self.call_sum(library.cuAB)
        library.get_generic.restype = ctypes.c_void_p
        for index in (0, 1, generate.GENERIC_STUBS - 1):
            library.set_generic(index)
            prototype = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_long] * 6,
                                         *[ctypes.c_double] * 8, *[ctypes.c_long] * 2)
            self.call_sum(prototype(library.get_generic(index)))

    def test_tables_of_stubs_and_handlers(self):
        library = self.library()
        library.get_stub.restype = library.get_handler.restype = ctypes.c_void_p
        for number, line in enumerate(self.LINES):
            symbol = line.split("\t")[1]
            address = ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value
            self.assertEqual(library.get_stub(number), address)
            handler = library.get_handler(number)
            answer = ctypes.CFUNCTYPE(ctypes.c_int)(handler)() if handler else None
            self.assertEqual(answer, {"cuZ": 42, "cuF": 41}.get(symbol))
            self.assertEqual(library.find_symbol(symbol.encode()), number)
        self.assertEqual(library.find_symbol(b"cuA_v"), len(self.LINES))

    def test_requests(self):
        library = self.library()
        none = len(self.LINES)
        for name, version, flags, expected in (
                (b"cuA", 1999, 0, none), (b"cuA", 2000, 0, 1), (b"cuA", 3999, 2, 1),
                (b"cuA", 4000, 0, 3), (b"cuA", 7000, 0, 3), (b"cuA", 7000, 2, 5),
                (b"cuA", 7000, 1, 3), (b"cuA", 12000, 2, 0), (b"cuA", 99999, 0, 0),
                (b"cuAB", 2000, 2, 2), (b"cu", 2000, 0, 4), (b"c", 2000, 0, none),
                (b"cuP", 7000, 0, none), (b"cuP", 7000, 2, 6), (b"cuZ", 65000, 0, 7),
                (b"", 99999, 2, none), (b"cuA_v2", 99999, 0, none)):
            with self.subTest(name=name, version=version, flags=flags):
                self.assertEqual(library.find(name, version, flags), expected)


if __name__ == "__main__":
    tree.main()
