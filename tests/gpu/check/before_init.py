"""Group before-init: what each entry answers on an uninitialised driver, for the spec's column.

How the column is filled (merge): the answer with pointers to zeroed memory, since that is what a
program passes; after a slash the answer with all arguments 0, where it differs: the entry looks at
its arguments first. Where one of the calls was killed or hung only the other counts; where neither
came back the old value stays."""
import collections
import json
import os
import subprocess
import sys

from . import build, machine

SPEC = machine.SOURCE / "lib/driver/driver_api.tsv"
SECONDS = 120


def run(context):
    """Measure; returns the result's fields."""
    program = build.build_c(context.work, "before_init", "before_init.c")
    jobs = min(64, max(4, os.cpu_count() or 4))
    done = subprocess.run([str(program), context.driver, str(SPEC), str(jobs)],
                          stdout=subprocess.PIPE, text=True, timeout=SECONDS, check=True,
                          env=context.environment())
    entries = {}
    for line in done.stdout.splitlines()[1:]:
        name, zero, scratch = line.split("\t")
        entries[name] = [zero, scratch]
    counts = collections.Counter("/".join(pair) for pair in entries.values())
    differing = {name: pair for name, pair in entries.items() if pair[0] != pair[1]}
    print("answers with zeros/with pointers to zeroed memory:")
    for pair, count in counts.most_common():
        print(f"  {count:4} entries {pair}")
    print("entries that look at their arguments (zeros, pointers):")
    for name, pair in differing.items():
        print(f"  {name} {pair[0]} {pair[1]}")
    return {"entries": entries, "ok": bool(entries)}


def chosen(zero, scratch):
    """The spec's value for one entry, None where nothing was learned."""
    answers = [answer for answer in (scratch, zero) if answer.isdigit()]
    return "/".join(dict.fromkeys(answers)) or None


def merge(result_path, spec=SPEC):
    """Write the column of driver_api.tsv from a result of this group; returns an exit status."""
    with open(result_path, encoding="utf-8") as file:
        entries = json.load(file)["entries"]
    lines, changed, unknown = [], 0, []
    with open(spec, encoding="ascii") as file:
        for number, line in enumerate(file):
            cells = line.rstrip("\n").split("\t")
            if number:
                answer = chosen(*entries.get(cells[1], ("absent", "absent")))
                if answer is None:
                    unknown.append(cells[1])
                elif cells[-1] != answer:
                    cells[-1] = answer
                    changed += 1
            lines.append("\t".join(cells) + "\n")
    with open(spec, "w", encoding="ascii", newline="") as file:
        file.writelines(lines)
    print(f"{spec}: {changed} values changed; {len(unknown)} not learned, kept: "
          f"{' '.join(unknown)}", file=sys.stderr)
    return 0
