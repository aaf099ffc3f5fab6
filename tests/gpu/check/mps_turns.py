"""The group mps, the part about throughput: programs of two arms are there at once and work by
turns, so that what else happens to the machine happens to both; each turn gives one ratio."""
import statistics

from . import statistics_of
from .mps_stage import LENGTHS

PAIRS = (("MPS", "Hearth+MPS"), ("plain", "Hearth"))
ROUNDS = {PAIRS[0]: 2, PAIRS[1]: 1}  # each with programs of its own
JOBS = {False: (1, 2, 4, 8), True: (1, 4)}  # on a GPU, simulated
SMALL, TINY, FILLING = "", ", tiny", ", filling"
FILLS_FOR = 4  # so many programs only
FILLING_BLOCKS = 1056  # of 256 threads: 8 on each of 132 multiprocessors
TINY_LENGTH = "300"  # some microseconds: what a launch takes is seen in it


def kinds_of(count, simulated):
    """(kind, length, blocks, ms, turns) of the kernels that so many programs launch."""
    if simulated:
        return [(SMALL, LENGTHS[True], 1, 30, 2)]
    kinds = [(SMALL, LENGTHS[False], 1, 80, 6), (TINY, TINY_LENGTH, 1, 60, 4)]
    if count == FILLS_FOR:
        kinds.append((FILLING, LENGTHS[False], FILLING_BLOCKS, 150, 4))
    return kinds


def _turn(clients, number):
    """Kernels a second that all of them have done in the turn of that number."""
    for client in clients:
        if not client.wait_for("hold", nth=number):
            raise RuntimeError(f"a program did not get ready: {client.end(kill=True)}")
    for client in clients:
        client.go()
    loops = [client.wait_for("loop", nth=number) for client in clients]
    if any(loop is None or loop["rc"] for loop in loops):
        raise RuntimeError(f"work: {loops}")
    return sum(loop["value"] / loop["ms"] * 1e3 for loop in loops)


def contest(stage, arms, pair, count):
    """So many programs of each arm of the pair, by turns."""
    kinds = kinds_of(count, stage.context.simulated)
    words, turns = ["init", "context", "kernel"], []
    for kind, length, blocks, ms, number in kinds:
        words += [f"length={length}", f"blocks={blocks}", *["hold", f"loop={ms}"] * number]
        turns += [kind] * number
    clients = {arm: [stage.client(*words, arm=arm) for _ in range(count)] for arm in pair}
    went_well = True
    for number, kind in enumerate(turns):
        # The first of one turn is the second of the next.
        for arm in pair if number % 2 else reversed(pair):
            went_well = went_well and arms.measure(arm, lambda arm, number, kind: {
                f"{count} at once{kind}": _turn(clients[arm], number)}, arm, number, kind)
    for client in [client for arm in pair for client in clients[arm]]:
        client.end(kill=not went_well)


def ratios(arms, pair, step):
    """Of each turn: what the second of the pair did, by what the first did."""
    first, second = (arms.figures.get(arm, {}).get(step, []) for arm in pair)
    return [ours / theirs for theirs, ours in zip(first, second)]


def show(arms):
    """Rates, and the ratios of each pair with their spread; the latter's summaries."""
    found = {}
    for pair in PAIRS:
        for step in arms.figures.get(pair[0], {}):
            values = ratios(arms, pair, step) if " at once" in step else []
            if not values:
                continue
            found[f"{pair[1]} / {pair[0]}, {step}"] = statistics_of.summary(values)
            print(f"  {step:20} {pair[0]:5} {arms.median(pair[0], step):9.0f}  {pair[1]:10} "
                  f"{arms.median(pair[1], step):9.0f} /s  ratio {statistics.median(values):.4f}, "
                  f"{min(values):.4f} to {max(values):.4f}, n={len(values)}")
    return found
