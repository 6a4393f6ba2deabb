"""Who is let in, and what those are told who are not."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from time import monotonic
from typing import Any

import httpx
import numpy as np
import pytest

from conftest import RPRIME, environment
from rprime.connections import COMPLETE
from rprime.problems import Problem
from rprime.routes.in_flight import InFlight
from rprime.settings import Limits

Serve = Callable[..., AbstractContextManager[httpx.Client]]


def request(k: int) -> dict[str, Any]:
    table = np.random.default_rng(0).integers(1, 60, (k, k))
    return {"confusion_matrix": table.tolist()}


def test_who_waited_too_long_is_told_to_come_again() -> None:
    in_flight = InFlight(Limits(wait_seconds=1))
    in_flight.admit({})
    in_flight.admit({COMPLETE: monotonic() - 0.5})
    with pytest.raises(Problem) as caught:
        in_flight.admit({COMPLETE: monotonic() - 1.1})
    assert (caught.value.status, caught.value.headers) == (503, {"Retry-After": "1"})


def test_under_more_than_can_be_answered_some_are_answered_in_time(serve: Serve) -> None:
    with serve(RPRIME_STORE="none", RPRIME_LIMITS_WAIT_SECONDS="0.2") as client:
        url = str(client.base_url)

        async def ask(clients: int) -> list[httpx.Response]:
            limits = httpx.Limits(max_connections=None)
            async with httpx.AsyncClient(base_url=url, limits=limits, timeout=60) as many:
                asked = (many.post("/evaluate", json=request(120)) for _ in range(clients))
                return await asyncio.gather(*asked)

        found = asyncio.run(ask(100))
        refused = [response for response in found if response.status_code != 200]
        assert 0 < len(refused) < len(found)
        for response in refused:
            assert (response.status_code, response.json()["code"]) == (503, "overloaded")
            assert response.headers["retry-after"] == "1"
        assert client.post("/evaluate", json=request(3)).status_code == 200


def test_all_who_come_at_once_are_let_in_at_once(serve: Serve) -> None:
    with serve(RPRIME_STORE="none") as client, ExitStack() as stack:
        address = client.base_url.host, client.base_url.port or 0
        connections = [stack.enter_context(socket.create_connection(address)) for _ in range(300)]
        for connection in connections:
            connection.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for connection in connections:
            connection.settimeout(30)
            assert connection.recv(12) == b"HTTP/1.1 200"


def test_it_says_that_it_stops_before_it_does() -> None:
    process = subprocess.Popen(
        [RPRIME, "serve", "--port", "0"],
        env=environment(RPRIME_STORE="none", RPRIME_DRAIN_SECONDS="30"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout:
        found = re.search(r"http://\S+(?=,)", process.stdout.readline())
    assert found
    with httpx.Client(base_url=found[0], timeout=30) as client:
        assert client.get("/readyz").status_code == 200
        process.terminate()
        deadline = time.monotonic() + 20
        while (response := client.get("/readyz")).status_code == 200:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert (response.status_code, response.json()["code"]) == (503, "stopping")
        assert response.headers["connection"] == "close"
        # What comes all the same is answered as ever.
        assert client.get("/livez").status_code == 200
        assert client.post("/evaluate", json=request(3)).status_code == 200
    # A second signal is not held back.
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(25) == 0


def test_what_takes_too_long_to_wait_for_is_told(serve: Serve) -> None:
    head = b"POST /evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with ExitStack() as stack:
        with serve(RPRIME_STORE="none", RPRIME_STOP_SECONDS="1") as client:
            address = client.base_url.host, client.base_url.port or 0
            connection = stack.enter_context(socket.create_connection(address, timeout=30))
            connection.sendall(head + b"Content-Length: 100\r\n\r\n{")
            assert client.get("/livez").status_code == 200
        answer = connection.recv(65536)
    assert answer.startswith(b"HTTP/1.1 503")
    assert b'"stopping"' in answer
