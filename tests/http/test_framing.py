"""Heads, trailers and chunk extensions are bounded, and only the head makes request headers."""

import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from http.client import HTTPResponse

import httpx
import pytest

from tests.system.bombs import MIB, forget_peak, resident
from tests.waiting import wait_until

Serve = Callable[..., AbstractContextManager[httpx.Client]]

BODY = b'{"confusion_matrix": [[5, 1], [2, 7]], "indices": ["accuracy"]}'
POST = b"POST /evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n"
HEAD_BYTES = 128 * 1024
MOST_SENT = 40 * MIB
MOST_HELD = 64 * MIB


@pytest.fixture(scope="module")
def keyed(
    serve: Serve, rprime: Callable[..., object], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[httpx.Client, str]]:
    """Start a service that demands a key; yield a client without one, and the key."""
    keys = tmp_path_factory.mktemp("framing") / "keys.json"
    made = rprime("keys", "create", "--scope", "evaluate", RPRIME_KEYS_FILE=str(keys))
    key = next(w for w in str(getattr(made, "stdout", "")).split() if w.startswith("rp_"))
    with serve(RPRIME_STORE="none", RPRIME_KEYS_FILE=str(keys)) as client:
        yield client, key


def connect(client: httpx.Client) -> socket.socket:
    return socket.create_connection((client.base_url.host, client.base_url.port or 0), timeout=20)


def ask(client: httpx.Client, request: bytes) -> tuple[int, bytes, str | None]:
    """Send a request; return the status, the body and the id of the answer."""
    with connect(client) as connection:
        connection.sendall(request)
        response = HTTPResponse(connection)
        response.begin()
        return response.status, response.read(), response.headers["x-request-id"]


@pytest.mark.parametrize(
    "trailer",
    [
        b"X-Anything: 1\r\n",
        b"Host: elsewhere\r\n",
        b"X-Request-Id: fromtrailer\r\n",
        b"Idempotency-Key: one\r\n",
        b"A:b\r\n" * 1000,
    ],
)
def test_a_body_with_trailers_is_refused(client: httpx.Client, trailer: bytes) -> None:
    status, content, request_id = ask(client, CHUNKED + trailer + b"\r\n")
    assert status == 400
    assert b"trailer" in content
    assert request_id != "fromtrailer"


def test_a_key_in_a_trailer_opens_nothing(keyed: tuple[httpx.Client, str]) -> None:
    client, key = keyed
    field = f"Authorization: Bearer {key}\r\n".encode()
    assert ask(client, CHUNKED + b"\r\n")[0] == 401
    assert (
        ask(client, CHUNKED.replace(b"\r\n\r\n", b"\r\n" + field + b"\r\n", 1) + b"\r\n")[0] == 200
    )
    assert ask(client, CHUNKED + field + b"\r\n")[0] in {400, 401}


def test_trailers_that_come_later_are_refused_too(client: httpx.Client) -> None:
    with connect(client) as connection:
        connection.sendall(CHUNKED)
        connection.sendall(b"X-Later: 1\r\n\r\n")
        response = HTTPResponse(connection)
        response.begin()
        assert response.status == 400


def test_nothing_is_evaluated_twice_or_out_of_turn(client: httpx.Client) -> None:
    """A request before the refused one has its own answer, and that comes first."""
    with connect(client) as connection:
        connection.sendall(CHUNKED + b"\r\n" + CHUNKED + b"X: 1\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert answer.count(b"HTTP/1.1 ") == 1


def test_what_follows_a_request_does_not_take_its_answer(client: httpx.Client) -> None:
    with connect(client) as connection:
        connection.sendall(CHUNKED + b"\r\n" + b"no HTTP at all\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert answer.count(b"HTTP/1.1 ") == 1


def test_a_chunked_body_without_trailers_is_read(client: httpx.Client) -> None:
    assert ask(client, CHUNKED + b"\r\n")[0] == 200


def test_a_chunk_extension_is_ignored(client: httpx.Client) -> None:
    extended = CHUNKED.replace(b"\r\n" + BODY, b";name=value\r\n" + BODY)
    assert ask(client, extended + b"\r\n")[0] == 200


HUGE = b"FFFFFFFFFFFFFFFF"
STREAMED = b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("media", "parts"),
    [
        ("application/json", [STREAMED + HUGE + b"\r\n"]),
        ("application/json", [STREAMED + b"2000001\r\n{"]),
        ("application/json", [STREAMED + b"2000000\r\n", b"{" * 0x2000000, b"\r\n1\r\n"]),
        ("application/json", [STREAMED, HUGE, b";name=value\r", b"\n"]),
        ("application/json", [STREAMED + b"FFF", b"FFFF", b"FF\r\n{"]),
        ("application/json", [STREAMED + b"1\r\n{\r", b"\n000", HUGE + b"\r\n\n"]),
        ("application/json", [STREAMED + b"3\r\n{\n1\r\n7\r\n0\n12345\r\n0FFFFFFFF\r\n"]),
        ("application/json", [b"Content-Length: 18446744073709551615\r\n\r\n"]),
        ("application/json", [b"Content-Length: 33554433\r\n\r\n{"]),
        ("text/csv", [STREAMED + HUGE + b"\r\n"]),
        ("text/csv", [STREAMED + b"10000001\r\ny_true"]),
        ("text/csv", [b"Content-Length: 268435457\r\n\r\n"]),
    ],
)
def test_a_size_beyond_the_limit_is_refused_before_it_comes(
    client: httpx.Client, media: str, parts: list[bytes]
) -> None:
    head = b"POST /evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Type: %b\r\n" % media.encode()
    with connect(client) as connection:
        # Below `body_seconds`: nothing waits for the rest.
        connection.settimeout(10)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in (head, *parts):
            connection.sendall(part)
            assert client.get("/livez").status_code == 200
        response = HTTPResponse(connection)
        response.begin()
        assert (response.status, b"body_too_large" in response.read()) == (413, True)


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
def test_no_chunk_is_taken_for_a_larger_one(client: httpx.Client, step: int) -> None:
    """Content that looks like a size is content, however the body is cut."""
    body = b'{"confusion_matrix":\r\n\n[[5, 1], [2, 7]],\r\n"indices": ["accuracy"]}\r\n'
    body += b"\nFFFFFFFFFF".replace(b"F", b" ") + b"\r\n" * 3
    pieces = [body[i : i + 11] for i in range(0, len(body), 11)]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    with connect(client) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(POST + STREAMED)
        for start in range(0, len(chunks), step):
            connection.sendall(chunks[start : start + step])
            if start % 50 == 0:
                assert client.get("/livez").status_code == 200
        response = HTTPResponse(connection)
        response.begin()
        assert (response.status, b"accuracy" in response.read()) == (200, True)


@pytest.mark.parametrize("parts", [1, 20])
def test_extensions_of_many_chunks_are_refused(client: httpx.Client, parts: int) -> None:
    head, chunks = POST + STREAMED, b"1;n=0123456789\r\n \r\n" * 2000
    few = head + chunks + b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
    assert ask(client, few)[0] == 200
    with connect(client) as connection:
        connection.sendall(head)
        with suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(parts):
                connection.sendall(chunks * (60 // parts))
        response = HTTPResponse(connection)
        response.begin()
        assert (response.status, b"framing" in response.read()) == (400, True)


def test_pipelined_requests_are_no_long_head(client: httpx.Client) -> None:
    many = (head_of(1000) * 200)[:-4]
    body = b" " * 250_000 + BODY
    post = POST + b"Content-Length: %d\r\n\r\n" % len(body) + body
    for requests, complete in ((many, 199), ((post * 4)[: -len(BODY)], 3)):
        with connect(client) as connection:
            connection.sendall(requests)
            answers = b""
            while answers.count(b"HTTP/1.1 ") < complete:
                answers += connection.recv(65_536)
            assert answers.count(b"HTTP/1.1 200") == complete


@pytest.mark.parametrize(
    ("before", "endless"),
    [
        (b"0\r\n", b"a:b\r\n" * 20_000),
        (b"0\r\n", b"X-Name: " + b"v" * 1000 + b"\r\n"),
        (b"0\r\nX-Endless: ", b"v" * 100_000),
        (b"0\r\n", b"n" * 100_000),
        (b"1;", b"e" * 100_000),
        (b"1", b"0" * 100_000),
    ],
    ids=["short fields", "long fields", "a value", "a name", "a chunk extension", "a chunk size"],
)
def test_forty_mebibytes_after_the_body_take_little_memory(
    keyed: tuple[httpx.Client, str], processes: dict[int, int], before: bytes, endless: bytes
) -> None:
    client, _ = keyed
    process = processes[client.base_url.port or 0]
    forget_peak(process)
    idle = resident(process, "VmRSS")
    sent = 0
    with connect(client) as connection:
        try:
            connection.sendall(POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n" + before)
            while sent < MOST_SENT:
                connection.sendall(endless)
                sent += len(endless)
        except (BrokenPipeError, ConnectionResetError):
            pass
    assert resident(process, "VmHWM") - idle <= MOST_HELD
    assert client.get("/livez").status_code == 200


def head_of(size: int) -> bytes:
    """Make a head of so many bytes."""
    start = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: "
    return start + b"y" * (size - len(start) - 4) + b"\r\n\r\n"


@pytest.mark.parametrize("parts", [1, 3])
def test_a_head_one_byte_too_large_is_refused(client: httpx.Client, parts: int) -> None:
    for size, expected in ((HEAD_BYTES, 200), (HEAD_BYTES + 1, 431), (150_000, 431)):
        head = head_of(size)
        assert len(head) == size
        with connect(client) as connection:
            step = -(-size // parts)
            for start in range(0, size, step):
                connection.sendall(head[start : start + step])
            response = HTTPResponse(connection)
            response.begin()
            assert (size, response.status) == (size, expected)


def test_a_head_of_many_small_fields_is_counted_too(client: httpx.Client) -> None:
    fields = b"a:b\r\n" * (HEAD_BYTES // 5)
    status, content, _ = ask(client, b"GET /livez HTTP/1.1\r\nHost: a\r\n" + fields + b"\r\n")
    assert (status, b"head_too_large" in content) == (431, True)


@pytest.mark.parametrize("size", [70_000, 100_000, 140_000])
def test_a_long_path_is_a_large_head(client: httpx.Client, size: int) -> None:
    line = b"GET /" + b"p" * size + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
    status, content, _ = ask(client, line)
    assert (status, b"head_too_large" in content) == (431, True)


def test_a_second_head_is_counted_anew(client: httpx.Client) -> None:
    head = head_of(HEAD_BYTES - 1)
    with connect(client) as connection:
        for _ in range(3):
            connection.sendall(head)
            response = HTTPResponse(connection)
            response.begin()
            assert (response.status, bool(response.read())) == (200, True)


@pytest.mark.parametrize("field", [b"Upgrade: h2c", b"Upgrade: websocket", b"UPGRADE: h2c, foo/2"])
@pytest.mark.parametrize("chunked", [False, True])
def test_an_upgrade_is_ignored_and_the_request_answered_with_its_body(
    keyed: tuple[httpx.Client, str], field: bytes, *, chunked: bool
) -> None:
    """RFC 9110, 7.8; the default client of Java and `curl --http2` offer h2c with each request."""
    client, key = keyed
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n"
    offer += b"Authorization: Bearer %b\r\n%b\r\n" % (key.encode(), field)
    length = b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
    pieces = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
    with connect(client) as connection:
        for _ in range(2):
            connection.sendall(POST + offer + (pieces if chunked else length))
            response = HTTPResponse(connection)
            response.begin()
            assert (response.status, b"accuracy" in response.read()) == (200, True)


def test_an_upgrade_whose_head_comes_in_parts_is_ignored_too(
    keyed: tuple[httpx.Client, str],
) -> None:
    client, key = keyed
    head = POST + b"Authorization: Bearer %b\r\nConnection: Upgrade\r\nUpgr" % key.encode()
    rest = b"ade: h2c\r\nContent-Length: %d\r\n\r\n" % len(BODY)
    with connect(client) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in (head, rest, BODY):
            connection.sendall(piece)
            wait_until(lambda: client.get("/livez").status_code == 200)
        response = HTTPResponse(connection)
        response.begin()
        assert (response.status, b"accuracy" in response.read()) == (200, True)


def test_pipelined_requests_with_upgrades_have_their_answers_in_order(
    keyed: tuple[httpx.Client, str],
) -> None:
    client, key = keyed
    fields = b"Authorization: Bearer %b\r\nConnection: upgrade\r\nUpgrade: h2c\r\n" % key.encode()
    length = b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
    probe = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n"
    with connect(client) as connection:
        connection.sendall(POST + fields + length + probe + b"\r\n" + POST + fields + length)
        connection.sendall(probe + b"Connection: close\r\n\r\n")
        answers = b"".join(iter(lambda: connection.recv(65_536), b"")).split(b"HTTP/1.1 200 OK")
    assert [b'"accuracy"' in answer for answer in answers] == [False, True, False, True, False]


def test_what_follows_an_ignored_upgrade_is_bounded_like_any_other_body(
    keyed: tuple[httpx.Client, str],
) -> None:
    client, _ = keyed
    request = POST + b"Connection: Upgrade\r\nUpgrade: h2c\r\n"
    for size, status in ((HEAD_BYTES, 431), (0, 400)):
        padding = b"X: " + b"y" * size + b"\r\n"
        assert ask(client, request + padding + b"Content-Length: x\r\n\r\n")[0] == status


@pytest.mark.parametrize(
    ("request_line", "host", "status"),
    [
        (b"GET /version HTTP/1.1", b"localhost", 200),
        (b"GET /version HTTP/1.1", b"localhost:80@evil.example", 421),
        (b"GET /version HTTP/1.1", b"[::1]evil.example", 421),
        (b"GET /version HTTP/1.1", b"localhost:eighty", 421),
        (b"GET http://evil.example/version HTTP/1.1", b"localhost", 421),
        (b"GET http://localhost:1/version HTTP/1.1", b"evil.example", 200),
        (b"GET http://localhost/version HTTP/1.1", b"localhost", 200),
        (b"GET /version HTTP/2.0", b"localhost", 400),
        (b"GET /livez HTTP/1.1", b"evil.example", 200),
    ],
)
def test_whom_a_request_is_for(
    client: httpx.Client, request_line: bytes, host: bytes, status: int
) -> None:
    assert ask(client, request_line + b"\r\nHost: " + host + b"\r\n\r\n")[0] == status


@pytest.mark.parametrize(("coding", "status"), [(b"gzip, chunked", 501), (b"chunked", 200)])
def test_a_transfer_coding_that_is_not_undone_is_refused(
    client: httpx.Client, coding: bytes, status: int
) -> None:
    request = POST + b"Transfer-Encoding: " + coding + b"\r\n\r\n"
    request += b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
    assert ask(client, request)[0] == status


def test_no_field_of_a_trailer_is_logged(
    serve: Serve, tmp_path_factory: pytest.TempPathFactory
) -> None:
    log = tmp_path_factory.mktemp("framing") / "log"
    with serve(RPRIME_STORE="none", log=log) as client:
        assert ask(client, CHUNKED + b"Secret-Name: secret-value\r\n\r\n")[0] == 400
    assert "secret" not in log.read_text().lower()
    assert "Traceback" not in log.read_text()
