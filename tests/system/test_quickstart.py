"""tools/quickstart, on a build that is there already: what it prints, and that nothing stays."""
import json
import os
import time
import unittest
from pathlib import Path

import harness

HAS_DRIVER = any(map(os.path.exists, ("/dev/nvidiactl", "/proc/driver/nvidia", "/dev/dxg")))


@unittest.skipIf(HAS_DRIVER, "on a machine with a driver it shows that one")
class Quickstart(harness.SystemTest):
    def quickstart(self, *words, root="tree", status=0):
        """In a tree of its own, whose build folder is the one under test."""
        root = self.dir / root
        root.mkdir(exist_ok=True)
        for path in harness.SOURCE.iterdir():
            if path.name != "build" and not (root / path.name).exists():
                (root / path.name).symlink_to(path)
        if not (root / "build").exists():
            (root / "build").symlink_to(harness.BUILD)
        env = {name: value for name, value in self.env.items() if name != "HEARTH_DRIVER"}
        done = self.run_program(root / "tools/quickstart", *words, env=env)
        self.assertEqual(done.returncode, status, done.stderr.decode())
        return done

    def test_the_table_ends_it_and_says_that_it_is_simulated(self):
        lines = self.quickstart().stdout.decode().splitlines()
        self.assertTrue(lines[0].startswith("SIMULATED"), lines)
        self.assertEqual([line.split()[0] for line in lines[-3:]], ["native", "hearth", "saved"])

    def test_json_is_all_of_stdout_and_nothing_stays(self):
        before = set(Path("/tmp").glob("hearth-quickstart-*"))
        self.assertEqual(json.loads(self.quickstart("--json").stdout)["driver"], "simulated")
        new = set(Path("/tmp").glob("hearth-quickstart-*")) - before
        end = time.monotonic() + 20  # somebody else's, which run now, go as well
        while any(path.exists() for path in new) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual([path for path in new if path.exists()], [])

    def test_a_folder_that_no_preload_can_name(self):
        done = self.quickstart(root="my $own: tree")
        self.assertIn(b"running a copy in /tmp/", done.stderr)
        self.assertIn(b"native", done.stdout)

    def test_help_is_an_answer(self):
        for tool in ("quickstart", "check"):
            for word in ("--help", "-h"):
                done = self.run_program(harness.SOURCE / "tools" / tool, word)
                self.assertEqual((done.returncode, done.stderr), (0, b""))
                self.assertIn(f"tools/{tool} [".encode(), done.stdout)

    def test_wrong_words_are_named(self):
        for word in ("--bogus", "more"):
            self.assertIn(word.encode(), self.quickstart(word, status=1).stderr)


if __name__ == "__main__":
    harness.main()
