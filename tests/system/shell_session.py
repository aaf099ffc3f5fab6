"""An interactive shell at a real terminal, for tests: what is typed, and all that is shown."""
import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

import harness

PROMPT = "PROMPT> "
ENVIRONMENT = {"TERM": "dumb", "HISTFILE": "/dev/null"}
ROWS, COLUMNS = 40, 300  # no line that is typed is broken


class Session:
    """bash, as the leader of a terminal's session. `shown` is everything up to now, as text,
    lines ended by a newline alone."""

    def __init__(self, env, folder):
        self.raw, self.seen = b"", 0
        self.pid, self.fd = pty.fork()
        if not self.pid:
            try:
                os.chdir(folder)
                os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], env)
            finally:
                os._exit(127)
        self.resize(ROWS, COLUMNS)
        # No variable of the environment, which a shell that runs a script would unset.
        self.type(f"PS1='{PROMPT[:3]}''{PROMPT[3:]}'\n")
        self.wait(PROMPT)

    @property
    def shown(self):
        return self.raw.decode("utf-8", "replace").replace("\r\n", "\n")

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def read(self, limit_s):
        """False at the end, or where nothing came in time."""
        if not select.select([self.fd], [], [], max(0, limit_s))[0]:
            return False
        try:
            part = os.read(self.fd, 65536)
        except OSError:
            return False
        self.raw += part
        return bool(part)

    def wait(self, text, limit_s=harness.DEADLINE_S):
        """Until it is shown after what was waited for before; returns what is in between."""
        end = time.monotonic() + limit_s
        while text not in self.shown[self.seen:]:
            if not self.read(end - time.monotonic()):
                raise AssertionError(f"not shown: {text!r} after {self.shown!r}")
        at = self.shown.index(text, self.seen)
        between, self.seen = self.shown[self.seen:at], at + len(text)
        return between

    def type(self, text):
        os.write(self.fd, text.encode())

    def command(self, line):
        """What a command shows until the next prompt."""
        self.type(line + "\n")
        self.wait(line + "\n")
        return self.wait(PROMPT)

    def hang_up(self):
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1

    def end(self):
        self.hang_up()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
