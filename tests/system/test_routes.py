"""Every way that a program has to the driver leads to the same entry with libhearth.so as without:
the driver itself says which of its rows a call reached, with which arguments."""
import csv
import json
import unittest

import harness

SPEC = harness.SOURCE / "lib/driver/driver_api.tsv"
CANARY = "ca11ab1e"
# They take 64 bytes by value, on the stack, where nobody has put any here.
BY_VALUE = ("cuIpcOpenMemHandle", "cuIpcOpenMemHandle_v2", "cuIpcOpenEventHandle")


def spec_rows():
    with open(SPEC, newline="", encoding="ascii") as file:
        return list(csv.DictReader(file, delimiter="\t"))


class Routes(harness.SystemTest):
    def setUp(self):
        super().setUp()
        rows = spec_rows()
        self.names, self.symbols = self.dir / "names", self.dir / "symbols"
        names = sorted({row["public_name"] for row in rows}) + ["cuNotThere", "cuExtraEntry"]
        self.names.write_text("\n".join(names))
        # An entry without arguments cannot carry the canary: it would really be called.
        self.symbols.write_text("\n".join(
            row["abi_symbol"] for row in rows if row["arity"] != "0"))
        since = {int(row["since"]) for row in rows}
        self.versions = ",".join(map(str, sorted(since | {1999, 2000, 12090, 13030, 14000})))
        (self.dir / "lib").mkdir()
        (self.dir / "lib/libcuda.so.1").symlink_to(harness.SIM)
        (self.dir / "lib/libcuda.so").symlink_to(harness.SIM)
        self.env.update(LD_LIBRARY_PATH=str(self.dir / "lib"), SIMCUDA_CANARY=CANARY,
                        SIMCUDA_SPEED="0", SIMCUDA_EXTRA="cuExtraEntry")

    def same(self, program, *arguments, **more):
        """Run plain and preloaded; the outputs are equal, line by line. Returns the lines."""
        outputs = []
        for env in ({**self.env, **more}, self.preloaded(**more)):
            done = self.run_program(harness.PROGRAMS / program, *arguments, env=env)
            outputs.append((done.returncode, done.stderr, done.stdout.splitlines()))
        (plain_rc, plain_err, plain), (rc, err, lines) = outputs
        self.assertEqual((plain_rc, plain_err), (rc, err))
        for expected, got in zip(plain, lines):
            self.assertEqual(expected, got)
        self.assertEqual(len(plain), len(lines))
        self.assertEqual(rc, 0, plain[-1:])
        return [line.decode() for line in lines]

    def records(self, program, *arguments, **more):
        """The calls that a preloaded run records: proof that it went through us."""
        log = self.dir / "hearth.log"
        log.unlink(missing_ok=True)
        env = self.preloaded(HEARTH_LOG=str(log), **more)
        done = self.run_program(harness.PROGRAMS / program, *arguments, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        if not log.exists():
            return []
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        return [line["call"] for line in lines if line["event"] == "call"]

    def driver_calls(self, env):
        """What the driver saw of a run of every symbol: (symbol, arity, arguments)."""
        log = self.dir / f"calls{len(list(self.dir.iterdir()))}"
        done = self.run_program(harness.PROGRAMS / "lookups", "dlsym", "libcuda.so.1",
                                self.symbols, env={**env, "SIMCUDA_LOG": str(log)})
        self.assertEqual(done.returncode, 0, done.stdout[-200:])
        calls = map(json.loads, log.read_text().splitlines())
        return [(call["call"], call["arity"], call["args"]) for call in calls
                if f"0x{CANARY}" in call["args"][:1] and call["call"] not in BY_VALUE]

    def test_plain_symbols(self):
        lines = self.same("lookups", "dlsym", "libcuda.so.1", self.symbols)
        self.assertEqual(len(lines), len(self.symbols.read_text().splitlines()))

    def test_plain_symbols_through_the_alias(self):
        self.same("lookups", "dlsym", "libcuda.so", self.symbols)

    def test_plain_symbols_with_every_handler_armed(self):
        self.same("lookups", "dlsym", "libcuda.so.1", self.symbols, "init")

    def test_arguments_arrive_whole(self):
        plain, under = self.driver_calls(self.env), self.driver_calls(self.preloaded())
        self.assertGreater(len(plain), 600)
        self.assertEqual(plain, under)
        for symbol, arity, words in under:
            expected = [f"0x{CANARY}"] + [hex(102 + i) for i in range(arity - 1)]
            self.assertEqual(words, expected[:arity], symbol)

    def test_get_proc_address(self):
        for route in ("gpa", "gpa2", "self", "self2"):
            with self.subTest(route=route):
                lines = self.same("lookups", route, "libcuda.so.1", self.names, self.versions)
                self.assertTrue(any(line.startswith("cuExtraEntry") and "extra" in line
                                    for line in lines))

    def test_get_proc_address_with_every_handler_armed(self):
        self.same("lookups", "gpa2", "libcuda.so.1", self.names, self.versions, "init")

    def test_get_proc_address_of_an_older_driver(self):
        self.same("lookups", "gpa2", "libcuda.so.1", self.names, self.versions,
                  SIMCUDA_VERSION="12020")

    def test_linked_program(self):
        for program in ("bound",) if harness.RUNTIME else ("bound", "bound_now"):
            with self.subTest(program=program):
                self.assertEqual(len(self.same(program)), 2)
                self.assertIn("cuInit", self.records(program))

    @harness.plain_only  # TSan's runtime is not ready when the resolver of an entry runs
    def test_bind_now(self):
        self.same("bound", LD_BIND_NOW="1")
        self.same("lookups", "dlsym", "libcuda.so.1", self.symbols, LD_BIND_NOW="1")

    @harness.plain_only
    def test_plugin_that_is_linked(self):
        plugin = harness.PROGRAMS / "libbound_plugin.so"
        for how in ("", "global", "deepbind"):
            with self.subTest(how=how):
                self.assertEqual(len(self.same("open_plugin", plugin, how)), 2)
                self.assertIn("cuInit", self.records("open_plugin", plugin, how))

    @harness.plain_only
    def test_new_namespace_goes_past_us(self):
        """dlmopen starts a world without preloads: the program runs, unrecorded."""
        plugin = harness.PROGRAMS / "libbound_plugin.so"
        self.assertEqual(len(self.same("open_plugin", plugin, "new")), 2)
        self.assertEqual(self.records("open_plugin", plugin, "new"), [])

    def test_threads_that_race(self):
        for _ in range(20):
            lines = self.same("race")
            self.assertEqual(len(set(lines)), 1)
            self.assertTrue(lines[0].endswith(" 0 1 0"), lines[0])

    def two_runtimes(self):
        for number in ("12", "13"):
            (self.dir / f"lib/libcudart.so.{number}").symlink_to(
                harness.PROGRAMS / f"runtime_stub_{number}.so")
        return harness.PROGRAMS / "runtime_user_13.so"

    def test_two_runtimes_stay_two(self):
        plugin = self.two_runtimes()
        lines = self.same("runtime_both", plugin)
        self.assertEqual([line.split(":")[0] for line in lines if line.startswith("runtime")],
                         ["runtime 12", "runtime 13", "runtime 13", "runtime 12"])
        self.assertEqual(self.records("runtime_both", plugin).count("cudaSetDevice"), 1)

    def test_runtime_of_a_plugin(self):
        """RTLD_NEXT would find none here: the runtime came with an RTLD_LOCAL plugin."""
        plugin = self.two_runtimes()
        self.assertEqual(len(self.same("open_plugin", plugin)), 4)
        self.assertIn("cudaSetDevice", self.records("open_plugin", plugin))

    def test_runtime_shared_static_and_in_a_plugin(self):
        """The runtime's own 440 requests and first calls, from shared and static copies of it."""
        plugin = f"plugin={harness.PROGRAMS / 'standin/standin_plugin.so'}"
        for words in (["standin_app"], ["standin_app_static"], ["standin_app", plugin],
                      ["standin_app_static", plugin]):
            with self.subTest(words=words):
                self.same(f"standin/{words[0]}", *words[1:])
                self.assertIn("cuDevicePrimaryCtxRetain",
                              self.records(f"standin/{words[0]}", *words[1:]))

    def test_runtime_with_a_driver_that_has_no_lookup(self):
        """It goes back to some 430 plain symbols."""
        self.same("standin/standin_app", SIMCUDA_FAIL="cuGetProcAddress_v2:34@1")

    def test_runtime_of_what_a_plugin_brings_along(self):
        """As in torch: an object that is there only because another NEEDs it calls the runtime."""
        self.two_runtimes()
        bringer = harness.PROGRAMS / "runtime_bringer_13.so"
        self.assertEqual(len(self.same("open_plugin", bringer)), 4)
        self.assertIn("cudaSetDevice", self.records("open_plugin", bringer))


if __name__ == "__main__":
    harness.main()
