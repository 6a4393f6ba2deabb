"""Large bodies are read in turns and arrive complete."""

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from http.client import HTTPResponse

import httpx
import numpy as np
import pytest

from rprime.server.read_scheduler import SECONDS_PER_READ, ReadScheduler, ScheduledFlowControl

Serve = Callable[..., AbstractContextManager[httpx.Client]]

HEAD = b"POST /evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


class Transport(asyncio.Transport):
    """Records the iterations of the loop in which its reading is resumed."""

    def __init__(self, turn: list[int]) -> None:
        super().__init__()
        self.turn = turn
        self.resumed = list[int]()
        self.closing = False

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        self.resumed.append(self.turn[0])

    def is_closing(self) -> bool:
        return self.closing


async def resumed(count: int, *, closing: int = -1, seconds: float = 0) -> list[list[int]]:
    """Return the iterations in which each connection is resumed, if each lasts so long."""
    turn = [0]
    scheduler = ReadScheduler(lambda: turn[0] * seconds)
    transports = [Transport(turn) for _ in range(count)]
    flows = [ScheduledFlowControl(transport, scheduler) for transport in transports]
    for flow in flows:
        flow.yield_turn()
        # A second call changes nothing.
        flow.resume_reading()
    if closing >= 0:
        transports[closing].closing = True
    for _ in range(count + 2):
        turn[0] += 1
        await asyncio.sleep(0)
    assert [flow.read_paused for flow in flows] == [i == closing for i in range(count)]
    return [transport.resumed for transport in transports]


def test_one_connection_is_resumed_per_iteration_first_in_first_out() -> None:
    assert asyncio.run(resumed(4)) == [[1], [2], [3], [4]]


def test_more_connections_are_resumed_in_long_iterations() -> None:
    turns = asyncio.run(resumed(7, seconds=2.5 * SECONDS_PER_READ))
    assert [turn for [turn] in turns] == [1, 1, 1, 2, 2, 2, 3]


def test_a_closed_connection_is_not_resumed_and_delays_no_other() -> None:
    assert asyncio.run(resumed(3, closing=1)) == [[1], [], [3]]


def test_a_closing_connection_is_not_paused() -> None:
    async def paused() -> bool:
        transport = Transport([0])
        transport.closing = True
        flow = ScheduledFlowControl(transport, ReadScheduler())
        flow.yield_turn()
        return flow.read_paused

    assert not asyncio.run(paused())


def labels(n: int, seed: int) -> dict[str, list[int]]:
    true, pred = np.random.default_rng(seed).integers(0, 10, (2, n))
    return {"y_true": true.tolist(), "y_pred": pred.tolist()}


def chunks(body: bytes, sizes: list[int]) -> Iterator[bytes]:
    start, i = 0, 0
    while start < len(body):
        part = body[start : start + sizes[i % len(sizes)]]
        yield b"%x\r\n%b\r\n" % (len(part), part)
        start += len(part)
        i += 1
    yield b"0\r\n\r\n"


@pytest.mark.parametrize("sizes", [[1], [70_000, 1, 1, 1], [1, 70_000], [200_000], [10_000, 7]])
def test_a_body_arrives_complete_in_chunks_of_all_sizes(
    client: httpx.Client, sizes: list[int]
) -> None:
    body = json.dumps(labels(20_000 if sizes == [1] else 100_000, 1)).encode()
    expected = client.post("/evaluate", content=body, headers={"Content-Type": "application/json"})
    with socket.create_connection(
        (client.base_url.host, client.base_url.port or 0), timeout=60
    ) as connection:
        connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        connection.sendall(b"".join(chunks(body, sizes)))
        answer = HTTPResponse(connection)
        answer.begin()
        report = json.loads(answer.read())
    assert (answer.status, expected.status_code) == (200, 200)
    assert report == expected.json()


def test_many_large_bodies_at_once_are_all_answered(serve: Serve) -> None:
    # One address has one of two workers, so that the last ones wait for longer than by default.
    with serve(RPRIME_STORE="none", RPRIME_LIMITS_WAIT_SECONDS="60") as client:
        assert_all_answered(client)


def assert_all_answered(client: httpx.Client) -> None:
    bodies = [json.dumps(labels(200_000, seed)).encode() for seed in range(6)]
    with ExitStack() as stack:
        address = client.base_url.host, client.base_url.port or 0
        connections = [
            stack.enter_context(socket.create_connection(address, timeout=60)) for _ in bodies
        ]
        sent = [HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body for body in bodies]
        # A part of each after the other, so that all are there at the same time.
        for start in range(0, max(map(len, sent)), 100_000):
            for connection, content in zip(connections, sent, strict=True):
                connection.sendall(content[start : start + 100_000])
        answers = [HTTPResponse(connection) for connection in connections]
        for body, answer in zip(bodies, answers, strict=True):
            answer.begin()
            report = json.loads(answer.read())
            assert answer.status == 200
            items = json.loads(body)
            hits = np.mean(np.equal(items["y_true"], items["y_pred"]))
            assert report["overall"]["accuracy"]["value"] == pytest.approx(hits, abs=1e-12)


def test_a_refused_body_is_read_to_its_end(client: httpx.Client) -> None:
    """What is sent and never read would reset the connection, and the answer would be lost."""
    address = client.base_url.host, client.base_url.port or 0
    with socket.create_connection(address, timeout=60) as connection:
        size = 200 << 20
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % size)
        for _ in range(size >> 20):
            connection.sendall(bytes(1 << 20))
        answer = HTTPResponse(connection)
        answer.begin()
        assert (answer.status, json.loads(answer.read())["code"]) == (413, "body_too_large")
        # The connection can be used again.
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        again = HTTPResponse(connection)
        again.begin()
        assert again.status == 200
