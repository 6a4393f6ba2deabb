"""Measure what each protection of the server gains: the service with it and without it.

    sh .ci/venv python tests/bench/protections.py deadlines|read_turns

Two services run at the same time, and the rounds alternate between them, so that other work on the
machine counts for both alike. The figures are medians, printed as JSON.

deadlines        300 clients that stop within a head, beside 8 good ones; a head has 1 s.
read_turns       p99 of 10 x 10 requests beside 32 bodies at a time: `faults.py bombs`.
"""

import argparse
import json
import select
import socket
import statistics
import sys
from collections.abc import Callable
from contextlib import ExitStack

from faults import throw_bombs
from overload import CLIENTS, Crowd
from serving import Figures, Server, request, serve
from speed import body

CONNECTIONS = 300

Measure = Callable[[Server], dict[str, float]]


def deadlines() -> Measure:
    """Count the connections that clients hold with half a head; measure what a request costs."""
    content = request(body(10))

    def measure(server: Server) -> dict[str, float]:
        with ExitStack() as stack:
            address = "127.0.0.1", server.port
            slow = [
                stack.enter_context(socket.create_connection(address)) for _ in range(CONNECTIONS)
            ]
            for connection in slow:
                connection.sendall(content[:40])
            load = Crowd(server, content).closed(4, CLIENTS)
            ended, _, _ = select.select(slow, [], [], 0)
        return {
            "slow connections open after 4 s": CONNECTIONS - len(ended),
            "good answers a CPU second": load.by_cpu,
        }

    return measure


def read_turns() -> Measure:
    """Measure the p99 of small requests beside large bodies that cost more than they weigh."""
    name = "p99 of the good client beside them, milliseconds"
    return lambda server: {name: float(str(throw_bombs(server, 1)[name]))}


CASES: dict[str, Callable[[], Measure]] = {"deadlines": deadlines, "read_turns": read_turns}


def compare(case: str, rounds: int) -> Figures:
    """Alternate between a service with a protection and one without it."""
    measure = CASES[case]()
    settings = {"RPRIME_LIMITS_HEAD_SECONDS": "1"} if case == "deadlines" else {}
    samples: dict[str, list[dict[str, float]]] = {"with": [], "without": []}
    with ExitStack() as stack:
        servers = {
            "with": stack.enter_context(serve(**settings)),
            "without": stack.enter_context(serve(without=case, **settings)),
        }
        for i in range(2 * rounds + 2):
            # One round of each first, which is not counted; then each is the first in turn.
            side = "with" if i // 2 % 2 == i % 2 else "without"
            figures = measure(servers[side])
            if i >= 2:
                samples[side].append(figures)
    return {name: _compared(samples, name) for name in samples["with"][0]}


def _compared(samples: dict[str, list[dict[str, float]]], name: str) -> dict[str, float]:
    """Return the medians of a figure with and without, and their ratio."""
    with_, without = (statistics.median(sample[name] for sample in samples[s]) for s in samples)
    return {
        "with": float(f"{with_:.3g}"),
        "without": float(f"{without:.3g}"),
        "with / without": round(with_ / without, 2) if without else float("nan"),
    }


def main() -> None:
    """Run a case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    json.dump(compare(chosen.case, chosen.rounds), sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
