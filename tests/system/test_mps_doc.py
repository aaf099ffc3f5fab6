"""doc/mps.md, typed: its recipes on the simulated driver and the stand-in for MPS's daemon."""
import re

import harness
import mps

BLOCKS = dict(re.findall(r"^<!-- test: (\S+) -->\n```sh\n(.*?)^```$",
                         (harness.SOURCE / "doc/mps.md").read_text(), re.M | re.S))
TRAINED = b"trained on 523776 numbers\n"
TRAIN = (harness.SOURCE / "tests/programs/train.py").read_text()
# Attribute 133: whether it is a client.
ATTACHED = TRAIN + """
client = ctypes.c_int()
call("cuDeviceGetAttribute", ctypes.byref(client), 133, 0)
print("client", client.value, *sys.argv[1:])
"""


class Recipes(mps.MpsTest):
    def setUp(self):
        super().setUp()
        self.env["PATH"] = f"{harness.HEARTH.parent}:{self.env['PATH']}"
        self.env["SIMCUDA_SPEED"] = "0.1"
        for name in ("a.py", "b.py", "c.py", "train.py", "serve.py"):
            (self.dir / name).write_text(ATTACHED)

    def program(self, name, text):
        path = self.dir / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def type(self, name):
        done = self.run_program("sh", "-e", "-c", BLOCKS[name], cwd=self.dir)
        self.assertEqual((done.returncode, done.stderr), (0, b""), done.stdout)
        return done.stdout

    def test_scripts(self):
        said = self.type("scripts")
        self.assertEqual((said.count(TRAINED), said.count(b"client 1")), (3, 3), said)
        self.assertFalse(self.place.exists())

    def test_sweep(self):
        said = self.type("sweep")
        self.assertEqual(sorted(int(seed) for seed in re.findall(rb"client 1 --seed (\d+)", said)),
                         list(range(1, 21)))
        self.assertFalse(self.place.exists())

    def test_notebooks(self):
        self.program("jupyter", f"#!/bin/sh\ntest $1 = lab && exec python3 {self.dir}/train.py\n")
        self.assertIn(b"client 1", self.type("notebooks"))

    def test_services(self):
        (self.dir / "serve.py").write_text(ATTACHED + """
import os
print(os.environ["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"], flush=True)
""")
        said = self.type("services")
        self.assertEqual(sorted(re.findall(rb"client 1 (\d+)", said)),
                         [b"8001", b"8002", b"8003", b"8004"])
        self.assertEqual(said.split().count(b"25"), 4)

    def test_docker(self):
        self.program("docker", "#!/bin/sh\necho \"$@\"\n")
        said = self.type("docker").decode()
        self.assertIn("run --gpus all --ipc host --user ", said)
        self.assertIn(f"--env CUDA_MPS_PIPE_DIRECTORY={self.place}/pipe IMAGE python3 train.py\n",
                      said)

    def test_every_marked_block_is_typed(self):
        self.assertEqual({name.removeprefix("test_") for name in dir(self)
                          if name.startswith("test_")} - {"every_marked_block_is_typed"},
                         set(BLOCKS))


if __name__ == "__main__":
    harness.main_in_own_run()
