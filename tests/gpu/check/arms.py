"""Figures by arm and step, for groups that measure several arms by turns."""
import math
import subprocess

from . import statistics_of


class Arms:
    """An arm whose program fails is named and loses nobody else's figures."""

    def __init__(self):
        self.figures = {}
        self.errors = {}

    def measure(self, arm, take, *arguments, **options):
        """Add the steps that take(...) returns, a dictionary of ms; returns whether it worked."""
        try:
            steps = take(*arguments, **options)
        except (RuntimeError, ValueError, LookupError, OSError,
                subprocess.SubprocessError) as error:
            if arm not in self.errors:
                print(f"  {arm}: {error}", flush=True)
            self.errors.setdefault(arm, []).append(str(error))
            return False
        for step, value in steps.items():
            self.figures.setdefault(arm, {}).setdefault(step, []).append(value)
        return True

    def median(self, arm, step):
        """The median, or infinity where the arm has no figures."""
        return self._summary(arm, step).get("median", math.inf)

    def p95(self, arm, step):
        """The figure that 95 of 100 stay below, or infinity."""
        values = sorted(self.figures.get(arm, {}).get(step, []))
        return values[math.ceil(0.95 * len(values)) - 1] if values else math.inf

    def _summary(self, arm, step):
        return statistics_of.summary(self.figures.get(arm, {}).get(step, []))

    def summaries(self):
        return {arm: {step: statistics_of.summary(values) for step, values in steps.items()}
                for arm, steps in self.figures.items()}

    def show(self, steps):
        for arm, figures in self.figures.items():
            for step in steps:
                if step in figures:
                    print(statistics_of.line(f"{arm}, {step}", figures[step], "ms"))

    def result(self, checks, simulated):
        """The fields of a group's result; prints which checks hold."""
        checks = {**checks, **{f"{arm} ran every time": False for arm in self.errors}}
        for text, holds in checks.items():
            print(f"  {'holds' if holds else 'FAILS'}: {text}")
        return {"ms": self.summaries(), "figures": self.figures, "errors": self.errors,
                "checks": checks, "ok": all(checks.values()) or simulated}
