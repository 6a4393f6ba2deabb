"""Bodies that cost much more than they weigh: refused soon, in little memory, beside good clients.

`sh .ci/venv pytest -s tests/system/test_bombs.py` prints seconds and memory for each.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx
import pytest

from rprime.evidence import FORMATS, BodyFormat
from tests.services import Serve
from tests.system.bombs import BOMBS, MIB, Bomb, at_once, forget_peak, resident, send

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


def measured(
    port: int, process: int, bombs: list[Bomb]
) -> tuple[list[tuple[int, float, bytes]], int]:
    """Send bombs at the same time; the answers, and the memory that the service took."""
    forget_peak(process)
    idle = resident(process, "VmRSS")
    with ThreadPoolExecutor(len(bombs)) as pool:
        answers = list(pool.map(partial(send, port), bombs))
    return answers, resident(process, "VmHWM") - idle


@pytest.mark.parametrize("form", FORMATS.values(), ids=list(FORMATS))
def test_every_format_has_a_bomb(form: BodyFormat) -> None:
    assert any(bomb.media_type == form.media_type for bomb in BOMBS)


@pytest.mark.parametrize("bomb", BOMBS, ids=str)
def test_a_bomb_is_refused(target: httpx.Client, processes: dict[int, int], bomb: Bomb) -> None:
    port = target.base_url.port or 0
    [(status, seconds, answer)], peak = measured(port, processes[port], [bomb])
    print(f"{bomb}: {status}, {seconds:.2f} s, {peak / MIB:+.0f} MiB")  # noqa: T201 (the figure)
    assert status in REFUSALS, answer[:500]
    assert len(answer) <= 16 * 1024
    assert peak <= bomb.most
    # A second where it was written; a machine that does something else takes longer.
    assert seconds < 10


def test_many_bombs_leave_room_for_others(target: httpx.Client, processes: dict[int, int]) -> None:
    port = target.base_url.port or 0
    with ThreadPoolExecutor(1) as pool:
        going_off = pool.submit(measured, port, processes[port], at_once())
        served = 0
        while not going_off.done():
            assert target.post("/evaluate", json=SMALL).status_code == 200
            served += 1
        answers, peak = going_off.result()
    print(f"32 at once: {peak / MIB:+.0f} MiB, {served} small requests beside them")  # noqa: T201 (the figure)
    assert {status for status, _, _ in answers} <= REFUSALS | BUSY
    assert served > 5
    limits = target.get("/version").json()["limits"]
    # What is kept, and what each worker reads at once.
    reading = limits["large_requests"] * limits["other_body_bytes"]
    assert peak <= limits["in_flight_bytes"] + reading
