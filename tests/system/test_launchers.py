"""doc/launchers.md, typed: joblib, gunicorn and pytest under Hearth on the simulated driver, which
come from PyPI, once per build; torchrun and accelerate by tests/programs/launcher.py."""
import http.client
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

import harness

DOCUMENT = (harness.SOURCE / "doc/launchers.md").read_text()
BLOCKS = dict(re.findall(r"^<!-- test: (\S+) -->\n```sh\n(.*?)^```$", DOCUMENT, re.M | re.S))
VENV = harness.BUILD / "launchers-venv"
PACKAGES = ("joblib", "gunicorn", "pytest")
LAUNCHER = (harness.SOURCE / "tests/programs/launcher.py").read_text()
USE = """
import ctypes
def use(number=0):
    cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    rc = cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    if rc:
        raise RuntimeError(f"{number}: {rc}")
    return number
"""


def why_no_packages():
    if not (VENV / "made").exists():
        shutil.rmtree(VENV, ignore_errors=True)
        for words in ([sys.executable, "-m", "venv", VENV],
                      [VENV / "bin/pip", "install", "--quiet", "--disable-pip-version-check",
                       *PACKAGES]):
            done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  check=False)
            if done.returncode:
                return done.stdout.strip()[-200:]
        (VENV / "made").touch()
    return None


class Typed(harness.SystemTest):
    """Blocks of the document, in a folder with what they name."""

    def setUp(self):
        super().setUp()
        self.env["PATH"] = f"{harness.HEARTH.parent}:{self.env['PATH']}"
        self.addCleanup(self.run_program, harness.HEARTH, "stop")
        # On a busy machine it may take longer than a run waits for it, and what came before it is
        # in no report.
        self.run_program(harness.HEARTH, "run", "true")
        self.run_program(harness.HEARTH, "status", "--wait", "20")

    def write(self, name, text):
        (self.dir / name).write_text(text)

    def type(self, name):
        done = self.run_program("sh", "-e", "-c", BLOCKS[name], cwd=self.dir)
        self.assertEqual((done.returncode, done.stderr), (0, b""), done.stdout)
        return done.stdout

    def runs(self, *words):
        """Those that used CUDA: each must have its own cuInit and context, and no failed call."""
        done = self.run_program(harness.HEARTH, "report", "--json", "-n", "99", *words)
        runs = [run for run in json.loads(done.stdout)["runs"] if run["records"]]
        for run in runs:
            calls = [record["call"] for record in run["records"]]
            self.assertIn("cuInit", calls)
            self.assertTrue(all(not record["rc"] for record in run["records"]), run)
        return runs


class Ranks(Typed):
    """Each rank takes its GPU; with "all", GPU 0 too, as torch does by mistake."""
    TRAIN = """
import ctypes, os, sys
cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
rank = int(os.environ.get("LOCAL_RANK", 0))
assert not cuda.cuInit(0)
for device in {rank, 0} if "all" in sys.argv else {rank}:
    assert not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
"""

    def setUp(self):
        super().setUp()
        self.env["SIMCUDA_DEVICES"] = "8"
        self.write("train.py", self.TRAIN)
        for name in ("torchrun", "accelerate"):
            path = self.dir / "bin" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"#!{sys.executable}\n" + LAUNCHER)
            path.chmod(0o755)
        self.env["PATH"] = f"{self.dir}/bin:{self.env['PATH']}"

    def places(self):
        """Which rank has contexts where."""
        return {run["conditions"]["rank"]: {record["device"] for record in run["records"]
                                            if record["call"].startswith("cuDevicePrimaryCtx")}
                for run in self.runs()}

    def rank_warnings(self):
        done = self.run_program(harness.HEARTH, "report", "-n", "8")
        return [line for line in done.stdout.decode().splitlines()
                if line.startswith("warning: rank")]

    def test_torchrun(self):
        self.assertEqual(self.type("torchrun"), b"")
        self.assertEqual(self.places(), {rank: {rank} for rank in range(8)})
        self.assertEqual([run["program"] for run in self.runs()], ["train.py"] * 8)
        self.assertEqual(self.rank_warnings(), [])

    def test_ranks_with_a_context_on_gpu_0_too(self):
        done = self.run_program("sh", "-c", BLOCKS["torchrun"].rstrip() + " all", cwd=self.dir)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(self.places(), {rank: {rank, 0} for rank in range(8)})
        self.assertEqual(sorted(self.rank_warnings()), [
            f"warning: rank {rank} made a context on GPU 0, where rank 0 works: some 500 MB and "
            "0.1 s" for rank in range(1, 8)])

    def test_a_rank_that_fails(self):
        self.write("train.py", "import os, time\nif os.environ['LOCAL_RANK'] == '1':\n"
                   "    raise SystemExit(3)\ntime.sleep(60)\n")
        done = self.run_program("sh", "-c", BLOCKS["torchrun"], cwd=self.dir)
        self.assertEqual(done.returncode, 1)

    def test_accelerate(self):
        one, several = BLOCKS["accelerate"].splitlines()
        for line, expected in ((one, {None: {0}}),
                               (several, {None: {0}, **{rank: {rank} for rank in range(8)}})):
            done = self.run_program("sh", "-c", line, cwd=self.dir)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertEqual(self.places(), expected)
        self.assertEqual(self.rank_warnings(), [])


class Text(unittest.TestCase):
    def test_every_block_is_typed(self):
        typed = {"joblib", "gunicorn", "pytest", "torchrun", "accelerate",
                 "srun"}  # by test_slurm.py
        self.assertEqual(set(BLOCKS), typed)
        self.assertEqual(DOCUMENT.count("\n```sh\n"), len(typed))


class Launchers(Typed):
    def setUp(self):
        super().setUp()
        reason = why_no_packages()
        if reason:
            self.skipTest(f"{', '.join(PACKAGES)} cannot be had: {reason}")
        self.env["PATH"] = f"{VENV}/bin:{self.env['PATH']}"
        self.write("use.py", USE)

    def test_joblib(self):
        self.write("work.py", "from joblib import Parallel, delayed\nfrom use import use\n"
                   "print(sum(Parallel(n_jobs=3)(delayed(use)(n) for n in range(9))))\n")
        self.assertEqual(self.type("joblib"), b"36\n")
        pids = {run["pid"] for run in self.runs()}
        self.assertTrue(1 <= len(pids) <= 3, pids)

    def test_pytest(self):
        self.write("test_it.py", "from use import use\ndef test_it():\n    assert use(4) == 4\n")
        self.assertIn(b"1 passed", self.type("pytest"))
        self.assertEqual([run["task"] for run in self.runs()], ["tests"])

    def ask(self, path):
        client = http.client.HTTPConnection("app")
        client.sock = socket.socket(socket.AF_UNIX)
        client.sock.settimeout(harness.DEADLINE_S)
        try:
            client.sock.connect(str(path))
            client.request("GET", "/")
            return client.getresponse().read()
        finally:
            client.close()

    def test_gunicorn(self):
        self.write("app.py", "import os\nfrom use import use\n"
                   "def app(environ, start):\n    use()\n    start('200 OK', [])\n"
                   "    return [str(os.getpid()).encode()]\n")
        path = self.dir / "app.sock"
        server = subprocess.Popen(["sh", "-c", f"exec {BLOCKS['gunicorn']}"], cwd=self.dir,
                                  env=self.env, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        end, seen = time.monotonic() + 30, set()
        while not seen and time.monotonic() < end:
            try:
                seen.add(int(self.ask(path)))
            except OSError:
                time.sleep(0.1)
        for _ in range(8):
            seen.add(int(self.ask(path)))
        self.assertNotIn(server.pid, seen)
        server.send_signal(signal.SIGTERM)
        server.wait(harness.DEADLINE_S)
        self.assertEqual({run["pid"] for run in self.runs()}, seen)


if __name__ == "__main__":
    harness.main()
