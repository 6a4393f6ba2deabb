"""A signal to end ends a service that starts, whatever it does at that moment; a hangup does not.

`RPRIME_TEST_STARTS=20 sh .ci/venv pytest tests/system/test_start_signals.py` is the long version.
"""

import os
import random
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.services import Serve, environment
from tests.waiting import wait_until

STARTS = int(os.environ.get("RPRIME_TEST_STARTS", "1"))
_TICKS = os.sysconf("SC_CLK_TCK")

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


def work(process: int) -> float:
    """Return the seconds of CPU that a process and its children have used."""
    used, folder = 0.0, Path(f"/proc/{process}")
    # A child may be gone before it is looked at.
    with suppress(FileNotFoundError, ProcessLookupError):
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        used = (int(fields[11]) + int(fields[12])) / _TICKS
        for task in (folder / "task").iterdir():
            used += sum(map(work, map(int, (task / "children").read_text().split())))
    return used


def works_or_answers(process: int, seconds: float, has_answered: Callable[[], bool]) -> bool:
    """Whether a service has used its CPU for so long, or has started with less."""
    return work(process) >= seconds or has_answered()


@contextmanager
def answering(client: httpx.Client) -> Iterator[Callable[[], bool]]:
    """Send a request to a service that starts; yield what tells whether it has answered."""
    address = client.base_url.host, client.base_url.port or 0
    with socket.create_connection(address) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        yield lambda: bool(select.select([connection], [], [], 0)[0])


@pytest.mark.parametrize("workers", [pytest.param("1", marks=pytest.mark.slow), "2"])
def test_a_signal_while_it_starts_ends_it(
    serve: Serve, processes: dict[int, int], workers: str
) -> None:
    settings = {"RPRIME_STORE": "none"} if workers == "2" else {}
    with serve("--workers", workers, **settings) as client:
        process = processes[client.base_url.port or 0]
        before = work(process)
        assert client.get("/livez").status_code == 200
        whole = work(process) - before
    for start in range(STARTS):
        # Leaving sends the signal, and asserts that the service ends with 0.
        with serve("--workers", workers, **settings) as client:
            process = processes[client.base_url.port or 0]
            # At another moment in each run of the tests.
            share = (start + random.random()) / STARTS  # noqa: S311 (no secret)
            goal = work(process) + 0.9 * whole * share
            # On a busy machine one start takes more work than another.
            with answering(client) as has_answered:
                wait_until(partial(works_or_answers, process, goal, has_answered), every=0.005)


def test_a_hangup_while_it_starts_does_not_end_it(serve: Serve, processes: dict[int, int]) -> None:
    with serve(RPRIME_STORE="none") as client:
        os.kill(processes[client.base_url.port or 0], signal.SIGHUP)
        assert client.get("/livez").status_code == 200


SIGNALLED = """
import os, signal
from rprime.cli import app
from rprime.commands import serve

announce = serve._announce

class Signals:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)

def announced(*arguments):
    announce(*arguments)
    Signals()

serve._announce = announced
app()
"""
"""The command, with a signal to itself from a destructor, where an exit that is raised is lost."""


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_signal_waits_until_the_service_can_handle_it(workers: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED, "serve", "--port", "0", "--workers", workers],
        env=environment(RPRIME_STORE="none"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, "rprime listens on" in done.stdout) == (0, True), done.stderr
