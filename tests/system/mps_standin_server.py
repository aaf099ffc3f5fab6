"""The server of the stand-in for MPS (mps_standin.py), and what both of its programs use. Standard
library only."""
import os
import selectors
import socket
import struct
import sys
import time
from pathlib import Path

LOGS = Path(os.environ.get("CUDA_MPS_LOG_DIRECTORY", "/var/log/nvidia-mps"))
PACKET = 65536
MOST_CLIENTS = 48  # with a context


def note(name, who, text):
    stamp = time.strftime("%Y-%m-%d %H:%M:%S.000")
    lines = "".join(f"[{stamp} {who} {os.getpid():>5}] {line}\n" for line in text.splitlines())
    # A server of another user has its log from the daemon.
    log = os.environ.get("STANDIN_LOG")
    fd = int(log) if log else os.open(LOGS / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(fd, lines.encode())
    if not log:
        os.close(fd)


def peer(sock):
    """(pid, uid) of who is at the other end."""
    pid, uid, _ = struct.unpack("3i", sock.getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return pid, uid


class Server:
    """The server's own process: whoever it gets from the daemon is a client until it leaves."""

    def __init__(self, control):
        self.control = control
        self.clients = {}  # socket: [pid, contexts]
        self.is_closing = False  # no client gets its first context any more
        self.poll = selectors.DefaultSelector()
        self.poll.register(control, selectors.EVENT_READ, self.hear_control)

    def run(self):
        note("server.log", "Server", "Server has started")
        self.control.send(b"ready")
        while True:
            for key, _ in self.poll.select():
                key.data(key.fileobj)

    def hear_control(self, control):
        data, fds, _, _ = socket.recv_fds(control, PACKET, 1)
        if not data:  # the daemon has gone
            sys.exit(0)
        if fds:
            sock = socket.socket(fileno=fds[0])
            self.clients[sock] = [peer(sock)[0], 0]
            self.poll.register(sock, selectors.EVENT_READ, self.hear_client)
            note("server.log", "Server",
                 f"Client {{PID: {peer(sock)[0]}, Context ID: 0}} connected")
            sock.send(b"attached")
            return
        word, *rest = data.decode().split()
        control.send(getattr(self, "do_" + word)(*rest).encode() or b"\n")

    def hear_client(self, sock):
        data = sock.recv(PACKET)
        if data == b"context":
            self.take_context(sock)
            return
        if data:
            self.clients[sock][1] -= 1
            return
        note("server.log", "Server", f"Client process {self.clients[sock][0]} disconnected")
        del self.clients[sock]
        self.poll.unregister(sock)
        sock.close()

    def take_context(self, sock):
        if not self.clients[sock][1] and self.is_closing:
            sock.send(b"805")
        elif not self.clients[sock][1] and len(self.with_context()) >= MOST_CLIENTS:
            note("server.log", "Server", "Failed to accept new client. Maximum number of clients "
                 f"({MOST_CLIENTS}) reached.")
            sock.send(b"808")
        else:
            self.clients[sock][1] += 1
            sock.send(b"made")

    def with_context(self):
        return [pid for pid, contexts in reversed(list(self.clients.values())) if contexts > 0]

    def do_clients(self):
        return "".join(f"{pid}\n" for pid in self.with_context())

    def do_terminate(self, pid):
        for sock, (client, contexts) in self.clients.items():
            if client == int(pid) and contexts > 0:
                self.clients[sock][1] = 0
                sock.send(b"terminated")
                return "0\n"
        return f"Invalid process {pid}!\n1\n"

    def do_close(self):
        self.is_closing = True
        return ""

    def do_shutdown(self):
        if self.clients:
            return str(len(self.clients))
        note("server.log", "Server", "Exiting")
        sys.exit(0)
