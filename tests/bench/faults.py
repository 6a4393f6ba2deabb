"""Measure what becomes of good clients while others are slow, too many, or the service stops.

    sh .ci/venv python tests/bench/faults.py slow|overload|stop [--long] [--rounds N]

Each case starts a service of its own on loopback, prints its figures as JSON and ends with 1 if
something that the README promises does not hold. The short versions take seconds and run with the
tests; the long ones are those of the README's table.

slow      500 connections that are idle, stop within their head, or send a byte now and then.
overload  ten times as many requests a second as are answered with 8 clients, from as many
          connections as that takes. Capacity and goodput are those of a second of the server's CPU,
          so that other work on the machine counts for both alike.
stop      SIGTERM while 8 clients write to a SQLite store, again and again.
"""

import argparse
import asyncio
import http.client
import json
import os
import re
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlsplit

from speed import body, cpu_seconds

Figures = dict[str, object]
CLIENTS = 8
RPRIME = Path(sys.executable).with_name("rprime")


@dataclass(frozen=True)
class Server:
    """A running service."""

    port: int
    process: "subprocess.Popen[str]"

    def cpu(self) -> float:
        """Seconds of CPU that it has used."""
        return cpu_seconds(self.process.pid)


@contextmanager
def serve(store: str = "none", **variables: str) -> Iterator[Server]:
    """Start a service on a free port; leaving it asks it to stop."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RPRIME_")}
    settings = {"RPRIME_STORE": store, "RPRIME_DRAIN_SECONDS": "0", "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [RPRIME, "serve", "--port", "0"],
        env=environment | settings | variables,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        found = re.search(r"http://\S+(?=,)", process.stdout.readline())
        if found is None:
            raise SystemExit("the service did not start")
        server = Server(urlsplit(found[0]).port or 0, process)
        # It listens before it has started.
        status_of(server.port, "/livez")
        yield server
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(60)
        process.stdout.close()


def status_of(port: int, path: str) -> int:
    """Ask once, on a connection of its own; the status."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path)
    status = connection.getresponse().status
    connection.close()
    return status


def request(content: bytes) -> bytes:
    """Write a request to evaluate."""
    head = "POST /evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


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


# Slow clients


def slow(*, long: bool) -> Figures:
    """Let 500 slow clients hang about, and see what a good one notices."""
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
    times = [statistics.quantiles([s for _, s in some], n=100)[98] for some in (alone, beside)]
    return {
        "slow clients": len(lived),
        "longest seconds until one was let go": round(max(lived), 1),
        "answers to the good client": dict(statuses),
        "p99 of the good client, beside them against alone": round(times[1] / times[0], 2),
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


async def _latencies(server: Server, content: bytes, seconds: float) -> list[tuple[int, float]]:
    found, client = [], await connect(server.port)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.perf_counter()
        status, _ = await client.ask(content)
        found.append((status, time.perf_counter() - begun))
        if status != http.HTTPStatus.OK:
            client = await connect(server.port)
    client.transport.close()
    return found


# Overload


@dataclass
class Load:
    """What became of the requests of a load."""

    sent: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    untold: int = 0
    latencies: list[float] = field(default_factory=list)

    async def ask(self, client: Client, content: bytes) -> None:
        """Ask once."""
        self.sent += 1
        begun = time.perf_counter()
        status, told = await client.ask(content)
        self.statuses[status] += 1
        self.untold += status != http.HTTPStatus.OK and not told
        if status == http.HTTPStatus.OK:
            self.latencies.append(time.perf_counter() - begun)


async def closed(server: Server, content: bytes, seconds: float, clients: int) -> Load:
    """Let clients ask one request after the other."""
    load, end = Load(), time.monotonic() + seconds

    async def ask() -> None:
        client = await connect(server.port)
        while time.monotonic() < end:
            await load.ask(client, content)
        client.transport.close()

    await asyncio.gather(*(ask() for _ in range(clients)))
    return load


async def opened(
    server: Server, content: bytes, seconds: float, rate: float, most: int = 6000
) -> Load:
    """Send so many requests a second, whether the others are answered or not."""
    load, idle, asking = Load(), list[Client](), set[asyncio.Task[None]]()

    async def ask() -> None:
        client = idle.pop() if idle else await connect(server.port)
        await load.ask(client, content)
        if not client.transport.is_closing():
            idle.append(client)

    begun = time.monotonic()
    due = 0.0
    while (now := time.monotonic() - begun) < seconds:
        due, missing = rate * now, rate * now - due
        for _ in range(min(round(missing), most - len(asking))):
            task = asyncio.create_task(ask())
            asking.add(task)
            task.add_done_callback(asking.discard)
        await asyncio.sleep(0.005)
    await asyncio.gather(*asking)
    for client in idle:
        client.transport.close()
    return load


async def by_cpu(server: Server, load: Awaitable[Load]) -> tuple[Load, float]:
    """Give a load and its good answers for each second of the server's CPU."""
    before = server.cpu()
    done = await load
    return done, done.statuses[200] / (server.cpu() - before)


def overload(*, long: bool) -> Figures:
    """Send ten times what can be answered."""
    with serve() as server:
        return asyncio.run(_overload(server, 10 if long else 2))


async def _overload(server: Server, seconds: float) -> Figures:
    content = request(body(100))
    await closed(server, content, 1, CLIENTS)
    _, capacity = await by_cpu(server, closed(server, content, seconds, CLIENTS))
    begun = time.monotonic()
    calm = await closed(server, content, seconds, CLIENTS)
    rate = calm.statuses[200] / (time.monotonic() - begun)
    load, goodput = await by_cpu(server, opened(server, content, seconds, 10 * rate))
    begun = time.monotonic()
    while True:
        after = await closed(server, content, 0.5, CLIENTS)
        if set(after.statuses) == {200} and median(after) < 3 * median(calm):
            break
        if time.monotonic() - begun > 10:
            break
    recovery = time.monotonic() - begun
    return {
        "answers a second with 8 clients": round(rate),
        "requests a second sent": round(load.sent / seconds),
        "answers": dict(load.statuses),
        "refusals without Retry-After": load.untold,
        "goodput against capacity, by CPU": round(goodput / capacity, 3),
        "p50 and p99 seconds of good answers": [
            round(statistics.quantiles(load.latencies, n=100)[i], 2) for i in (49, 98)
        ],
        "seconds until all is as before": round(recovery, 1),
        "holds": load.untold == 0 and recovery < 10 and set(load.statuses) <= {200, 503},
    }


def median(load: Load) -> float:
    """Give the median of the latencies."""
    return statistics.median(load.latencies)


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


CASES: dict[str, Callable[..., Figures]] = {"slow": slow, "overload": overload, "stop": stop}


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
