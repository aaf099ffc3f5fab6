"""Either side treats the other as hostile: programs that meet a false broker, brokers that meet a
false program."""
import contextlib
import os
import random
import socket
import threading
import time

import harness
from broker import (BrokerTest, HELLO, JOIN_LIMIT_US, MAGIC, MESSAGE, REFUSED, RELEASE,
                    STATUS, STOP, TEXT, VERSION, WELCOME, message, others_of)

REGION_SIZE = 128 + 64 * 128
PAGE_SIZE = 256 + 254 * 128
REGION_MAGIC, PAGE_MAGIC = 0x31524548, 0x31504548
F_ADD_SEALS, SEAL, SHRINK, GROW = 1033, 1, 2, 4


def memfd(size, magic=0, version=1, seals=SEAL | SHRINK | GROW, stated=None):
    """A segment as the broker would make one, but for what the test has in mind."""
    import fcntl
    fd = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    for at, value in enumerate((magic, version, size if stated is None else stated, 1)):
        os.pwrite(fd, value.to_bytes(4, "little"), 4 * at)
    fcntl.fcntl(fd, F_ADD_SEALS, seals)
    return fd


def region(**more):
    return memfd(**{"size": REGION_SIZE, "magic": REGION_MAGIC, **more})


def page(**more):
    return memfd(**{"size": PAGE_SIZE, "magic": PAGE_MAGIC, **more})


class FalseBroker(BrokerTest):
    @contextlib.contextmanager
    def serving(self, answer):
        """A listener that calls answer(connection) for each program."""
        self.own_socket(self.socket)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(str(self.socket))
        listener.listen(16)
        stop = threading.Event()

        def serve():
            while not stop.is_set():
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection, contextlib.suppress(OSError):
                    answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            listener.close()

    def expect(self, answer, wanted_rc=None):
        """The program goes on alone, in time, with nothing left open and its page at hand."""
        alone = self.probe(env={**self.env, "HEARTH_SOCKET": str(self.dir / "none")})
        with self.serving(answer):
            figures = self.assert_within_limit(lambda: self.probe("record", "300"))
        self.assertNotEqual(figures[0], 0)
        if wanted_rc is not None:
            self.assertEqual(figures[0], wanted_rc)
        self.assertEqual(figures[2:], alone[2:])

    def welcome_with(self, *descriptors, packet=None):
        """Answers as a broker does, with these descriptors."""
        packet = message(WELCOME, size=REGION_SIZE) if packet is None else packet

        def answer(connection):
            connection.recv(1024)
            opened = [make() for make in descriptors]
            socket.send_fds(connection, [packet], opened)
            for fd in opened:
                os.close(fd)
            time.sleep(0.01)
        return answer

    def test_what_a_true_broker_sends_is_taken(self):
        with self.serving(self.welcome_with(region, page)):
            self.join("record", "300")

    def test_silence(self):
        self.expect(lambda connection: time.sleep(0.3), -110)

    def test_silence_before_accepting(self):
        self.own_socket(self.socket)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(str(self.socket))
            listener.listen(0)
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as filler:
                filler.connect(str(self.socket))
                figures = self.assert_within_limit(self.probe)
        self.assertEqual(figures[0], -110)

    def test_hanging_up(self):
        self.expect(lambda connection: None)
        self.expect(lambda connection: connection.recv(1024))

    def test_random_bytes_of_any_length(self):
        lengths = random.Random(1)

        def answer(connection):
            connection.recv(1024)
            connection.send(os.urandom(lengths.randrange(1, 4096)))
            connection.send(os.urandom(MESSAGE.size))
        for _ in range(20):
            self.expect(answer, -71)

    def test_drops_that_never_make_a_message(self):
        def answer(connection):
            whole = message(WELCOME, size=REGION_SIZE)
            connection.recv(1024)
            for at in range(0, len(whole), 8):
                connection.send(whole[at:at + 8])
        self.expect(answer, -71)

    def test_another_version(self):
        for wrong in ({"version": VERSION + 1}, {"magic": MAGIC + 1}):
            self.expect(self.welcome_with(region, page,
                                          packet=message(WELCOME, size=REGION_SIZE, **wrong)),
                        -71)

    def test_a_refusal(self):
        self.expect(self.welcome_with(packet=message(REFUSED, code=11)), -11)
        for code in (0, -5):
            self.expect(self.welcome_with(packet=message(REFUSED, code=code)), -71)
        self.expect(self.welcome_with(region, page, packet=message(REFUSED, code=11)), -11)

    def test_an_answer_to_another_question(self):
        for kind in (HELLO, TEXT, RELEASE):
            self.expect(self.welcome_with(region, page, packet=message(kind, size=REGION_SIZE)),
                        -71)

    def test_a_region_of_another_size(self):
        for size in (0, 1, 4096, REGION_SIZE - 1, REGION_SIZE + 1, 1 << 20):
            self.expect(self.welcome_with(lambda size=size: region(size=size), page), -71)
            self.expect(self.welcome_with(region, lambda size=size: page(size=size)), -71)
        self.expect(self.welcome_with(region, page, packet=message(WELCOME, size=1)), -71)

    def test_headers_that_are_none(self):
        for wrong in ({"magic": 7}, {"version": 2}, {"stated": 7}):
            self.expect(self.welcome_with(lambda wrong=wrong: region(**wrong), page), -71)
            self.expect(self.welcome_with(region, lambda wrong=wrong: page(**wrong)), -71)
        self.expect(self.welcome_with(page, region), -71)

    def test_segments_that_could_still_shrink(self):
        for seals in (0, GROW, SHRINK):
            self.expect(self.welcome_with(lambda seals=seals: region(seals=seals), page), -71)
            self.expect(self.welcome_with(region, lambda seals=seals: page(seals=seals)), -71)

    def test_other_descriptors_or_other_numbers_of_them(self):
        def file():
            return os.open("/proc/self/exe", os.O_RDONLY)

        def pipe():
            ends = os.pipe()
            os.close(ends[1])
            return ends[0]
        for descriptors in ((), (region,), (region, page, page), [page] * 20, (file, page),
                            (region, file), (pipe, pipe)):
            self.expect(self.welcome_with(*descriptors), -71)

    def test_a_page_that_cannot_be_written_to(self):
        import fcntl

        def sealed():
            fd = page(seals=0)
            fcntl.fcntl(fd, F_ADD_SEALS, SEAL | SHRINK | GROW | 8)
            return fd

        def read_only():
            return os.open(f"/proc/self/fd/{page()}", os.O_RDONLY)
        self.expect(self.welcome_with(region, sealed))
        self.expect(self.welcome_with(region, read_only))

    def test_a_region_of_random_bytes_behind_a_true_header(self):
        def noisy(make, size):
            fd = make()
            os.pwrite(fd, os.urandom(size - 64), 64)
            return fd
        for _ in range(10):
            with self.serving(self.welcome_with(lambda: noisy(region, REGION_SIZE),
                                                lambda: noisy(page, PAGE_SIZE))):
                state = self.join("record", "300")[3]
            self.assertIn(state, range(5))


class FalseProgram(BrokerTest):
    def setUp(self):
        super().setUp()
        self.broker = self.start("--retain=none")

    def still_serves(self, clients=0):
        self.join()
        self.assertIsNone(self.broker.poll())
        self.until(lambda: self.status()["client_count"] == clients, "slots stay taken")

    def answer_to(self, packet, descriptors=()):
        with self.connect() as end:
            socket.send_fds(end, [packet], list(descriptors))
            with contextlib.suppress(ConnectionResetError):
                return end.recv(1024)
        return b""

    def test_every_length_and_random_bytes(self):
        hello = message(HELLO)
        for size in range(1, 2 * len(hello), 3):
            if size != len(hello):
                self.assertEqual(self.answer_to((hello * 2)[:size]), b"")
        for _ in range(300):
            self.assertEqual(self.answer_to(os.urandom(len(hello))), b"")
        self.still_serves()

    def test_every_type(self):
        for kind in list(range(0, 12)) + [1 << 31]:
            if kind == STOP:
                continue
            packet = self.answer_to(message(kind))
            if packet:
                self.assertEqual(len(packet), MESSAGE.size)
        self.still_serves(clients=1)  # this very process has said HELLO

    def test_names_of_any_bytes(self):
        client = self.start_client("record", "1")
        noise = b"\xff\xfe\"\\\n\x1b[2J"
        with self.connect() as end:
            end.send(message(HELLO, program=noise.ljust(31, b"\x80")))
            end.recv(1024)
            names = {client["program"] for client in self.status()["clients"]}
        self.assertEqual(names, {"join_probe", "\ufffd\ufffd\"\\??[2J" + 22 * "\ufffd"})
        client.kill()

    def test_descriptors_it_sends_are_closed(self):
        def held():
            return others_of(self.broker.pid)
        self.still_serves()
        before = held()
        for count in (1, 2, 4, 100):
            for packet in (message(HELLO), message(STATUS), b"x"):
                self.assertEqual(self.answer_to(packet, [0] * count), b"")
        self.still_serves()
        self.until(lambda: held() <= before, "descriptors stay open")

    def test_silent_connections_are_ended_and_keep_nobody_out(self):
        held = [self.connect() for _ in range(200)]
        # On a machine with no time to spare, one that is not served in time goes alone.
        self.until(lambda: self.assert_within_limit(self.probe)[0] == 0, "nobody else is served")
        started = time.monotonic()
        for end in held:
            with contextlib.suppress(ConnectionResetError):
                self.assertEqual(end.recv(1), b"")
            end.close()
        self.assertLess(time.monotonic() - started, 5)
        self.still_serves()

    def test_more_connections_than_allowed(self):
        held = [self.connect() for _ in range(400)]
        for end in held:
            end.close()
        # It may not yet have seen that they are closed.
        self.until(lambda: self.probe()[0] == 0, "nobody else is served")
        self.still_serves()

    def test_requests_whose_answers_nobody_reads(self):
        for _ in range(300):
            with self.connect() as end:
                for _ in range(5):
                    with contextlib.suppress(OSError):
                        end.send(message(STATUS))
        self.still_serves()

    def test_its_region_cannot_be_written_to(self):
        script = ("import mmap, os, socket, sys; sys.path.insert(0, sys.argv[1])\n"
                  "import broker\n"
                  "end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
                  "end.connect(sys.argv[2])\n"
                  "end.send(broker.message(broker.HELLO))\n"
                  "_, ancillary, _, _ = end.recvmsg(1024, 256)\n"
                  "region, page = broker.descriptors_of(ancillary)\n"
                  "again = os.open(f'/proc/self/fd/{region}', os.O_RDWR)\n"
                  "for fd in (region, again):\n"
                  "    for attempt in (lambda: os.pwrite(fd, b'x', 0),\n"
                  "                    lambda: mmap.mmap(fd, 4096, prot=mmap.PROT_WRITE),\n"
                  "                    lambda: os.ftruncate(fd, 1)):\n"
                  "        try: attempt(); print('written')\n"
                  "        except OSError: pass\n"
                  "try: os.ftruncate(page, 1); print('cut')\n"
                  "except OSError: pass\n")
        done = self.run_program("python3", "-c", script, os.path.dirname(__file__), self.socket)
        self.assertEqual((done.returncode, done.stdout), (0, b""), done.stderr)

    def test_a_stopped_broker_costs_no_more_than_the_limit(self):
        self.broker.send_signal(19)
        figures = self.assert_within_limit(self.probe)
        self.broker.send_signal(18)
        self.assertEqual(figures[0], -110)
        self.assertGreater(figures[1], JOIN_LIMIT_US // 2)
        self.still_serves()


if __name__ == "__main__":
    harness.main()
