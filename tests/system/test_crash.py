"""What a service has acknowledged survives it: kill -9 under 16 clients, and a full disk."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from threading import Event

import httpx
import pytest

from rprime.store import open_store
from tests.history_service import ServeApp, keep, keeping, labels, matrix
from tests.services import NO_TLS, RPRIME, environment
from tests.waiting import wait_until

CLIENTS = 16
CYCLES = int(os.environ.get("RPRIME_TEST_CRASHES", "2"))


@contextmanager
def service(folder: Path, store: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    with subprocess.Popen(
        [RPRIME, "serve", "--port", "0"],
        cwd=folder,
        env=environment(RPRIME_STORE=store),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            yield line.split()[3].rstrip(","), process
        finally:
            process.kill()


def write(address: str, seed: int, killed: Event, acknowledged: list[str]) -> None:
    """Store evaluations until the service is killed; add the ids that it acknowledged."""
    with httpx.Client(base_url=address, timeout=30, verify=NO_TLS) as client:
        for number in count():
            content = matrix(number % 40, version=f"{seed}.{number}")
            try:
                answer = client.post("/evaluate", json=content)
            except httpx.HTTPError:
                assert killed.is_set()
                break
            assert answer.status_code == 201, answer.text
            acknowledged.append(answer.json()["id"])


def wait_for_writers(writers: list[Future[None]], acknowledged: list[str], goal: int) -> None:
    """Wait for so many acknowledgements; a writer that ends before has failed, and says why.

    A stall is a request without an answer within its 30 seconds; a busy machine may take longer
    for all of them, and for the start of the service.
    """

    def holds() -> bool:
        for writer in writers:
            if writer.done():
                writer.result()
        return len(acknowledged) >= goal

    wait_until(holds, seconds=600, every=0.01)


def test_nothing_acknowledged_is_lost_when_the_service_is_killed(tmp_path: Path, url: str) -> None:
    acknowledged: list[str] = []
    for cycle in range(CYCLES):
        with service(tmp_path, url) as (address, process), ThreadPoolExecutor(CLIENTS) as pool:
            killed = Event()
            seeds = range(cycle * CLIENTS, (cycle + 1) * CLIENTS)
            writers = [pool.submit(write, address, seed, killed, acknowledged) for seed in seeds]
            goal = len(acknowledged) + CLIENTS * (2 + cycle % 7)
            try:
                wait_for_writers(writers, acknowledged, goal)
            finally:
                killed.set()
                process.send_signal(signal.SIGKILL)
            for writer in writers:
                writer.result()
    assert len(acknowledged) > CYCLES * CLIENTS
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(tmp_path / "rprime.db")) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with closing(open_store(url)) as store:
        stored = {one for stack in store.tables("pets") for one in stack.ids}
    sys.stdout.write(f"{CYCLES} kills, {len(acknowledged)} acknowledged\n")
    assert set(acknowledged) <= stored


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    # The ballast, 480 KiB that a store reserves, and some that evaluations may fill.
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)  # noqa: S607 - of the system


def test_a_full_disk_is_told_and_reading_goes_on(serve_app: ServeApp, small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    with keeping(serve_app, small_disk) as client:
        kept = keep(client, matrix(version="1"))
        ballast.write_bytes(b"x" * 1_500_000)
        answers = (client.post("/evaluate", json=labels(i, 0.5)) for i in range(2000))
        answer = next(answer for answer in answers if answer.status_code != 201)
        assert (answer.status_code, answer.json()["code"]) == (507, "store_full")
        assert client.get(kept["links"]["self"]).status_code == 200
        assert client.post("/evaluate", json=matrix(project=None)).status_code == 200
        ballast.unlink()
        keep(client, matrix(version="2"))
