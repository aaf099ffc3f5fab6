"""A broker for tests: started in the foreground, asked in its own wire format."""
import array
import errno
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import time

import harness

MAGIC, VERSION = 0x57545248, 1
MESSAGE = struct.Struct("<IIIiQQ32s64s32sI5I")
(HELLO, WELCOME, REFUSED, STATUS, TEXT, RELEASE, RESUME, STOP, DONE, DRIVER,
 FILE) = range(1, 12)
PROBE = harness.PROGRAMS / "join_probe"
JOIN_LIMIT_US = 50000
SLOT_LIMIT_S = 0.1
# The limits hold for an idle machine; a test machine may take the processor away at the wrong
# moment. What is broken is so each time.
ATTEMPTS = 5


def message(kind, code=0, size=0, program=b"", build_id=b"", magic=MAGIC, version=VERSION):
    return MESSAGE.pack(magic, version, kind, code, size, 0, program, b"", build_id, 0, *[0] * 5)


def descriptors_of(ancillary):
    found = array.array("i")
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            found.frombytes(data[:len(data) - len(data) % found.itemsize])
    return list(found)


def descriptors(pid):
    """What a process has open: {number: target}."""
    found = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            found[int(name)] = os.readlink(f"/proc/{pid}/fd/{name}")
        except FileNotFoundError:
            pass
    return found


def pages_of(pid):
    """How many programs' pages a broker holds: its clients', and those made ahead."""
    return sum("hearth-page" in target for target in descriptors(pid).values())


def others_of(pid):
    """How many other descriptors it has: pages are made ahead as time allows."""
    return sum("hearth-page" not in target for target in descriptors(pid).values())


def cpu_seconds(pid):
    """What a process has used, all its threads together."""
    spent = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
            spent += int(file.read().split()[0])
    return spent / 1e9


class BrokerTest(harness.SystemTest):
    def setUp(self):
        super().setUp()
        self.env.pop("LD_PRELOAD", None)  # a sanitizer's runtime: what runs here is linked to it
        self.socket = self.dir / "run/hearth/socket"
        self.history = self.dir / "state/hearth/runs.jsonl"
        self.brokers = []
        self.addCleanup(self.end_brokers)

    def end_brokers(self):
        for broker in self.brokers:
            if broker.poll() is None:
                broker.kill()
            broker.wait()

    def start(self, *options, env=None, wait=True, **more):
        """hearthd in the foreground, as a child; returns when it serves."""
        broker = subprocess.Popen([harness.HEARTHD, "--foreground", *options],
                                  env=env or self.env, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, **more)
        self.brokers.append(broker)
        if wait:
            self.until(self.serves, f"hearthd ended with {broker.poll()}, or never served")
        return broker

    def until(self, condition, complaint, limit_s=10):
        """Polls until it is true; returns the value."""
        end = time.monotonic() + limit_s
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > end:
                self.fail(complaint)
            time.sleep(0.002)

    def serves(self):
        try:
            self.connect().close()
            return True
        except OSError:
            return False

    def connect(self):
        end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            end.settimeout(10)
            end.connect(str(self.socket))
        except OSError:
            end.close()
            raise
        return end

    def ask(self, *words, **more):
        """One request; returns (type, code, size, descriptors)."""
        with self.connect() as end:
            end.send(message(*words, **more))
            packet, ancillary, _, _ = end.recvmsg(1024, 256)
        self.assertEqual(len(packet), MESSAGE.size)
        fields = MESSAGE.unpack(packet)
        return fields[2], fields[3], fields[4], descriptors_of(ancillary)

    def status(self):
        kind, code, size, descriptors = self.ask(STATUS)
        self.assertEqual(kind, TEXT, f"refused with {code}")
        with os.fdopen(descriptors[0], "rb") as text:
            return json.loads(text.read(size))

    def keeper_state(self):
        return self.status()["keeper"]["state"]

    def until_keeper(self, *states, limit_s=10):
        return self.until(lambda: self.keeper_state() in states, f"keeper is not {states}",
                          limit_s)

    def probe(self, *commands, env=None, **options):
        """join_probe to its end: (rc, microseconds, slot, keeper's state, descriptors)."""
        done = self.run_program(PROBE, *commands, env=env, **options)
        self.assertIn(done.returncode, (0, -signal.SIGKILL), done.stderr)
        self.assertEqual(done.stderr, b"")
        return [int(word) for word in done.stdout.split()[:5]]

    def join(self, *commands, **options):
        """A probe that joins; on a machine so busy that the broker is late, it tries again."""
        for _ in range(ATTEMPTS):
            figures = self.probe(*commands, **options)
            if figures[0] != -errno.ETIMEDOUT:
                break
        self.assertEqual(figures[0], 0)
        return figures

    def start_client(self, *commands, env=None):
        """join_probe that stays until its stdin ends; returns when it has joined."""
        for _ in range(ATTEMPTS):
            client = subprocess.Popen([PROBE, *commands, "wait"], env=env or self.env,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.addCleanup(client.stdout.close)
            self.addCleanup(client.wait)
            self.addCleanup(client.stdin.close)
            client.joined = [int(word) for word in client.stdout.readline().split()]
            if client.joined[0] != -errno.ETIMEDOUT:
                break
        return client

    def runs(self):
        """The history's runs, damaged lines passed over."""
        found = []
        if not self.history.exists():
            return found
        for line in self.history.read_bytes().split(b"\n"):
            try:
                run = json.loads(line)
            except ValueError:
                continue
            found.append(run)
        return found

    def until_runs(self, count):
        return self.until(lambda: len(self.runs()) >= count and self.runs(),
                          f"fewer than {count} runs in the history")

    def assert_within_limit(self, joining):
        """`joining` returns a probe's figures; it must end in time."""
        for attempt in range(ATTEMPTS):
            figures = joining()
            if figures[1] <= JOIN_LIMIT_US:
                return figures
        self.fail(f"joining took {figures[1]} us, {ATTEMPTS} times too long")

    def own_socket(self, path):
        shutil.rmtree(path.parent, ignore_errors=True)
        path.parent.mkdir(mode=0o700)
