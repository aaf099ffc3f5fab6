"""Group setenv: programs that call setenv and unsetenv in a loop while the speculative thread reads
its copy of the environment. getenv beside setenv can crash; here it must not, in thousands of
starts.

What was learned is cuInit alone: with a keeper it takes 9 ms, and no two starts wait for each
other's contexts."""
from .ahead import AHEAD, Job, Stage, judge, result

STARTS = 5000
WORKERS = 12
BUSY_MS = 25
LEAST_AHEAD = 0.9  # of the starts: in the others the thread was not there in time


def run(context):
    """Holds where all starts ended as natively, and the thread was there in most of them."""
    starts = context.rounds or (60 if context.simulated else STARTS)
    with Stage(context) as stage:
        steps = stage.program("driver_steps")
        state = stage.learn("setenv", [steps, "lookup", "sleep=60", "init"])
        ways = {"main": f"busy={BUSY_MS}", "thread": f"busythread={2 * BUSY_MS}"}
        # On another thread the loop goes on while the program itself is in cuInit, and natively
        # the driver's own getenv is then beside it: so that arm waits in the program's first half.
        jobs = {"main": Job("main", [steps, "lookup", ways["main"], "init", "count"], state,
                            shows_crash=True),
                "before": Job("before", [steps, ways["thread"], "lookup", f"sleep={3 * BUSY_MS}",
                                         "init", "count"], state, shows_crash=True)}
        rows, checks = [], {}
        share = {"main": starts - starts // 5, "before": starts // 5}
        for name, job in jobs.items():
            natives = stage.take_all([job._replace(template=None)] * 3, 3)
            row = judge(f"setenv, {name}", natives, stage.take_all([job] * share[name], WORKERS))
            rows.append(row)
            ahead = sum(row["ways"].get(way, 0) for way in AHEAD)
            checks[f"setenv, {name}: {ahead} of {share[name]} had cuInit done ahead, at least "
                   f"{LEAST_AHEAD:.0%}"] = ahead >= LEAST_AHEAD * share[name]
        return result(stage, rows, checks, context.simulated)
