"""README.md against what it describes: its first two commands, its table of settings, its map of
folders, its links. `--write` puts the table of settings into it."""
import re
import sys
import unittest

import tree

README = tree.ROOT / "README.md"
SETTINGS = "<!-- settings: tests/source/test_readme.py --write -->\n"
SETTING = re.compile(r'^SETTING\((\w+),((?:\s*"[^"]*",?)+)\s*\)', re.M)
STRING = re.compile(r'"([^"]*)"')
FENCE = re.compile(r"^```\w*\n(.*?)^```$", re.M | re.S)


def settings_table():
    """The rows of lib/base/env.def that are Hearth's own, as Markdown."""
    lines = ["| variable | values | default | what it does |", "|---|---|---|---|"]
    for name, strings in SETTING.findall((tree.ROOT / "lib/base/env.def").read_text()):
        values, default, what = STRING.findall(strings)
        values = values.replace("|", r"\|")
        lines.append(f"| `{name}` | `{values}` | {default} | {what} |")
    return "\n".join(lines) + "\n"


def replace_table(text):
    """README's text with the table of settings as it should be."""
    before, mark, after = text.partition(SETTINGS)
    rest = after.lstrip("\n")
    while rest.startswith("|"):
        rest = rest.partition("\n")[2]
    return f"{before}{mark}\n{settings_table()}\n" + rest.lstrip("\n")


class Readme(unittest.TestCase):
    def setUp(self):
        self.text = README.read_text()

    def test_first_commands_are_quickstart_and_check(self):
        commands = [block.strip() for block in FENCE.findall(self.text)[:2]]
        self.assertEqual(commands, ["tools/quickstart", "tools/check"])
        for command in commands:
            self.assertTrue((tree.ROOT / command).stat().st_mode & 0o100, command)

    def test_settings_are_those_of_the_table(self):
        self.assertGreater(len(SETTING.findall((tree.ROOT / "lib/base/env.def").read_text())), 5)
        self.assertMultiLineEqual(self.text, replace_table(self.text))

    def test_every_setting_in_the_text_exists(self):
        known = set(re.findall(r"^(?:SETTING|OTHER)\((\w+)",
                               (tree.ROOT / "lib/base/env.def").read_text(), re.M))
        self.assertLessEqual(set(re.findall(r"\bHEARTH_\w+", self.text)), known)

    def test_the_map_names_every_folder_of_lib(self):
        rows = set(re.findall(r"^\| `lib/(\w+)/` \|", self.text, re.M))
        folders = {path.parent.name for path in tree.ROOT.glob("lib/*/meson.build")}
        self.assertEqual(rows, folders)

    def test_the_map_names_every_folder_of_tests(self):
        row = re.search(r"^\| `tests/` \| (.*) \|$", self.text, re.M).group(1)
        folders = {path.name for path in (tree.ROOT / "tests").iterdir()
                   if path.is_dir() and path.name != "__pycache__"}
        self.assertEqual(set(re.findall(r"`(\w+)/`", row)), folders)

    def test_the_picture_names_every_command(self):
        shown = re.search(r"^   hearth: (.*)$", self.text, re.M).group(1).split()
        commands = {path.stem.removeprefix("cmd_")
                    for path in (tree.ROOT / "tools").glob("cmd_*.c")}
        self.assertEqual((len(shown), set(shown)), (len(commands), commands))

    def test_links_lead_somewhere(self):
        for target in re.findall(r"\]\(([^)#]+)\)", self.text):
            with self.subTest(target=target):
                self.assertTrue((tree.ROOT / target).exists())


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        README.write_text(replace_table(README.read_text()))
    else:
        tree.main()
