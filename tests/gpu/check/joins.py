"""Group joins: what joining the broker costs a program, and 300 of them at the same moment, from
the first moment of each broker's life. No GPU is used: the broker has no keeper."""
import math
import subprocess

from .broker import Broker

CLIENTS = 300
BROKERS = 3  # one after the other: what only the first storm of the first shows is the machine's
ROUNDS = 5   # of each broker
SINGLES = 100
LIMIT_FACTOR, LIMIT_MORE_MS = 2, 5  # p99 of a storm: at most so many times one's, and so much more
SECONDS = 30


def _join(context, environment, clients):
    """How many joined, and the median, p99 and maximum of what each waited, in ms."""
    done = subprocess.run([context.build / "tests/programs/join_storm", str(clients)],
                          env=environment, timeout=SECONDS, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, check=True)
    joined, *took_us = map(int, done.stdout.split())
    median, p99, most = (us / 1e3 for us in took_us)
    return {"joined": joined, "median_ms": median, "p99_ms": p99, "max_ms": most}


def run(context):
    """Storms at new brokers, then single programs; holds where every storm does."""
    brokers, rounds = (2, 2) if context.simulated else (BROKERS, ROUNDS)
    storms = []
    for number in range(brokers):
        with Broker(context) as broker:
            broker.start(retain="none")
            storms += [{"broker": number + 1, "round": count + 1,
                        **_join(context, broker.environment(), CLIENTS)}
                       for count in range(rounds)]
    with Broker(context) as broker:
        broker.start(retain="none")
        singles = sorted(_join(context, broker.environment(), 1)["max_ms"]
                         for _ in range(10 if context.simulated else SINGLES))
    single_p99 = singles[math.ceil(len(singles) * 0.99) - 1]
    limit = LIMIT_FACTOR * single_p99 + LIMIT_MORE_MS
    print(f"  one program: median {singles[len(singles) // 2]:.2f} ms, p99 {single_p99:.2f} "
          f"(N = {len(singles)}); {CLIENTS} at once: p99 at most {limit:.2f}, and all joined")
    ok = True
    for storm in storms:
        holds = storm["joined"] == CLIENTS and storm["p99_ms"] <= limit
        ok = ok and holds
        print(f"  {'holds' if holds else 'FAILS'}: broker {storm['broker']}, "
              f"round {storm['round']}: {storm['joined']} joined, "
              f"median {storm['median_ms']:.2f}, p99 {storm['p99_ms']:.2f}, "
              f"max {storm['max_ms']:.2f}")
    return {"single_ms": singles, "storms": storms, "limit_ms": limit,
            "ok": ok or context.simulated}
