"""Read and check driver_api.tsv, the one description of every driver entry.

Columns: public_name, abi_symbol, since (first CUDA version, 1000 x major + 10 x minor),
stream_variant (legacy, ptds, ptsz), arity, group (core, interop), class (pass, first, handle) and
before_init: the CUresult of this entry on an uninitialised driver, called with pointers to zeroed
memory; where it differs, after a slash, with all arguments 0 (the entry looks at its arguments
first). Measured by gpu-check's group before-init.
"""
import csv
from typing import NamedTuple

COLUMNS = ("public_name", "abi_symbol", "since", "stream_variant", "arity", "group", "class",
           "before_init")
VARIANTS = ("legacy", "ptds", "ptsz")
CLASSES = ("pass", "first", "handle")


class Row(NamedTuple):
    public_name: str
    abi_symbol: str
    since: int
    variant: str
    arity: int
    group: str
    kind: str
    before_init: int
    before_init_zeros: int


class SpecError(Exception):
    """The spec is wrong; the message names file, line and value."""


def read(path):
    """Return the rows of the spec in file order. Raises SpecError."""
    rows, seen = [], set()
    with open(path, newline="", encoding="ascii") as file:
        reader = csv.reader(file, delimiter="\t")
        header = next(reader, None)
        if header is None or tuple(header) != COLUMNS:
            raise SpecError(f"{path}:1: columns are {header}, expected {list(COLUMNS)}")
        for line, cells in enumerate(reader, 2):
            if len(cells) != len(COLUMNS):
                raise SpecError(f"{path}:{line}: {len(cells)} cells, expected {len(COLUMNS)}")
            cell = dict(zip(COLUMNS, cells))
            for name in ("public_name", "abi_symbol"):
                if not cell[name].isidentifier():
                    raise SpecError(f"{path}:{line}: {name} is {cell[name]!r}")
            for name in ("since", "arity"):
                if not cell[name].isdigit():
                    raise SpecError(f"{path}:{line}: {name} is {cell[name]!r}, not a number")
            pointers, _, zeros = cell["before_init"].partition("/")
            zeros = zeros or pointers
            if not (pointers.isdigit() and zeros.isdigit()):
                raise SpecError(f"{path}:{line}: before_init is {cell['before_init']!r}")
            if cell["stream_variant"] not in VARIANTS:
                raise SpecError(f"{path}:{line}: stream_variant is {cell['stream_variant']!r}")
            if cell["class"] not in CLASSES:
                raise SpecError(f"{path}:{line}: class is {cell['class']!r}")
            if cell["abi_symbol"] in seen:
                raise SpecError(f"{path}:{line}: {cell['abi_symbol']} stands twice")
            seen.add(cell["abi_symbol"])
            rows.append(Row(cell["public_name"], cell["abi_symbol"], int(cell["since"]),
                            cell["stream_variant"], int(cell["arity"]), cell["group"],
                            cell["class"], int(pointers), int(zeros)))
    return rows
