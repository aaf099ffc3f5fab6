"""The tree of sources, as the tests in this folder see it."""
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("include", "lib", "tools", "tests", "bench")


def sources(*suffixes, folders=FOLDERS):
    """Paths of the files with these suffixes, sorted, relative to ROOT."""
    return sorted(path.relative_to(ROOT) for folder in folders
                  for path in (ROOT / folder).rglob("*") if path.suffix in suffixes)


def main():
    unittest.main(module=sys.modules["__main__"], verbosity=1)
