"""What real processes are taken for: python's own ways to start itself."""
import os
import subprocess
import sys

import harness

PROBE = harness.PROGRAMS / "identity_probe"
# Asks about itself, as often as told.
ASK = """
import os, subprocess, sys
def ask(*_):
    out = subprocess.run([sys.argv[1], str(os.getpid())], stdout=subprocess.PIPE, check=True)
    return out.stdout.decode()
"""
SPAWN = ASK + """
import multiprocessing
if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[2]).Pool(2) as pool:
        print(ask() + "".join(pool.map(ask, range(4), chunksize=1)), end="")
"""


class Identity(harness.SystemTest):
    def ask(self, *command, cwd=None, env=None):
        """(kind, digest, name) for each process that asked."""
        result = self.run_program(sys.executable, *command, cwd=cwd or self.dir, env=env)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [tuple(line.split(" ", 2)) for line in result.stdout.decode().splitlines()]

    def script(self, name, text):
        path = self.dir / name
        path.write_text(text)
        return path

    def test_spawned_workers_are_one_program_that_belongs_to_its_parent(self):
        first = self.script("first.py", SPAWN)
        second = self.script("second.py", SPAWN)
        parent, *workers = self.ask(first, PROBE, "spawn")
        self.assertEqual((parent[0], parent[2]), ("script", "first.py"))
        self.assertEqual(len(workers), 4)
        self.assertEqual({(kind, name) for kind, _, name in workers},
                         {("child", "first.py (spawn)")})
        self.assertEqual(len({digest for _, digest, _ in workers}), 1)
        self.assertEqual(self.ask(first, PROBE, "spawn")[-1], workers[-1])
        self.assertNotEqual(self.ask(second, PROBE, "spawn")[-1][1], workers[-1][1])

    def test_workers_of_a_fork_server(self):
        script = self.script("server.py", SPAWN)
        parent, *workers = self.ask(script, PROBE, "forkserver")
        self.assertEqual(parent[0], "script")
        self.assertEqual({(kind, name) for kind, _, name in workers},
                         {("child", "server.py (forkserver)")})

    def test_one_script_by_several_ways(self):
        text = ASK + "print(ask(), end='')\n"
        script = self.script("train.py", text)
        (self.dir / "sub").mkdir()
        python = self.dir / "python"
        python.symlink_to(sys.executable)
        wanted = self.ask(script, PROBE)
        self.assertEqual(wanted[0][::2], ("script", "train.py"))
        self.assertEqual(self.ask("train.py", PROBE), wanted)
        self.assertEqual(self.ask("../train.py", PROBE, cwd=self.dir / "sub"), wanted)
        linked = self.run_program(python, script, PROBE)
        self.assertEqual(linked.stdout.decode().split(" ")[1], wanted[0][1])
        self.assertNotEqual(self.ask(script, PROBE, "--verbose"), wanted)

    def test_text_and_standard_input(self):
        text = ASK + "print(ask(), end='')\n"
        (by_text,) = self.ask("-c", text, PROBE)
        self.assertEqual(by_text[0], "text")
        self.assertNotEqual(self.ask("-c", text + "\n", PROBE), [by_text])
        piped = subprocess.run([sys.executable, "-", str(PROBE)], input=text.encode(), check=True,
                               stdout=subprocess.PIPE, timeout=harness.DEADLINE_S, env=self.env)
        self.assertEqual(piped.stdout.split(b" ")[0], b"stdin")

    def test_a_kernel_and_what_it_starts(self):
        folder = self.dir / "kernel"
        folder.mkdir()
        (folder / "ipykernel_launcher.py").write_text(ASK + """
print(ask(), end="")
sys.stdout.flush()
subprocess.run([sys.executable, "-c", sys.argv[2], sys.argv[1]], check=True)
""")
        for notebook in ("/home/u/paper.ipynb", "/home/u/other.ipynb"):
            env = {**self.env, "JPY_SESSION_NAME": notebook}
            kernel, other = self.ask("-m", "ipykernel_launcher", PROBE,
                                     ASK + "print(ask(), end='')", cwd=folder, env=env)
            self.assertEqual(kernel[::2], ("notebook", os.path.basename(notebook)))
            self.assertEqual(other[0], "text")


if __name__ == "__main__":
    harness.main()
