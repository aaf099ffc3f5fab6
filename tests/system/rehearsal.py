"""Runs a group of tools/gpu-check on the simulated driver."""
import json
import sys

import harness


class Rehearsal(harness.SystemTest):
    """The groups on the simulated driver: that they run through, not what they measure."""

    def rehearsed(self, group):
        env = {name: value for name, value in self.env.items() if name != "HEARTH_DRIVER"}
        done = self.run_program(
            sys.executable, harness.SOURCE / "tools/gpu-check", "--sim", "--no-build", "--build",
            harness.BUILD, "--work", self.dir / "work", "--out", self.dir / "out", "--commit",
            "c0ffee", group, env=env, timeout=120)
        self.assertEqual(done.returncode, 0, (done.stdout + done.stderr).decode())
        result = json.loads((self.dir / f"out/{group}.json").read_text())
        self.assertEqual((result["driver"], result["commit"], result["gpus"]),
                         ("simulated", "c0ffee", []))
        return result
