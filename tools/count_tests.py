"""The end of tools/check: reads what each build's tests left under build/check and prints, a line
a build, then the total, how many tests passed, failed and were skipped. Exits 1 where one failed.

A test program that holds many tests (unittest, Criterion) says at its end how many; these are
counted. One that says nothing, or that failed as a whole, counts as one. What failed beside others
and passed when it was run again alone (LOG-again.json) counts as passed, and is named.

With --failed LOG it prints the names of the tests that failed in that log instead.
"""
import json
import re
import sys
from collections import Counter
from pathlib import Path

UNITTEST = re.compile(r"^Ran (\d+) tests? in ", re.M)
UNITTEST_PART = re.compile(r"\b(failures|errors|skipped|unexpected successes)=(\d+)")
CRITERION = re.compile(r"Tested: (\d+) \| Passing: (\d+) \|")
ANSI = re.compile(r"\x1b\[[0-9;]*m")
MESON_PASSED = ("OK", "EXPECTEDFAIL")
MESON_SKIPPED = ("SKIP",)
AGAIN = "-again"


def count(test):
    """Counter of passed, failed, skipped in one line of meson's testlog.json."""
    ended_well = test["result"] in MESON_PASSED
    output = ANSI.sub("", test.get("stdout", "") + "\n" + test.get("stderr", ""))
    if test["result"] in MESON_SKIPPED:
        return Counter(skipped=1)
    ran = UNITTEST.findall(output)
    if ran:
        verdict = output[UNITTEST.search(output).end():]
        parts = Counter({name: int(number) for name, number in UNITTEST_PART.findall(verdict)})
        failed = parts["failures"] + parts["errors"] + parts["unexpected successes"]
        failed = max(failed, 0 if ended_well else 1)
        total = int(ran[-1])
        passed = max(total - failed - parts["skipped"], 0)
        return Counter(passed=passed, failed=failed, skipped=parts["skipped"])
    criterion = CRITERION.search(output)
    if criterion:
        tested, passed = map(int, criterion.groups())
        failed = max(tested - passed, 0 if ended_well else 1)
        return Counter(passed=passed, failed=failed)
    return Counter(passed=1) if ended_well else Counter(failed=1)


def read(log):
    """The tests in one of meson's logs, by name."""
    return {test["name"]: test for test in map(json.loads, log.read_text().splitlines())}


def tests_of(log):
    """The same, each with its second result where it was run again."""
    again = log.with_name(f"{log.stem}{AGAIN}.json")
    return {**read(log), **(read(again) if again.exists() else {})}


def print_failed(log):
    """Meson takes a test's name without the project and suites that its log puts before it."""
    names = {name.rpartition(" / ")[2] for name, test in read(log).items()
             if count(test)["failed"]}
    print("\n".join(sorted(names)), end="\n" if names else "")


def main():
    if sys.argv[1] == "--failed":
        print_failed(Path(sys.argv[2]))
        return 0
    work = Path(sys.argv[1])
    total = Counter()
    for line in (work / "builds").read_text().splitlines():
        name, _, result = line.split()
        counts = Counter({"OK": {"passed": 1}, "FAIL": {"failed": 1},
                          "SKIP": {"skipped": 1}}[result])
        logs = [log for log in sorted((work / name / "meson-logs").glob("*.json"))
                if not log.stem.endswith(AGAIN)]
        if result == "OK" and not logs:
            print(f"{name}: its tests left no log")
            counts["failed"] += 1
        for log in logs:
            first = read(log)
            for test in tests_of(log).values():
                one = count(test)
                counts += one
                if one["failed"]:
                    print(f"{name}: FAILED {test['name']} ({test['result']})")
                elif count(first[test["name"]])["failed"]:
                    print(f"{name}: passed alone, not beside others: {test['name']}")
        print(f"{name}: {counts['passed']} passed, {counts['failed']} failed, "
              f"{counts['skipped']} skipped")
        total += counts
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 1 if total["failed"] or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
