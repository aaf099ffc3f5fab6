"""The sources' layout is what the pinned clang-format makes of them."""
import os
import subprocess
import unittest

import tree

# The command, named by tools/check; versions differ in what they make of the same file.
CLANG_FORMAT = os.environ.get("CLANG_FORMAT")


class Layout(unittest.TestCase):
    @unittest.skipUnless(CLANG_FORMAT, "the pinned clang-format is not here")
    def test_clang_format_changes_nothing(self):
        for path in tree.sources(".c", ".h"):
            with self.subTest(path=str(path)):
                wanted = subprocess.run([CLANG_FORMAT, "--style=file", path], cwd=tree.ROOT,
                                        text=True, stdout=subprocess.PIPE, check=True).stdout
                self.assertMultiLineEqual((tree.ROOT / path).read_text(), wanted)

    # clang-format sees to those of C; this is for the rest.
    def test_lines_are_within_100_columns(self):
        for path in tree.sources(".py", ".build", ".sh"):
            for number, line in enumerate((tree.ROOT / path).read_text().splitlines(), 1):
                with self.subTest(path=str(path), line=number):
                    self.assertLessEqual(len(line.expandtabs(8)), 100)


if __name__ == "__main__":
    tree.main()
