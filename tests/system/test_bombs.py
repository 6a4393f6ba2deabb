"""Bodies that cost much more than they weigh: refused soon, in little memory, beside good clients.

`sh .ci/venv pytest -s tests/system/test_bombs.py` prints seconds and memory for each.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import httpx
import pytest

from rprime.evidence.formats import FORMATS, BodyFormat
from tests.services import Serve
from tests.system.bombs import (
    BOMBS,
    MIB,
    Bomb,
    at_once,
    forget_peak,
    most_together,
    processor_seconds,
    resident,
    send,
)

REFUSALS = {400, 413, 422}
BUSY = {429, 503}
SMALL = {"confusion_matrix": [[5, 1], [2, 7]]}


@pytest.fixture(scope="module")
def target(serve: Serve) -> Iterator[httpx.Client]:
    """Return a service whose pools have worked before: what that takes is idle memory."""
    with serve(RPRIME_STORE="none") as client:
        for bomb in BOMBS:
            if bomb.name in {"32 000 000 commas", "Arrow, 1 GiB in its buffers"}:
                send(client.base_url.port or 0, bomb)
        yield client


@pytest.mark.parametrize("form", FORMATS.values(), ids=list(FORMATS))
def test_every_format_has_a_bomb(form: BodyFormat) -> None:
    assert any(bomb.media_type == form.media_type for bomb in BOMBS)


@pytest.mark.parametrize("bomb", BOMBS, ids=str)
def test_a_bomb_is_refused(target: httpx.Client, processes: dict[int, int], bomb: Bomb) -> None:
    port = target.base_url.port or 0
    forget_peak(processes[port])
    idle = resident(processes[port], "VmRSS")
    before = processor_seconds(processes[port])
    status, seconds, answer = send(port, bomb)
    work = processor_seconds(processes[port]) - before
    peak = resident(processes[port], "VmHWM") - idle
    print(f"{bomb}: {status}, {work:.2f} s of {seconds:.2f} s, {peak / MIB:+.0f} MiB")  # noqa: T201 (the figure)
    assert status in REFUSALS, answer[:500]
    assert len(answer) <= 16 * 1024
    assert peak <= bomb.most
    # The clock would count other programs of the machine, too.
    assert work < bomb.most_seconds


def test_many_bombs_leave_room_for_others(target: httpx.Client, processes: dict[int, int]) -> None:
    port, bombs, done = target.base_url.port or 0, at_once(), Event()
    idle = resident(processes[port], "RssAnon")
    with ThreadPoolExecutor(1 + len(bombs)) as pool:
        watching = pool.submit(most_together, processes[port], done)
        try:
            going_off = [pool.submit(send, port, bomb) for bomb in bombs]
            served = 0
            while not all(future.done() for future in going_off):
                assert target.post("/evaluate", json=SMALL).status_code == 200
                served += 1
        finally:
            done.set()
    answers, peak = [future.result() for future in going_off], watching.result() - idle
    print(f"32 at once: {peak / MIB:+.0f} MiB, {served} small requests beside them")  # noqa: T201 (the figure)
    assert {status for status, _, _ in answers} <= REFUSALS | BUSY
    assert served > 5
    limits = target.get("/version").json()["limits"]
    # What is kept, what each worker reads at once, and that of a worker which is being ended.
    reading = (limits["large_requests"] + 1) * limits["other_body_bytes"]
    assert peak <= limits["in_flight_bytes"] + reading
