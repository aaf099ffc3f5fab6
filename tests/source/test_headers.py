"""Every header compiles alone, with every compiler that is here."""
import os
import shutil
import subprocess
import unittest

import tree

# Where the headers are that the build generates.
GENERATED = os.path.join(os.environ.get("HEARTH_BUILD", tree.ROOT / "build"), "lib/driver")
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
FLAGS = ("-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter",
         "-fsyntax-only", "-Iinclude", "-Ilib", "-Itests/unit/plain", f"-I{GENERATED}", "-xc")


class Headers(unittest.TestCase):
    def test_compile_alone(self):
        for compiler in COMPILERS:
            for path in tree.sources(".h"):
                with self.subTest(compiler=compiler, header=str(path)):
                    done = subprocess.run([compiler, *FLAGS, "-"], cwd=tree.ROOT, text=True,
                                          input=f'#include "{path}"\n#include "{path}"\n',
                                          stderr=subprocess.PIPE, check=False)
                    self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    tree.main()
