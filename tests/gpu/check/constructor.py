"""Group constructor: a library's constructor, which runs under the loader's lock, and 32 threads at
once call cuInit and retain a context while the speculation is before, inside and after its own: no
deadlock, the native results, at most a second later than natively."""
import statistics

from .ahead import Job, Stage, judge, result

MOMENTS_MS = (0, 1, 2, 4, 6, 8, 11, 15, 30, 60, 90, 120, 160, 300)
ROUNDS = 2
WORKERS = 3
LIMIT_LATE_S = 1.0
SECONDS = 20


def _kinds(stage):
    """Name: the steps that follow the wait."""
    plugin = stage.program("init_constructor.so")
    slow = stage.program("init_constructor_slow.so")
    then = ["init", "retain=0", "copy"]
    return {"constructor": [f"plugin={plugin}", *then],
            "constructor that waits": [f"plugin={slow}", *then],
            "32 threads": ["storm=32", "init", "devices", "retain=0", "copy"],
            "32 threads with retains": ["storms=32", "state=0", "retain=0", "copy"]}


def run(context):
    """Holds where all ended as natively and none was later than the limit."""
    moments = MOMENTS_MS[::4] if context.simulated else MOMENTS_MS
    rounds = context.rounds or (1 if context.simulated else ROUNDS)
    rows, checks, late = [], {}, {}
    with Stage(context) as stage:
        steps = stage.program("driver_steps")
        state = stage.learn("constructor", [steps, "lookup", "sleep=400", "init", "retain=0"])
        for name, after in _kinds(stage).items():
            jobs = [Job(name, [steps, "lookup", f"sleep={wait}", *after], arm, seconds=SECONDS,
                        shows_crash=True)
                    for _ in range(rounds) for wait in moments for arm in (None, state)]
            ends = stage.take_all(jobs, WORKERS)
            natives, ours = ends[::2], ends[1::2]
            rows.append(judge(name, natives, ours))
            # What each was late, against the native run beside it or their median, whichever is
            # later: what one waits for its turn in the kernel is no lateness of ours.
            middle = statistics.median(
                end.seconds - int(job.command[2].partition("=")[2]) / 1e3
                for job, end in zip(jobs[::2], natives))
            late[name] = [round(end.seconds - max(native.seconds, middle + int(
                job.command[2].partition("=")[2]) / 1e3), 3)
                for job, end, native in zip(jobs[1::2], ours, natives)]
            checks[f"{name}: at most {max(late[name]):.2f} s later than natively, at most "
                   f"{LIMIT_LATE_S}"] = max(late[name]) <= LIMIT_LATE_S
        return result(stage, rows, checks, context.simulated, late_s=late)
