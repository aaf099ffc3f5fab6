"""The group mps, second part: each state that a pipe folder may be in, provoked on the daemon that
is there; what a program gets, and what `hearth doctor --mps` says."""
import concurrent.futures
import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from .mps_stage import lives_on

NOBODY = 65534
HELD_S = 3.0  # so long a program that waits is watched
QUIT_S = 12  # so long `quit` may take
SURELY_TAKEN, MOST_CLIENTS = 40, 70
STEPS = ("init", "context", "kernel")


def _folder(stage, name, user=None):
    folder = stage.folder / name
    for path in (folder, folder / "pipe", folder / "log"):
        path.mkdir(mode=0o755)
        if user:
            os.chown(path, user, user)
    return folder


def _daemon(stage, name, user=None):
    """One that is not Hearth's; its folder and its pid."""
    folder = _folder(stage, name, user)
    done = stage.control(folder, "-d", user=user)
    if done.returncode:
        raise RuntimeError(f"nvidia-cuda-mps-control -d: {done.stdout} {done.stderr}")
    stage.control(folder, text=f"start_server -uid {user or os.getuid()}\n", user=user)
    pid = int((folder / "pipe/nvidia-cuda-mps-control.pid").read_text())
    for _ in range(100):
        server = stage.control(folder, text="get_server_list\n", user=user).stdout.split()
        if server:
            stage.control(folder, text=f"get_server_status {int(server[0])}\n", user=user)
            break
        time.sleep(0.05)
    return folder, pid


def doctor(stage, pipe, user=None):
    """What it says of that folder."""
    done = stage.hearth("doctor", "--mps", "--json", cwd="/", user=user,
                        env={**stage.hearth_names(), "CUDA_MPS_PIPE_DIRECTORY": str(pipe)})
    found = {one["id"]: one for one in json.loads(done.stdout)["findings"]}
    return found["mps"]


def _row(stage, name, pipe, words, user=None, waits=False):
    """One state: codes and times of a program, and whether doctor's words are the right ones."""
    client = stage.client(*STEPS, CUDA_MPS_PIPE_DIRECTORY=str(pipe), cwd="/", user=user)
    code = client.rc("init", HELD_S if waits else 20)
    said = doctor(stage, pipe, user)
    steps = client.end(kill=code is None and not waits) if not waits else {}
    row = {"state": name, "cuInit": "waits" if code is None else code,
           "codes": {step: steps[step]["rc"] for step in STEPS if step in steps},
           "ms": {step: steps[step]["ms"] for step in STEPS if step in steps},
           "doctor": said["text"], "remedy": said["remedy"], "says it": words in said["text"]}
    return row, client


def _simple(stage):
    """Folders without a daemon."""
    empty, stale, closed = (stage.folder / name for name in ("empty", "stale", "closed"))
    for path in (empty, stale, closed):
        path.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        sock.bind(str(stale / "control"))
    cases = [("no folder", stage.folder / "none", "is not there", None),
             ("empty folder", empty, "has no socket `control`", None),
             ("stale socket", stale, "is stale", None),
             ("relative path", "none", "is no absolute path", None)]
    if os.geteuid() == 0 and not stage.context.simulated:
        closed.chmod(0o700)
        cases.append(("out of reach", closed, "is out of reach", NOBODY))
    return [_row(stage, *case)[0] for case in cases]


def _killed_daemon(stage):
    folder, pid = _daemon(stage, "killed")
    os.kill(pid, signal.SIGKILL)
    time.sleep(1)  # its server ends, too
    return [_row(stage, "daemon killed", folder / "pipe", "is stale")[0]]


def _dead_server(stage):
    """A client that works while its server is killed, and the next one."""
    folder, pid = _daemon(stage, "dead")
    names = {"CUDA_MPS_PIPE_DIRECTORY": f"{folder}/pipe"}
    works = stage.client(*STEPS, "hold", "loop=3000", **names)
    works.wait_for("hold")
    works.go()
    time.sleep(0.3)
    server = int(stage.control(folder, text="get_server_list\n").stdout)
    os.kill(server, signal.SIGKILL)
    killed = time.monotonic()
    code = works.rc("loop", 10)
    after_ms = (time.monotonic() - killed) * 1e3
    time.sleep(0.2)
    row, _ = _row(stage, "server killed, the next program", folder / "pipe", "")
    works.end()
    stage.control(folder, text="quit\n")
    _kill(pid)
    return [{"state": "server killed under a program", "cuInit": 0, "codes": {"loop": code},
             "ms": {"until it knows": after_ms}, "says it": True}, row]


def _kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _strangers(stage):
    """A daemon of an ordinary user, met by root; root's, with a client, met by an ordinary user."""
    rows = []
    folder, pid = _daemon(stage, "users", NOBODY)
    rows.append(_row(stage, "stranger at a user's daemon", folder / "pipe", "is 805")[0])
    _kill(pid)
    folder, pid = _daemon(stage, "roots")
    holder = stage.client(*STEPS, "hold", CUDA_MPS_PIPE_DIRECTORY=f"{folder}/pipe")
    holder.wait_for("hold")
    began = time.monotonic()
    row, waiter = _row(stage, "server of another user, busy", folder / "pipe", "waits until",
                       user=NOBODY, waits=True)
    row["ms"]["until doctor has said it"] = (time.monotonic() - began) * 1e3 - HELD_S * 1e3
    holder.end()
    row["codes"]["once it was free"] = waiter.rc("init", 30)
    waiter.end()
    rows.append(row)
    stage.control(folder, text="quit\n")
    _kill(pid)
    return rows


def _full(stage):
    """As many clients as are taken, and what the next one gets."""
    folder, pid = _daemon(stage, "full")
    names = {"CUDA_MPS_PIPE_DIRECTORY": f"{folder}/pipe"}
    if stage.context.simulated:
        names["SIMCUDA_SPEED"] = "0"
    clients = [stage.client("init", "context", "hold", **names) for _ in range(SURELY_TAKEN)]
    while True:
        codes = {step: clients[-1].rc(step, 15) for step in ("init", "context")}
        if codes != {"init": 0, "context": 0} or len(clients) == MOST_CLIENTS:
            break
        clients.append(stage.client("init", "context", "hold", **names))
    codes_of_all = [client.rc("context", 15) for client in clients]
    said = doctor(stage, folder / "pipe")
    log = (folder / "log/server.log").read_text(errors="replace").splitlines()[-3:]
    for client in clients:
        client.process.stdin.close()
    for client in clients:
        client.end()
    stage.control(folder, text="quit\n")
    _kill(pid)
    return [{"state": "full", "taken": codes_of_all.count(0), "codes": codes,
             "cuInit": codes["init"], "ms": {}, "doctor": said["text"], "remedy": said["remedy"],
             "log": log, "says it": "it takes no more than" in said["text"]}]


def _quit(stage):
    """`quit` while a client works, and one that has called cuInit alone is there."""
    folder, pid = _daemon(stage, "quit")
    pipe = {"CUDA_MPS_PIPE_DIRECTORY": f"{folder}/pipe"}
    works = stage.client(*STEPS, "hold", "loop=2500", **pipe)
    idle = stage.client("init", "hold", "context", **pipe)
    works.wait_for("hold")
    idle.wait_for("hold")
    server = stage.control(folder, text="get_server_list\n").stdout.decode().strip()
    listed = stage.control(folder, text=f"get_client_list {server}\n").stdout.decode().split()
    works.go()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        began = time.monotonic()
        asked = pool.submit(stage.control, folder, text="quit\n", seconds=QUIT_S)
        waits = not concurrent.futures.wait([asked], HELD_S).done
        lives = lives_on(pid)
        codes = {"loop": works.rc("loop", 10)}
        idle.go()
        codes["context after quit"] = idle.rc("context", 10)
        works.end()
        idle.end()
        try:
            done = asked.result()
            said = [done.returncode, done.stdout.decode(), done.stderr.decode()]
        except subprocess.TimeoutExpired:
            said = ["waits"]
        ms = {"quit": (time.monotonic() - began) * 1e3}
    time.sleep(1)
    row = {"state": "quit with clients", "cuInit": 0, "codes": codes, "ms": ms, "says it": True,
           "waits for clients": waits, "quit": said, "daemon lives": lives,
           "lives without clients": lives_on(pid),
           "listed": [client in listed for client in (str(works.pid), str(idle.pid))]}
    _kill(pid)
    return [row]


def _first_client(stage):
    """A daemon that has no server yet."""
    folder = _folder(stage, "first")
    stage.control(folder, "-d")
    pid = int((folder / "pipe/nvidia-cuda-mps-control.pid").read_text())
    said = doctor(stage, folder / "pipe")
    row, _ = _row(stage, "no server yet", folder / "pipe", "")
    stage.control(folder, text="quit\n")
    _kill(pid)
    return [{**row, "doctor": said["text"], "remedy": said["remedy"],
             "says it": "has no server yet" in said["text"]}]


def _ended(stage):
    """Hearth's own daemon: a client ended by `hearth mps clients --end`, then all by `hearth mps
    stop --force`."""
    stage.start()
    ended, sibling, last = (stage.client(*STEPS, "hold", f"loop={ms}", arm="MPS")
                            for ms in (20000, 1500, 20000))
    for client in (ended, sibling, last):
        client.wait_for("hold")
        client.go()
    began = time.monotonic()
    done = stage.hearth("mps", "clients", "--end", ended.pid)
    ms = {"end": (time.monotonic() - began) * 1e3}
    codes = {"ended": ended.rc("loop", 1), "sibling": sibling.rc("loop", 10)}
    roll = stage.roll()
    began = time.monotonic()
    stage.stop("--force")
    ms["stop --force"] = (time.monotonic() - began) * 1e3
    codes["stopped"] = last.rc("loop", 1)
    for client in (ended, sibling, last):
        client.end(kill=True)
    left = stage.leftovers([roll["supervisor"], roll["daemon"],
                            *[server["pid"] for server in roll["servers"]]])
    return [{"state": "clients ended", "cuInit": 0, "codes": codes, "ms": ms, "left": left,
             "said": done.stdout.decode(),
             "says it": "was terminated" in done.stdout.decode() and not left}]


def _undo(stage):
    """The undo self-test as a client of MPS, beside a sibling that works: what would have to pass
    before anything is done ahead for clients. Looked at; nothing depends on it yet."""
    stage.start()
    sibling = stage.client(*STEPS, "hold", "loop=2500", "hold", arm="MPS")
    sibling.wait_for("hold")
    sibling.go()
    folder = stage.folder / "undo"
    folder.mkdir(mode=0o700)
    began = time.monotonic()
    done = subprocess.run([str(stage.context.build / "tools/hearthd"), "--prove", "run",
                           stage.context.driver, str(folder), "owner"],
                          env=stage.names(True), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
    row = {"state": "undo self-test as a client", "cuInit": 0,
           "outcome": {0: "passed", 1: "failed"}.get(done.returncode, "not run"),
           "lines": done.stdout.splitlines(), "ms": {"in all": (time.monotonic() - began) * 1e3},
           "clients after it": stage.clients() == [sibling.pid],
           "codes": {"sibling": sibling.rc("loop", 10)}, "says it": True}
    sibling.end()
    stage.stop("--force")
    return [row]


def _system(stage):
    """The machine's daemon, with clients of root and of an ordinary user at once."""
    if os.path.exists("/run/hearth"):
        return []
    done = stage.hearth("mps", "start", "--system", "--users", str(NOBODY))
    if done.returncode:
        raise RuntimeError(f"start --system: {done.stderr.decode()}")
    pipe = {"CUDA_MPS_PIPE_DIRECTORY": "/run/hearth/mps/pipe"}
    clients = [stage.client(*STEPS, "enabled", "hold", cwd="/", user=user, **pipe)
               for user in (None, NOBODY)]
    codes = [(client.rc("init"), client.rc("kernel"), client.wait_for("enabled"))
             for client in clients]
    said = doctor(stage, "/run/hearth/mps/pipe", NOBODY)
    listed = json.loads(stage.hearth("mps", "clients", "--system", "--json").stdout)
    for client in clients:
        client.end()
    done = stage.hearth("mps", "stop", "--system", "--force")
    left = os.path.exists("/run/hearth/mps")
    os.rmdir("/run/hearth")
    return [{"state": "root's daemon for two users", "cuInit": codes[1][0], "ms": {},
             "codes": {"each": codes}, "listed": listed, "stop": done.returncode,
             "doctor": said["text"], "remedy": said["remedy"],
             "says it": "programs become clients" in said["text"] and not left}]


def rows(stage):
    """All of them; a part that breaks is a row of its own."""
    parts = [_simple, _first_client, _killed_daemon, _dead_server, _ended, _undo, _quit]
    if os.geteuid() == 0 and not stage.context.simulated:
        parts += [_strangers, _system]
    found = []
    for part in [*parts, _full]:
        try:
            found += part(stage)
        except (OSError, RuntimeError, ValueError, LookupError) as error:
            found.append({"state": part.__name__, "error": repr(error), "says it": False})
        print(f"  {json.dumps(found[-1])[:300]}", flush=True)
    return found


def expected():
    """cuInit's codes, and those of further steps, as recorded (mps_transcript.json)."""
    path = Path(__file__).resolve().parents[2] / "system/mps_transcript.json"
    seen = json.loads(path.read_text())
    return seen["cuInit of clients"], seen["codes of clients"]


def differences(found):
    """What rows say that is not on record."""
    init, codes = expected()
    return [row["state"] for row in found
            if row.get("cuInit") != init.get(row["state"], row.get("cuInit")) or
            any(row["codes"].get(step) != code
                for step, code in codes.get(row["state"], {}).items())]
