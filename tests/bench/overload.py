"""Measure what becomes of good answers when ten times as much is asked as can be answered.

    sh .ci/venv python tests/bench/overload.py [--seconds 10] [--classes 10] [--queue 256]

The service has a core of its own, and so has the load: bytes that were made before, sent over plain
sockets by one process that waits for nobody. The loads, one after the other:

calm      8 clients, each waiting for its answer: what the service can do.
clients   ten times as many clients.
rate      ten times as many requests a second, whoever is answered, over connections kept open.
fresh     the same two once more, each request over a connection of its own.

Goodput is the good answers of a second of the server's CPU, against those when it is calm, so that
other work on the machine counts for both alike. The figures are printed as JSON; the status is 1 if
something that docs/reliability.md promises does not hold.
"""

import argparse
import json
import os
import selectors
import socket
import statistics
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from serving import Figures, Server, request, serve
from speed import body

from rprime.settings import Limits

CLIENTS = 8
TIMES = 10
MOST = 4000
"""Connections; who would need one more is not sent."""
LEAST = 2
"""Good answers that a load goes on for."""
TICK = 0.01
"""Seconds of CPU: the kernel counts in these."""
OK = 200
BUSY = frozenset({429, 503})


@dataclass
class Load:
    """What became of the requests of a load."""

    sent: int = 0
    withheld: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    untold: int = 0
    latencies: list[float] = field(default_factory=list)
    by_cpu: float = 0.0
    """Good answers for each second of the server's CPU."""
    by_clock: float = 0.0

    def count(self, head: bytes, seconds: float) -> None:
        """Count an answer by its head, in small letters; empty if there is none."""
        status = int(head[9:12] or 0)
        self.statuses[status] += 1
        self.untold += status != OK and b"\r\nretry-after: " not in head
        if status == OK:
            self.latencies.append(seconds)

    def shown(self, calm: "Load") -> Figures:
        """Return what is told of it."""
        return {
            "sent": self.sent,
            "withheld": self.withheld,
            "answers": dict(self.statuses),
            "refusals without Retry-After": self.untold,
            "goodput against capacity, by CPU": round(self.by_cpu / calm.by_cpu, 3),
            "goodput against capacity, by the clock": round(self.by_clock / calm.by_clock, 3),
            "p50 and p99 seconds of good answers": [
                round(statistics.quantiles(self.latencies, n=100)[i], 3) for i in (49, 98)
            ],
        }


class Caller:
    """A connection that sends requests, one after the other."""

    def __init__(self, port: int) -> None:
        self.socket = socket.socket()
        # A request is sent at once, however far the service is with reading.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        self.socket.connect(("127.0.0.1", port))
        self.begun = 0.0
        self._head = b""
        self._missing = 0

    def send(self, content: bytes, due: float) -> None:
        """Send a request whose time had come."""
        self.begun = due
        self.socket.sendall(content)

    def take(self) -> bytes | None:
        """Read; the head of the answer once all of it is there, empty if there will be none."""
        try:
            piece = self.socket.recv(1 << 18)
        except ConnectionError:
            return b""
        if not piece:
            return b""
        if not self._missing:
            head, _, content = piece.partition(b"\r\n\r\n")
            self._head = head.lower()
            length = self._head.partition(b"content-length: ")[2].partition(b"\r\n")[0]
            self._missing = int(length) - len(content)
        else:
            self._missing -= len(piece)
        return None if self._missing else self._head


class Crowd:
    """Everybody who asks."""

    def __init__(self, server: Server, content: bytes, *, fresh: bool = False) -> None:
        self._server = server
        self._content = content
        self._fresh = fresh
        self._load = Load()
        self._idle: list[Caller] = []
        self._busy = 0
        self._selector = selectors.DefaultSelector()

    def closed(self, seconds: float, clients: int) -> Load:
        """Let clients ask one request after the other."""
        return self._during(seconds, clients, 0)

    def opened(self, seconds: float, rate: float) -> Load:
        """Send so many requests a second, whether the others are answered or not."""
        return self._during(seconds, 0, rate)

    def _during(self, seconds: float, clients: int, rate: float) -> Load:
        load, begun, before = self._load, time.perf_counter(), self._server.cpu()
        # Longer on a machine so slow that there would be nothing to tell.
        while (passed := time.perf_counter() - begun) < seconds or load.statuses[OK] < LEAST:
            for _ in range(clients - self._busy):
                self._ask(time.perf_counter())
            for i in range(load.sent + load.withheld, int(rate * passed)):
                self._ask(begun + i / rate)
            self._take(0.001)
        load.by_clock = load.statuses[OK] / passed
        load.by_cpu = load.statuses[OK] / max(self._server.cpu() - before, TICK)
        while self._busy:
            self._take(10)
        for caller in self._idle:
            self._drop(caller)
        self._selector.close()
        return load

    def _ask(self, due: float) -> None:
        if self._busy == MOST:
            self._load.withheld += 1
            return
        self._load.sent += 1
        self._busy += 1
        caller = self._idle.pop() if self._idle else self._connected()
        caller.send(self._content, due)

    def _connected(self) -> Caller:
        caller = Caller(self._server.port)
        self._selector.register(caller.socket, selectors.EVENT_READ, caller)
        return caller

    def _take(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            caller: Caller = key.data
            head = caller.take()
            if head is None:
                continue
            if caller.begun:
                self._load.count(head, time.perf_counter() - caller.begun)
                self._busy -= 1
                caller.begun = 0.0
            elif caller in self._idle:
                self._idle.remove(caller)
            if head and not self._fresh and b"\r\nconnection: close" not in head:
                self._idle.append(caller)
            else:
                self._drop(caller)

    def _drop(self, caller: Caller) -> None:
        self._selector.unregister(caller.socket)
        caller.socket.close()


def measure(seconds: float, classes: int, queue: int) -> Figures:
    """Send ten times what can be answered, in each of the ways."""
    cores = sorted(os.sched_getaffinity(0))
    with serve(RPRIME_LIMITS_IN_FLIGHT_REQUESTS=str(queue)) as server:
        os.sched_setaffinity(server.process.pid, cores[:1])
        os.sched_setaffinity(0, cores[1:] or cores)
        try:
            return _measured(server, request(body(classes)), seconds)
        finally:
            os.sched_setaffinity(0, cores)


def _measured(server: Server, content: bytes, seconds: float) -> Figures:
    Crowd(server, content).closed(min(1, seconds), CLIENTS)
    figures: Figures = {}
    told, recoveries = True, list[float]()
    for name in ("clients", "rate", "fresh"):
        fresh = name == "fresh"
        calm = Crowd(server, content, fresh=fresh).closed(seconds, CLIENTS)
        crowd = Crowd(server, content, fresh=fresh)
        load = (
            crowd.closed(seconds, TIMES * CLIENTS)
            if name == "clients"
            else crowd.opened(seconds, TIMES * calm.by_clock)
        )
        recoveries.append(_recovery(server, content, calm))
        told = told and not load.untold and set(load.statuses) <= BUSY | {OK}
        figures[name] = {"answers a second when calm": round(calm.by_clock)} | load.shown(calm)
    return figures | {
        "longest seconds until all is as before": round(max(recoveries), 1),
        "holds": told and max(recoveries) < 10,
    }


def _recovery(server: Server, content: bytes, calm: Load) -> float:
    """Seconds until 8 clients are answered as when it was calm, at most some more than ten."""
    begun = time.perf_counter()
    while (seconds := time.perf_counter() - begun) < 10:
        after = Crowd(server, content).closed(0.2, CLIENTS)
        if set(after.statuses) == {OK} and median(after) < 3 * median(calm):
            break
    return seconds


def median(load: Load) -> float:
    """Return the median of the latencies."""
    return statistics.median(load.latencies)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="of each load")
    parser.add_argument("--classes", type=int, default=100, help="of the table that is evaluated")
    queue = Limits().in_flight_requests
    parser.add_argument("--queue", type=int, default=queue, help="requests that may wait at a time")
    chosen = parser.parse_args()
    figures = measure(chosen.seconds, chosen.classes, chosen.queue)
    print(json.dumps(figures, indent=2))
    sys.exit(not figures["holds"])


if __name__ == "__main__":
    main()
