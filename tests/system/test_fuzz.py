"""Whatever bytes arrive: an answer in few words, never a 5xx, never a broken connection.

`RPRIME_TEST_BODIES=1000000 sh .ci/venv pytest -s tests/system/test_fuzz.py` is the long version.
"""

import os
import socket
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPResponse
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.evidence.mutated_requests import Request, requests, valid
from tests.services import Serve

BODIES = int(os.environ.get("RPRIME_TEST_BODIES", "2500"))
SEED = int(os.environ.get("RPRIME_TEST_SEED", "1"))
CONNECTIONS = 4
LONGEST = 16 * 1024
CHUNKED = b"POST /evaluate HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
HEADS = [
    b"\r\n\r\n",
    b"GET\r\n\r\n",
    b"\x00\xff\x16\x03\x01\r\n\r\n",
    b"POST /evaluate HTTP/9.9\r\nHost: a\r\n\r\n",
    b"POST /evaluate HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    b"POST /evaluate HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
    b"POST /evaluate HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    b"POST /evaluate HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /evaluate HTTP/1.1\r\nHost: a\r\n" + b"X: " + b"y" * 200_000 + b"\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 102 Processing\r\nHost: a\r\n\r\n",
    b"POST /evaluate HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
    CHUNKED + b"2;a=b\r\n{}\r\n0\r\nX: " + b"y" * 200_000 + b"\r\n\r\n",
    CHUNKED + b"2\r\n{}\r\n0\r\n" + b"a:b\r\n" * 60_000 + b"\r\n",
    CHUNKED + b"2;" + b"e" * 200_000 + b"\r\n{}\r\n0\r\n\r\n",
    b"GET /%00%ff%2e%2e/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    b"GET /v1/indices/\xff HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
]


@pytest.fixture(scope="module")
def fuzzed(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Return a service with a store, and its log."""
    log = tmp_path_factory.mktemp("fuzz") / "log"
    with serve(log=log) as client:
        yield str(client.base_url), log


def connect(url: str) -> socket.socket:
    at = urlsplit(url)
    return socket.create_connection((at.hostname, at.port), timeout=60)


def answers(url: str, batch: list[Request]) -> Counter[int]:
    """Send requests over one connection; a new one only where the service says that it closes."""
    seen: Counter[int] = Counter()
    connection = connect(url)
    for request in batch:
        connection.sendall(request.wire())
        response = HTTPResponse(connection, method="POST")
        response.begin()
        body = response.read()
        seen[response.status] += 1
        assert response.status < 500, (request, body)
        assert response.status < 400 or len(body) <= LONGEST, (request, len(body))
        if response.will_close:
            connection.close()
            connection = connect(url)
    connection.close()
    return seen


def test_the_seeds_are_valid(fuzzed: tuple[str, Path]) -> None:
    with httpx.Client(base_url=fuzzed[0]) as client:
        for request in valid():
            headers = {"Content-Type": request.media_type, "Content-Encoding": request.encoding}
            sent = {name: value for name, value in headers.items() if value}
            response = client.post(request.path, content=request.body, headers=sent)
            assert response.status_code in (200, 201), (request, response.text)


def test_no_body_breaks_it(fuzzed: tuple[str, Path]) -> None:
    url, log = fuzzed
    share = BODIES // CONNECTIONS
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        parts = [list(requests(SEED + part, share)) for part in range(CONNECTIONS)]
        counted = sum(pool.map(lambda part: answers(url, part), parts), Counter())
    assert counted.total() == share * CONNECTIONS
    # A fuzzer whose bodies are all refused at the door would see nothing of the house.
    assert counted[200] > 0.02 * counted.total()
    assert counted[422] > 0.2 * counted.total()
    assert "Traceback" not in log.read_text()
    print(dict(counted))  # noqa: T201 (the figure of docs/reliability.md)


def test_no_head_breaks_it(fuzzed: tuple[str, Path]) -> None:
    url, log = fuzzed
    for head in HEADS:
        with connect(url) as connection:
            answer = b""
            try:
                connection.sendall(head)
                connection.shutdown(socket.SHUT_WR)
                while part := connection.recv(65_536):
                    answer += part
            except (BrokenPipeError, ConnectionResetError):
                # The service does not read the rest of a long head that it refuses, so the kernel
                # may reset the connection.
                assert len(head) > LONGEST
        assert not answer.startswith(b"HTTP/1.1 5"), head
        assert len(answer) <= LONGEST
    assert httpx.get(f"{url}/livez").status_code == 200
    assert "Traceback" not in log.read_text()
