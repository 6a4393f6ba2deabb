"""Measure the service against a naive server and the cost of HTTP itself, as ratios.

    sh .ci/venv python tests/bench/speed.py [--rounds 5] [--requests 1600]

Three servers run at the same time: this service, what one would write instead (`naive_server`:
FastAPI, Pydantic and scikit-learn) and a constant answer of the same size (`floor_server`). Each
round asks all of them in turn, with 16 clients, and what counts is the CPU time of the server
processes for each request, so that a noisy machine moves all figures alike. Printed are medians
over the rounds and the medians of the ratios within a round.
"""

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from socket import socket
from typing import Any

import numpy as np
import orjson

from rprime.application import read_request
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import compare
from rprime.core.items import Items
from rprime.core.options import Options
from rprime.core.table import ConfusionTable
from rprime.settings import Limits

HERE = Path(__file__).parent
TICK = os.sysconf("SC_CLK_TCK")
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Server:
    """A running server."""

    port: int
    process: int

    def ask(self, path: str, body: bytes, times: int) -> bytes:
        """Send the same request over one connection; the last answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        answer = b""
        for _ in range(times):
            connection.request("POST", path, body, JSON)
            response = connection.getresponse()
            answer = response.read()
            if response.status != http.HTTPStatus.OK:
                raise SystemExit(f"{path}: {response.status} {answer[:300]!r}")
        connection.close()
        return answer

    def cpu(self, path: str, body: bytes, times: int, clients: int = 16) -> float:
        """CPU seconds of the server for one request, with some clients asking at once."""
        before = cpu_seconds(self.process)
        with ThreadPoolExecutor(clients) as pool:
            for _ in pool.map(lambda _: self.ask(path, body, times // clients), range(clients)):
                pass
        return (cpu_seconds(self.process) - before) / (times // clients * clients)


def cpu_seconds(process: int) -> float:
    """User and system time of a process, its children included."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    seconds = (int(fields[11]) + int(fields[12])) / TICK
    return seconds + sum(cpu_seconds(child) for child in children(process))


def children(process: int) -> Iterator[int]:
    """Return the processes that the threads of a process have started."""
    for started in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            yield from map(int, started.read_text().split())


@contextmanager
def serve(*command: str, **variables: str) -> Iterator[Server]:
    """Start a server on a free port and wait until it listens."""
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "RPRIME_STORE": "none"} | variables
    arguments = [*command, "--port", str(port)]
    process = subprocess.Popen(arguments, cwd=HERE, env=environment, stdout=sys.stderr)
    try:
        wait(port, process)
        yield Server(port, process.pid)
    finally:
        process.terminate()
        process.wait(20)


def wait(port: int, process: "subprocess.Popen[bytes]") -> None:
    """Wait until something listens on the port."""
    for _ in range(300):
        with socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise SystemExit("a server did not start")


def matrix(k: int) -> list[list[int]]:
    """Draw a table of k classes with a strong diagonal."""
    draw = np.random.default_rng(0)
    counts: list[list[int]] = (draw.integers(0, 60, (k, k)) + 100 * np.eye(k, dtype=int)).tolist()
    return counts


def body(k: int, **options: object) -> bytes:
    """Build the request for a table of k classes."""
    return json.dumps({"confusion_matrix": matrix(k)} | options, separators=(",", ":")).encode()


def show(name: str, seconds: dict[str, list[float]], *, difference: bool = False) -> None:
    """Print the medians and the ratios to the first, or how much more it is."""
    first, *others = seconds
    times = "  ".join(f"{key} {statistics.median(v) * 1e6:9.0f} us" for key, v in seconds.items())
    ratios = "  ".join(
        f"{first}/{key} {ratio(seconds[first], seconds[key]):6.2f}  "
        f"{key}/{first} {ratio(seconds[key], seconds[first]):6.2f}"
        for key in others
    )
    if difference:
        for key in others:
            more = (a - b for a, b in zip(seconds[first], seconds[key], strict=True))
            ratios += f"  {first}-{key} {statistics.median(more) * 1e6:9.0f} us"
    print(f"{name:34s} {times}   {ratios}", flush=True)


def ratio(above: list[float], below: list[float]) -> float:
    """Median of the ratios within a round."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def small(rounds: int, requests: int) -> None:
    """Compare a 10 x 10 table, CPU for each request."""
    rprime = [str(Path(sys.executable).with_name("rprime")), "serve"]
    uvicorn = [sys.executable, "-m", "uvicorn", "--no-access-log"]
    cases = {"without intervals": body(10, intervals=False), "default report": body(10)}
    with ExitStack() as servers:
        service = servers.enter_context(serve(*rprime))
        naive = servers.enter_context(serve(*uvicorn, "naive_server:app"))
        for name, request in cases.items():
            size = len(service.ask("/evaluate", request, 20))
            floor = [*uvicorn, "floor_server:fastapi_app"]
            with serve(*floor, SIZE=str(size)) as constant:
                tasks: dict[str, Callable[[], float]] = {
                    "rprime": partial(service.cpu, "/evaluate", request, requests),
                    "naive": partial(naive.cpu, "/evaluate", body(10), max(requests // 20, 32)),
                    "floor": partial(constant.cpu, "/evaluate", request, requests),
                }
                for ask in tasks.values():
                    ask()
                show(f"10 x 10, {name}", interleaved(tasks, rounds))


def limits(rounds: int, requests: int) -> None:
    """Compare reports with and without intervals, CPU for each request, over HTTP and without."""
    few = max(requests // 50, 4)
    with serve(str(Path(sys.executable).with_name("rprime")), "serve") as service:
        for k, times, clients in (
            (10, requests, 16),
            (10, 8 * few, 1),
            (300, few, 1),
            (1000, 8, 1),
        ):
            tasks: dict[str, Callable[[], float]] = {
                name: partial(
                    service.cpu, "/evaluate", body(k, intervals=intervals), times, clients
                )
                for name, intervals in {"with": True, "without": False}.items()
            }
            for ask in tasks.values():
                ask()
            name = f"{k} x {k}, intervals, {clients} clients"
            show(name, interleaved(tasks, rounds), difference=True)
    for k, times in ((10, 8 * few), (300, few), (1000, 8)):
        in_process: dict[str, Callable[[], float]] = {
            name: partial(reported, body(k, intervals=intervals), times)
            for name, intervals in {"with": True, "without": False}.items()
        }
        show(f"{k} x {k}, in process", interleaved(in_process, rounds), difference=True)


def gates(rounds: int, requests: int) -> None:
    """Compare a request with baseline and gate with the default report, one client."""
    draw = np.random.default_rng(0)
    true, *guesses = draw.integers(0, 10, (3, 1000))
    new, old = (np.where(draw.random(1000) < 0.85, true, guess).tolist() for guess in guesses)
    rules = [
        {"index": i, "classes": "all", "max_drop": 0.05} for i in ("recall", "precision", "f1")
    ]
    items = {"y_true": true.tolist(), "y_pred": new}
    gated = {**items, "baseline": {"y_pred": old}, "gates": {"rules": rules}}
    with serve(str(Path(sys.executable).with_name("rprime")), "serve") as service:
        tasks: dict[str, Callable[[], float]] = {
            name: partial(service.cpu, "/evaluate", orjson.dumps(request), max(requests // 4, 8), 1)
            for name, request in {"gate": gated, "default": items}.items()
        }
        for ask in tasks.values():
            ask()
        show("1000 items, 10 classes, one client", interleaved(tasks, rounds))


def reported(request: bytes, times: int) -> float:
    """CPU seconds of this process from the bytes of a request to those of its report."""

    def answer() -> None:
        for _ in range(times):
            evaluation_request = read_request(request, Limits())
            evaluation_request.report(evaluation_request.evaluate())

    return lasting(answer) / times


def paired(rounds: int, k: int) -> None:
    """Compare the paired comparison of 1e6 items with counting the two tables of their codes."""
    draw = np.random.default_rng(0)
    true = draw.integers(0, k, 1_000_000).astype(np.uint8)
    guesses = draw.integers(0, k, (2, true.size)).astype(np.uint8)
    old, new = (np.where(draw.random(true.size) < 0.8, true, guess) for guess in guesses)

    def counted(predicted: Any) -> Any:
        codes = true.astype(np.int64) * k + predicted
        return np.bincount(codes, minlength=k * k).reshape(k, k)

    def side(predicted: Any) -> Side:
        return Side(
            labels=tuple(map(str, range(k))),
            table=ConfusionTable.dense(counted(predicted)),
            items=Items(true, predicted),
        )

    tasks: dict[str, Callable[[], float]] = {
        "compare": partial(lasting, partial(compare, side(new), side(old), Options())),
        "counting": partial(lasting, lambda: (counted(old), counted(new))),
    }
    show(f"1e6 items, {k} classes, paired", interleaved(tasks, rounds))


def lasting(work: Callable[[], object]) -> float:
    """CPU seconds of this process for some work."""
    start = time.process_time()
    work()
    return time.process_time() - start


def large(rounds: int) -> None:
    """Compare the CPU of large requests with what parsing their JSON costs."""
    draw = np.random.default_rng(0)
    true = draw.integers(0, 10, 1_000_000)
    predicted = np.where(draw.random(true.size) < 0.7, true, draw.integers(0, 10, true.size))
    texts = [f"class_{i:04d}" for i in range(10)]
    cases = {
        "1000 x 1000": body(1000),
        "1e6 integer labels": orjson.dumps({"y_true": true.tolist(), "y_pred": predicted.tolist()}),
        "1e6 string labels": orjson.dumps(
            {
                "y_true": [texts[i] for i in true.tolist()],
                "y_pred": [texts[i] for i in predicted.tolist()],
            }
        ),
    }
    with serve(str(Path(sys.executable).with_name("rprime")), "serve") as service:
        for name, request in cases.items():
            tasks: dict[str, Callable[[], float]] = {
                "rprime": partial(service.cpu, "/evaluate", request, 2, 1),
                "orjson.loads": partial(lasting, partial(orjson.loads, request)),
            }
            show(name, interleaved(tasks, rounds))


def interleaved(tasks: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Ask all in turn, round by round."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, ask in tasks.items():
            times[name].append(ask())
    return times


def main() -> None:
    """Run the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=1600)
    parser.add_argument("--only", choices=("small", "intervals", "gates", "paired", "large"))
    chosen = parser.parse_args()
    if chosen.only in (None, "small"):
        small(chosen.rounds, chosen.requests)
    if chosen.only in (None, "intervals"):
        limits(chosen.rounds, chosen.requests)
    if chosen.only in (None, "gates"):
        gates(chosen.rounds, chosen.requests)
    if chosen.only in (None, "paired"):
        for k in (10, 100):
            paired(chosen.rounds, k)
    if chosen.only in (None, "large"):
        large(chosen.rounds)


if __name__ == "__main__":
    main()
