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
        done = subprocess.run([CLANG_FORMAT, "--style=file", "--dry-run", "--Werror",
                               *tree.sources(".c", ".h")], cwd=tree.ROOT, text=True,
                              stderr=subprocess.PIPE, check=False)
        wrong = sorted({line.partition(":")[0] for line in done.stderr.splitlines()
                        if ": error: " in line})
        self.assertEqual((done.returncode, wrong), (0, []), "clang-format -i them")

    # clang-format sees to those of C; this is for the rest.
    def test_lines_are_within_100_columns(self):
        for path in tree.sources(".py", ".build", ".sh"):
            for number, line in enumerate((tree.ROOT / path).read_text().splitlines(), 1):
                with self.subTest(path=str(path), line=number):
                    self.assertLessEqual(len(line.expandtabs(8)), 100)


if __name__ == "__main__":
    tree.main()
