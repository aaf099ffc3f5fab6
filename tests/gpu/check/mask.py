"""What differs between plain runs of one program, found from the runs themselves, so that two
outputs can be compared byte for byte apart from that.

A mask is a line in which only numbers vary (times, pids, addresses): the line with a `#` for each
number. Where the number of such lines varies too, or their order, they are left out altogether
(`drop`), else each is compared as its mask (`blur`). A line that begins with `result` is what the
GPU computed, and is never masked."""
import re
from typing import NamedTuple

RUNS = 5       # plain runs that masks are made from
MOST_MASKS = 5  # for one program
KEPT = b"result"
_NUMBER = re.compile(rb"0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?")


class MaskError(Exception):
    """The plain runs differ in a way that no mask may cover; the message names the line."""


class Mask(NamedTuple):
    stream: str
    kind: str  # blur or drop
    form: bytes

    def __str__(self):
        return f"{self.stream}: {self.kind} {self.form.decode(errors='replace')!r}"


def form_of(line):
    """The line with a # for each number."""
    return _NUMBER.sub(b"#", line)


def lines_of(text):
    """Lines with their ends, so that a missing last newline counts."""
    return text.splitlines(keepends=True)


def _variable_lines(runs):
    """Lines that do not stand equally often in every run."""
    counts = []
    for lines in runs:
        count = {}
        for line in lines:
            count[line] = count.get(line, 0) + 1
        counts.append(count)
    everything = set().union(*counts)
    return {line for line in everything if len({count.get(line, 0) for count in counts}) > 1}


def find_masks(stream, outputs):
    """The masks that make these outputs (bytes, one a run) equal. Raises MaskError."""
    runs = [lines_of(output) for output in outputs]
    masks = []
    for line in sorted(_variable_lines(runs)):
        if line.startswith(KEPT):
            raise MaskError(f"{stream}: a result varies between plain runs: {line!r}")
        if form_of(line) not in [mask.form for mask in masks]:
            masks.append(Mask(stream, "blur", form_of(line)))
    if len({apply_masks(stream, output, masks) for output in outputs}) > 1:
        masks = [_drop_where_needed(mask, runs) for mask in masks]
    if len({apply_masks(stream, output, masks) for output in outputs}) > 1:
        # Only the order differs: whichever lines move about have to go.
        masks = [mask._replace(kind="drop") for mask in masks]
    if len({apply_masks(stream, output, masks) for output in outputs}) > 1:
        raise MaskError(f"{stream}: plain runs differ in the order of their lines")
    if len(masks) > MOST_MASKS:
        raise MaskError(f"{stream}: {len(masks)} masks, at most {MOST_MASKS}: "
                        + "; ".join(str(mask) for mask in masks))
    return masks


def _drop_where_needed(mask, runs):
    counts = {sum(form_of(line) == mask.form for line in lines) for lines in runs}
    return mask._replace(kind="drop") if len(counts) > 1 else mask


def apply_masks(stream, output, masks):
    """The output with this stream's masked lines blurred or left out."""
    kinds = {mask.form: mask.kind for mask in masks if mask.stream == stream}
    kept = []
    for line in lines_of(output):
        kind = None if line.startswith(KEPT) else kinds.get(form_of(line))
        if kind != "drop":
            kept.append(form_of(line) if kind == "blur" else line)
    return b"".join(kept)


def first_difference(left, right):
    """The first pair of lines that differ, for a message; None where the texts are equal."""
    if left == right:
        return None
    ours, theirs = lines_of(left), lines_of(right)
    for number in range(max(len(ours), len(theirs))):
        pair = [lines[number] if number < len(lines) else b"(no such line)"
                for lines in (ours, theirs)]
        if pair[0] != pair[1]:
            return f"line {number + 1}: {pair[0]!r} against {pair[1]!r}"
    return None
