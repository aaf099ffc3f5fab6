"""The environment that the driver reads, changed by the program while the driver has been
initialised ahead: the same devices and the same codes as in the plain run."""
from harness import main
from speculation import READY, STEPS, SpeculationTest

UUID = "GPU-9e3779b1-005c-4dbb-8d15-73696d637564"
UUID_OF_1 = "GPU-3c6ef362-015c-4d77-8d15-73696d637564"
VISIBLE = ["", "0", "1", "-1", "0,1", "1,0", "0,0", "0,-1", " 1", "0 , 1", "7", "0,7", "abc",
           UUID, UUID_OF_1, UUID[:12], f"{UUID_OF_1},{UUID}", f"{UUID},{UUID}"]
AFTERWARDS = ("init", "devices", "retain=0", "state=0", "work", "init")


class Changed(SpeculationTest):
    """Two GPUs; the program is known to take what its launcher's rank says."""
    DEVICES = "2"
    LEARNED = ("sleep=40", "lookup", "init", "retain=0")

    def setUp(self):
        self.env_of_rank = {"LOCAL_RANK": "0"}
        super().setUp()
        self.env.update(self.env_of_rank)

    def steps(self, *steps, changes=True, **env):
        done = self.compare_steps(*steps, **env)
        self.assert_speculated(done, context=False)
        self.assertIn("squash: " if changes else "context on device", done.messages)
        return done

    def test_the_uuids_here_are_the_machines(self):
        done = self.plain(STEPS, "init", "devices")
        for i, uuid in enumerate((UUID, UUID_OF_1)):
            self.assertIn(f"device {i}: 0 {uuid[4:].replace('-', '')}", done.stdout.decode())

    def test_nothing_changed(self):
        done = self.steps(READY, *AFTERWARDS, changes=False)
        self.assertEqual(done.how["cuInit"], "speculated")
        self.assertEqual(done.how["cuDevicePrimaryCtxRetain"], "speculated")

    def test_visible_devices_set_after_the_start(self):
        for value in VISIBLE:
            with self.subTest(value):
                done = self.steps(READY, f"env=CUDA_VISIBLE_DEVICES={value}", *AFTERWARDS)
                self.assertIn("CUDA_VISIBLE_DEVICES changed", done.messages)

    def test_visible_devices_set_after_the_lookup(self):
        for value in VISIBLE:
            with self.subTest(value):
                self.steps(READY, "lookup", f"env=CUDA_VISIBLE_DEVICES={value}", *AFTERWARDS)

    def test_visible_devices_set_before_the_start(self):
        for value in VISIBLE:
            with self.subTest(value):
                done = self.compare_steps(READY, *AFTERWARDS, CUDA_VISIBLE_DEVICES=value)
                self.assertNotIn("squash: ", done.messages)

    def test_visible_devices_unset_or_replaced(self):
        for steps in (("unenv=CUDA_VISIBLE_DEVICES",),
                      ("env=CUDA_VISIBLE_DEVICES=0",),
                      ("env=CUDA_VISIBLE_DEVICES=",)):
            with self.subTest(steps):
                self.steps(READY, *steps, *AFTERWARDS, CUDA_VISIBLE_DEVICES="1")

    def test_none_visible_at_the_start_and_some_later(self):
        done = self.compare_steps(READY, "env=CUDA_VISIBLE_DEVICES=1", *AFTERWARDS,
                                  CUDA_VISIBLE_DEVICES="")
        self.assertIn("speculation: cuInit 100", done.messages)

    def test_set_and_set_back_is_no_change(self):
        self.steps(READY, "env=CUDA_VISIBLE_DEVICES=1", "unenv=CUDA_VISIBLE_DEVICES", *AFTERWARDS,
                   changes=False)

    def test_while_it_is_inside_cuInit_or_the_retain(self):
        for wait in (10, 30, 60):
            for value in ("1", "", UUID_OF_1):
                with self.subTest(f"{value} after {wait} ms"):
                    done = self.compare_steps(
                        f"sleep={wait}", f"env=CUDA_VISIBLE_DEVICES={value}", *AFTERWARDS,
                        SIMCUDA_SPEED="0.25")
                    if wait > 10:  # on a busy machine the program may be first
                        self.assertIn("squash: ", done.messages)

    def test_other_variables_before_cuInit(self):
        for name, value in (("CUDA_DEVICE_ORDER", "PCI_BUS_ID"), ("CUDA_MODULE_LOADING", "EAGER"),
                            ("CUDA_DEVICE_MAX_CONNECTIONS", "1"), ("CUDA_CACHE_DISABLE", "1"),
                            ("CUDA_CACHE_PATH", "/nowhere"), ("HOME", "/nowhere"),
                            ("CUDA_MPS_PIPE_DIRECTORY", "/nowhere")):
            with self.subTest(name):
                self.steps(READY, f"env={name}={value}", *AFTERWARDS)

    def test_nothing_is_done_ahead_for_a_client_of_mps(self):
        for folder, is_client in (("/nowhere", True), ("/dev/null/none", False)):
            done = self.under(STEPS, READY, *AFTERWARDS, CUDA_MPS_PIPE_DIRECTORY=folder)
            with self.subTest(folder):
                self.assertEqual(done.how["cuInit"] == "speculated", not is_client)
                self.assertEqual("an MPS client" in done.messages, is_client)
                self.assertEqual("MPS: no client" in done.messages, is_client)

    def test_variables_that_no_driver_reads(self):
        self.steps(READY, "env=PATH=/nowhere", "env=NOTHING=1", "unenv=LANG", *AFTERWARDS,
                   changes=False)

    def test_after_cuInit_and_before_the_retain(self):
        done = self.steps(READY, "init", "env=CUDA_LAUNCH_BLOCKING=1", "retain=0", "work")
        self.assertEqual(done.how["cuInit"], "speculated")
        self.assertNotEqual(done.how["cuDevicePrimaryCtxRetain"], "speculated")
        done = self.steps(READY, "init", "env=CUDA_VISIBLE_DEVICES=1", "devices", "retain=0",
                          "work", changes=False)
        self.assertEqual(done.how["cuDevicePrimaryCtxRetain"], "speculated")

    def test_at_the_lookup_moment_too(self):
        state = self.learn(STEPS, "lookup", READY, "init", "retain=0")
        for value in ("", "1", "1,0"):
            with self.subTest(value):
                self.compare_steps(
                    "lookup", READY, f"env=CUDA_VISIBLE_DEVICES={value}", *AFTERWARDS,
                    state=state)
        done = self.compare_steps("env=CUDA_VISIBLE_DEVICES=1", "lookup", READY, *AFTERWARDS)
        # What a busy machine has taught may be to start at the lookup, which is late enough.
        if "the lookup comes early enough" not in done.messages:
            self.assertIn("squash", done.messages)

    def test_the_program_that_does_so_is_not_speculated_again(self):
        state = self.state()
        steps = (READY, "lookup", "env=CUDA_VISIBLE_DEVICES=1", *AFTERWARDS)
        first = self.under(STEPS, *steps, state=state)
        self.assertEqual(first.how["cuInit"], "squashed")
        second = self.under(STEPS, *steps, state=state)
        self.assertNotIn("speculation: cuInit", second.messages)
        self.assertIn("changes the driver's environment", second.messages)


class Busy(SpeculationTest):
    """A program that changes its environment all the time, while the driver reads its own."""

    def test_many_starts(self):
        ready = 0
        for _ in range(100):
            done = self.under(STEPS, "busy=8", "init", "retain=0")
            self.assertEqual((done.returncode, done.stderr), (0, b""), done.messages)
            self.assertIn("cuInit 0", done.stdout.decode())
            ready += "context on device 0: 0 after" in done.messages
        # Where the processor is somebody else's for 8 ms, nothing is ready.
        self.assertGreater(ready, 0)

    def test_while_another_thread_looks_up(self):
        for _ in range(60):
            done = self.under(STEPS, "busythread=8", "lookup", "sleep=4", "init", "retain=0")
            self.assertEqual((done.returncode, done.stderr), (0, b""), done.messages)


if __name__ == "__main__":
    main()
