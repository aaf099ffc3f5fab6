"""What the tests of the speculation stand on: a driver whose undo is proved, a program that has
been learned, and runs that are compared with the plain one."""
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import harness

STEPS = harness.PROGRAMS / "driver_steps"
# Long enough for the speculation to be ready, where the simulated driver waits nowhere and other
# tests have the processors.
READY = "sleep=80"
OWN_LINE = b"hearth["
LEAD_MIN_US = 3000  # DECIDE_LEAD_MIN_US
ATTEMPTS = 5


class SpeculationTest(harness.SystemTest):
    """self.template is a state folder in which driver_steps has been learned as LEARNED says; each
    run gets a copy of it, so that no run teaches the next."""
    LEARNED = ("sleep=40", "lookup", "init", "retain=0")
    SETTINGS = {"SIMCUDA_SPEED": "0"}
    DEVICES = "1"

    @classmethod
    def setUpClass(cls):
        cls.shared = Path(tempfile.mkdtemp(prefix="hearth-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        cls.proved = cls.shared / "proved"
        cls.proved.mkdir(mode=0o700)
        subprocess.run([harness.PROGRAMS / "undo_check", harness.SIM, cls.proved], check=True,
                       stdout=subprocess.DEVNULL, timeout=harness.DEADLINE_S,
                       env={"SIMCUDA_SPEED": "0", "SIMCUDA_MACHINE": str(cls.shared / "machine")})

    def setUp(self):
        super().setUp()
        self.env.update(self.SETTINGS, SIMCUDA_DEVICES=self.DEVICES,
                        LD_LIBRARY_PATH=str(harness.SIM.parent),
                        HEARTH_SOCKET=str(self.dir / "no-broker"))
        self.runs = 0
        self.template = self.proved
        if self.LEARNED:
            self.template = self.learn(STEPS, *self.LEARNED)

    def state(self, template=None):
        """A copy of a state folder."""
        self.runs += 1
        folder = self.dir / f"state-{self.runs}"
        shutil.copytree(template or self.template, folder)
        return folder

    def learn(self, *command, runs=1, state=None, **env):
        """The state folder after so many runs of a program; of one that is new and calls cuInit
        right after its lookup, such a folder as says so."""
        for _ in range(ATTEMPTS):
            folder = state or self.state(self.proved)
            for _ in range(runs):
                self.run_program(*command, env=self.preloaded(HEARTH_STATE_DIR=str(folder), **env))
            if state or not self.took_its_time(command, folder):
                break
        return folder

    def took_its_time(self, command, state):
        """Was the processor somebody else's between its lookup and its cuInit? What was learned
        then is another program: one that leaves time between them."""
        if ("lookup", "init") not in zip(command, command[1:]):
            return False
        done = self.run_program(harness.HEARTH, "profile", "list", "--json",
                                env={**self.env, "HEARTH_STATE_DIR": str(state)})
        return any(section["lookup_lead_us"] >= LEAD_MIN_US
                   for profile in json.loads(done.stdout)["profiles"]
                   for section in profile["sections"])

    def under(self, *command, state=None, wrap=(), **env):
        """A run under Hearth: the CompletedProcess without Hearth's own messages, which are in
        .messages; .how says how each call was served, .records has all of them."""
        state = state or self.state()
        self.runs += 1
        log = self.dir / f"log-{self.runs}"
        settings = self.preloaded(HEARTH_STATE_DIR=str(state), HEARTH_LOG=str(log),
                                  HEARTH_LOG_LEVEL="debug", **env)
        done = self.run_program(*wrap, *command, env=settings)
        lines = done.stderr.splitlines(keepends=True)
        done.messages = b"".join(line for line in lines if line.startswith(OWN_LINE)).decode()
        done.stderr = b"".join(line for line in lines if not line.startswith(OWN_LINE))
        text = log.read_text() if log.exists() else ""
        done.records = [json.loads(line) for line in text.splitlines()]
        done.how = {record["call"]: record["how"] for record in reversed(done.records)
                    if record["event"] == "call"}
        done.state = state
        return done

    def plain(self, *command, **env):
        return self.run_program(*command, env={**self.env, **env})

    def compare(self, *command, state=None, **env):
        """The run under Hearth, which came out as the plain one did."""
        hearth = {name: env.pop(name) for name in list(env) if name.startswith("HEARTH")}
        plain = self.plain(*command, **env)
        under = self.under(*command, state=state, **env, **hearth)
        self.assertEqual((plain.returncode, plain.stdout.decode(), plain.stderr.decode()),
                         (under.returncode, under.stdout.decode(), under.stderr.decode()),
                         (command, env, under.messages))
        return under

    def compare_steps(self, *steps, **env):
        return self.compare(STEPS, *steps, **env)

    def assert_speculated(self, done, context=True):
        """The driver was initialised ahead, and a context made unless said otherwise."""
        self.assertIn("speculation: cuInit 0", done.messages)
        if context:
            self.assertRegex(done.messages, "context on device [0-9]+: 0 after")
