"""The README's first screen: its commands by name, and its output as far as it is the same on every
machine."""
import re
import shutil

import harness

TEXT = (harness.SOURCE / "README.md").read_text()
BLOCK = re.compile(r"^<!-- first screen: (\S+) -->\n```\w*\n(.*?)^```$", re.M | re.S)
BLOCKS = dict(BLOCK.findall(TEXT))


def lines(name):
    return BLOCKS[name].splitlines()


def masked(text):
    """Without figures, and without how many blanks they take."""
    text = re.sub(r"\b\d[\d.:-]*", "N", text.replace(" warm", " how").replace(" cold", " how"))
    text = re.sub(r"\((warm|cold)[^)]*\)|\(how[^)]*\)", "(how)", text)
    return re.sub(r"[ \t]+", " ", text).strip()


def prepare(folder):
    """What stands for the reader's program, where it is typed."""
    shutil.copy(harness.SOURCE / "tests/programs/train.py", folder / "train.py")
