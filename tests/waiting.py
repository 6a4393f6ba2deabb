"""Wait for a condition: for as long as a busy machine may need, and no longer than it takes."""

import re
import time
from collections.abc import Callable

import httpx


def wait_until(holds: Callable[[], bool], *, seconds: float = 60, every: float = 0.02) -> None:
    """Ask again and again whether a condition holds, and fail where it never does."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(every)


def gauge(client: httpx.Client, name: str) -> float:
    """Return a figure of the service, such as `rprime_in_flight_requests`; 0 where it has none."""
    match = re.search(rf"^{re.escape(name)} (\S+)$", client.get("/metrics").text, re.MULTILINE)
    return float(match[1]) if match else 0.0
