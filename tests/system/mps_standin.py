"""A stand-in for nvidia-cuda-mps-control and its server (mps_standin_server.py): what those of
driver 580.159.04 did on an H200, in files, modes, answers, exit statuses and what becomes of
clients; pinned by mps_transcript.json. Its clients are processes of the simulated driver
(lib/sim/sim_mps.c), over a protocol of their own. Run under one of the two names, which the
processes bear as the real ones do. Standard library only."""
import fcntl
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from mps_standin_server import LOGS, PACKET, Server, note, peer

PIPE = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"))
MULTIUSER = "-multiuser-server"
VERSION = "CUDA MPS Control binary version: 13000"
COPYRIGHT = "Copyright (C) 2003 - 2025 NVIDIA Corporation."
NAMES = ("nvidia-cuda-mps-control", "nvidia-cuda-mps-server")
NAMESPACE = 4026531836
TRIES = 6  # a server that cannot be started is tried so often
DEVICE = "GPU-9e3779b1-005c-4d79"
QUIT_EVERY_S = 0.05


def install(folder, python):
    """The two programs, in a folder that is made."""
    folder.mkdir(mode=0o755)
    shutil.copy(Path(__file__).with_name("mps_standin_server.py"), folder)
    for name in NAMES:
        (folder / name).write_text(f"#!{python} -SE\n" + Path(__file__).read_text())
        (folder / name).chmod(0o755)


def listen(name, mode):
    path = PIPE / name
    path.unlink(missing_ok=True)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.bind(str(path))
    path.chmod(mode)
    sock.listen(64)
    return sock


class Daemon:
    """The daemon: one server at a time, for one user unless it is a multiuser one."""

    def __init__(self, is_multiuser):
        self.is_multiuser = is_multiuser
        self.server = self.uid = self.channel = None
        self.is_ready = False
        self.pending = []  # clients' sockets
        self.quitters = []  # sockets of those who wait for their `quit`
        self.retry_at = self.pause = None
        self.threads, self.server_threads = 100.0, {}
        self.memory, self.server_memory, self.priority = {}, {}, "0"
        self.poll = selectors.DefaultSelector()

    def note(self, text):
        note("control.log", "Control", text)

    def open(self):
        for name, mode, take in (("control_privileged", 0o755, self.take_ui),
                                 ("control", 0o666, self.take_client)):
            self.poll.register(listen(name, mode), selectors.EVENT_READ, take)
        (PIPE / "log").unlink(missing_ok=True)
        os.mkfifo(PIPE / "log")
        (PIPE / "log").chmod(0o777)
        self.poll.register(os.open(PIPE / "log", os.O_RDWR | os.O_NONBLOCK),
                           selectors.EVENT_READ, lambda fd: os.read(fd, PACKET))
        self.note(f"Starting control daemon using socket {PIPE}/control\n"
                  "To connect CUDA applications to this daemon, set env "
                  f"CUDA_MPS_PIPE_DIRECTORY={PIPE}\n{VERSION}")

    def run(self):
        while True:
            wait = None if self.retry_at is None else max(0, self.retry_at - time.monotonic())
            for key, _ in self.poll.select(QUIT_EVERY_S if self.quitters else wait):
                key.data(key.fileobj)
            if self.quitters and self.shut_down():
                self.leave()
            if self.retry_at is not None and time.monotonic() >= self.retry_at:
                self.serve_pending()

    # --- the server ---

    def start_server(self, uid):
        self.uid = os.geteuid() if self.is_multiuser else uid
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        script = Path(sys.argv[0]).with_name("nvidia-cuda-mps-server")
        self.note(f"Starting new server for user {self.uid}")
        log = os.open(LOGS / "server.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.server = subprocess.Popen(  # a child that ends is noticed by its channel
            [script], pass_fds=[theirs.fileno(), log],
            user=None if self.uid == os.geteuid() else self.uid,
            env={**os.environ, "STANDIN_CHANNEL": str(theirs.fileno()), "STANDIN_LOG": str(log)})
        os.close(log)
        theirs.close()
        self.channel, self.is_ready = ours, False
        self.server_threads[self.server.pid] = self.threads
        self.server_memory[self.server.pid] = dict(self.memory)
        self.poll.register(ours, selectors.EVENT_READ, self.hear_server)

    def hear_server(self, channel):
        try:
            data = channel.recv(PACKET)
        except ConnectionResetError:
            data = b""
        if data == b"ready":
            self.note(f"NEW SERVER {self.server.pid}: Ready")
            self.is_ready = True
        elif not data:
            self.forget_server()
        self.serve_pending()

    def forget_server(self):
        self.poll.unregister(self.channel)
        self.channel.close()
        self.server.wait()
        self.note(f"Server {self.server.pid} exited with status {self.server.returncode}")
        self.server = self.channel = None
        self.is_ready = False

    def wait_ready(self):
        while self.server and not self.is_ready:
            self.hear_server(self.channel)

    def ask_server(self, command):
        self.wait_ready()
        if not self.server:
            return ""
        self.channel.send(command.encode())
        answer = self.channel.recv(PACKET).decode()
        return "" if answer == "\n" else answer

    def shut_down(self):
        """Whether the server has gone; one with clients stays."""
        if not self.server:
            return True
        count = self.ask_server("shutdown")
        if count:
            self.note(f"Server {self.server.pid} has {count} active worker threads. "
                      "Server will not shutdown.")
            return False
        self.forget_server()
        return True

    # --- clients ---

    def take_client(self, listener):
        sock, _ = listener.accept()
        pid, uid = peer(sock)
        if not sock.recv(PACKET):
            self.note("User did not send valid credentials")
            sock.close()
            return
        exists = self.server and self.is_ready and uid in (self.uid, self.is_multiuser and uid)
        self.note(f"NEW CLIENT {pid} from user {uid}: Server " +
                  ("already exists" if exists else "is not ready, push client to pending list"))
        self.pending.append(sock)
        self.pause = 0.2
        self.serve_pending()

    def refuse(self, uid):
        """A daemon that is not root's starts no server of another user; its own it has ended."""
        self.shut_down()
        for _ in range(TRIES):
            self.note(f"Failed to start server using uid {uid}, error: Operation not permitted")

    def serve_pending(self):
        self.retry_at = None
        while self.pending:
            uid = peer(self.pending[0])[1]
            is_served = self.is_multiuser or uid == self.uid
            if not is_served and uid != os.geteuid() != 0:
                self.refuse(uid)
                self.pending.pop(0).send(b"805")
            elif self.server and is_served:
                if not self.is_ready:
                    return
                sock = self.pending.pop(0)
                socket.send_fds(self.channel, [b"client"], [sock.fileno()])
                sock.close()
            elif self.server and not self.shut_down():
                self.note("Control will try shutting down server "
                          f"{self.server.pid} again in at most {round(self.pause * 1000)}ms")
                self.retry_at = time.monotonic() + self.pause
                self.pause *= 2
                return
            else:
                self.start_server(uid)
                return

    # --- commands ---

    def take_ui(self, listener):
        sock, _ = listener.accept()
        command = sock.recv(PACKET).decode().rstrip("\n")
        self.note(f"NEW UI\nCmd:{command}")
        if command == "quit":
            self.quit(sock)
            return
        word, *rest = command.split() or [""]
        do = getattr(self, "do_" + word, None)
        try:
            answer = do(*rest) if do else f'Unknown command "{word}"\n'
        except TypeError:
            answer = ""
        try:
            sock.send(answer.encode() or b"\n")
        except OSError:
            pass  # it has not waited for the answer
        sock.close()

    def of_server(self, pid):
        """The complaint about a pid that is no server's."""
        if self.server and str(self.server.pid) == pid:
            return ""
        return f"Server {pid} not found\n"

    def do_get_server_list(self):
        return f"{self.server.pid}\n" if self.server else ""

    def do_get_server_status(self, pid=None):
        if pid is None:
            return "A server PID is required\n"
        wrong = self.of_server(pid)
        self.wait_ready()
        return wrong or "ACTIVE\n"

    def do_get_client_list(self, pid="0"):
        return self.of_server(pid) or self.ask_server("clients")

    def do_get_device_client_list(self, pid=None):
        if pid and self.of_server(pid):
            return self.of_server(pid)
        clients = self.ask_server("clients").split() if self.server else []
        return "[0] 00:00.0, NVIDIA H200\n" + "".join(f"{client}.1\n" for client in clients) \
            if self.server else ""

    def do_ps(self):
        if not self.server:
            return "Server not found\n"
        form = "{:<10}{:<10}{:<15}{:<26}{:<15}{:<15}\n"
        rows = form.format("PID", "ID", "SERVER", "DEVICE", "NAMESPACE", "COMMAND")
        for number, client in enumerate(sorted(self.ask_server("clients").split(), key=int), 1):
            name = Path(f"/proc/{client}/cmdline").read_text(encoding="utf-8").split("\0")[0]
            rows += (f"{client:<10}{number:<10}{self.server.pid:<15}{DEVICE:<26}"
                     f"{NAMESPACE:<15}{name}\n")
        return rows

    def do_start_server(self, option="", uid=""):
        if option != "-uid" or not uid.isdigit():
            return "A user id (UID) is required to start a new server\n"
        if self.server and (self.is_multiuser or int(uid) == self.uid):
            return ""
        if self.shut_down():
            self.start_server(int(uid))
        return ""

    def do_terminate_client(self, server, client):
        wrong = self.of_server(server)
        if wrong:
            return f"{wrong}Server {server} not found!\n1\n"
        return self.ask_server(f"terminate {client}")

    def do_shutdown_server(self, pid="0"):
        pid = pid if pid.isdigit() else "0"
        wrong = self.of_server(pid)
        if not wrong:
            self.shut_down()
        return wrong

    def take_percentage(self, text, kept):
        try:
            value = float(text)
        except ValueError:
            value = 0
        if not 0 < value <= 100:
            self.note("Invalid percentage, expected between (0.0, 100.0]")
            return kept
        return value

    def do_set_default_active_thread_percentage(self, text):
        self.threads = self.take_percentage(text, self.threads)
        return f"{self.threads}\n"

    def do_get_default_active_thread_percentage(self):
        return f"{self.threads}\n"

    def do_set_active_thread_percentage(self, pid, text):
        wrong = self.of_server(pid)
        if not wrong:
            self.server_threads[int(pid)] = self.take_percentage(
                text, self.server_threads[int(pid)])
        return wrong or self.do_get_active_thread_percentage(pid)

    def do_get_active_thread_percentage(self, pid):
        return self.of_server(pid) or f"{self.server_threads[int(pid)]}\n"

    def do_set_default_device_pinned_mem_limit(self, device, value):
        self.memory[device] = value
        return ""

    def do_get_default_device_pinned_mem_limit(self, device):
        value = self.memory.get(device, "0")
        return "" if value == "0" else f"{value}\n"

    def do_set_device_pinned_mem_limit(self, pid, device, value):
        wrong = self.of_server(pid)
        if not wrong:
            self.server_memory[int(pid)][device] = value
        return wrong

    def do_get_device_pinned_mem_limit(self, pid, device):
        wrong = self.of_server(pid)
        value = "0" if wrong else self.server_memory[int(pid)].get(device, "0")
        return wrong or ("" if value == "0" else f"{value}\n")

    def do_set_default_client_priority(self, value):
        self.priority = value
        return ""

    def do_get_default_client_priority(self):
        return f"{self.priority}\n"

    # Who asks waits for the clients' end, and once it has given up the daemon lives on. That the
    # daemon ends with its clients while somebody waits is a guess.
    def quit(self, sock):
        if self.shut_down():
            self.leave()
        self.ask_server("close")
        self.quitters.append(sock)
        self.poll.register(sock, selectors.EVENT_READ, self.give_up)

    def give_up(self, sock):
        self.poll.unregister(sock)
        self.quitters.remove(sock)
        sock.close()

    def leave(self):
        self.note("Exit with status 0")
        (PIPE / "log").unlink(missing_ok=True)
        (PIPE / "nvidia-cuda-mps-control.pid").unlink(missing_ok=True)
        os._exit(0)


def become_daemon(is_multiuser):
    """The caller's exit status; the daemon is left behind once it listens."""
    lock = open(PIPE / "control_lock", "a", encoding="utf-8")
    os.chmod(PIPE / "control_lock", 0o666)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("An instance of this daemon is already running")
        return 1
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        return 0 if os.read(reader, 1) else 1
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open("/dev/null", os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    pid_file = PIPE / "nvidia-cuda-mps-control.pid"
    pid_file.write_text(str(os.getpid()), encoding="utf-8")
    pid_file.chmod(0o666)
    (LOGS / "server.log").touch()
    daemon = Daemon(is_multiuser)
    daemon.open()
    os.write(writer, b"r")
    os.close(writer)
    daemon.run()
    return 0


def ask(command):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        try:
            sock.connect(str(PIPE / "control_privileged"))
        except OSError:
            sys.exit("Cannot find MPS control daemon process")
        sock.send(command.encode() or b"\n")
        answer = sock.recv(PACKET).decode()
        print("" if answer == "\n" else answer, end="")


def main(arguments):
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    if Path(sys.argv[0]).name == "nvidia-cuda-mps-server":
        Server(socket.socket(fileno=int(os.environ["STANDIN_CHANNEL"]))).run()
    if set(arguments) & {"-v", "--version"}:
        print(f"CUDA MPS Control for Linux/Unix/QNX. Binary version: 13000\n{COPYRIGHT}\n")
        return 0
    if set(arguments) & {"-d", "--daemon"}:
        return become_daemon(MULTIUSER in arguments)
    for line in sys.stdin:
        ask(line.rstrip("\n"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
