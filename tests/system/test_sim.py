"""The simulated driver: its entries, settings, machine, and its life in a process."""
import json
import os
import re
import signal
import subprocess
import sys
import time

import harness
from sim import CALLS, SIMPLE, SimTest


class Entries(SimTest):
    def test_every_symbol_of_the_spec_is_exported(self):
        rows = (harness.SOURCE / "lib/driver/driver_api.tsv").read_text().splitlines()[1:]
        symbols = [row.split("\t")[1] for row in rows]
        code = f"print([s for s in {symbols!r} if not hasattr(cuda, s)], len({symbols!r}))"
        self.assertEqual(self.run_calls(code), [f"[] {len(symbols)}"])

    def test_before_init_every_entry_answers_as_its_column_says(self):
        wrong, rows = [], (harness.SOURCE / "lib/driver/driver_api.tsv").read_text().splitlines()
        table = [row.split("\t") for row in rows[1:]]
        # cuInit would change what the others answer; these read what they are given.
        table = [(row[1], int(row[4]), row[7]) for row in table
                 if row[1] != "cuInit" and not row[1].startswith("cuGet")]
        # Pages, since a heap may lie low, where an address looks like a number.
        code = f"""
import mmap
room = [ctypes.c_char.from_buffer(mmap.mmap(-1, 65536)) for _ in range(16)]
for symbol, arity, column in {table!r}:
    entry, answers = getattr(cuda, symbol), column.split("/")
    got = [entry(*[ctypes.c_void_p(ctypes.addressof(r)) for r in room[:arity]]),
           entry(*[ctypes.c_void_p(0)] * arity)]
    want = [int(answers[0]), int(answers[-1])] if arity else [int(answers[-1])] * 2
    if got != want:
        print(symbol, got, want)
"""
        self.assertEqual(self.run_calls(code), wrong)

    def test_what_is_not_implemented_says_so(self):
        code = "print(cuda.cuGraphDebugDotPrint(1, 2, 3)); cuda.cuInit(0)\n" \
               "print(cuda.cuGraphDebugDotPrint(1, 2, 3))"
        self.assertEqual(self.run_calls(code)[1], "801")

    def test_two_programs_that_use_it_run_right(self):
        for name in ("simple_driver", "linked_driver"):
            for mode in ("work", "create"):
                done = self.run_program(harness.PROGRAMS / name, mode)
                self.assertEqual((done.returncode, done.stderr), (0, b""))
                self.assertIn(b"result right\n", done.stdout)

    def test_a_fault_stays_with_its_context(self):
        code = """
cuda.cuInit(0), context()
module, function = ctypes.c_void_p(), ctypes.c_void_p()
cuda.cuModuleLoadData(ctypes.byref(module), b"SIMCUDA1\\nkernel bad fault\\n")
cuda.cuModuleGetFunction(ctypes.byref(function), module, b"bad")
print(cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None))
print(cuda.cuCtxSynchronize(), alloc(1))
"""
        self.assertEqual(self.run_calls(code), ["0", "700 700"])


class Settings(SimTest):
    def test_the_tables_of_the_readme_are_the_defs(self):
        folder = harness.SOURCE / "lib/sim"
        readme = (folder / "README.md").read_text()
        for name, values, default, text in re.findall(
                r'^SETTING\((\w+), "(.*?)", "(.*?)",\s*"(.*?)"\)',
                (folder / "sim_settings.def").read_text(), re.M):
            row = f"| `SIMCUDA_{name}` | {values} | {default} | {text} |"
            self.assertIn(row.replace("|main|", "\\|main\\|"), readme)
        for name, ms, text in re.findall(r'^STEP\((\w+), ([\d.]+),\s*"(.*?)"\)',
                                         (folder / "sim_steps.def").read_text(), re.M):
            self.assertIn(f"| `{name}` | {ms} | {text} |", readme)

    def test_failures_are_injected_where_they_are_asked_for(self):
        code = "print([cuda.cuInit(0) for _ in range(4)])\ncontext()\n" \
               "print([alloc(1) for _ in range(6)])"
        out = self.run_calls(code, SIMCUDA_FAIL="cuInit:802*2,cuMemAlloc_v2:2@5")
        self.assertEqual(out, ["[802, 802, 0, 0]", "[0, 0, 0, 0, 2, 0]"])
        out = self.run_calls(code, SIMCUDA_FAIL="cuMemAlloc_v2:46*2@3")
        self.assertEqual(out[1], "[0, 0, 46, 46, 0, 0]")

    def test_failures_can_be_for_other_threads_only(self):
        code = """
seen = []
thread = threading.Thread(target=lambda: seen.append(cuda.cuInit(0)))
thread.start(), thread.join()
print(seen, cuda.cuInit(0))
"""
        self.assertEqual(self.run_calls(code, SIMCUDA_FAIL="cuInit:802/other"), ["[802] 0"])
        self.assertEqual(self.run_calls(code, SIMCUDA_FAIL="cuInit:802/main"), ["[0] 802"])

    def test_the_log_has_every_call_with_arity_and_words(self):
        done, calls = self.log(SIMPLE)
        self.assertEqual(done.returncode, 0)
        self.assertEqual([call["call"] for call in calls[:4]],
                         ["cuInit", "cuDeviceGetCount", "cuDeviceGetName",
                          "cuDevicePrimaryCtxRetain"])
        launch = next(call for call in calls if call["call"] == "cuLaunchKernel")
        self.assertEqual(launch["arity"], 11)
        self.assertEqual(launch["args"][1:8], ["0x1", "0x1", "0x1", "0x400", "0x1", "0x1", "0"])
        self.assertEqual({call["rc"] for call in calls}, {0})

    def test_a_canary_names_the_entry_it_reached(self):
        rows = (harness.SOURCE / "lib/driver/driver_api.tsv").read_text().splitlines()[1:]
        symbols = [row.split("\t")[1] for row in rows]
        names = ["cuCtxCreate_v2", "cuCtxCreate_v4", "cuInit", "cuMemcpyHtoDAsync_v2_ptsz"]
        code = f"print([getattr(cuda, n)(0xcafe, 1, 2, 3) for n in {names!r}])"
        self.assertEqual(self.run_calls(code, SIMCUDA_CANARY="cafe"),
                         [str([20000 + symbols.index(name) for name in names])])

    def test_an_older_and_a_newer_driver(self):
        code = """
def find(name, version=12000):
    entry, status = ctypes.c_void_p(), ctypes.c_int(-1)
    rc = cuda.cuGetProcAddress_v2(name, ctypes.byref(entry), version, ctypes.c_uint64(0),
                                  ctypes.byref(status))
    return rc, bool(entry.value), status.value
print(find(b"cuLibraryLoadData"), find(b"cuCtxCreate"), find(b"cuFutureThing"))
"""
        self.assertEqual(self.run_calls(code), ["(0, True, 0) (0, True, 0) (0, False, 1)"])
        self.assertEqual(self.run_calls(code, SIMCUDA_REMOVE="cuLibraryLoadData,cuFuture",
                                        SIMCUDA_EXTRA="cuFutureThing:12000"),
                         ["(0, False, 1) (0, True, 0) (0, True, 0)"])
        self.assertEqual(self.run_calls(code, SIMCUDA_VERSION="11080"),
                         ["(1, False, -1) (1, False, -1) (1, False, -1)"])
        self.assertEqual(self.run_calls(code.replace("12000", "11080"), SIMCUDA_VERSION="11080"),
                         ["(0, False, 1) (0, True, 0) (0, False, 1)"])

    def test_an_entry_of_a_newer_driver_works(self):
        code = """
cuda.cuInit(0)
entry, number = ctypes.c_void_p(), ctypes.c_int()
cuda.cuGetProcAddress_v2(b"cuFutureThing", ctypes.byref(entry), 13000, ctypes.c_uint64(0), None)
future = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(entry.value)
print(future(ctypes.addressof(number)), number.value)
"""
        self.assertEqual(self.run_calls(code, SIMCUDA_EXTRA="cuA,cuFutureThing"), ["0 42"])

    def test_compute_modes(self):
        self.start_holding(SIMCUDA_COMPUTE_MODE="exclusive")
        code = "print(cuda.cuInit(0), context())"
        self.assertEqual(self.run_calls(code, SIMCUDA_COMPUTE_MODE="0:exclusive"), ["0 46"])
        self.assertEqual(self.run_calls(code, SIMCUDA_COMPUTE_MODE="prohibited"), ["0 46"])
        self.assertEqual(self.run_calls(code, SIMCUDA_COMPUTE_MODE="1:exclusive"), ["0 0"])

    def test_the_other_build_has_another_build_id(self):
        def notes(name):
            return subprocess.run(["readelf", "-n", harness.SIM.parent / name], check=True,
                                  capture_output=True).stdout
        self.assertIn(b"05e10fed00000002", notes("libcuda-other.so.1"))
        self.assertNotIn(b"05e10fed00000002", notes("libcuda.so.1"))


class Machine(SimTest):
    def clients(self):
        return list((self.dir / "machine/dev").glob("nvidia-client-*"))

    def test_memory_is_shared_by_all_processes(self):
        code = "cuda.cuInit(0), context(); print(memory(), alloc(100), memory())"
        self.assertEqual(self.run_calls(code), ["528 0 628"])
        held = self.start_holding()
        self.assertEqual(self.run_calls(code), ["1056 0 1156"])
        held.send_signal(signal.SIGKILL)
        held.wait()
        self.assertEqual(self.run_calls(code), ["528 0 628"])
        # Whoever came last has no one to clear up behind it.
        self.assertLessEqual(len(self.clients()), 1)

    def test_a_keeper_costs_4_mib(self):
        self.start_holding("init")
        code = "cuda.cuInit(0), context(); print(memory())"
        self.assertEqual(self.run_calls(code), ["532"])

    def test_memory_ends_and_comes_back(self):
        self.env["SIMCUDA_MEMORY_MIB"] = "1000"
        code = "cuda.cuInit(0), context(); print(alloc(400), alloc(100), alloc(72), alloc(1))\n" \
               "cuda.cuDevicePrimaryCtxReset_v2(0), context(); print(memory())"
        self.assertEqual(self.run_calls(code), ["0 2 0 2", "528"])
        self.start_holding()
        self.assertEqual(self.run_calls("print(cuda.cuInit(0), context())"), ["0 2"])

    def test_a_check_and_its_claim_are_one_step(self):
        self.env["SIMCUDA_MEMORY_MIB"] = "6000"
        code = "cuda.cuInit(0), context(); print('up', flush=True); sys.stdin.read(1); " \
               "print(alloc(2000), flush=True); sys.stdin.read()"
        processes = [subprocess.Popen([sys.executable, "-c", CALLS + code], env=self.env,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                     for _ in range(4)]
        for process in processes:
            self.assertEqual(process.stdout.readline(), b"up\n")
        for process in processes:
            process.stdin.write(b"x")
            process.stdin.flush()
        answers = sorted(process.stdout.readline() for process in processes)
        for process in processes:
            process.communicate()
        self.assertEqual(answers, [b"0\n", b"2\n", b"2\n", b"2\n"])

    def test_a_keeper_makes_init_fast(self):
        env = {"SIMCUDA_SPEED": "1", "SIMCUDA_TIME": "init=1,init_cold=200"}
        self.assertGreaterEqual(self.init_us(**env), 200000)
        self.start_holding("init")
        self.assertLess(self.init_us(**env), 150000)

    def init_us(self, **env):
        (self.dir / "calls").unlink(missing_ok=True)
        return self.log(SIMPLE, "init", **env)[1][0]["us"]

    def test_init_grows_with_visible_gpus(self):
        env = {"SIMCUDA_SPEED": "0.1", "SIMCUDA_DEVICES": "3"}
        one = self.init_us(CUDA_VISIBLE_DEVICES="1", **env)
        self.assertGreater(self.init_us(**env), 2 * one)

    def test_contexts_of_many_processes_are_made_in_turns(self):
        env = {**self.env, "SIMCUDA_SPEED": "1", "SIMCUDA_LOG": str(self.dir / "calls"),
               "SIMCUDA_TIME": "init_cold=0,init=0,retain=60,release=0,exit=0"}
        processes = [subprocess.Popen([SIMPLE, "retain"], env=env, stdout=subprocess.DEVNULL)
                     for _ in range(4)]
        self.assertEqual([process.wait(harness.DEADLINE_S) for process in processes], [0] * 4)
        calls = map(json.loads, (self.dir / "calls").read_text().splitlines())
        times = [call["us"] for call in calls if call["call"] == "cuDevicePrimaryCtxRetain"]
        self.assertEqual(len(times), 4)
        # Each waits for the others' turns too; were it a queue, the first would take 60 ms.
        self.assertGreater(min(times), 90000)
        self.assertGreater(max(times), 180000)

    def test_a_fork_child_keeps_what_it_inherited(self):
        code = """
cuda.cuInit(0), context()
child = os.fork()
if not child:
    sys.stdin.read(), os._exit(0)
print(child); sys.stdout.flush(); os.kill(os.getpid(), 9)
"""
        process = subprocess.Popen([sys.executable, "-c", CALLS + code], env=self.env,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdout.readline()
        process.wait()
        code = "cuda.cuInit(0), context(); print(memory())"
        self.assertEqual(self.run_calls(code), ["1056"])
        process.stdin.close()
        self.assertEqual(process.stdout.read(), b"")
        process.stdout.close()
        self.assertEqual(self.run_calls(code), ["528"])


class Process(SimTest):
    def test_settings_are_those_the_process_began_with(self):
        code = "os.environ['SIMCUDA_DEVICES'] = '4'; cuda = ctypes.CDLL('libcuda.so.1')\n" \
               "print(cuda.cuInit(0), count())"
        self.assertEqual(self.run_calls(code), ["0 1 devices"])

    def test_the_loaders_lock_is_taken_where_it_is_asked_for(self):
        code = """
import time
libc = ctypes.CDLL(None)
cuda.cuInit, cuda.cuDevicePrimaryCtxRetain, cuda.cuCtxSetCurrent  # dlsym takes the lock too
def timed(call):
    # Called so that Python's own lock is let go; ctypes.CDLL holds on to it.
    loader = threading.Thread(target=lambda: libc.dlopen(sys.argv[1].encode(), 2))
    loader.start(), time.sleep(0.2)
    start = time.monotonic(); rc = call()
    waited = time.monotonic() - start > 0.25
    loader.join()
    return rc, waited
"""
        slow = harness.PROGRAMS / "slow_constructor.so"
        for call, env, waited in (("cuda.cuInit(0)", {}, True), ("context()", {}, False),
                                  ("context()", {"SIMCUDA_LOADER_LOCK": "retain"}, True)):
            first = "" if "Init" in call else "cuda.cuInit(0)"
            done = self.run_program(
                sys.executable, "-c", f"{CALLS}{code}{first}\nprint(timed(lambda: {call}))", slow,
                env={**self.env, **env})
            self.assertEqual(done.stdout, f"(0, {waited})\n".encode(), (call, env))

    def test_launch_blocking_is_read_at_the_retain(self):
        code = """
cuda.cuInit(0); os.environ["CUDA_LAUNCH_BLOCKING"] = {value!r}; context()
os.environ["CUDA_LAUNCH_BLOCKING"] = "0"
module, function, us = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int(300000)
cuda.cuModuleLoadData(ctypes.byref(module), b"SIMCUDA1\\nkernel spin spin\\n")
cuda.cuModuleGetFunction(ctypes.byref(function), module, b"spin")
params = (ctypes.c_void_p * 1)(ctypes.addressof(us))
cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, params, None)
print(cuda.cuStreamQuery(None))
"""
        self.assertEqual(self.run_calls(code.replace("{value!r}", "'0'")), ["600"])
        self.assertEqual(self.run_calls(code.replace("{value!r}", "'1'")), ["0"])

    def test_a_second_copy_works_once_the_name_is_free(self):
        code = """
import shutil, socket
cuda.cuInit(0), context()
path = os.path.join(sys.argv[1], "copy.so")
shutil.copy(sys.argv[2], path)
copy = ctypes.CDLL(path)
print(copy.cuInit(0), end=" ")
for fd in map(int, os.listdir("/proc/self/fd")):
    try:
        name = socket.socket(fileno=os.dup(fd))
    except OSError:
        continue
    if name.getsockname()[:12] == b"\\0cuda-uvmfd-":
        name.shutdown(socket.SHUT_RDWR)
        # Poll holds on to the socket until it comes back, which a readable eventfd makes it do.
        spare = os.eventfd(1)
        os.dup2(spare, fd)
    name.close()
cuda.cuDevicePrimaryCtxRelease_v2(0)
os.environ["CUDA_VISIBLE_DEVICES"] = "1"
cuda = copy
while (rc := copy.cuInit(0)) == 304:
    pass
os.eventfd_read(spare)
print(rc, count(), context(), alloc(1), memory())
"""
        done = self.run_program(sys.executable, "-c", CALLS + code, self.dir, harness.SIM,
                                env={**self.env, "SIMCUDA_DEVICES": "3"})
        self.assertEqual((done.stdout, done.stderr), (b"304 0 1 devices 0 0 533\n", b""))

    def test_a_fork_child_of_an_uninitialised_process_can_init(self):
        code = """
sys.stdout.flush()
if not os.fork():
    print(cuda.cuInit(0), context(), alloc(1)); sys.stdout.flush(); os._exit(0)
os.wait(); print(cuda.cuInit(0))
"""
        self.assertEqual(self.run_calls(code), ["0 0 0", "0"])

    def test_a_process_may_end_in_the_middle_of_a_call(self):
        code = """
import time
libc = ctypes.CDLL(None)
# Runs after the driver's own handler, which cuInit registers, so that the release ends in between.
libc.__cxa_atexit(ctypes.cast(libc.usleep, ctypes.c_void_p), ctypes.c_void_p(400000), None)
cuda.cuInit(0), context()
threading.Thread(target=cuda.cuDevicePrimaryCtxRelease_v2, args=[0], daemon=True).start()
time.sleep(0.1); libc.exit(3)
"""
        times = "init_cold=0,retain=0,release=300,exit=0"
        done = self.run_program(sys.executable, "-c", CALLS + code, env={
            **self.env, "SIMCUDA_SPEED": "1", "SIMCUDA_TIME": times})
        self.assertEqual((done.returncode, done.stderr), (3, b""))

    def test_init_from_many_threads_at_once(self):
        code = """
answers = []
threads = [threading.Thread(target=lambda: answers.append((cuda.cuInit(0), context())))
           for _ in range(32)]
[t.start() for t in threads], [t.join() for t in threads]
print(set(answers), memory())
"""
        self.assertEqual(self.run_calls(code, SIMCUDA_SPEED="0.1")[0][:9], "{(0, 0)} ")

    def test_the_end_takes_its_time_with_a_context(self):
        for mode, least, most in (("init", 0, 0.2), ("retain", 0.3, 10)):
            start = time.monotonic()
            self.run_program(SIMPLE, mode, env={**self.env, "SIMCUDA_SPEED": "1",
                "SIMCUDA_TIME": "init=0,init_cold=0,retain=0,exit=300"})
            self.assertGreaterEqual(time.monotonic() - start, least)
            self.assertLess(time.monotonic() - start, most)

    def test_loading_an_image_takes_its_weight(self):
        code = """
import time
cuda.cuInit(0), context()
def load(image):
    start = time.monotonic(); rc = cuda.cuLibraryLoadData(ctypes.byref(ctypes.c_void_p()), image,
                                                         None, None, 0, None, None, 0)
    return rc, time.monotonic() - start >= 0.1
ptx = b".version 7.0\\n.visible .entry nop() { ret; }\\n"
print(load(b"SIMCUDA1\\nsize 20971520\\n"), load(b"SIMCUDA1\\nsize 2\\n"), load(ptx), load(ptx))
"""
        times = "init=0,init_cold=0,retain=0,release=0,exit=0,library_mib=5,jit=100"
        self.assertEqual(self.run_calls(code, SIMCUDA_SPEED="1", SIMCUDA_TIME=times),
                         ["(0, True) (0, False) (0, True) (0, False)"])


class StandIn(SimTest):
    APPS = harness.PROGRAMS / "standin"

    def test_shared_static_and_both_run_right(self):
        for words in (["standin_app"], ["standin_app_static"],
                      ["standin_app", f"plugin={self.APPS / 'standin_plugin.so'}"],
                      ["standin_app_static", f"plugin={self.APPS / 'standin_plugin.so'}"]):
            done = self.run_program(self.APPS / words[0], *words[1:])
            self.assertEqual((done.returncode, done.stderr), (0, b""), words)
            self.assertEqual(done.stdout.count(b"result right"), len(words))

    def test_asks_for_what_libcudart_asks_for(self):
        _, calls = self.log(self.APPS / "standin_app", "count")
        names = [call["call"] for call in calls]
        self.assertEqual(names.count("cuGetProcAddress_v2"), names.index("cuGetExportTable"))
        self.assertTrue(400 < names.count("cuGetProcAddress_v2") < 480)
        self.assertEqual(names[names.index("cuGetExportTable"):][:4],
                         ["cuGetExportTable", "cuDriverGetVersion", "cuInit",
                          "cuModuleGetLoadingMode"])
        self.assertEqual(names.count("cuDeviceGetAttribute"), 111)
        self.assertNotIn("cuDevicePrimaryCtxRetain", names)

    def test_a_stub_driver_is_used_by_plain_names(self):
        done, calls = self.log(self.APPS / "standin_app", SIMCUDA_FAIL="cuGetProcAddress_v2:34@1")
        self.assertEqual(done.returncode, 0)
        self.assertEqual([call["call"] for call in calls].count("cuGetProcAddress_v2"), 1)

    def test_without_a_driver_it_says_35(self):
        self.env["LD_LIBRARY_PATH"] = ""
        done = self.run_program(self.APPS / "standin_app")
        self.assertEqual((done.returncode, done.stdout), (1, b"devices 35, 0\n"))


if __name__ == "__main__":
    harness.main()
