"""As much of YAML as doc/containers uses: mappings, lists of mappings or scalars, JSON lists on one
line, comments on lines of their own. Raises ValueError for anything else."""
import json
import re

KEY = re.compile(r'([\w./-]+):(?: (.*))?$')


def load(text):
    lines = []
    for line in text.splitlines():
        body = line.lstrip(" ")
        if body and not body.startswith("#"):
            lines.append((len(line) - len(body), body))
    value, rest = _block(lines, 0)
    if rest:
        raise ValueError(f"'{rest[0][1]}' is indented as nothing above it")
    return value


def _scalar(text):
    if text[0] in '["{' or text in ("true", "false") or text.isdigit():
        return json.loads(text)
    if text[0] in "&*!|>'%@`":
        raise ValueError(f"'{text}' is more YAML than the tests know")
    return text


def _block(lines, indent):
    if lines and lines[0][1].startswith("- "):
        return _list(lines, indent)
    found = {}
    while lines and lines[0][0] == indent:
        match = KEY.match(lines[0][1])
        if not match:
            raise ValueError(f"'{lines[0][1]}' is no key")
        name, text = match.groups()
        lines = lines[1:]
        if text:
            found[name] = _scalar(text)
        elif lines and lines[0][0] > indent:
            found[name], lines = _block(lines, lines[0][0])
        else:
            found[name] = None
    return found, lines


def _list(lines, indent):
    found = []
    while lines and lines[0][0] == indent and lines[0][1].startswith("- "):
        body = lines[0][1][2:]
        if KEY.match(body):
            item, lines = _block([(indent + 2, body), *lines[1:]], indent + 2)
        else:
            item, lines = _scalar(body), lines[1:]
        found.append(item)
    return found, lines
