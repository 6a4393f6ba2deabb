"""A network or a disk that hangs: answers in time, an end in time, and nothing is lost.

The long version: `RPRIME_TEST_STALL_SECONDS=45 sh .ci/venv pytest -s
tests/store/test_stalled_network.py`; it has the timeouts of the default settings.
"""

import os
import re
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

import httpx
import pytest
from sqlalchemy import make_url

from rprime.server.draining import ENDED_STATUS
from rprime.store import open_store
from tests.forked_command import Process, start
from tests.history_service import labels, matrix
from tests.services import RPRIME, Serve, environment
from tests.store.compiled import compiled
from tests.store.stalling_proxy import Mode, StallingProxy, proxied

STALL_SECONDS = float(os.environ.get("RPRIME_TEST_STALL_SECONDS", "9"))
LOWERED = {} if STALL_SECONDS > 30 else {"RPRIME_STORE_SECONDS": "3"}
WRITERS = 6
LONGEST_ANSWER = 20
LONGEST_PROBE = 3
STOPPING = {"RPRIME_DRAIN_SECONDS": "0.2", "RPRIME_STOP_SECONDS": "1"}
# A loaded machine takes its time to end a process; what hangs would hang for 30 s.
ENDED_WITHIN = 0.2 + 1 + 3
STALLING_SYNC = """
#include <unistd.h>
#include <stdlib.h>
static int stall(int fd) {
    (void) fd;
    if (access(getenv("STALLS_WHILE_THERE"), F_OK) == 0) sleep(30);
    return 0;
}
int fsync(int fd) { return stall(fd); }
int fdatasync(int fd) { return stall(fd); }
"""


@pytest.fixture
def through(postgresql_url: str) -> Iterator[tuple[StallingProxy, str]]:
    with proxied(make_url(postgresql_url)) as proxy:
        yield proxy


@dataclass
class Writer:
    """A client that keeps evaluations one after the other."""

    base_url: httpx.URL
    number: int
    done: Event
    acknowledged: list[str] = field(default_factory=list)
    answers: Counter[tuple[int, bool]] = field(default_factory=Counter)
    longest: float = 0

    def run(self) -> None:
        count = 0
        with httpx.Client(base_url=self.base_url, timeout=60) as client:
            while not self.done.is_set():
                count += 1
                headers = {"Idempotency-Key": f"{self.number} {count}"} if self.number % 2 else {}
                content = matrix(version=f"{self.number}.{count}")
                begun = time.monotonic()
                answer = client.post("/evaluate", json=content, headers=headers)
                self.longest = max(self.longest, time.monotonic() - begun)
                self.answers[answer.status_code, "retry-after" in answer.headers] += 1
                if answer.status_code == 201:
                    self.acknowledged.append(answer.json()["id"])
                else:
                    # As told, but for no longer than the test has.
                    self.done.wait(0.2)


def timed(
    client: httpx.Client, method: str, path: str, content: object = None
) -> tuple[int, float]:
    begun = time.monotonic()
    answer = client.request(method, path, json=content)
    assert answer.status_code != 503 or "retry-after" in answer.headers
    return answer.status_code, time.monotonic() - begun


def wait_until_ready(client: httpx.Client, seconds: float) -> float:
    begun = time.monotonic()
    while client.get("/readyz").status_code != 200:
        assert time.monotonic() - begun < seconds
        time.sleep(0.1)
    return time.monotonic() - begun


def wait_for_more(writers: list[Writer]) -> None:
    before, end = [len(writer.acknowledged) for writer in writers], time.monotonic() + 30
    while any(len(w.acknowledged) < n + 3 for w, n in zip(writers, before, strict=True)):
        assert time.monotonic() < end
        time.sleep(0.05)


def probe_while_stalled(client: httpx.Client) -> dict[str, float]:
    """Ask again and again while the network hangs; the longest that each answer took."""
    longest: dict[str, float] = {}
    end = time.monotonic() + STALL_SECONDS
    probes = {
        "/readyz": ("GET", None, 503),
        "/livez": ("GET", None, 200),
        "/evaluate": ("POST", matrix(project=None), 200),
    }
    while time.monotonic() < end:
        for path, (method, content, expected) in probes.items():
            status, seconds = timed(client, method, path, content)
            assert status == expected, path
            longest[path] = max(longest.get(path, 0), seconds)
        time.sleep(0.2)
    return longest


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["hold", "drop"])
def test_a_stalled_network_is_told_in_time_and_loses_nothing(
    serve: Serve, through: tuple[StallingProxy, str], postgresql_url: str, mode: Mode
) -> None:
    proxy, url = through
    done = Event()
    with serve(RPRIME_STORE=url, **LOWERED) as client:
        writers = [Writer(client.base_url, number, done) for number in range(WRITERS)]
        threads = [Thread(target=writer.run) for writer in writers]
        for thread in threads:
            thread.start()
        try:
            wait_for_more(writers)
            proxy.switch(mode)
            longest = probe_while_stalled(client)
            status, seconds = timed(client, "GET", "/v1/projects")
            assert status == 503
            assert seconds < LONGEST_ANSWER
            proxy.switch("pass")
            recovered = wait_until_ready(client, 15)
            wait_for_more(writers)
        finally:
            done.set()
            proxy.switch("pass")
            for thread in threads:
                thread.join()
    answers = sum((writer.answers for writer in writers), Counter[tuple[int, bool]]())
    slowest = max(writer.longest for writer in writers)
    acknowledged = [name for writer in writers for name in writer.acknowledged]
    print(  # noqa: T201 (the figures)
        f"{mode} {STALL_SECONDS:.0f} s: {dict(answers)}, slowest {slowest:.1f} s, probes "
        f"{longest}, ready after {recovered:.1f} s, {len(acknowledged)} acknowledged"
    )
    # 200: the same evaluation had been stored by an attempt that got no answer.
    assert set(answers) <= {(201, False), (200, False), (503, True)}
    assert answers[503, True] >= WRITERS
    assert slowest < LONGEST_ANSWER
    assert longest["/readyz"] < LONGEST_PROBE
    assert longest["/livez"] < 1
    assert longest["/evaluate"] < 1
    store = open_store(postgresql_url)
    assert [name for name in acknowledged if store.get(name).id != name] == []
    store.close()


@contextmanager
def started(log: Path, **variables: str) -> Iterator[tuple[Process, httpx.Client]]:
    """Start a service that the test ends."""
    with (
        log.open("w") as stderr,
        start(
            *(RPRIME, "serve", "--port", "0"),
            cwd=log.parent,
            env=environment(**variables),
            stderr=stderr,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            match = re.search(r"http://\S+(?=,)", process.stdout.readline())
            assert match, log.read_text()
            with httpx.Client(base_url=match[0], timeout=60) as client:
                yield process, client
        finally:
            process.kill()


def stopped_while_writing(process: Process, client: httpx.Client) -> tuple[int, float]:
    """Stop a service while a write hangs; its status and the seconds that it took."""
    answers: list[int] = []

    def write() -> None:
        try:
            answers.append(client.post("/evaluate", json=labels()).status_code)
        except httpx.TransportError:
            # Its connection ended with the process.
            answers.append(0)

    writing = Thread(target=write)
    writing.start()
    end = time.monotonic() + 10
    with httpx.Client(base_url=client.base_url, timeout=10) as other:
        # The evaluation itself is here in milliseconds; from then on it waits for the store.
        while "rprime_in_flight_requests 2" not in other.get("/metrics").text:
            assert time.monotonic() < end
    begun = time.monotonic()
    process.send_signal(signal.SIGTERM)
    status = process.wait(timeout=60)
    seconds = time.monotonic() - begun
    writing.join()
    assert set(answers) <= {0, 503}
    return status, seconds


def test_the_service_ends_in_time_while_the_network_hangs(
    through: tuple[StallingProxy, str], tmp_path: Path
) -> None:
    proxy, url = through
    log = tmp_path / "log"
    with started(log, RPRIME_STORE=url, **STOPPING) as (process, client):
        wait_until_ready(client, 15)
        assert client.post("/evaluate", json=labels(2)).status_code == 201
        proxy.switch("hold")
        status, seconds = stopped_while_writing(process, client)
    assert seconds < ENDED_WITHIN
    assert status == ENDED_STATUS
    assert '"stopped_unfinished"' in log.read_text()


@pytest.fixture
def stalling_sync(tmp_path: Path) -> Path:
    return compiled(STALLING_SYNC, tmp_path)


@pytest.mark.slow
def test_the_service_ends_in_time_while_the_disk_hangs(tmp_path: Path, stalling_sync: Path) -> None:
    log, stall = tmp_path / "log", tmp_path / "stall"
    variables = {
        "RPRIME_STORE": f"sqlite:///{tmp_path}/rprime.db",
        "LD_PRELOAD": str(stalling_sync),
        "STALLS_WHILE_THERE": str(stall),
        **STOPPING,
    }
    with started(log, **variables) as (process, client):
        kept = client.post("/evaluate", json=labels(2))
        assert kept.status_code == 201
        stall.touch()
        status, seconds = stopped_while_writing(process, client)
    assert seconds < ENDED_WITHIN
    assert status == ENDED_STATUS
    assert '"stopped_unfinished"' in log.read_text()
    store = open_store(f"sqlite:///{tmp_path}/rprime.db")
    assert store.get(kept.json()["id"]).project == "pets"
    store.close()


@pytest.mark.slow
def test_a_silent_server_is_waited_for_at_the_start(
    through: tuple[StallingProxy, str], tmp_path: Path
) -> None:
    proxy, url = through
    proxy.switch("hold")
    log = tmp_path / "log"
    with started(log, RPRIME_STORE=url) as (process, client):
        assert timed(client, "GET", "/livez")[0] == 200
        status, seconds = timed(client, "GET", "/readyz")
        assert status == 503
        assert seconds < LONGEST_PROBE
        assert timed(client, "POST", "/evaluate", matrix(project=None))[0] == 200
        assert timed(client, "POST", "/evaluate", matrix())[0] == 503
        proxy.switch("pass")
        wait_until_ready(client, 20)
        assert timed(client, "POST", "/evaluate", matrix())[0] == 201
        process.terminate()
        assert process.wait(timeout=30) == 0
    assert "Traceback" not in log.read_text()
    assert '"exception"' not in log.read_text()
