"""A profiler finds the driver's file in /proc/self/maps and opens it by that path: what it meets is
the driver that the program uses, after a squash too, and while nothing is committed yet."""
from harness import SIM, main
from speculation import READY, STEPS, SpeculationTest

CHANGE = "env=CUDA_VISIBLE_DEVICES=1"


class Tool(SpeculationTest):
    DEVICES = "2"
    LEARNED = ("sleep=40", "lookup", "init", "retain=0")

    def setUp(self):
        self.env_of_rank = {"LOCAL_RANK": "0"}
        super().setUp()
        self.env.update(self.env_of_rank)

    def steps(self, *steps, **env):
        done = self.compare_steps(*steps, **env)
        self.assert_speculated(done, context=False)
        return done

    def test_after_a_squash(self):
        done = self.steps(READY, CHANGE, "init", "retain=0", "tool", "work", "tool")
        self.assertIn("tool: cuCtxGetCurrent 0: a context, the program's", done.stdout.decode())
        self.assertEqual(done.how["cuInit"], "squashed")

    def test_after_a_commit(self):
        done = self.steps(READY, "init", "retain=0", "tool", "work", "tool")
        self.assertIn("tool: cuCtxGetCurrent 0: a context, the program's", done.stdout.decode())
        self.assertEqual(done.how["cuInit"], "speculated")

    def test_before_the_program_asks(self):
        for steps in ((READY, "tool"), (READY, CHANGE, "tool")):
            done = self.steps(*steps, "init", "devices", "retain=0", "tool")
            self.assertTrue(done.stdout.startswith(b"tool: cuDeviceGetCount 3"), done.stdout)

    def test_a_tool_that_calls_cuInit_first_is_validated(self):
        done = self.steps(READY, CHANGE, "tool=1", "devices", "init", "retain=0", "tool")
        self.assertIn("tool: cuDeviceGetCount 0: 1", done.stdout.decode())
        self.assertEqual(done.how["cuInit"], "squashed")
        done = self.steps(READY, "tool=1", "devices", "init", "retain=0", "tool")
        self.assertEqual(done.how["cuInit"], "speculated")

    def test_in_a_fork_child(self):
        self.steps(READY, "fork", "init", "retain=0", "tool", "work")

    def test_a_driver_behind_a_link(self):
        folder = self.dir / "driver"
        folder.mkdir()
        (folder / "libcuda.so.1").symlink_to("libcuda.so.580.1")
        (folder / "libcuda.so.580.1").write_bytes(SIM.read_bytes())
        for steps in ((), (CHANGE,)):
            done = self.steps(READY, *steps, "tool=1", "retain=0", "tool", "work",
                              LD_LIBRARY_PATH=str(folder))
            self.assertIn("cuCtxGetCurrent 0: a context, the program's", done.stdout.decode())

    def test_nothing_is_done_ahead_of_one_that_has_opened_the_path(self):
        """Its calls go past us, so nothing could be validated."""
        state = self.learn(STEPS, "lookup", READY, "init", "retain=0")
        steps = ("lookup", READY, CHANGE, "tool=1", "devices", "init", "retain=0", "work")
        self.assert_speculated(self.compare_steps(*steps, state=self.state(state)), context=False)
        done = self.compare_steps(f"plugin={SIM}", *steps, state=self.state(state))
        self.assertNotIn("speculation: cuInit", done.messages)
        self.assertIn(f"speculation: the program has opened {SIM} itself", done.messages)


class Record(SpeculationTest):
    def test_what_a_table_ended_is_squashed(self):
        done = self.compare_steps(READY, "table=1", "init", "retain=0", "work")
        self.assertIn("export table f9cff951 for driver_steps\n", done.messages)
        self.assertIn("an export table ends speculation", done.messages)
        self.assertEqual(done.how["cuInit"], "squashed")
        done = self.compare_steps(READY, "table=0", "init", "retain=0", "work")
        self.assertEqual(done.how["cuInit"], "speculated")


if __name__ == "__main__":
    main()
