"""Medians and the like, in the form the results have."""
import math
import statistics


def summary(values):
    """runs, min, median, p90 and max of figures in one unit, rounded to 3 digits."""
    if not values:
        return {"runs": 0}
    ordered = sorted(values)
    return {"runs": len(ordered), "min": round(ordered[0], 3),
            "median": round(statistics.median(ordered), 3),
            "p90": round(ordered[math.ceil(0.9 * len(ordered)) - 1], 3),
            "max": round(ordered[-1], 3)}


def line(name, values, unit):
    """One row of a table."""
    of = summary(values)
    if not of["runs"]:
        return f"  {name:32} no figures"
    return (f"  {name:32} n={of['runs']:<4} min {of['min']:9.3f}  median {of['median']:9.3f}  "
            f"p90 {of['p90']:9.3f}  max {of['max']:9.3f} {unit}")
