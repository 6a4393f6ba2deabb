"""The lines of RPRIME_LOG_REQUESTS: durations, bytes, and the trace of a request."""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.history_service import matrix

Serve = Callable[..., AbstractContextManager[httpx.Client]]
Event = dict[str, Any]
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
DURATIONS = ("queue", "client", "compute", "store")
NAP = 0.3


class Logged:
    """A service that logs each request."""

    def __init__(self, client: httpx.Client, log: Path) -> None:
        self.client, self.log = client, log

    def line(self, request_id: str, event: str = "request") -> Event:
        """Return the line of a request; the answer may arrive before it."""
        for _ in range(200):
            for text in self.log.read_text().splitlines():
                line: Event = json.loads(text)
                if line.get("request_id") == request_id and line["event"] == event:
                    return line
            self.client.get("/livez")
        raise AssertionError(request_id)

    def of(self, response: httpx.Response) -> Event:
        return self.line(response.headers["x-request-id"])


@pytest.fixture(scope="module")
def logged(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Logged]:
    log = tmp_path_factory.mktemp("logged") / "log"
    with serve(log=log, RPRIME_LOG_REQUESTS="1") as client:
        yield Logged(client, log)


def test_a_line_has_the_bytes_in_and_out(logged: Logged) -> None:
    response = logged.client.post("/evaluate", json=matrix(project=None))
    line = logged.of(response)
    assert line["bytes_in"] == len(response.request.content)
    assert line["bytes_out"] == len(response.content)
    bodiless = logged.of(logged.client.get("/v1/projects"))
    assert bodiless["bytes_in"] == 0
    assert bodiless["bytes_out"] > 0


def test_compressed_and_chunked_bytes_count_as_they_were_sent(logged: Logged) -> None:
    headers = {"Content-Type": "text/csv"}
    pieces = [b"y_true,y_pred\n", b"a,b\n" * 50, b"b,b\n"]
    response = logged.client.post("/evaluate", content=iter(pieces), headers=headers)
    assert response.status_code == 200, response.text
    assert logged.of(response)["bytes_in"] == sum(map(len, pieces))


def test_the_durations_add_up(logged: Logged) -> None:
    for project in (None, "pets"):
        line = logged.of(logged.client.post("/evaluate", json=matrix(project=project)))
        parts = [line[f"{name}_milliseconds"] for name in DURATIONS]
        assert sum(parts) == pytest.approx(line["milliseconds"], abs=0.01)
        assert line["compute_milliseconds"] > 0
        assert (line["store_milliseconds"] > 0) == (project is not None)


def test_a_read_waits_for_the_store(logged: Logged) -> None:
    logged.client.post("/evaluate", json=matrix()).raise_for_status()
    line = logged.of(logged.client.get("/v1/projects/pets/evaluations"))
    assert 0 < line["store_milliseconds"] < line["milliseconds"]


def test_a_slow_client_is_not_counted_as_work(logged: Logged) -> None:
    body = json.dumps(matrix(project=None)).encode()

    def slowly() -> Iterator[bytes]:
        yield body[:20]
        time.sleep(NAP)  # the subject: a client that pauses
        yield body[20:]

    headers = {"Content-Type": "application/json"}
    line = logged.of(logged.client.post("/evaluate", content=slowly(), headers=headers))
    assert line["client_milliseconds"] > 0.9 * NAP * 1000
    assert line["compute_milliseconds"] < 0.9 * line["client_milliseconds"]


def test_the_wait_for_a_turn_is_the_queue(serve: Serve, tmp_path: Path) -> None:
    """Three large requests and one worker: two wait for it."""
    limits = {"RPRIME_LIMITS_LARGE_REQUESTS": "1", "RPRIME_LIMITS_WAIT_SECONDS": "30"}
    variables = {"RPRIME_LOG_REQUESTS": "1", "RPRIME_STORE": "none", **limits}
    with serve(log=tmp_path / "log", **variables) as client:
        logged = Logged(client, tmp_path / "log")
        content = b"y_true,y_pred\n" + b"a,a\n" * 400_000

        def send(name: str) -> int:
            headers = {"Content-Type": "text/csv", "X-Request-Id": name}
            with httpx.Client(base_url=client.base_url, timeout=60) as other:
                return other.post("/evaluate", content=content, headers=headers).status_code

        names = ("first", "second", "third")
        with ThreadPoolExecutor(3) as pool:
            assert list(pool.map(send, names)) == [200] * 3
        lines = [logged.line(name) for name in names]
    assert sum(line["queue_milliseconds"] > 0 for line in lines) >= 2
    for line in lines:
        spent = line["milliseconds"] - line["queue_milliseconds"]
        assert line["compute_milliseconds"] <= spent + 1


GOOD = [
    f"00-{TRACE}-{PARENT}-01",
    f"00-{TRACE}-{PARENT}-00",
    f"cc-{TRACE}-{PARENT}-01",
    f"cc-{TRACE}-{PARENT}-01-what-the-future-will-be-like",
]
MALFORMED = [
    "",
    "banana",
    f"00-{TRACE.upper()}-{PARENT}-01",
    f"ff-{TRACE}-{PARENT}-01",
    f"00-{'0' * 32}-{PARENT}-01",
    f"00-{TRACE}-{'0' * 16}-01",
    f"00-{TRACE}-{PARENT}-01-more",
    f"00-{TRACE}-{PARENT}-01.",
    f"cc-{TRACE}-{PARENT}-01.what",
    f"00-{TRACE}-{PARENT}",
    f"00-{TRACE[:-1]}-{PARENT}-01",
]
"""After the tests of the W3C (test/test.py of its repository trace-context)."""


@pytest.mark.parametrize("value", GOOD)
def test_the_trace_of_the_caller_is_logged(logged: Logged, value: str) -> None:
    response = logged.client.get("/v1/projects", headers={"traceparent": value})
    assert logged.of(response)["trace_id"] == TRACE
    # The specification has no such header of a response.
    assert "traceparent" not in response.headers


@pytest.mark.parametrize("value", MALFORMED)
def test_a_malformed_trace_is_replaced(logged: Logged, value: str) -> None:
    identifiers = {
        logged.of(logged.client.get("/v1/projects", headers={"traceparent": value}))["trace_id"]
        for _ in range(2)
    }
    assert len(identifiers) == 2
    for trace in identifiers:
        assert TRACE not in trace.upper()
        assert len(trace) == 32
        assert int(trace, 16) > 0


def test_of_two_traces_none_is_taken(logged: Logged) -> None:
    headers = [("traceparent", value) for value in GOOD[:2]]
    assert logged.of(logged.client.get("/v1/projects", headers=headers))["trace_id"] != TRACE


def test_a_change_names_the_trace_of_its_request(logged: Logged) -> None:
    headers = {"traceparent": GOOD[0], "X-Request-Id": "traced"}
    logged.client.post("/evaluate", json=matrix(version="t"), headers=headers).raise_for_status()
    assert logged.line("traced", "change")["trace_id"] == TRACE
