"""Bodies are read within their limits, as sent and inflated."""

import gzip
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import httpx
import pytest
import structlog
import zstandard
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from rprime.app import create_app
from rprime.server.body import media_type, read_body
from rprime.settings import Limits, Settings
from tests.waiting import wait_until

ServeApp = Callable[[FastAPI], AbstractContextManager[httpx.Client]]

LIMIT = 100_000
IN_FLIGHT = 250_000


@pytest.fixture(scope="module")
def app() -> FastAPI:
    app = create_app(Settings(limits=Limits(in_flight_bytes=IN_FLIGHT)))

    @app.post("/size")
    async def size(request: Request) -> PlainTextResponse:
        return PlainTextResponse(str(len(await read_body(request, LIMIT))))

    @app.post("/type")
    async def kind(request: Request) -> PlainTextResponse:
        return PlainTextResponse(media_type(request, ("application/json", "text/csv")))

    return app


@pytest.fixture(scope="module")
def client(app: FastAPI, serve_app: ServeApp) -> Iterator[httpx.Client]:
    with serve_app(app) as client:
        yield client


def pieces(size: int) -> Iterator[bytes]:
    for _ in range(size // 1000):
        yield bytes(1000)


def code(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


def compressed(encoding: str, data: bytes) -> bytes:
    return gzip.compress(data) if encoding == "gzip" else zstandard.compress(data)


@pytest.mark.parametrize("size", [0, 1, LIMIT])
def test_a_body_up_to_the_limit_is_read(client: httpx.Client, size: int) -> None:
    assert client.post("/size", content=bytes(size)).text == str(size)
    assert client.post("/size", content=pieces(size)).text == str(size // 1000 * 1000)


def test_a_body_over_the_limit_is_refused(client: httpx.Client) -> None:
    assert code(client.post("/size", content=bytes(LIMIT + 1))) == (413, "body_too_large")


def test_a_body_of_unannounced_length_is_counted(client: httpx.Client) -> None:
    assert code(client.post("/size", content=pieces(LIMIT + 1000))) == (413, "body_too_large")


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@pytest.mark.parametrize("data", [b"", b"label", bytes(LIMIT)], ids=len)
def test_a_compressed_body_is_inflated(client: httpx.Client, encoding: str, data: bytes) -> None:
    headers = {"Content-Encoding": encoding}
    response = client.post("/size", content=compressed(encoding, data), headers=headers)
    assert response.text == str(len(data))


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_body_of_several_frames_is_inflated_whole(client: httpx.Client, encoding: str) -> None:
    content = compressed(encoding, b"one") + compressed(encoding, b"three")
    response = client.post("/size", content=content, headers={"Content-Encoding": encoding})
    assert response.text == "8"


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_bomb_is_refused(app: FastAPI, client: httpx.Client, encoding: str) -> None:
    bomb = compressed(encoding, bytes(50_000_000))
    assert len(bomb) < LIMIT
    response = client.post("/size", content=bomb, headers={"Content-Encoding": encoding})
    assert code(response) == (413, "body_too_large")
    # The answer may be here before the server has let go of the request.
    wait_until(lambda: app.state.services.admission.held == 0)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@pytest.mark.parametrize("end", [-1, -4, 5])
def test_a_stream_that_is_cut_short_is_unreadable(
    client: httpx.Client, encoding: str, end: int
) -> None:
    content = compressed(encoding, b"some labels")[:end]
    response = client.post("/size", content=content, headers={"Content-Encoding": encoding})
    assert code(response) == (400, "unreadable_body")


def test_bytes_that_are_no_stream_are_unreadable(client: httpx.Client) -> None:
    response = client.post("/size", content=b"labels", headers={"Content-Encoding": "gzip"})
    assert code(response) == (400, "unreadable_body")


def test_an_unknown_encoding_is_refused(client: httpx.Client) -> None:
    response = client.post("/size", content=b"labels", headers={"Content-Encoding": "br"})
    assert code(response) == (415, "unsupported_encoding")


def test_bodies_in_flight_are_bounded_and_forgotten(app: FastAPI, client: httpx.Client) -> None:
    admission = app.state.services.admission
    others = {"state": dict[str, int]()}
    admission.hold(others, IN_FLIGHT - 10)
    response = client.post("/size", content=bytes(11))
    assert code(response) == (503, "overloaded")
    assert response.headers["retry-after"] == "1"
    assert client.post("/size", content=bytes(10)).text == "10"
    admission.release(others)
    wait_until(lambda: app.state.services.admission.held == 0)


def test_a_client_that_goes_away_leaves_nothing_behind(app: FastAPI, client: httpx.Client) -> None:
    address = (client.base_url.host, client.base_url.port or 0)
    with structlog.testing.capture_logs() as log:
        with socket.create_connection(address) as connection:
            connection.sendall(
                b"POST /size HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf"
            )
            wait_until(lambda: app.state.services.admission.held == len("half"))
        wait_until(lambda: bool(log))
    assert [entry["event"] for entry in log] == ["client_disconnected"]
    wait_until(lambda: app.state.services.admission.held == 0)


@pytest.mark.parametrize("given", ["text/csv", "Text/CSV; charset=utf-8"])
def test_a_media_type_is_read_without_its_parameters(client: httpx.Client, given: str) -> None:
    assert client.post("/type", headers={"Content-Type": given}).text == "text/csv"


@pytest.mark.parametrize("given", ["", "text/plain", "application/x-www-form-urlencoded"])
def test_a_media_type_that_is_not_read_is_refused(client: httpx.Client, given: str) -> None:
    response = client.post("/type", content=b"x", headers={"Content-Type": given})
    assert code(response) == (415, "unsupported_media_type")
    assert "text/csv" in response.json()["detail"]


def test_a_media_type_that_is_there_twice_is_refused(client: httpx.Client) -> None:
    headers = [("Content-Type", "text/csv"), ("Content-Type", "application/json")]
    response = client.post("/type", content=b"x", headers=headers)
    assert code(response) == (415, "unsupported_media_type")
    assert "send it once" in response.json()["detail"]
