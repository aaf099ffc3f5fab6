"""The keeper: warm, let go, restarted, and never where it would hinder others."""
import os
import shutil
import signal
import time

import harness
from broker import (BrokerTest, DONE, DRIVER, FILE, PROBE, REFUSED, RELEASE, RESUME, descriptors_of,
                    message)

WARM, RELEASED, FAILED, OFF = 2, 3, 4, 0


def opens_devices(pid):
    """Whether a process has a device of the machine open."""
    try:
        names = os.listdir(f"/proc/{pid}/fd")
        return any("nvidia" in os.readlink(f"/proc/{pid}/fd/{name}") for name in names)
    except (FileNotFoundError, PermissionError):
        return False  # it is gone, or about to be: a dead process is root's until it is waited for


class Keeper(BrokerTest):
    def pid(self):
        return self.status()["keeper"]["pid"]

    def test_it_is_warm_and_says_what_it_holds(self):
        self.start(env={**self.env, "SIMCUDA_DEVICES": "2"})
        self.until_keeper("warm")
        status = self.status()
        keeper = status["keeper"]
        self.assertEqual((keeper["retain"], keeper["rc"], keeper["driver_version"]),
                         ("init", 0, 13000))
        self.assertGreater(keeper["init_us"], 0)
        self.assertGreater(keeper["rss_bytes"], 0)
        self.assertEqual(keeper["driver"], str(harness.SIM))
        self.assertEqual([device["ordinal"] for device in status["devices"]], [0, 1])
        for device in status["devices"]:
            self.assertRegex(device["uuid"], r"^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
            self.assertEqual((device["keeper_has_context"], device["keeper_bytes_estimate"]),
                             (False, 4 << 20))
        self.assertTrue(opens_devices(keeper["pid"]))
        self.assertFalse(opens_devices(status["pid"]))
        self.assertEqual(self.probe()[3], WARM)

    def test_contexts_where_asked_for_and_where_they_hinder_nobody(self):
        self.start("--retain=context",
                   env={**self.env, "SIMCUDA_DEVICES": "3",
                        "SIMCUDA_COMPUTE_MODE": "1:exclusive,2:prohibited"})
        self.until_keeper("warm")
        self.assertEqual([device["keeper_has_context"] for device in self.status()["devices"]],
                         [True, False, False])

    def test_none(self):
        self.start("--retain=none")
        self.assertEqual(self.keeper_state(), "off")
        self.assertEqual(self.pid(), 0)
        self.assertEqual(self.probe()[3], OFF)

    def test_without_a_driver_it_is_off(self):
        self.start(env={**self.env, "HEARTH_DRIVER": str(self.dir / "none")})
        self.until_keeper("off")
        self.assertEqual(self.status()["keeper"]["reason"], "there is no driver")

    def test_released_and_resumed(self):
        self.start()
        self.until_keeper("warm")
        keeper = self.pid()
        self.assertEqual(self.ask(RELEASE, code=1)[0], DONE)
        # DONE means that nothing has a device open any more.
        self.assertTrue(harness.gone(keeper))
        status = self.status()
        self.assertEqual((status["keeper"]["state"], status["keeper"]["pid"]), ("released", 0))
        self.assertIsNone(status["keeper"]["starts_in_s"])
        self.assertEqual(status["devices"][0]["keeper_bytes_estimate"], 0)
        self.assertEqual(self.probe()[3], RELEASED)
        self.assertEqual(self.ask(RESUME)[0], DONE)
        self.until_keeper("warm")

    def test_released_for_a_while(self):
        self.start()
        self.until_keeper("warm")
        self.assertEqual(self.ask(RELEASE, size=1)[0], DONE)
        self.assertEqual(self.keeper_state(), "released")
        self.until_keeper("warm")

    def test_released_while_starting(self):
        self.start(env={**self.env, "SIMCUDA_SPEED": "20"})
        self.until_keeper("starting")
        self.assertEqual(self.ask(RELEASE, code=1)[0], DONE)
        self.assertEqual(self.keeper_state(), "released")

    def test_a_release_until_resumed_outlasts_the_idle_time(self):
        broker = self.start("--idle=1")
        self.until_keeper("warm")
        self.ask(RELEASE, code=1)
        time.sleep(1.5)
        self.assertIsNone(broker.poll())
        self.ask(RESUME)
        self.assertEqual(broker.wait(20), 0)

    def test_killed_it_comes_back(self):
        self.start()
        self.until_keeper("warm")
        keeper = self.pid()
        os.kill(keeper, signal.SIGKILL)
        self.until(lambda: self.keeper_state() == "warm" and self.pid() != keeper,
                   "it does not come back")

    def test_a_failing_driver_is_tried_again_ever_later(self):
        self.start(env={**self.env, "SIMCUDA_FAIL": "cuInit:999"})
        self.until_keeper("failed")
        self.assertEqual(self.status()["keeper"]["rc"], 999)
        waits = set()
        end = time.monotonic() + 5
        while time.monotonic() < end:
            keeper = self.status()["keeper"]
            if keeper["state"] == "failed":
                waits.add(keeper["starts_in_s"])
            time.sleep(0.05)
        self.assertIn(3, waits)  # 1, 2, 4 s: whole seconds left
        self.assertEqual(self.probe()[3], FAILED)

    def test_a_lost_device_ends_it(self):
        self.start("--retain=context",
                   env={**self.env, "SIMCUDA_FAIL": "cuCtxSynchronize:46@2"})
        self.until_keeper("warm")
        first = self.pid()
        self.until_keeper("failed", limit_s=20)
        self.assertEqual(self.status()["keeper"]["rc"], 46)
        self.until(lambda: not opens_devices(first), "it stays")
        self.until_keeper("warm")

    def test_a_replaced_driver_is_let_go_and_opened_anew(self):
        driver = self.dir / "libcuda.so.1"
        shutil.copy(harness.SIM, driver)
        self.start(env={**self.env, "HEARTH_DRIVER": str(driver)})
        self.until_keeper("warm")
        shutil.copy(harness.SIM, self.dir / "new")
        (self.dir / "new").rename(driver)
        self.until_keeper("released")
        self.assertIn("replaced", self.status()["keeper"]["reason"])
        self.until(lambda: self.pid() == 0, "the keeper stays")
        self.until_keeper("warm", limit_s=20)

    @harness.plain_only
    def test_the_brokers_driver_is_not_preloaded(self):
        env = self.preloaded()
        if self.run_program(harness.HEARTHD, "--version", env=env).returncode:
            self.skipTest("nothing can be preloaded into a sanitizer's build")
        self.start(env=env)
        self.until_keeper("warm")
        with open(f"/proc/{self.pid()}/maps", encoding="utf-8") as maps:
            self.assertNotIn("libhearth", maps.read())


class DriverFile(BrokerTest):
    def build_id(self, path):
        """The build-id of an ELF file, by its section's name."""
        data = path.read_bytes()
        at = data.index(b"GNU\0", data.index(b"\x03\0\0\0GNU\0") - 8)
        size = int.from_bytes(data[at - 8:at - 4], "little")
        return data[at + 4:at + 4 + size]

    def get(self, build_id):
        with self.connect() as end:
            end.send(message(DRIVER, build_id=build_id))
            packet, ancillary, _, _ = end.recvmsg(1024, 256)
        kind = int.from_bytes(packet[8:12], "little")
        return kind, int.from_bytes(packet[16:24], "little"), descriptors_of(ancillary)

    def test_one_sealed_copy_for_all(self):
        self.start()
        self.until_keeper("warm")
        inodes = set()
        for _ in range(3):
            kind, size, descriptors = self.get(self.build_id(harness.SIM))
            self.assertEqual((kind, size), (FILE, harness.SIM.stat().st_size))
            with os.fdopen(descriptors[0], "rb") as copy:
                inodes.add(os.fstat(copy.fileno()).st_ino)
                self.assertEqual(copy.read(), harness.SIM.read_bytes())
                with self.assertRaises(OSError):
                    os.pwrite(copy.fileno(), b"x", 0)
        self.assertEqual(len(inodes), 1)

    def test_a_program_fetches_it(self):
        self.start()
        self.until_keeper("warm")
        build_id = self.build_id(harness.SIM).hex()
        done = self.run_program(PROBE, "fetch", build_id, "fetch", build_id, "fetch", "77")
        size = harness.SIM.stat().st_size
        self.assertEqual(done.stdout.decode().splitlines()[1:], [f"0 {size}"] * 2 + ["-2 0"])

    def test_another_build_is_refused(self):
        self.start()
        self.until_keeper("warm")
        self.assertEqual(self.get(b"x" * 20)[0], REFUSED)
        self.assertEqual(self.get(b"")[0], REFUSED)

    def test_it_can_be_loaded(self):
        script = ("import ctypes, sys\n"
                  "print(ctypes.CDLL(sys.argv[1]).cuDriverGetVersion(None))")
        if self.run_program("python3", "-c", script, harness.SIM).returncode:
            self.skipTest("a sanitizer's build cannot be loaded into python")
        self.start()
        self.until_keeper("warm")
        _, _, descriptors = self.get(self.build_id(harness.SIM))
        copy = f"/proc/self/fd/{descriptors[0]}"
        done = self.run_program("python3", "-c", script, copy, pass_fds=descriptors)
        self.assertEqual((done.returncode, done.stdout), (0, b"1\n"), done.stderr)
        os.close(descriptors[0])


if __name__ == "__main__":
    harness.main()
