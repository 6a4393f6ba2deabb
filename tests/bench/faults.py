"""Measure what becomes of good clients while others are slow or malign, or the service stops.

    sh .ci/venv python tests/bench/faults.py bombs|slow|stop [--long] [--rounds N]

Each case starts a service of its own on loopback, prints its figures as JSON and ends with 1 if
something that docs/reliability.md promises does not hold. The short versions take seconds and run
with the tests; the long ones are those of its table.

bombs 32 bodies at once that cost much more than they weigh, again and again.
slow  500 connections that are idle, stop within their head, or send a byte now and then.
stop  SIGTERM while 8 clients write to a SQLite store, again and again.
"""

import argparse
import asyncio
import http.client
import json
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

from serving import Figures, Server, request, serve, status_of
from speed import body

BOMBS = Path(__file__).parents[1] / "system" / "bombs.py"
MOST_BESIDE_BOMBS = 4
"""Times as long as alone the p99 of a good client may be."""
Asked = tuple[int, float]
"""The status of an answer, and the seconds that it took."""


class Client(asyncio.Protocol):
    """A connection that sends requests one after the other."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.answer: asyncio.Future[tuple[int, bool]] | None = None
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way to send."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    async def ask(self, content: bytes) -> tuple[int, bool]:
        """Send a request; its status, and whether it says when to come again."""
        self.answer = asyncio.get_running_loop().create_future()
        self.received.clear()
        self.transport.write(content)
        return await self.answer

    def data_received(self, data: bytes) -> None:
        """Look whether the answer is complete."""
        self.received += data
        end = self.received.find(b"\r\n\r\n")
        if end < 0 or self.answer is None or self.answer.done():
            return
        head = bytes(self.received[:end]).lower()
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        if len(self.received) >= end + 4 + length:
            self.answer.set_result((int(head[9:12]), b"\r\nretry-after: " in head))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio calls it
        """Tell that there will be no answer."""
        if self.answer is not None and not self.answer.done():
            self.answer.set_result((0, False))


async def connect(port: int) -> Client:
    """Open a connection."""
    loop = asyncio.get_running_loop()
    return (await loop.create_connection(Client, "127.0.0.1", port))[1]


# Bombs


def bombs(*, long: bool) -> Figures:
    """Send bombs from another process, and see what a good client notices."""
    with serve() as server:
        return throw_bombs(server, 5 if long else 1)


def throw_bombs(server: Server, rounds: int) -> Figures:
    """Send bombs to a service that runs."""
    throwing = subprocess.Popen(
        [sys.executable, BOMBS, str(server.port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with throwing:
        return asyncio.run(_bombs(server, throwing, rounds))


async def _bombs(server: Server, throwing: "subprocess.Popen[str]", rounds: int) -> Figures:
    assert throwing.stdin is not None
    assert throwing.stdout is not None
    assert throwing.stdout.readline() == "ready\n"
    content = request(body(10))
    alone, beside, refusals = list[Asked](), list[Asked](), Counter[int]()
    begun = time.monotonic()
    for _ in range(rounds):
        alone += await _latencies(server, content, 2)
        throwing.stdin.write("\n")
        throwing.stdin.flush()
        told = asyncio.ensure_future(asyncio.to_thread(throwing.stdout.readline))
        while not told.done():
            beside += await _latencies(server, content, 0.2)
        refusals.update(json.loads(told.result()))
    throwing.stdin.close()
    idle, busy = _p99(alone), _p99(beside)
    statuses = Counter(status for status, _ in alone + beside)
    return {
        "answers to bombs": dict(refusals),
        "seconds for 32 of them": round((time.monotonic() - begun) / rounds - 2, 1),
        "answers to the good client": dict(statuses),
        "p99 of the good client alone, milliseconds": round(1000 * idle, 1),
        "p99 of the good client beside them, milliseconds": round(1000 * busy, 1),
        "p99 of the good client, beside them against alone": round(busy / idle, 2),
        "holds": set(statuses) == {200}
        and set(refusals) <= {400, 413, 422, 429, 503}
        # A short run has only two or three requests above it.
        and (rounds == 1 or busy <= MOST_BESIDE_BOMBS * idle),
    }


# Slow clients


def slow(*, long: bool) -> Figures:
    """Connect 500 slow clients, and measure what a good one notices."""
    seconds = 10 if long else 2
    deadlines = {"HEAD_SECONDS": seconds, "BODY_SECONDS": 2 * seconds}
    limits = {f"RPRIME_LIMITS_{name}": str(value) for name, value in deadlines.items()}
    with serve(**limits) as server:
        return asyncio.run(_slow(server, 60 if long else 4))


async def _slow(server: Server, seconds: float) -> Figures:
    content = request(body(10))
    alone = await _latencies(server, content, 2)
    sent = (b"", b"POST /evaluate HTTP/1.1\r\nHost:", content[:-50])
    lives = [_linger(server, sent[i % 3], now_and_then=i % 2 > 0) for i in range(500)]
    lingering = asyncio.gather(*lives)
    beside = await _latencies(server, content, seconds)
    lived = await asyncio.wait_for(lingering, 120)
    statuses = Counter(status for status, _ in alone + beside)
    return {
        "slow clients": len(lived),
        "longest seconds until one was disconnected": round(max(lived), 1),
        "answers to the good client": dict(statuses),
        "p99 of the good client, beside them against alone": round(_p99(beside) / _p99(alone), 2),
        "holds": set(statuses) == {200},
    }


async def _linger(server: Server, sent: bytes, *, now_and_then: bool) -> float:
    """Be a slow client until the service ends that; for how many seconds."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    begun = time.monotonic()
    writer.write(sent)
    end = asyncio.ensure_future(reader.read())
    while not end.done():
        await asyncio.wait([end], timeout=1)
        if now_and_then and not end.done():
            writer.write(b" ")
    writer.close()
    return time.monotonic() - begun


def _p99(answers: list[Asked]) -> float:
    return statistics.quantiles([seconds for _, seconds in answers], n=100)[98]


async def _latencies(server: Server, content: bytes, seconds: float) -> list[Asked]:
    answers, client = [], await connect(server.port)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.perf_counter()
        status, _ = await client.ask(content)
        answers.append((status, time.perf_counter() - begun))
        if status != http.HTTPStatus.OK:
            client = await connect(server.port)
    client.transport.close()
    return answers


# Stopping


@dataclass
class Writers:
    """Clients that keep evaluations until the service is gone."""

    port: int
    acknowledged: list[str] = field(default_factory=list)
    truncated: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    gone: Event = field(default_factory=Event)

    def write(self, name: str) -> None:
        """Write one evaluation after the other, each on a connection that is there."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        number = 0
        while not self.gone.is_set():
            number += 1
            content = body(3, project="p", version=f"{name}-{number}")
            try:
                connection.request(
                    "POST", "/evaluate", content, {"Content-Type": "application/json"}
                )
                response = connection.getresponse()
            except (OSError, http.client.RemoteDisconnected):
                # Nothing was answered, so nothing was promised.
                connection.close()
                continue
            try:
                report = json.loads(response.read())
            except (OSError, http.client.IncompleteRead, ValueError):
                self.truncated += 1
                connection.close()
                continue
            self.statuses[response.status] += 1
            if response.status == http.HTTPStatus.CREATED:
                self.acknowledged.append(report["id"])
        connection.close()


def stop(*, long: bool, rounds: int | None = None) -> Figures:
    """Ask a service under load to stop, again and again."""
    rounds = rounds or (200 if long else 2)
    totals: Counter[str] = Counter()
    times, statuses, codes = [], Counter[int](), Counter[int]()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rprime.db"
        for i in range(rounds):
            writers, seconds, code, unready = _stopped(f"sqlite:///{path}", i)
            times.append(seconds)
            codes[code] += 1
            statuses += writers.statuses
            totals["truncated"] += writers.truncated
            totals["acknowledged"] += len(writers.acknowledged)
            totals["unready"] += unready
            with sqlite3.connect(path) as store:
                kept = {row[0] for row in store.execute("SELECT id FROM evaluations")}
            store.close()
            totals["lost"] += len(set(writers.acknowledged) - kept)
    return {
        "rounds": rounds,
        "acknowledged": totals["acknowledged"],
        "lost": totals["lost"],
        "truncated answers": totals["truncated"],
        "answers": dict(statuses),
        "exit statuses": dict(codes),
        "rounds in which /readyz said 503 first": totals["unready"],
        "longest seconds to stop": round(max(times), 1),
        "holds": not totals["lost"]
        and not totals["truncated"]
        and set(codes) == {0}
        and max(times) < 30
        and totals["unready"] == rounds,
    }


def _stopped(store: str, number: int) -> tuple[Writers, float, int, bool]:
    """Stop a service under load; its clients, the seconds, the status, and what /readyz said."""
    with serve(store, RPRIME_DRAIN_SECONDS="0.5") as server:
        writers = Writers(server.port)
        threads = [Thread(target=writers.write, args=(f"{number}-{i}",)) for i in range(8)]
        for thread in threads:
            thread.start()
        time.sleep(0.3 + 0.05 * (number % 10))
        begun = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        unready = _says_no(server.port)
        code = server.process.wait(60)
        seconds = time.monotonic() - begun
        writers.gone.set()
        for thread in threads:
            thread.join()
    return writers, seconds, code, unready


def _says_no(port: int) -> bool:
    """Ask /readyz until it says no, or nobody answers."""
    while True:
        try:
            if status_of(port, "/readyz") == http.HTTPStatus.SERVICE_UNAVAILABLE:
                return True
        except (OSError, http.client.HTTPException):
            return False


CASES: dict[str, Callable[..., Figures]] = {"bombs": bombs, "slow": slow, "stop": stop}


def main() -> None:
    """Run a case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--rounds", type=int, help="how often the service stops; long: 200")
    chosen = parser.parse_args()
    if chosen.rounds and chosen.case != "stop":
        parser.error("only stopping has rounds")
    more = {"rounds": chosen.rounds} if chosen.rounds else {}
    figures = CASES[chosen.case](long=chosen.long, **more)
    print(json.dumps(figures, indent=2))
    sys.exit(not figures["holds"])


if __name__ == "__main__":
    main()
