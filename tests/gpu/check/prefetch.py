"""Group prefetch: a model's first step natively, and after one run that Hearth learned from.

Each model has a state folder of its own. First come runs with nobody beside them: the learning run,
one with HEARTH_SPECULATE=off (what the driver's loads take), and both arms, whose memory is
compared. Then both arms import at once and step by turns, the one that is first changing; the
broker's keeper is there for both, since the context is made before the step begins."""
import importlib.util
import json
import math
import subprocess
import time

from . import first_step, statistics_of
from .arms import Arms
from .broker import Broker

ROUNDS = 10
BUDGET_SECONDS = 430  # no further round is begun after it
MODELS = {"cnn": "torch", "resnet": "torchvision", "gpt2": "transformers", "mlp": "torch",
          "vit": "torchvision"}
LIMIT_SHARE_OF_LOADS = 0.95
LIMIT_MORE_MS = 10
LIMIT_OF_NATIVE = {"cnn": 0.40}
LIMIT_ADOPTED = 0.90
LIMIT_GPU_MIB = 64
LIMIT_HOST_MIB = 100
STEPS = ("step 1", "step 3", "to GPU", "import")
ARMS = ("native", "learned")
KINDS = ("learning", "observed", *ARMS)


class Model:
    """One model's commands, environments and what its runs said."""

    def __init__(self, context, broker, name):
        self.name, self.context = name, context
        self.command = first_step.command_of(name, context.simulated, context.work)
        self.log = broker.folder / f"{name}.log"
        self.native = context.environment()
        self.hearth = {**broker.environment(LD_PRELOAD=str(context.preload)),
                       "HEARTH_STATE_DIR": str(broker.fresh_state(name))}
        self.said = {kind: [] for kind in KINDS}
        self.alone = {}
        self.images = []  # what the profile lists in the end

    def take_alone(self, arms):
        """The runs before the rounds. Raises where the learning run fails: nothing is left then."""
        for arm in KINDS:
            said = first_step.run_alone(self.command, *self._arguments(arm))
            self._note(arms, arm, said)
            self.alone[arm] = said

    def _arguments(self, arm):
        """Environment and log of one run."""
        if arm == "native":
            return self.native, None
        mode = "off" if arm == "observed" else "auto"
        return {**self.hearth, "HEARTH_SPECULATE": mode}, self.log

    def take_round(self, arms, number):
        """Both arms by turns."""
        order = ARMS if number % 2 else ARMS[::-1]
        runs = [first_step.Run(self.command, *self._arguments(arm)) for arm in order]
        for arm, said in zip(order, first_step.run_in_turn(runs)):
            if said is None:
                arms.errors.setdefault(f"{self.name}, {arm}", []).append("failed")
            else:
                self._note(arms, arm, said)

    def _note(self, arms, arm, said):
        self.said[arm].append(said)
        arms.measure(f"{self.name}, {arm}", lambda: said["ms"])

    def loads_ms(self):
        """What the driver's loads take in the first step, without anything loaded ahead."""
        return first_step.median([first_step.load_ms(said) for kind in ("learning", "observed")
                                  for said in self.said[kind]]) or 0.0

    def adopted(self):
        """(handed over, asked for) in all learned runs."""
        counts = [first_step.adoption(said) for said in self.said["learned"]]
        return sum(count[0] for count in counts), sum(count[1] for count in counts)

    def recorded(self):
        """The images that the profile lists as asked for in the latest run that it learned from."""
        done = subprocess.run(
            [str(self.context.build / "tools/hearth"), "profile", "show",
             str(self.command[-2]).rsplit("/", 1)[-1], "--json"], env=self.hearth,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
            check=False)
        try:
            profiles = json.loads(done.stdout)["profiles"]
        except (ValueError, LookupError):
            return []
        return [image for profile in profiles for section in profile["sections"]
                for image in section.get("images", []) if not image["unused_runs"]]

    def memory(self):
        """What the learned arm takes more after its first step, MiB, by kind."""
        native, learned = (self.alone[arm]["memory_mib"] for arm in ARMS)
        return {kind: round(learned[kind] - native[kind], 1) for kind in native}

    def result(self):
        """All that the result keeps of it."""
        left_out = [{name: image[name] for name in ("file", "entry", "jit", "options", "size",
                                                    "load_us", "loads")}
                    for image in self.images if not image["replayable"]]
        return {"images": len(self.images), "images_left_out": left_out,
                "loads_ms": round(self.loads_ms(), 3), "adopted": self.adopted(),
                "more_memory_mib": self.memory(),
                "memory_mib": {arm: said["memory_mib"] for arm, said in self.alone.items()},
                "parts": {kind: first_step.parts(said[-1]) for kind, said in self.said.items()
                          if said and kind != "native"},
                "faults": {kind: [one["faults"] for one in said]
                           for kind, said in self.said.items()},
                "files": {kind: said[-1]["files"] for kind, said in self.said.items() if said}}


def _check(model, arms, checks):
    """The limits of one model; a figure that is missing meets none."""
    native = arms.median(f"{model.name}, native", "step 1")
    learned = arms.median(f"{model.name}, learned", "step 1")
    loads = model.loads_ms()
    limit = native - LIMIT_SHARE_OF_LOADS * loads + LIMIT_MORE_MS
    runs = len(model.said["learned"])
    checks[f"{model.name}: {runs} runs of each arm, at least {ROUNDS}"] = (
        runs >= ROUNDS and len(model.said["native"]) >= ROUNDS)
    checks[f"{model.name}: first step {learned:.1f} ms, natively {native:.1f} with {loads:.1f} of "
           f"loads: at most {limit:.1f}"] = math.isfinite(native) and learned <= limit
    if model.name in LIMIT_OF_NATIVE:
        share = LIMIT_OF_NATIVE[model.name]
        checks[f"{model.name}: {learned / native:.0%} of native, at most {share:.0%}"] = (
            math.isfinite(native) and learned <= share * native)
    adopted, _ = model.adopted()
    asked = sum(image["loads"] for image in model.images if image["replayable"]) * runs
    left_out = sum(not image["replayable"] for image in model.images)
    checks[f"{model.name}: {adopted} of {asked} images were handed over in {runs} runs, at least "
           f"{LIMIT_ADOPTED:.0%} (and {left_out} of {len(model.images)} are never loaded "
           "ahead)"] = asked > 0 and adopted >= LIMIT_ADOPTED * asked
    more = model.memory()
    for kind, most in (("gpu", LIMIT_GPU_MIB), ("VmHWM", LIMIT_HOST_MIB)):
        value = more.get(kind, math.inf)
        checks[f"{model.name}: {value:+.0f} MiB of {kind}, at most {most}"] = value <= most


def _show(model, arms):
    for arm in KINDS:
        figures = arms.figures.get(f"{model.name}, {arm}", {})
        for step in STEPS if arm in ARMS else STEPS[:1]:
            if step in figures:
                print(statistics_of.line(f"{model.name}, {arm}, {step}", figures[step], "ms"))
    for image in model.images:
        if not image["replayable"]:
            print(f"    never loaded ahead: {image['entry']} {image['file'] or 'on the heap'} "
                  f"{image['size']} bytes, {image['load_us'] / 1e3:.1f} ms"
                  f"{', compiled' if image['jit'] else ''}")
    for kind in ("observed", "learned"):
        if not model.said[kind]:
            continue
        said = model.said[kind][-1]
        waited = sum(ms for _, ms in first_step.parts(said).values())
        print(f"    {kind}: first step {said['ms']['step 1']:.1f} ms, recorded in the driver "
              f"{waited:.1f}; faults {said['faults']}; files mapped {len(said['files'])}")
        for name, (count, ms) in list(first_step.parts(said).items())[:8]:
            print(f"      {count:4} x {name:48} {ms:9.3f} ms", flush=True)


def _models(context, checks):
    """The names whose libraries are there; on the simulated driver one stands for all."""
    if context.simulated:
        return ["cnn"]
    names = []
    for name, module in MODELS.items():
        if context.only not in name:
            continue
        if importlib.util.find_spec(module):
            names.append(name)
        else:
            checks[f"{name}: {module} is there"] = False
    return names


def run(context):
    """Measure; holds where every limit does."""
    begin = time.monotonic()
    rounds = 2 if context.simulated else ROUNDS
    arms, checks, models = Arms(), {}, []
    with Broker(context) as broker:
        broker.start()
        undo = broker.prove_undo()
        checks[f"the undo self-test: {undo['proof']}"] = undo["proof"] == "passed"
        for name in _models(context, checks):
            model = Model(context, broker, name)
            try:
                model.take_alone(arms)
            except (RuntimeError, ValueError, OSError, subprocess.SubprocessError) as error:
                print(f"  {name}: {error}", flush=True)
                arms.errors[f"{name}, alone"] = [str(error)]
                continue
            models.append(model)
        for number in range(1, rounds):
            for model in models:
                if time.monotonic() - begin < BUDGET_SECONDS:
                    model.take_round(arms, number)
        for model in models:
            model.images = model.recorded()
    for model in models:
        _show(model, arms)
        _check(model, arms, checks)
    return {"undo": undo, "models": {model.name: model.result() for model in models},
            **arms.result(checks, context.simulated)}
