"""Rules that no compiler checks."""
import re
import unittest

import tree

# Whoever plays the driver reads the environment as the driver does.
MAY_READ_ENVIRONMENT = ("lib/base/env.c", "lib/sim/", "tests/")
PRELOADED = ("lib/base", "lib/region", "lib/driver", "lib/profile", "lib/preload")
GETENV = re.compile(r"\b(?:secure_)?getenv\s*\(|\benviron\b")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
LONGEST_FILE = 460
# Where a layer may include from: arrows point down only.
LAYERS = {
    "base": {"base"},
    "region": {"base", "region"},
    "driver": {"base", "driver"},
    "profile": {"base", "driver", "profile"},
}
INCLUDE = re.compile(r'^#include "(\w+)/', re.M)


def code(path):
    """The file's text without comments and string literals."""
    return STRING.sub('""', COMMENT.sub(" ", (tree.ROOT / path).read_text()))


# Where the program's main thread has ended and only the driver's threads, which it would not have
# by itself, are left: libc's own end is then called for it.
ALLOWED = {"lib/preload/ahead.c": ["exit("]}


class Rules(unittest.TestCase):
    def test_the_environment_is_read_in_one_place(self):
        for path in tree.sources(".c", ".h"):
            if str(path).startswith(MAY_READ_ENVIRONMENT):
                continue
            with self.subTest(path=str(path)):
                found = [name for name in GETENV.findall(code(path)) if "getenv" in name]
                self.assertEqual(found, [])

    def test_lower_layers_include_no_higher_ones(self):
        for folder, allowed in LAYERS.items():
            for path in tree.sources(".c", ".h", folders=(f"lib/{folder}",)):
                with self.subTest(path=str(path)):
                    included = set(INCLUDE.findall((tree.ROOT / path).read_text()))
                    self.assertLessEqual(included, allowed | {"hearth"})

    def test_every_c_file_opens_with_what_it_is(self):
        for path in tree.sources(".c", ".h"):
            with self.subTest(path=str(path)):
                self.assertTrue((tree.ROOT / path).read_text().startswith("/*"))

    def test_files_stay_readable(self):
        for path in tree.sources(".c", ".h", ".py"):
            with self.subTest(path=str(path)):
                lines = len((tree.ROOT / path).read_text().splitlines())
                self.assertLessEqual(lines, LONGEST_FILE)

    def test_nothing_is_left_for_later(self):
        for path in tree.sources(".c", ".h", ".py", ".sh"):
            with self.subTest(path=str(path)):
                found = re.findall(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX)\b",
                                   (tree.ROOT / path).read_text())
                self.assertEqual(found, [])

    def test_what_is_loaded_into_programs_never_prints_and_never_exits(self):
        forbidden = re.compile(r"\b(?:printf|puts|fprintf|perror|exit|_exit|abort)\s*\(")
        for path in tree.sources(".c", folders=PRELOADED):
            with self.subTest(path=str(path)):
                self.assertEqual(forbidden.findall(code(path)), ALLOWED.get(str(path), []))


if __name__ == "__main__":
    tree.main()
