"""Group eager: programs to which a second thread, or something done before they ask for it, could
matter, under `hearth run --eager` as natively: sigwait, new user namespaces, processors, users."""
import os
import shutil

from .ahead import Job, Stage, judge, result

ROUNDS = 5
WORKERS = 4
NOBODY = "65534"


def _commands(stage, folder):
    """Name: command, and whether it uses the driver. What a tool needs and the machine lacks, a
    native run that fails alike, is for the comparison too."""
    steps = folder / "driver_steps"
    shutil.copy(stage.program("driver_steps"), steps)
    os.chmod(steps, 0o755)
    use = [steps, "lookup", "sleep=400", "init", "devices", "retain=0", "copy"]
    commands = {
        "nothing in front": use,
        "sigwait": [steps, "lookup", "sigwait", "sleep=20", "sigwait", "init", "retain=0", "copy"],
        "sigwait, ready": [steps, "lookup", "sleep=400", "sigwait", "sigwait"],
        "unshare -U true": ["unshare", "-U", "true"],
        "unshare -U id": ["unshare", "-U", "--map-root-user", "id", "-u"],
        "unshare -U, used": ["unshare", "-U", "--map-root-user", *use],
        "taskset, seen": ["taskset", "-c", "0", "sh", "-c", "grep Cpus_allowed: /proc/$$/status"],
        "taskset, used": ["taskset", "-c", "0", *use],
        "own affinity": [steps, "lookup", "sleep=400", "cpu=0", *use[3:]],
        "nice": ["nice", "-n", "1", *use],
        "env": ["env", "A=B", *use],
    }
    # Another user must reach the library.
    if os.geteuid() == 0 and all(part.stat().st_mode & 0o1
                                 for part in stage.context.build.resolve().parents):
        drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        commands["setpriv, seen"] = [*drop, "sh", "-c", "id -u; id -g"]
        commands["setpriv, used"] = [*drop, *use]
        commands["own setuid"] = [steps, "lookup", "sleep=400", f"uid={NOBODY}", *use[3:]]
        commands["own setuid, early"] = [steps, "lookup", "sleep=20", f"uid={NOBODY}", *use[3:]]
    return {name: command for name, command in commands.items()
            if shutil.which(str(command[0]))}


def run(context):
    """Holds where every program under --eager ended as natively."""
    rounds = context.rounds or (1 if context.simulated else ROUNDS)
    with Stage(context) as stage:
        os.chmod(stage.broker.folder, 0o755)
        commands = _commands(stage, stage.broker.folder)
        tool = [context.build / "tools/hearth", "run", "--eager", "--"]
        jobs = []
        for name, command in commands.items():
            jobs += [Job(name, command)] * 2
            jobs += [Job(name, [*tool, *command], stage.blank, through_tool=True)] * rounds
        ended = {}
        for job, end in zip(jobs, stage.take_all(jobs, WORKERS)):
            ended.setdefault(job.name, ([], []))[job.template is not None].append(end)
        rows = [judge(name, natives, ours) for name, (natives, ours) in ended.items()]
        row = next(row for row in rows if row["name"] == "nothing in front")
        checks = {f"with nothing in front {row['ways'].get('speculated', 0)} of {row['runs']} had "
                  "cuInit done ahead": row["ways"].get("speculated", 0) == row["runs"]}
        return result(stage, rows, checks, context.simulated)
