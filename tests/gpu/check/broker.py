"""A broker of the check's own: started, awaited and stopped, at a socket nobody else uses."""
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

START_SECONDS = 30
STOP_SECONDS = 10
POLL_SECONDS = 0.02


class BrokerError(Exception):
    """The broker did not do what it was asked; the message says what it said."""


class PowerManaged(BrokerError):
    """hearthd refuses this GPU; the message is its reason."""


class Broker:
    """One broker at a time, in a folder of its own (a socket's path must be short)."""

    def __init__(self, context):
        self.context = context
        self.folder = Path(tempfile.mkdtemp(prefix="hearth-gpu-", dir="/tmp"))
        self.socket = self.folder / "socket"
        self.process = None
        self.more_options = ()

    def environment(self, **more):
        """For programs and tools that shall find this broker."""
        return self.context.hearth_environment(self.socket, **more)

    def start(self, retain="init"):
        """Start, and wait until the keeper is warm, or with "none" until it serves; returns the
        seconds that took. Where hearthd keeps no GPU because its power is managed at run time, that
        is said and overruled."""
        try:
            return self._start(retain, *self.more_options)
        except PowerManaged as refusal:
            print(f"  note: {refusal}; from here on with --power-managed", flush=True)
            self.more_options = ("--power-managed",)
            return self._start(retain, *self.more_options)

    def _start(self, retain, *options):
        begin = time.monotonic()
        with open(self.folder / "stderr", "wb") as said:
            self.process = subprocess.Popen(
                [str(self.context.build / "tools/hearthd"), "--foreground", "--idle=0",
                 "--prove-after=0", f"--retain={retain}", *options], env=self.environment(),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said)
        keeper = {}
        while time.monotonic() - begin < START_SECONDS:
            if self.process.poll() is not None:
                raise BrokerError(f"hearthd ended with {self.process.returncode}: {self._said()}")
            keeper = (self.status() or {}).get("keeper", {})
            if keeper.get("state") == "warm" or (keeper and retain == "none"):
                return time.monotonic() - begin
            if keeper.get("state") == "off" and "power" in (keeper.get("reason") or ""):
                self.stop()
                raise PowerManaged(keeper["reason"])
            time.sleep(POLL_SECONDS)
        self.stop()
        raise BrokerError(f"no warm keeper after {START_SECONDS} s: {keeper}; {self._said()}")

    def status(self):
        """What `hearth status --json` says; None where no broker answers."""
        done = self.hearth("status", "--json")
        try:
            status = json.loads(done.stdout)
        except ValueError:
            return None
        return status if isinstance(status.get("keeper"), dict) else None

    def hearth(self, *words):
        """Run the tool against this broker."""
        return subprocess.run([str(self.context.build / "tools/hearth"), *words],
                              env=self.environment(), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                              check=False)

    def prove_undo(self):
        """Run the undo self-test, without whose verdict nothing is done ahead, and store it;
        returns what it says: "passed" as its "proof" where all is well. One proof serves all
        groups of a run."""
        if self.context.undo:
            return self.context.undo
        said = self.hearth("doctor", "--prove", "--json")
        try:
            proof = json.loads(said.stdout)
        except ValueError:
            proof = {"proof": "error", "lines": []}
        proof["complaint"] = said.stderr.decode(errors="replace")
        print(f"  undo self-test: {proof['proof']} {proof['complaint'].strip()}", flush=True)
        for line in proof["lines"] if proof["proof"] != "passed" else ():
            print(f"    {line}")
        if proof["proof"] == "passed":
            self.context.undo = proof
        return proof

    def fresh_state(self, name):
        """A state folder of its own, in which only that verdict stands."""
        state = self.folder / f"state-{name}"
        shutil.rmtree(state, ignore_errors=True)
        state.mkdir(mode=0o700)
        proven = Path(self.environment()["HEARTH_STATE_DIR"]) / "undo"
        if proven.is_dir():
            shutil.copytree(proven, state / "undo")
        return state

    def stop(self):
        """End the broker, whoever started it, and wait until its keeper is gone."""
        keeper = ((self.status() or {}).get("keeper") or {}).get("pid")
        self.hearth("stop")
        if self.process:
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None
        begin = time.monotonic()
        while keeper and os.path.exists(f"/proc/{keeper}"):
            if time.monotonic() - begin > STOP_SECONDS:
                raise BrokerError(f"keeper {keeper} outlives its broker")
            time.sleep(POLL_SECONDS)

    def _said(self):
        return (self.folder / "stderr").read_text(errors="replace")[-500:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.stop()
        finally:
            if self.process:
                self.process.kill()
                self.process.wait()
            shutil.rmtree(self.folder, ignore_errors=True)
