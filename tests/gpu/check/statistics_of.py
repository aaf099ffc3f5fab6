"""Medians and the like, in the form the results have."""
import functools
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


def lower_quartile(values):
    """What a quarter of the figures stay at or below: what noise, which only adds, moves least."""
    ordered = sorted(values)
    return ordered[math.ceil(len(ordered) / 4) - 1] if ordered else math.inf


@functools.lru_cache(maxsize=None)
def _orders(ours, others, pairs):
    """In how many orders of so many figures of two kinds exactly so many pairs have ours above."""
    if pairs < 0:
        return 0
    if not ours or not others:
        return int(pairs == 0)
    return _orders(ours - 1, others, pairs - others) + _orders(ours, others - 1, pairs)


def chance_of_slower(ours, others):
    """How likely figures of one and the same kind are to fall at least as much to our disadvantage
    as these: the one-sided rank-sum test, exact. Small where ours are slower in truth."""
    if not ours or not others:
        return 0.0
    above = sum((mine > other) + (mine == other) / 2 for mine in ours for other in others)
    pairs = len(ours) * len(others)
    orders = sum(_orders(len(ours), len(others), count)
                 for count in range(math.floor(above), pairs + 1))
    return orders / math.comb(len(ours) + len(others), len(ours))
