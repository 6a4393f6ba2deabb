"""Good clients get good answers while others are too many, and when the service stops.

These are short versions of `overload.py` and `faults.py` in `tests/bench`, which give the figures
of docs/reliability.md.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

BENCH = Path(__file__).parents[1] / "bench"


def figures(*command: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=BENCH,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    output: dict[str, Any] = json.loads(done.stdout)
    return output


def test_who_cannot_be_answered_is_told_so_and_others_are_answered() -> None:
    short = ("--queue", "10", "--seconds", "0.2", "--classes", "10")
    results = figures("overload.py", *short)
    # How many there are of each is measured by the long version: a client that gets little of the
    # CPU asks for no more than can be answered. `tests/http/test_admission.py` fills the queue.
    assert all(results[load]["answers"]["200"] > 0 for load in ("clients", "rate", "fresh"))
    assert not any(results[load]["refusals without Retry-After"] for load in ("rate", "fresh"))


def test_who_stops_under_load_loses_nothing() -> None:
    assert figures("faults.py", "stop", "--rounds", "1")["acknowledged"] > 0
