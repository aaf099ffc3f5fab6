"""`hearth profile`: what it shows, forgets and moves, and that damaged files are not taken."""
import json
import os
import stat
import subprocess

import harness

MAKER = harness.PROGRAMS / "profile_maker"


class ProfileCommand(harness.SystemTest):
    def setUp(self):
        super().setUp()
        self.folder = self.dir / "state/hearth/profiles"

    def make(self, name, *options, runs=3, folder=None):
        made = self.run_program(MAKER, folder or self.folder, runs, name, *options)
        self.assertEqual((made.returncode, made.stderr), (0, b""))

    def profile(self, *words, status=0):
        result = self.run_program(harness.HEARTH, "profile", *words)
        self.assertEqual(result.returncode, status, result.stderr)
        return result

    def listed(self):
        return json.loads(self.profile("list", "--json").stdout)

    def programs(self):
        return sorted(row["program"] for row in self.listed()["profiles"])

    def test_without_profiles(self):
        self.assertEqual(self.programs(), [])
        self.assertIn(b"no program", self.profile("list").stdout)
        self.profile("forget", "--all")
        failed = self.profile("show", "train.py", status=1)
        self.assertIn(b"'train.py'", failed.stderr)

    def test_names_in_any_language(self):
        self.make("/gone/caf\u00e9.py")
        self.assertEqual(self.programs(), ["caf\u00e9.py"])
        for words in (["list"], ["show", "caf\u00e9.py"]):
            self.assertIn("caf\u00e9.py ", self.profile(*words).stdout.decode())

    def test_export_spares_a_terminal(self):
        self.make("/gone/train.py")
        terminal, inside = os.openpty()
        self.addCleanup(os.close, terminal)
        done = subprocess.run([harness.HEARTH, "profile", "export", "train.py"], env=self.env,
                              stdin=subprocess.DEVNULL, stdout=inside, stderr=subprocess.PIPE,
                              timeout=harness.DEADLINE_S, check=False)
        os.close(inside)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"name a file, or redirect", done.stderr)
        with self.assertRaises(OSError):  # nothing was written
            os.read(terminal, 1)

    def test_list_and_show(self):
        self.make("/gone/train.py")
        self.make("/gone/train.py", "--help", runs=1)
        self.make("/gone/other.py")
        self.assertEqual(self.programs(), ["other.py", "train.py", "train.py"])
        text = self.profile("list").stdout.decode()
        self.assertEqual(len(text.splitlines()), 4)
        self.assertIn("cuInit and context at lookup", text)
        shown = json.loads(self.profile("show", "train.py", "--json").stdout)["profiles"]
        self.assertEqual(sorted(row["sections"][0]["runs"] for row in shown), [1, 3])
        section = shown[0]["sections"][0]
        self.assertEqual(section["gpu"], "NVIDIA H200")
        self.assertEqual(section["driver_build"], "abcd")
        self.assertEqual(section["learned"], "2026-11-30T20:00Z")
        self.assertEqual(section["lookup_lead_us"], 2700000)
        self.assertEqual(section["contexts"],
                         [{"kind": "primary", "version": None, "flags": 0, "device": 0}])
        self.assertEqual(section["next"]["moment"], "lookup")
        by_id = json.loads(self.profile("show", shown[0]["id"][:8], "--json").stdout)
        self.assertEqual(by_id["profiles"], shown[:1])
        text = self.profile("show", "other.py").stdout.decode()
        self.assertIn("next time          cuInit and context at lookup: ", text)

    def test_forget_by_name_by_id_and_all(self):
        for name in ("a.py", "b.py", "c.py", "d.py"):
            self.make(f"/gone/{name}", runs=1)
        self.profile("forget", "a.py")
        self.assertEqual(self.programs(), ["b.py", "c.py", "d.py"])
        by_name = {row["program"]: row["id"] for row in self.listed()["profiles"]}
        self.profile("forget", by_name["c.py"], "d.py")
        self.assertEqual(self.programs(), ["b.py"])
        self.profile("forget", "c.py", status=1)
        self.profile("forget", "--all")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_forget_all_takes_damaged_ones_too(self):
        self.make("/gone/a.py")
        (path,) = self.folder.iterdir()
        path.write_bytes(b"x" * 5000)
        self.assertEqual(self.listed(), {"profiles": [], "damaged": 1})
        self.assertIn(b"1 file in", self.profile("list").stderr)
        self.profile("forget", "--all")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_exported_profiles_can_be_imported(self):
        self.make("/gone/train.py")
        before = self.listed()
        exported = self.dir / "train.profile"
        self.profile("export", "train.py", exported)
        self.assertEqual(exported.read_bytes(), self.profile("export", "train.py").stdout)
        self.profile("forget", "--all")
        self.profile("import", exported)
        self.assertEqual(self.listed(), before)
        (path,) = self.folder.iterdir()
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)

    def test_an_image_ships_profiles_that_all_may_read(self):
        self.make("/gone/train.py")
        exported, image = self.dir / "train.profile", self.dir / "image/profiles"
        self.profile("export", "train.py", exported)
        self.profile("import", "--into", image, exported)
        (path,) = image.iterdir()
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o644)
        self.assertEqual(stat.S_IMODE(image.stat().st_mode), 0o755)

    def test_what_is_not_to_be_trusted_is_not_imported(self):
        self.make("/gone/train.py")
        exported = self.dir / "train.profile"
        self.profile("export", "train.py", exported)
        exported.chmod(0o666)
        self.assertIn(str(exported).encode(), self.profile("import", exported, status=1).stderr)
        exported.chmod(0o600)
        os.truncate(exported, 4000)
        self.profile("import", exported, status=1)
        self.assertIn(b"No such file", self.profile("import", "/gone/x", status=1).stderr)

    def test_wrong_command_lines(self):
        for words in ((), ("lists",), ("list", "x"), ("show",), ("show", "a", "b"), ("forget",),
                      ("list", "--all"), ("forget", "--all", "a"), ("import",),
                      ("show", "--into", "x", "y"), ("forget", "--json", "a"), ("--what",)):
            with self.subTest(words=words):
                failed = self.profile(*words, status=2)
                self.assertIn(b"hearth profile --help", failed.stderr)
                if words in (("list", "x"), ("show", "a", "b"), ("forget", "--all", "a")):
                    self.assertIn(f"'{words[-1]}' is not expected".encode(), failed.stderr)
                self.assertEqual(failed.stdout, b"")

    def test_names_and_texts_only(self):
        """Nothing of a command line but the base name can be found in the file."""
        self.make("/secret/place/train.py", "--token=hunter2", "--user", "alice")
        (path,) = self.folder.iterdir()
        content = path.read_bytes()
        for word in (b"secret", b"token", b"hunter2", b"alice", b"user"):
            self.assertNotIn(word, content)
        self.assertIn(b"train.py", content)


if __name__ == "__main__":
    harness.main()
