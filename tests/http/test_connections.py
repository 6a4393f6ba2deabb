"""Slow clients are disconnected, and other clients do not notice them."""

import json
import re
import select
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, suppress
from http.client import HTTPResponse
from pathlib import Path
from subprocess import PIPE

import httpx
import pytest

from rprime.server.connections import SPARE
from tests.command import Run
from tests.http.test_costs import gate
from tests.services import NO_TLS, RPRIME, environment, stop
from tests.waiting import gauge, wait_until

Serve = Callable[..., AbstractContextManager[httpx.Client]]

HEAD = b"POST /evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
BODY = b'{"confusion_matrix": [[5, 1], [2, 7]], "indices": ["accuracy"]}'
REQUEST = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
DEADLINES = {
    "RPRIME_LIMITS_HEAD_SECONDS": "1",
    "RPRIME_LIMITS_BODY_SECONDS": "1",
    "RPRIME_LIMITS_ANSWER_SECONDS": "1",
    "RPRIME_LIMITS_KEEP_ALIVE_SECONDS": "1",
    # A busy machine must not make it reject a request that waits for its turn.
    "RPRIME_LIMITS_WAIT_SECONDS": "60",
}
PATIENCE = 60
MIB = 1 << 20


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hasty") / "log"


@pytest.fixture(scope="module")
def hasty(serve: Serve, log: Path) -> Iterator[httpx.Client]:
    with serve(RPRIME_STORE="none", log=log, **DEADLINES) as client:
        yield client


@pytest.fixture(scope="module")
def slow(hasty: httpx.Client) -> Iterator[dict[str, socket.socket]]:
    """Yield slow clients of every kind, connected at the same time."""
    sent = {
        "nothing": b"",
        "a letter": HEAD[:1],
        "half a head": HEAD[:-4],
        "half a body": REQUEST[:-5],
        "takes nothing": b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200,
        "letters of a head": b"POST ",
        "letters of a body": REQUEST[: -len(BODY)],
        "empty lines": b"",
    }
    with ExitStack() as stack:
        connections = {
            kind: stack.enter_context(connect(hasty, some)) for kind, some in sent.items()
        }
        connections["half a second head"] = stack.enter_context(connect(hasty, REQUEST))
        first = HTTPResponse(connections["half a second head"])
        first.begin()
        assert (first.status, bool(first.read())) == (200, True)
        connections["half a second head"].sendall(HEAD)
        yield connections


@pytest.fixture(scope="module")
def patient(serve: Serve) -> Iterator[httpx.Client]:
    """Yield a service that waits a second longer for every byte of a body."""
    limits = {"RPRIME_LIMITS_BODY_SECONDS": "0.6", "RPRIME_LIMITS_BODY_BYTES_PER_SECOND": "1"}
    with serve(RPRIME_STORE="none", **limits) as client:
        yield client


def connect(client: httpx.Client, content: bytes = b"") -> socket.socket:
    address = client.base_url.host, client.base_url.port or 0
    connection = socket.create_connection(address, timeout=PATIENCE)
    connection.sendall(content)
    return connection


def answer(connection: socket.socket) -> tuple[int, str]:
    """Read the response and the end of the connection."""
    with connection:
        response = HTTPResponse(connection)
        response.begin()
        content = response.read()
        assert connection.recv(1) == b""
    assert response.headers["connection"] == "close"
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["content-security-policy"].startswith("default-src 'none';")
    assert len(response.headers["x-request-id"]) == 32
    return response.status, content.decode()


def closed(client: httpx.Client, reason: str) -> float:
    return gauge(client, f'rprime_connections_closed_total{{reason="{reason}"}}')


def test_a_client_that_sends_a_byte_now_and_then_is_disconnected(
    slow: dict[str, socket.socket],
) -> None:
    alive = {"letters of a head": b" ", "letters of a body": b" ", "empty lines": b"\r\n"}
    deadline = time.monotonic() + PATIENCE
    while alive:
        assert time.monotonic() < deadline
        time.sleep(0.2)
        for kind, letter in list(alive.items()):
            try:
                slow[kind].sendall(letter)
            except (BrokenPipeError, ConnectionResetError):
                del alive[kind]


def test_a_client_that_sends_nothing_gets_no_response(slow: dict[str, socket.socket]) -> None:
    assert slow["nothing"].recv(1) == b""


@pytest.mark.parametrize("kind", ["a letter", "half a head"])
def test_an_incomplete_head_gets_a_408(slow: dict[str, socket.socket], kind: str) -> None:
    status, content = answer(slow[kind])
    assert (status, '"request_timeout"' in content) == (408, True)


def test_an_incomplete_body_gets_a_408(hasty: httpx.Client, slow: dict[str, socket.socket]) -> None:
    status, content = answer(slow["half a body"])
    assert (status, '"request_timeout"' in content) == (408, True)
    assert closed(hasty, "body") > 0


def test_a_client_that_does_not_read_its_response_is_disconnected(
    hasty: httpx.Client, slow: dict[str, socket.socket]
) -> None:
    assert slow["takes nothing"].fileno() > 0
    wait_until(lambda: closed(hasty, "answer") > 0)


def test_a_second_request_on_a_connection_has_its_own_deadline(
    slow: dict[str, socket.socket],
) -> None:
    assert answer(slow["half a second head"])[0] == 408


def test_a_slow_body_that_keeps_coming_is_read(patient: httpx.Client) -> None:
    with connect(patient, REQUEST[: -len(BODY)]) as connection:
        for start in range(0, len(BODY), 16):
            time.sleep(0.3)
            connection.sendall(BODY[start : start + 16])
        assert connection.recv(12) == b"HTTP/1.1 200"


def test_slow_uploads_hold_no_worker(serve: Serve) -> None:
    """Two clients that send a byte now and then, after more than a mebibyte, delay nobody."""
    head = b"POST /evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\n"
    content = b"y_true,y_pred\n" + b"cat,cat\n" * 140_000
    head += b"Content-Length: %d\r\n\r\n" % (len(content) + 8)
    column = {"Content-Type": "text/csv"}
    with serve(RPRIME_STORE="none") as client, ExitStack() as stack:
        slow = [stack.enter_context(connect(client, head + content)) for _ in range(3)]
        wait_until(lambda: gauge(client, "rprime_in_flight_bytes") > 0)
        for letter in (b"c", b"a", b"t"):
            for connection in slow:
                connection.sendall(letter)
            answer = client.post("/evaluate", content=b"y_true,y_pred\na,b\nb,b\n", headers=column)
            assert answer.status_code == 200
        slow[0].sendall(b",cat\n")
        slow[0].settimeout(PATIENCE)
        assert slow[0].recv(12) == b"HTTP/1.1 200"


KEPT = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
UNREAD = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200


@pytest.mark.parametrize(
    "sent",
    [b"", HEAD[:-4], REQUEST[:-5], KEPT, UNREAD],
    ids=["nothing", "half a head", "half a body", "a request", "requests and reads nothing"],
)
def test_clients_that_are_waited_for_keep_nobody_out(
    serve: Serve, processes: dict[int, int], sent: bytes
) -> None:
    """Of those beyond the limit the slowest are closed, whatever they have sent."""
    with serve(RPRIME_STORE="none", RPRIME_LIMITS_CONNECTIONS="20") as client, ExitStack() as stack:
        files = Path(f"/proc/{processes[client.base_url.port or 0]}/fd")
        before = len(list(files.iterdir()))
        for _ in range(20):
            stack.enter_context(connect(client, sent))
        for _ in range(20):
            # Within half a second of its beginning nobody counts as slow.
            wait_until(lambda: alone(client).startswith(b"HTTP/1.1 200"), seconds=10)
            stack.enter_context(connect(client, sent))
        wait_until(lambda: closed(client, "connections") >= 19, seconds=10)
        assert len(list(files.iterdir())) - before <= 20 + SPARE
        wait_until(lambda: 0 < gauge(client, "rprime_connections") <= 20, seconds=10)


def alone(client: httpx.Client) -> bytes:
    """Ask on a connection of its own, and read until it closes."""
    with connect(client, b"GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") as it:
        try:
            return b"".join(iter(lambda: it.recv(65_536), b""))
        except ConnectionResetError:
            return b""


def test_where_nobody_is_waited_for_a_new_connection_gets_a_503(serve: Serve) -> None:
    plan = json.dumps(gate(20)).encode()
    head = b"POST /v1/gates/plan HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += b"Content-Length: %d\r\n\r\n" % len(plan)
    with serve(RPRIME_STORE="none", RPRIME_LIMITS_CONNECTIONS="1") as client:
        with connect(client, head + plan) as busy:
            # Half a second, in which one that is waited for would have become slow.
            assert not select.select([busy], [], [], 0.7)[0]
            refused = connect(client)
            response = HTTPResponse(refused)
            response.begin()
            assert (response.status, response.headers["Retry-After"]) == (503, "1")
            assert json.loads(response.read())["code"] == "overloaded"
            refused.close()
            assert busy.recv(12) == b"HTTP/1.1 200"
        wait_until(lambda: alone(client).startswith(b"HTTP/1.1 200"))


def test_open_files_bound_the_connections(tmp_path: Path) -> None:
    """With few files the service has fewer connections, so that they do not run out."""
    command = ["sh", "-c", 'ulimit -n 160; exec "$0" serve --port 0', str(RPRIME)]
    with (tmp_path / "log").open("w") as log, ExitStack() as stack:
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment(), stdout=PIPE, stderr=log, text=True
        )
        stack.callback(stop, process)
        assert process.stdout is not None
        stack.enter_context(process.stdout)
        address = re.search(r"http://\S+(?=,)", process.stdout.readline())
        assert address, (tmp_path / "log").read_text()
        client = stack.enter_context(httpx.Client(base_url=address[0], verify=NO_TLS))
        assert client.get("/version").json()["limits"]["connections"] == 16
        for _ in range(140):
            with suppress(ConnectionResetError):
                stack.enter_context(connect(client, HEAD[:-4]))
        wait_until(lambda: alone(client).startswith(b"HTTP/1.1 200"), seconds=5)
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_more_connections_than_files_are_refused_at_the_start(rprime_process: Run) -> None:
    limits = {"RPRIME_LIMITS_CONNECTIONS": "100000000000"}
    ended = rprime_process("serve", "--port", "0", **limits)
    assert ended.returncode == 2
    assert "LimitNOFILE" in ended.stderr


def test_a_head_has_a_limit(hasty: httpx.Client) -> None:
    status, content = answer(connect(hasty, HEAD + b"X: " + b"y" * 200_000))
    assert (status, '"head_too_large"' in content) == (431, True)


def test_a_request_that_is_not_http_gets_a_problem_and_no_reset(hasty: httpx.Client) -> None:
    connection = connect(hasty, b"\x16\x03\x01 not HTTP\r\n\r\n")
    # More of it is on the way already.
    connection.sendall(bytes(100_000))
    status, content = answer(connection)
    assert (status, '"bad_request"' in content) == (400, True)


def test_a_rejected_request_has_one_line_in_the_log(serve: Serve, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with serve(log=log, RPRIME_STORE="none", RPRIME_LIMITS_BODY_SECONDS="0.2") as client:
        assert answer(connect(client, REQUEST[:-5]))[0] == 408
        assert answer(connect(client, b"\x16\x03\x01 not HTTP\r\n\r\n"))[0] == 400
        upgrade = {"Connection": "Upgrade", "Upgrade": "websocket"}
        assert client.get("/livez", headers=upgrade).status_code == 200
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["event"] for line in lines] == ["loopback_only", *2 * ["request_rejected"]]
    assert [line["reason"] for line in lines[1:]] == ["body", "malformed"]
    assert {line["client"] for line in lines[1:]} == {"127.0.0.1"}


def test_five_hundred_slow_clients_take_nothing_from_a_good_one(
    hasty: httpx.Client, log: Path
) -> None:
    with ExitStack() as slow:
        parts = (b"", HEAD, REQUEST[:-5])
        lingering = [slow.enter_context(connect(hasty, parts[i % 3])) for i in range(500)]
        headers = {"Content-Type": "application/json"}
        for _ in range(50):
            response = hasty.post("/evaluate", content=BODY, headers=headers)
            assert response.status_code == 200
        heads = [connection.recv(12) for connection in lingering]
    assert set(heads) == {b"", b"HTTP/1.1 408"}
    assert "Traceback" not in log.read_text()
