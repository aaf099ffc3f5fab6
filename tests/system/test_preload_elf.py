"""libhearth.so as a file: what it needs, what it shows, on how old a libc it loads."""
import csv
import re
import subprocess
import unittest

import harness

ALIAS = harness.PRELOAD.with_name("libhearth-alias.so")
GLIBC_FLOOR = (2, 17)
RUNTIMES = {"libcudart.so.9.0", "libcudart.so.9.1", "libcudart.so.9.2", "libcudart.so.10.0",
            "libcudart.so.10.1", "libcudart.so.10.2", "libcudart.so.11.0", "libcudart.so.12",
            "libcudart.so.13"}


def readelf(*words):
    return subprocess.run(["readelf", "-W", *map(str, words)], stdout=subprocess.PIPE, text=True,
                          check=True).stdout


def dynamic(path, tag):
    return re.findall(rf"\({tag}\).*\[(.*)\]", readelf("-d", path))


class PreloadElf(harness.SystemTest):
    def symbols(self, is_defined):
        rows = [line.split() for line in readelf("--dyn-syms", harness.PRELOAD).splitlines()]
        return [row[7] for row in rows if len(row) >= 8 and row[0] != "Num:" and
                (row[6] != "UND") == is_defined]

    def test_names(self):
        self.assertEqual(dynamic(harness.PRELOAD, "SONAME"), ["libcuda.so.1"])
        self.assertEqual(dynamic(ALIAS, "SONAME"), ["libcuda.so"])

    def test_needs_libc_and_the_alias_only(self):
        self.assertEqual(dynamic(harness.PRELOAD, "NEEDED"), ["libhearth-alias.so", "libc.so.6"])
        self.assertEqual(dynamic(ALIAS, "NEEDED"), ["libhearth.so"])

    def test_exports_are_the_spec(self):
        with open(harness.SOURCE / "lib/driver/driver_api.tsv", encoding="ascii") as file:
            spec = {row["abi_symbol"] for row in csv.DictReader(file, delimiter="\t")}
        defined = set(self.symbols(True))
        entries = {name for name in defined if name.startswith("cu") and "@" not in name}
        # Found by dlsym; bound to by relocations.
        init = {"cuInit@@HEARTH_LOOKUP", "cuInit@HEARTH_BOUND"}
        self.assertEqual(entries, spec - {"cuInit"})
        rest = defined - entries - init
        self.assertLessEqual(init, defined)
        self.assertEqual({name for name in rest if "@" in name},
                         {f"cudaSetDevice@{version}" for version in RUNTIMES})
        self.assertEqual({name for name in rest if "@" not in name}, RUNTIMES | {
            "HEARTH_BOUND", "HEARTH_LOOKUP"})

    def test_loads_on_old_libcs(self):
        versions = re.findall(r"@(\S+)", " ".join(self.symbols(False)))
        for version in versions:
            number = re.fullmatch(r"GLIBC_([0-9.]+)", version)
            self.assertIsNotNone(number, version)
            self.assertLessEqual(tuple(map(int, number[1].split(".")))[:2], GLIBC_FLOOR)

    def test_nothing_is_unresolved(self):
        for path in (harness.PRELOAD, ALIAS):
            done = subprocess.run(["ldd", "-r", path], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False)
            self.assertNotIn("undefined", done.stdout)
            self.assertNotIn("not found", done.stdout)

    def test_the_loaders_functions_are_not_insisted_on(self):
        """Before glibc 2.34 they are in libdl, which a program may lack: bash must still run."""
        table = readelf("--dyn-syms", harness.PRELOAD)
        for name in ("dlopen", "dlsym", "dlinfo", "dladdr1"):
            self.assertRegex(table, rf"WEAK +DEFAULT +UND {name}@")

    def test_takes_no_static_tls(self):
        self.assertNotIn("STATIC_TLS", readelf("-d", harness.PRELOAD))
        self.assertNotRegex(readelf("-l", harness.PRELOAD), r"^ +TLS ")

    def test_what_stepping_aside_writes_to(self):
        """.dynamic is writable, and no code lies in the pages of the symbol tables."""
        for path in (harness.PRELOAD, ALIAS):
            self.assertNotIn("GNU_RELRO", readelf("-l", path))
        first = next(line for line in readelf("-l", harness.PRELOAD).splitlines()
                     if line.split()[:1] == ["LOAD"])
        self.assertEqual(first.split()[6:-1], ["R"])

    def test_stack_is_not_executable(self):
        for path in (harness.PRELOAD, ALIAS):
            self.assertNotIn("RWE", readelf("-l", path))


if __name__ == "__main__":
    harness.main()
