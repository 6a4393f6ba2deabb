"""What observing a request costs, as a part of a default report.

    PYTHONPATH=. sh .ci/venv python tests/bench/observation.py

The middleware around an endpoint that only reads a body answers blocks of requests in turns: as it
is; without observation (trace id, durations, bytes and use of the store are not recorded); and with
a line of the log for each request. Beside them the whole application answers with a default report.
The figures are CPU of the thread without HTTP itself: the lower quartile of the rounds, which other
programs on the machine disturb least.
"""

import argparse
import asyncio
import json
import os
import random
import secrets
import statistics
import time
from typing import Any

import structlog
from starlette.requests import Request

from rprime.app import create_app
from rprime.server import logs, middleware
from rprime.server.body import read_body
from rprime.server.metrics import METHODS, OTHER
from rprime.server.request_record import DEFAULT_HEADERS, REQUEST_ID, SAFE_ID, RequestRecord
from rprime.settings import Settings
from rprime.store.use import StoreUse

BLOCK = 50
REPORT = "default report"
TABLE = [[90 if i == j else 1 + (i + j) % 3 for j in range(10)] for i in range(10)]
HEADERS = {
    "host": "localhost:8000",
    "accept": "*/*",
    "accept-encoding": "gzip, deflate",
    "connection": "keep-alive",
    "user-agent": "python-httpx/0.28",
    "content-type": "application/json",
    "traceparent": f"00-{'4b' * 16}-{'00f0' * 4}-01",
}


class BareRecord(RequestRecord):
    """Adds the id and the default headers to a response, and nothing else."""

    def __init__(self, scope: Any, send: Any, *, proxies: Any, draining: Any) -> None:
        self.scope, self._send, self._proxies, self._draining = scope, send, proxies, draining
        self.method = scope["method"] if scope["method"] in METHODS else OTHER
        self.request_id, self.hosts, self.status = secrets.token_hex(16), [], 0
        for name, value in scope["headers"]:
            if name == b"host":
                self.hosts.append(value)
            elif name == REQUEST_ID and SAFE_ID.fullmatch(value):
                self.request_id = str(value, "ascii")
        scope.setdefault("state", {})["request_id"] = self.request_id
        self.since = time.monotonic()

    store = StoreUse()

    async def __call__(self, message: Any) -> None:
        """Send a part of the response."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = message["headers"]
            present = {name for name, _ in headers}
            headers.extend(header for header in DEFAULT_HEADERS if header[0] not in present)
            headers.append((REQUEST_ID, self.request_id.encode()))
        await self._send(message)


class NoContext:
    """A context variable that keeps nothing."""

    def set(self, _: object) -> None:
        """Forget it."""


AS_IT_IS = {name: vars(middleware)[name] for name in ("current_request", "current_use")}
SIDES: dict[str, dict[str, Any]] = {
    "as it is": {"RequestRecord": RequestRecord, **AS_IT_IS},
    "not observed": {"RequestRecord": BareRecord, **dict.fromkeys(AS_IT_IS, NoContext())},
    "each request logged": {"RequestRecord": RequestRecord, **AS_IT_IS},
    REPORT: {"RequestRecord": RequestRecord, **AS_IT_IS},
}


async def measure(rounds: int) -> dict[str, float]:
    """Answer blocks of requests in turns."""
    app = create_app(Settings(store="none"))
    content = json.dumps({"confusion_matrix": TABLE}).encode()
    spent: dict[str, list[float]] = {side: [] for side in SIDES}
    async with app.router.lifespan_context(app):
        reading = around_reading(app)
        for number in range(rounds + 2):
            for side in random.sample(list(SIDES), len(SIDES)):
                vars(middleware).update(SIDES[side])
                vars(app.state.services)["log_requests"] = side == "each request logged"
                target = app if side == REPORT else reading
                since = time.thread_time()
                for _ in range(BLOCK):
                    # A context of its own, as each request of uvicorn has.
                    await asyncio.create_task(answer(target, content))
                if number > 1:
                    spent[side].append(1e6 * (time.thread_time() - since) / BLOCK)
    return figures(spent)


def around_reading(app: Any) -> middleware.RequestMiddleware:
    """Return the middleware of an application around an endpoint that only reads the body."""

    async def read(scope: Any, receive: Any, send: Any) -> None:
        await read_body(Request({**scope, "app": app}, receive), 1 << 20)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    (surround,) = (m for m in app.user_middleware if m.cls is middleware.RequestMiddleware)
    return middleware.RequestMiddleware(read, **surround.kwargs)


async def answer(app: Any, content: bytes) -> None:
    """Send a request and check its status."""
    headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
    headers.append((b"content-length", str(len(content)).encode()))
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/evaluate",
        "query_string": b"",
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8000),
        "state": {},
    }
    statuses = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    await app(scope, receive, send)
    if statuses != [200]:
        raise SystemExit(f"{statuses} in place of 200")


def figures(spent: dict[str, list[float]]) -> dict[str, float]:
    """Return microseconds, and what observation adds, in percent of a default report."""
    times = {side: statistics.quantiles(blocks, n=4)[0] for side, blocks in spent.items()}
    bare, report = times["not observed"], times[REPORT]
    rows = {f"{side}, microseconds": round(spent_, 1) for side, spent_ in times.items()}
    for side in ("as it is", "each request logged"):
        rows[f"{side}, % of a report"] = round(100 * (times[side] - bare) / report, 2)
    return rows


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    with open(os.devnull, "w") as sink:  # noqa: PTH123 - of the system
        logs.configure()
        structlog.configure(logger_factory=structlog.WriteLoggerFactory(sink))
        print(json.dumps(asyncio.run(measure(parser.parse_args().rounds)), indent=2))


if __name__ == "__main__":
    main()
