"""Requests that are admitted, and the responses to rejected ones."""

import asyncio
import json
import os
import re
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from http.client import HTTPResponse
from pathlib import Path
from time import monotonic
from typing import Any

import httpx
import numpy as np
import pytest
import uvicorn

from rprime.app import create_app
from rprime.problems.problem import Problem
from rprime.server.admission import COMPLETED_AT, AdmissionControl
from rprime.settings import Limits, Settings
from tests.command import Run
from tests.forked_command import start
from tests.services import RPRIME, ServeApp, environment
from tests.waiting import gauge, wait_until

Serve = Callable[..., AbstractContextManager[httpx.Client]]


def request(k: int) -> dict[str, Any]:
    table = np.random.default_rng(0).integers(1, 60, (k, k))
    return {"confusion_matrix": table.tolist()}


def test_a_request_that_waited_too_long_is_rejected() -> None:
    admission = AdmissionControl(Limits(wait_seconds=1))
    admission.admit({"state": {}})
    admission.admit({"state": {COMPLETED_AT: monotonic() - 0.5}})
    with pytest.raises(Problem) as caught:
        admission.admit({"state": {COMPLETED_AT: monotonic() - 1.1}})
    assert (caught.value.status, caught.value.headers) == (503, {"Retry-After": "1"})


def test_under_overload_some_requests_are_answered_in_time(serve: Serve) -> None:
    with serve(RPRIME_STORE="none", RPRIME_LIMITS_WAIT_SECONDS="0.05") as client:
        url = str(client.base_url)

        async def ask(clients: int) -> list[httpx.Response]:
            limits = httpx.Limits(max_connections=None)
            async with httpx.AsyncClient(base_url=url, limits=limits, timeout=60) as many:
                posts = (many.post("/evaluate", json=request(100)) for _ in range(clients))
                return await asyncio.gather(*posts)

        responses = asyncio.run(ask(60))
        refused = [response for response in responses if response.status_code != 200]
        assert 0 < len(refused) < len(responses)
        for response in refused:
            assert (response.status_code, response.json()["code"]) == (503, "overloaded")
            assert response.headers["retry-after"] == "1"
        assert client.post("/evaluate", json=request(3)).status_code == 200


def test_connections_that_arrive_together_are_all_accepted(client: httpx.Client) -> None:
    with ExitStack() as stack:
        address = client.base_url.host, client.base_url.port or 0
        connections = [stack.enter_context(socket.create_connection(address)) for _ in range(300)]
        for connection in connections:
            connection.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for connection in connections:
            connection.settimeout(30)
            assert connection.recv(12) == b"HTTP/1.1 200"


def test_readiness_ends_before_the_shutdown(tmp_path: Path) -> None:
    env = environment(RPRIME_STORE="none", RPRIME_DRAIN_SECONDS="30")
    with (tmp_path / "log").open("w") as stderr:
        process = start(RPRIME, "serve", "--port", "0", env=env, stderr=stderr)
    assert process.stdout is not None
    with process.stdout:
        match = re.search(r"http://\S+(?=,)", process.stdout.readline())
    assert match
    with httpx.Client(base_url=match[0], timeout=30) as client:
        assert client.get("/readyz").status_code == 200
        process.terminate()
        wait_until(lambda: client.get("/readyz").status_code != 200)
        response = client.get("/readyz")
        assert (response.status_code, response.json()["code"]) == (503, "stopping")
        assert response.headers["connection"] == "close"
        # New requests are answered as before.
        assert client.get("/livez").status_code == 200
        assert client.post("/evaluate", json=request(3)).status_code == 200
    # A second signal is not delayed.
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(25) == 0


def test_a_request_that_outlasts_the_shutdown_gets_a_503(serve_app: ServeApp) -> None:
    # In this process: one of its own ends 0.9 s after these seconds, even if a busy machine has
    # not let it close everything by then, with the status of a process that did not finish.
    head = b"POST /evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with ExitStack() as stack:
        with serve_app(create_app(Settings(store="none")), stop_seconds=1) as client:
            address = client.base_url.host, client.base_url.port or 0
            connection = stack.enter_context(socket.create_connection(address, timeout=30))
            connection.sendall(head + b"Content-Length: 100\r\n\r\n{")
            assert client.get("/livez").status_code == 200
        answer = connection.recv(65536)
    assert answer.startswith(b"HTTP/1.1 503")
    assert b'"stopping"' in answer


def test_the_command_passes_on_how_long_requests_may_take_after_a_signal(
    rprime: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    timeouts: list[int | None] = []

    def run(self: uvicorn.Server, sockets: list[socket.socket]) -> None:
        sockets[0].close()
        timeouts.append(self.config.timeout_graceful_shutdown)

    monkeypatch.setattr(uvicorn.Server, "run", run)
    done = rprime("serve", "--port", "0", RPRIME_STORE="none", RPRIME_STOP_SECONDS="7")
    assert done.returncode == 0
    assert timeouts == [7]


@pytest.fixture(scope="module")
def narrow(
    serve: Serve, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[httpx.Client, Path]]:
    """Yield a service with a queue of one request, and its log."""
    log = tmp_path_factory.mktemp("narrow") / "log"
    settings = {"RPRIME_LIMITS_IN_FLIGHT_REQUESTS": "1", "RPRIME_LOG_REQUESTS": "1"}
    with serve(RPRIME_STORE="none", log=log, **settings) as client:
        yield client, log


POST = b"POST /evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
BODY = b'{"confusion_matrix": [[5, 1], [2, 7]], "indices": ["accuracy"]}'
WHOLE = b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


def await_accepted(client: httpx.Client) -> None:
    """Wait until all earlier connections are accepted: this one is the last."""
    address = client.base_url.host, client.base_url.port or 0
    with socket.create_connection(address, timeout=30) as last:
        last.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert last.recv(12) == b"HTTP/1.1 200"


def at_once(
    client: httpx.Client, process: int, contents: list[bytes], *, accepted: bool
) -> list[tuple[socket.socket, HTTPResponse]]:
    """Send requests that the service finds together, on accepted or on new connections."""
    address = client.base_url.host, client.base_url.port or 0

    def connected() -> list[socket.socket]:
        return [socket.create_connection(address, timeout=30) for _ in contents]

    connections = connected() if accepted else []
    if accepted:
        await_accepted(client)
    os.kill(process, signal.SIGSTOP)
    connections = connections or connected()
    for connection, content in zip(connections, contents, strict=True):
        connection.sendall(content)
    os.kill(process, signal.SIGCONT)
    answers = [HTTPResponse(connection) for connection in connections]
    for answer in answers:
        answer.begin()
    return list(zip(connections, answers, strict=True))


@pytest.mark.parametrize("known", [True, False])
def test_requests_are_rejected_while_the_queue_is_full(
    narrow: tuple[httpx.Client, Path], processes: dict[int, int], *, known: bool
) -> None:
    client, log = narrow
    process = processes[client.base_url.port or 0]
    contents = [POST + b"X-Request-Id: mine-%d\r\n" % i + WHOLE for i in range(12)]
    answers = at_once(client, process, contents, accepted=known)
    refused = [(i, *pair) for i, pair in enumerate(answers) if pair[1].status != 200]
    assert 6 < len(refused) < len(answers)
    for i, connection, answer in refused:
        problem = json.loads(answer.read())
        assert (answer.status, problem["code"]) == (503, "overloaded")
        assert problem["request_id"] == answer.headers["x-request-id"] == f"mine-{i}"
        assert answer.headers["retry-after"] == "1"
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["x-content-type-options"] == "nosniff"
        if answer.headers["connection"] != "close":
            # The connection is as good as before.
            connection.sendall(POST + WHOLE)
            again = HTTPResponse(connection)
            again.begin()
            assert (again.status, bool(again.read())) == (200, True)
    for connection, _ in answers:
        connection.close()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    logged = {line["request_id"]: line["status"] for line in lines if "request_id" in line}
    assert all(logged[f"mine-{i}"] == answer.status for i, (_, answer) in enumerate(answers))


def test_a_full_queue_rejects_other_requests_than_short_posts_too(
    narrow: tuple[httpx.Client, Path], processes: dict[int, int]
) -> None:
    client, _ = narrow
    host = b" HTTP/1.1\r\nHost: localhost\r\n"
    kinds = {
        "catalog": b"GET /v1/indices" + host + b"\r\n",
        "probe": b"GET /livez" + host + b"\r\n",
        "pipelined": (POST + WHOLE) * 2,
        "closing": POST + b"Connection: close\r\n" + WHOLE,
        "broken": b"POST \x00\r\n\r\n",
    }
    contents = [*kinds.values(), *([POST + WHOLE] * 6)]
    answers = at_once(client, processes[client.base_url.port or 0], contents, accepted=True)
    statuses = [answer.status for _, answer in answers]
    answered = dict(zip(kinds, statuses, strict=False))
    assert (answered["probe"], answered["broken"]) == (200, 400)
    assert statuses.count(503) > 5
    assert set(statuses) == {200, 400, 503}
    assert answers[list(kinds).index("closing")][1].will_close
    for connection, _ in answers:
        connection.close()


def test_the_queue_is_empty_when_all_requests_are_answered(
    narrow: tuple[httpx.Client, Path], processes: dict[int, int]
) -> None:
    client, _ = narrow
    process = processes[client.base_url.port or 0]
    for content in (POST + WHOLE, POST + b"Content-Length: 9\r\n\r\n{", b"GET /v1/indices"):
        # Some clients disconnect before the response, or within the request.
        os.kill(process, signal.SIGSTOP)
        for _ in range(5):
            with socket.create_connection(
                (client.base_url.host, client.base_url.port or 0)
            ) as connection:
                connection.sendall(content)
        os.kill(process, signal.SIGCONT)
    await_accepted(client)
    # A request left in a queue of one would have all others rejected.
    wait_until(lambda: client.post("/evaluate", json=request(3)).status_code == 200)
    # The request for the metrics is in the queue, too.
    wait_until(lambda: gauge(client, "rprime_in_flight_requests") == 1)
