"""What the tests of recorded images stand on: a program that loads images, and what its profile
lists."""
import json
import sys

import harness

PLUGIN = harness.PROGRAMS / "image_plugin_1.so"
OTHER = harness.PROGRAMS / "image_plugin_2.so"
BARE = harness.PROGRAMS / "image_plugin_bare.so"
WRAPPER_SIZE = 24

# Each word is one step; what it returned is printed.
LOADER = """
import ctypes, os, signal, sys, threading, time
cuda = ctypes.CDLL("libcuda.so.1")
handle, kept = ctypes.c_void_p, []
slots, kernels = [], []

def load(entry, code, *more):
    slot = handle()
    rc = getattr(cuda, entry)(ctypes.byref(slot), code, *more)
    slots.append(slot)
    return rc

def wrapper(where):
    path, number = where.rsplit(":", 1)
    library = ctypes.CDLL(path)
    kept.append(library)
    return handle(ctypes.addressof(ctypes.c_char.in_dll(library, "image_wrappers"))
                  + 24 * int(number))

def bytes_of(text):
    return ctypes.create_string_buffer(text.replace("|", chr(10)).encode())

def library(code, *options):
    names = (ctypes.c_int * len(options))(*[name for name, _ in options])
    values = (handle * len(options))(*[value for _, value in options])
    return load("cuLibraryLoadData", code, None, None, 0, names, values, len(options))

def take(entry, name):
    kernel = handle()
    rc = getattr(cuda, entry)(ctypes.byref(kernel), slots[-1], name.encode())
    kernels.append(kernel)
    return rc

def threads(where):
    codes = [wrapper(f"{where}:{number}") for number in range(8)] * 4
    loads = [threading.Thread(target=library, args=(code,)) for code in codes]
    for thread in loads:
        thread.start()
    for thread in loads:
        thread.join()
    return len(loads)

def fork(where):
    child = os.fork()
    if not child:
        library(wrapper(where))
        os._exit(0)
    return os.waitpid(child, 0)[1]

def replace(pair):
    os.replace(*pair.split(":"))

def many(text):
    count, name = text.split(":")
    for number in range(int(count)):
        take("cuLibraryGetKernel", f"{name}{number}")

steps = {
    "lib": lambda where: library(wrapper(where)),
    "kept": lambda where: library(wrapper(where), (1, 1)),
    "jit": lambda text: load("cuLibraryLoadData", bytes_of(text), (ctypes.c_int * 1)(4),
                             (handle * 1)(), 1, None, None, 0),
    "plainjit": lambda text: load("cuLibraryLoadData", bytes_of(text), (ctypes.c_int * 1)(7),
                                  (handle * 1)(3), 1, None, None, 0),
    "novalues": lambda text: load("cuLibraryLoadData", bytes_of(text), None, None, 0,
                                  (ctypes.c_int * 1)(1), None, 1),
    "heap": lambda text: library(bytes_of(text)),
    "heapmod": lambda text: load("cuModuleLoadData", bytes_of(text)),
    "mod": lambda where: load("cuModuleLoadFatBinary", handle(
        ctypes.c_uint64.from_address(wrapper(where).value + 8).value)),
    "file": lambda path: load("cuModuleLoad", path.encode()),
    "filelib": lambda path: load("cuLibraryLoadFromFile", path.encode(), None, None, 0, None,
                                 None, 0),
    "kernel": lambda name: take("cuLibraryGetKernel", name),
    "function": lambda name: take("cuModuleGetFunction", name),
    "made": lambda _: cuda.cuKernelGetFunction(ctypes.byref(handle()), kernels[-1]),
    "unload": lambda _: cuda.cuLibraryUnload(slots[-1]),
    "sleep": lambda _: time.sleep(0.2),
    "threads": threads, "fork": fork, "replace": replace, "many": many,
    "ready": lambda _: print("ready", flush=True) or sys.stdin.readline(),
}
context = handle()
assert not cuda.cuInit(0)
assert not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
assert not cuda.cuCtxSetCurrent(context)
for word in sys.argv[1:]:
    step, _, argument = word.partition("=")
    print(word, steps[step](argument))
"""


class ImagesTest(harness.SystemTest):
    def setUp(self):
        super().setUp()
        self.script = self.dir / "loader.py"
        self.script.write_text(LOADER)
        self.states = self.dir / "state"
        self.env.update(SIMCUDA_SPEED="0", LD_LIBRARY_PATH=str(harness.SIM.parent),
                        HEARTH_SOCKET=str(self.dir / "no-broker"))
        self.preload = self.preloaded(HEARTH_STATE_DIR=str(self.states))

    def load(self, *words, **env):
        """A run of the loader, which printed what a plain one prints. The program is the script,
        whatever it is told to do."""
        command = (sys.executable, self.script, *words)
        plain = self.run_program(*command)
        done = self.run_program(*command, env={**self.preload, **env})
        self.assertEqual((plain.returncode, plain.stdout, plain.stderr),
                         (done.returncode, done.stdout, done.stderr))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def profile(self, *words, state=None, status=0):
        done = self.run_program(harness.HEARTH, "profile", *words, env={
            **self.env, "HEARTH_STATE_DIR": str(state or self.states)})
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def sections(self, state=None):
        """Those of the loader's profile."""
        listed = self.profile("list", "--json", state=state)
        if not json.loads(listed.stdout)["profiles"]:
            return []
        shown = self.profile("show", "loader.py", "--json", state=state)
        (profile,) = json.loads(shown.stdout)["profiles"]
        return profile["sections"]

    def images(self, state=None):
        """What its only section lists."""
        sections = self.sections(state)
        self.assertLessEqual(len(sections), 1)
        return sections[0]["images"] if sections else []
