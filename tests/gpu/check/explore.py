"""Group explore: how the driver at hand starts, for the design of speculation: its import slots,
what each stage calls, who takes the loader's lock, and the way out with a fresh copy."""
import subprocess

from . import build

SECONDS = 40
LOCK_MODES = ("native", "init", "init redirect", "init first redirect", "retain",
              "retain redirect", "escape-init", "escape-init redirect", "escape-init first",
              "escape-retain first")


def _run(context, *command):
    try:
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=SECONDS,
                              env=context.environment(), check=False)
        code, text = done.returncode, done.stdout
    except subprocess.TimeoutExpired as error:
        code, text = "timeout", error.stdout or b""
    return {"command": [str(word).rsplit("/", 1)[-1] for word in command], "exit": code,
            "output": text.decode(errors="replace").splitlines()}


def run(context):
    """Run every experiment; the whole text is in the result, the short lines are printed."""
    library = build.build_c(context.work, "libconstructor.so", "constructor.c",
                            flags=("-shared", "-fPIC"))
    imports = build.build_c(context.work, "imports", "imports.c", "slots.c", "copy.c")
    lock = build.build_c(context.work, "loader_lock", "loader_lock.c", "dump.c", "slots.c",
                         "copy.c", flags=("-rdynamic",))
    runs = [_run(context, imports, context.driver)]
    for line in runs[0]["output"]:
        if not line.startswith(("import ", "  descriptor")):
            print(line)
    for mode in LOCK_MODES:
        runs.append(_run(context, lock, context.driver, library, *mode.split()))
        print(f"loader_lock {mode}: exit {runs[-1]['exit']}")
        skipped = False
        for line in runs[-1]["output"]:
            skipped = (skipped or line.startswith("-- threads")) and not line.startswith("-- end")
            if not skipped or "futex 0x" in line:
                print(f"    {line}")
    return {"runs": runs, "ok": runs[0]["exit"] == 0}
