"""Measure what the history costs: a kept evaluation beside one that is not, lists and trends.

    sh .ci/venv python tests/bench/history.py [--rounds 5] [--seconds 4] [--only post|read]

Two services run at the same time, one with a SQLite store in a temporary folder (synchronous=FULL)
and one without. Each round asks both in turn, 16 clients at once, so that a noisy machine moves
both figures alike; printed are the medians and the median of the ratios within a round, and the
ratio of the CPU time of the services for each request, which other programs disturb less. Then a
history of 100 000 evaluations of 10 x 10 tables is read over HTTP; printed are medians, the
fastest of all, and the CPU time.
"""

import argparse
import asyncio
import http.client
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import orjson
from speed import JSON, Server, cpu_seconds, matrix, ratio, serve

from rprime.core.table import ConfusionTable
from rprime.store import NewEvaluation, open_store

CLIENTS = 16
HISTORY = 100_000
TREND = 10_000
LABELS = tuple(str(i) for i in range(10))
RPRIME = (str(Path(sys.executable).with_name("rprime")), "serve")

NUMBERS = itertools.count()


def requests(project: str | None, **options: object) -> Iterator[bytes]:
    """Return requests that differ from one another, ready to be sent."""
    for number in NUMBERS:
        table = matrix(10)
        table[0][1], table[1][0] = divmod(number, 1000)
        content = {"confusion_matrix": table, **options}
        if project is not None:
            content |= {"project": project, "model": "lenet", "version": f"1.{number}"}
        body = orjson.dumps(content)
        head = (
            f"POST /evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        yield head.encode() + body


async def client(port: int, source: Iterator[bytes], until: float) -> int:
    """Send one request after the other; how many were answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answered = 0
    while time.perf_counter() < until:
        writer.write(next(source))
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")):
            raise SystemExit(head.decode())
        size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(size)
        answered += 1
    writer.close()
    return answered


async def throughput(server: Server, source: Iterator[bytes], seconds: float) -> float:
    """Requests a second, from 16 clients at once."""
    until = time.perf_counter() + seconds
    counts = await asyncio.gather(*(client(server.port, source, until) for _ in range(CLIENTS)))
    return sum(counts) / seconds


def post(folder: Path, rounds: int, seconds: float) -> None:
    """Compare the throughput of POST /evaluate with and without a store."""
    with (
        serve(*RPRIME, RPRIME_STORE=f"sqlite:///{folder}/post.db") as keeping,
        serve(*RPRIME) as stateless,
    ):
        for name, options in {"default report": {}, "no intervals": {"intervals": False}}.items():
            measured: dict[str, list[float]] = {"kept": [], "stateless": []}
            spent: dict[str, list[float]] = {"kept": [], "stateless": []}
            for _ in range(rounds + 1):
                for arm, server, project in (
                    ("stateless", stateless, None),
                    ("kept", keeping, "bench"),
                ):
                    source, before = requests(project, **options), cpu_seconds(server.process)
                    rate = asyncio.run(throughput(server, source, seconds))
                    measured[arm].append(rate)
                    spent[arm].append((cpu_seconds(server.process) - before) / rate / seconds)
            kept, without = (measured[arm][1:] for arm in ("kept", "stateless"))
            cpu = ratio(spent["stateless"][1:], spent["kept"][1:])
            print(
                f"POST /evaluate, 10 x 10, {name}, {CLIENTS} clients: "
                f"{statistics.median(kept):7.0f} a second kept, "
                f"{statistics.median(without):7.0f} without a store, "
                f"ratio {ratio(kept, without):.2f} (of CPU time {cpu:.2f})",
                flush=True,
            )


def fill(url: str) -> None:
    """Store a history, oldest first."""
    generator = np.random.default_rng(0)
    chances = (np.eye(10) * 0.9 + 0.01).ravel()
    tables = generator.multinomial(10_000, chances / chances.sum(), 1000).reshape(-1, 10, 10)
    store = open_store(url)
    packed = [
        store.pack(
            NewEvaluation(
                project="bench",
                labels=LABELS,
                table=ConfusionTable.dense(tables[i % 1000]),
                input_digest=f"sha256:{generator.bytes(32).hex()}",
                engine_version="0",
                model=f"model-{i % 5}",
                version=f"1.{i}",
                branch="main" if i % 3 else f"feature-{i % 17}",
                tags=("nightly",),
                test_set="holdout",
                verdict="fail" if i % 10 == 0 else "pass",
            )
        )
        for i in range(HISTORY)
    ]
    for future in [store.put_many([evaluation]) for evaluation in packed]:
        future.result()
    store.close()


def read(folder: Path, rounds: int) -> None:
    """Measure lists, trends and the leaderboard over HTTP."""
    url = f"sqlite:///{folder}/read.db"
    fill(url)
    place = "/v1/projects/bench"
    paths = {
        "page of 50": f"{place}/evaluations",
        "page of 200 of one model": f"{place}/evaluations?model=model-3&limit=200",
        "page, one version": f"{place}/evaluations?version=1.7",
        "page, no such tag": f"{place}/evaluations?tag=none",
        "page, no such branch": f"{place}/evaluations?branch=none",
        "projects with counts": "/v1/projects",
        f"trend of accuracy, {TREND}": f"{place}/trend?index=accuracy&limit={TREND}",
        f"trend of kappa, {TREND}": f"{place}/trend?index=kappa&limit={TREND}",
        f"trend of recall of a class, {TREND}": f"{place}/trend?index=recall&class=3&limit={TREND}",
        f"trend of r_prime of a class, {TREND}": (
            f"{place}/trend?index=r_prime&class=3&limit={TREND}"
        ),
        f"trend of macro_f1, {TREND}": f"{place}/trend?index=macro_f1&limit={TREND}",
        "leaderboard of 20": f"{place}/leaderboard?index=accuracy",
        "badge of a value": f"{place}/badge.svg?index=accuracy",
    }
    with serve(*RPRIME, RPRIME_STORE=url) as server:
        for name, path in paths.items():
            get(server, path)
            before = cpu_seconds(server.process)
            times = [get(server, path) for _ in range(4 * rounds)]
            cpu = 1000 * (cpu_seconds(server.process) - before) / len(times)
            wall = f"{statistics.median(times):8.1f} ms, fastest {min(times):8.1f}"
            print(f"{name:38s} {wall}, of CPU {cpu:8.1f}", flush=True)


def get(server: Server, path: str) -> float:
    """Milliseconds until an answer has been read."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    connection.request("GET", path, headers=JSON)
    start = time.perf_counter()
    response = connection.getresponse()
    content = response.read()
    spent = time.perf_counter() - start
    connection.close()
    if response.status != http.HTTPStatus.OK:
        raise SystemExit(f"{path}: {response.status} {content[:300]!r}")
    return 1000 * spent


def main() -> None:
    """Run the measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--only", choices=("post", "read"))
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if chosen.only != "read":
            post(Path(name), chosen.rounds, chosen.seconds)
        if chosen.only != "post":
            read(Path(name), chosen.rounds)


if __name__ == "__main__":
    main()
