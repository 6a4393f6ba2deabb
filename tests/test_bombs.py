"""Bodies that cost much more than they weigh: refused soon, in little memory, beside good clients.

`sh .ci/venv pytest -s tests/test_bombs.py` prints seconds and memory for each.
"""

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPResponse

import httpx
import pytest

from bombs import ARROW, BOMBS, JSON, MIB, Bomb, forget_peak, resident
from conftest import Serve

REFUSALS = {400, 413, 422}
BUSY = {429, 503}
SMALL = {"confusion_matrix": [[5, 1], [2, 7]]}


@pytest.fixture(scope="module")
def target(serve: Serve) -> Iterator[httpx.Client]:
    """Give a service whose pools have worked before: what that takes is idle memory."""
    with serve(RPRIME_STORE="none") as client:
        for media_type in (JSON, ARROW):
            for bomb in BOMBS:
                if bomb.media_type == media_type:
                    send(client, bomb)
        yield client


def send(client: httpx.Client, bomb: Bomb) -> tuple[int, float, bytes]:
    """Send a bomb; the status, how many seconds that took, and the answer.

    A service that has heard enough answers and closes before everything is sent.
    """
    pieces = iter(bomb.pieces())
    is_chunked = bomb.headers.get("Transfer-Encoding") == "chunked"
    if is_chunked:
        framed = (b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
        headers = bomb.headers
    else:
        body = b"".join(pieces)
        framed = (body[start : start + MIB] for start in range(0, len(body), MIB))
        headers = bomb.headers | {"Content-Length": str(len(body))}
    lines = [f"{name}: {value}" for name, value in headers.items()]
    head = [
        "POST /evaluate HTTP/1.1",
        "Host: localhost",
        f"Content-Type: {bomb.media_type}",
        *lines,
    ]
    address = client.base_url.host, client.base_url.port or 0
    start = time.perf_counter()
    with socket.create_connection(address, timeout=60) as connection:
        try:
            connection.sendall("\r\n".join([*head, "", ""]).encode())
            for piece in framed:
                connection.sendall(piece)
            if is_chunked:
                connection.sendall(b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has answered
        response = HTTPResponse(connection, method="POST")
        response.begin()
        return response.status, time.perf_counter() - start, response.read()


def measured(
    client: httpx.Client, process: int, bombs: list[Bomb]
) -> tuple[list[tuple[int, float, bytes]], int]:
    """Send bombs at the same time; the answers, and the memory that the service took."""
    forget_peak(process)
    idle = resident(process, "VmRSS")
    with ThreadPoolExecutor(len(bombs)) as pool:
        answers = list(pool.map(lambda bomb: send(client, bomb), bombs))
    return answers, resident(process, "VmHWM") - idle


@pytest.mark.parametrize("bomb", BOMBS, ids=str)
def test_a_bomb_is_refused(target: httpx.Client, processes: dict[int, int], bomb: Bomb) -> None:
    [(status, seconds, answer)], peak = measured(
        target, processes[target.base_url.port or 0], [bomb]
    )
    print(f"{bomb}: {status}, {seconds:.2f} s, {peak / MIB:+.0f} MiB")  # noqa: T201 (the figure) (the figure)
    assert status in REFUSALS, answer[:500]
    assert len(answer) <= 16 * 1024
    assert peak <= bomb.most
    # A second where it was written; a machine that does something else takes longer.
    assert seconds < 10


def test_many_bombs_leave_room_for_others(target: httpx.Client, processes: dict[int, int]) -> None:
    bombs = (BOMBS * 3)[:32]
    process = processes[target.base_url.port or 0]
    with ThreadPoolExecutor(1) as pool:
        going_off = pool.submit(measured, target, process, bombs)
        served = 0
        while not going_off.done():
            assert target.post("/evaluate", json=SMALL).status_code == 200
            served += 1
        answers, peak = going_off.result()
    print(f"32 at once: {peak / MIB:+.0f} MiB, {served} small requests beside them")  # noqa: T201 (the figure)
    assert {status for status, _, _ in answers} <= REFUSALS | BUSY
    assert served > 5
    in_flight = target.get("/version").json()["limits"]["in_flight_bytes"]
    assert peak <= in_flight
