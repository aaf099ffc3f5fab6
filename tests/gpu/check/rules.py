"""Group rules: the driver's rules (tests/programs/rules.h), as this machine's driver answers them:
natively, against what is on record and what the simulated driver is held to; and under the preload,
against the native run."""
import difflib
import subprocess

from . import build, machine

SECONDS = 180
RECORD = machine.SOURCE / "tests/system/driver_rules.txt"
# Its lines depend on how many GPUs there are; two were there when it was recorded.
BY_COUNT, RECORDED_COUNT = "visible", 2
# It copies the file that cuInit comes from, which under the preload is the preload.
NATIVE_ONLY = "copy"


def sections(text):
    """{name: lines} of the program's output."""
    found = {}
    for line in text.splitlines():
        if line.startswith("== "):
            name = line[3:]
            found[name] = []
        else:
            found[name].append(line)
    return found


def differences(expected, seen, leave_out):
    """Unified difference lines of all sections but those left out."""
    lines = []
    for name, wanted in expected.items():
        if name not in leave_out:
            lines += difflib.unified_diff(wanted, seen.get(name, []), f"{name} expected",
                                          f"{name} seen", lineterm="", n=0)
    return lines


def _run(program, environment):
    done = subprocess.run([str(program)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, text=True, timeout=SECONDS, check=False,
                          env=environment)
    return sections(done.stdout)


def run(context):
    """Two runs, two comparisons; returns the result's fields."""
    programs = machine.SOURCE / "tests/programs"
    program = build.build_c(context.work, "driver_rules", *sorted(programs.glob("rules*.c")),
                            flags=("-pthread",))
    more = {"SIMCUDA_SPEED": "0", "SIMCUDA_DEVICES": "2"} if context.simulated else {}
    native = _run(program, context.environment(**more))
    under = _run(program, context.hearth_environment(
        context.work / "no-broker", LD_PRELOAD=str(context.preload), **more))
    count = sum(line.startswith("[0,1] -> 0: 0 1") for line in native.get(BY_COUNT, [])) + 1
    by_count = set() if count == RECORDED_COUNT else {BY_COUNT}
    record = differences(sections(RECORD.read_text()), native, by_count)
    preload = differences(native, under, {NATIVE_ONLY})
    print(f"{sum(map(len, native.values()))} answers in {len(native)} sections")
    for text, lines in (("against the record", record), ("preloaded, against native", preload)):
        print(f"{text}: {len(lines)} lines differ", *lines, sep="\n  ")
    return {"native": native, "record_differs": record, "preload_differs": preload,
            "ok": bool(native) and not record and not preload}
