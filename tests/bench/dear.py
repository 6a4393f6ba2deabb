"""Measure what the dearest requests cost, and what a client with small requests notices of them.

    sh .ci/venv python tests/bench/dear.py [--rounds 5] [--seconds 4]

A service on loopback answers small requests of one good client, alone and beside a load, in turns.
The loads: the ten dearest requests, over and over, each by a client of its own; a flood of plans
whose senders are gone; uploads that send a byte now and then. The processor time of each dear
request, of the service and of its workers, is told for each kB of its body. The figures are printed
as JSON; the status is 1 if something that docs/reliability.md promises does not hold.
"""

import argparse
import asyncio
import http.client
import json
import os
import random
import socket
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from faults import _latencies, _p99
from serving import Figures, Server, request, serve
from speed import body

MOST_BESIDE = 4
"""Times as long as alone the p99 of a good client may be."""
_TICKS = os.sysconf("SC_CLK_TCK")
_INDICES = (
    *("r_prime", "r", "recall", "precision", "specificity", "negative_predictive_value", "f1"),
    *("prevalence", "predicted_prevalence", "jaccard", "kulczynski", "fowlkes_mallows", "icsi"),
    *("informedness", "markedness", "class_mcc", "g_mean", "lift", "detection_rate"),
    *("class_accuracy", "class_kappa"),
)


@dataclass(frozen=True)
class Dear:
    """A request that costs much more than it weighs."""

    name: str
    path: str
    content: bytes


def dearest() -> Iterator[Dear]:
    """Yield the ten dearest requests."""
    table = [[60, 7, 1], [8, 70, 2], [3, 4, 90]]
    wide = [[50 * (i == j) + 1 for j in range(50)] for i in range(50)]
    yield _dear("plan, 3 classes, 20 rules", "/v1/gates/plan", _gate(table, 20))
    yield _dear("plan, 50 classes, 1 rule", "/v1/gates/plan", _gate(wide, 1))
    lint = _gate(table, 5) | {"replicates": 5000}
    yield _dear("lint, 3 classes, 5 rules, 5000 replicates", "/v1/gates/lint", lint)
    yield _dear("lint, 50 classes, 1 rule", "/v1/gates/lint", _gate(wide, 1))
    yield _dear("every interval, 50 classes", "/v1/evaluate", _all(wide))
    batch = {"requests": [{"confusion_matrix": wide}] * 50}
    yield _dear("batch of 50 tables of 50 classes", "/v1/evaluate/batch", batch)
    study = {"indices": ["kappa", "mcc", "macro_f1"], "k": [3, 4, 5], "resolution": 101}
    yield _dear("discrimination, 3 indices, 3 to 5 classes", "/v1/studies/discrimination", study)
    diagonal = {"cells": [[j, j, 50] for j in range(9000)], "labels": [*map(str, range(9000))]}
    many = {"candidate": diagonal, "baseline": diagonal, "options": {"indices": ["r_prime"]}}
    yield _dear("compare, 9000 classes, 1 index", "/v1/compare", many)
    draw = random.Random(1)  # noqa: S311 (of a measurement)
    labels = [draw.choices("abcdef", k=20_000) for _ in range(2)]
    pair = {"y_true": labels[0], "y_pred": labels[1], "intervals": "all"}
    yield _dear("every interval, 20 000 items", "/v1/evaluate", pair)
    sliced = {**pair, "slices": {"s": draw.choices(range(100), k=20_000)}}
    yield _dear("every interval, 100 slices of 20 000 items", "/v1/evaluate", sliced)


def _dear(name: str, path: str, content: object) -> Dear:
    return Dear(name, path, json.dumps(content, separators=(",", ":")).encode())


def _gate(table: list[list[int]], rules: int) -> dict[str, object]:
    named = [
        {"id": f"r{i}", "index": _INDICES[i], "classes": "all", "max_drop": 0.01 + i / 1e3}
        for i in range(rules)
    ]
    return {"confusion_matrix": table, "gates": {"rules": named}}


def _all(table: list[list[int]]) -> dict[str, object]:
    return {"confusion_matrix": table, "intervals": "all"}


def cpu_of_family(process: int) -> float:
    """Return the seconds of CPU of a process and its children, with those that have ended."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    children = [int(one) for task in tasks for one in task.read_text().split()]
    return sum(map(int, fields[11:15])) / _TICKS + sum(map(cpu_of_family, children))


def ask(port: int, dear: Dear) -> int:
    """Send a dear request; the status."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("POST", dear.path, dear.content, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def costs(server: Server) -> list[Figures]:
    """Measure each dear request alone."""
    figures = list[Figures]()
    for dear in dearest():
        before = cpu_of_family(server.process.pid)
        status = ask(server.port, dear)
        seconds = cpu_of_family(server.process.pid) - before
        weight = len(dear.content) / 1000
        figures.append(
            {
                "request": dear.name,
                "status": status,
                "kB": round(weight, 1),
                "CPU seconds": round(seconds, 2),
                "CPU seconds for each kB": round(seconds / weight, 3),
            }
        )
    return figures


def dear_load(server: Server, stop: threading.Event) -> None:
    """Ask the ten dearest requests at the same time, over and over."""

    def again(dear: Dear) -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
        while not stop.is_set():
            ask(server.port, dear)
            stop.wait(0.1)

    threads = [threading.Thread(target=again, args=(dear,)) for dear in dearest()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def plan_flood(server: Server, stop: threading.Event) -> None:
    """Send plans and go away at once, ten each second."""
    [plan, *_] = dearest()
    head = b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    content = head % plan.path.encode() + b"Content-Length: %d\r\n\r\n" % len(plan.content)
    while not stop.wait(0.1):
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(content + plan.content)


def dripping(server: Server, stop: threading.Event) -> None:
    """Let 20 uploads of columns send a byte now and then, each after 1.1 MB."""
    head = b"POST /v1/evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\n"
    head += b"Content-Length: 20000000\r\n\r\ny_true,y_pred\n"
    with ExitStack() as stack:
        address = ("127.0.0.1", server.port)
        slow = [stack.enter_context(socket.create_connection(address)) for _ in range(20)]
        for one in slow:
            one.sendall(head + b"cat,dog\n" * 140_000)
        while not stop.wait(0.2):
            for one in slow:
                one.sendall(b"c")


LOADS: dict[str, Callable[[Server, threading.Event], None]] = {
    "the ten dearest requests": dear_load,
    "plans whose senders are gone": plan_flood,
    "dripping uploads": dripping,
}


def beside(server: Server, load: Callable[..., None], *, rounds: int, seconds: float) -> Figures:
    """Measure the p99 of small requests, alone and beside a load, in turns."""
    content, ratios, statuses = request(body(10)), list[float](), set[int]()
    for _ in range(rounds):
        alone = asyncio.run(_latencies(server, content, seconds))
        stop = threading.Event()
        thread = threading.Thread(target=load, args=(server, stop))
        thread.start()
        try:
            time.sleep(0.5)
            busy = asyncio.run(_latencies(server, content, seconds))
        finally:
            stop.set()
            thread.join()
        ratios.append(_p99(busy) / _p99(alone))
        statuses |= {status for status, _ in alone + busy}
    median = statistics.median(ratios)
    return {
        "ratios of the p99, beside it against alone": [round(one, 2) for one in ratios],
        "median": round(median, 2),
        "answers": sorted(statuses),
        "holds": median <= MOST_BESIDE and statuses == {200},
    }


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    chosen = parser.parse_args()
    with serve() as server:
        figures: Figures = {"costs": costs(server)}
        for name, load in LOADS.items():
            figures[name] = beside(server, load, rounds=chosen.rounds, seconds=chosen.seconds)
    sys.stdout.write(json.dumps(figures, indent=1) + "\n")
    held = [one["holds"] for name, one in figures.items() if isinstance(one, dict)]
    sys.exit(not all(held))


if __name__ == "__main__":
    main()
