"""A default request passes few functions, and enters each package of the service in order."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.services import environment

BENCH = Path(__file__).parents[1] / "bench"
MOST_FUNCTIONS, MOST_FILES = 69, 23
"""Outside the core. Who needs more of them makes every request slower and harder to follow."""


@pytest.fixture(scope="module")
def path() -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "path.py"],
        cwd=BENCH,
        env=environment(OPENBLAS_NUM_THREADS="1"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    content: dict[str, object] = json.loads(done.stdout)
    return content


def test_a_default_request_passes_few_functions_and_files(path: dict[str, int]) -> None:
    assert 40 < path["functions"] <= MOST_FUNCTIONS, path["outside_the_core"]
    assert 20 < path["files"] <= MOST_FILES


def test_a_request_is_validated_then_read_evaluated_and_rendered(
    path: dict[str, list[str]],
) -> None:
    order = ["server", "routes", "application", "schemas", "evidence", "core", "report"]
    assert list(dict.fromkeys(path["packages"])) == order


def test_a_body_is_parsed_then_validated_and_its_evidence_is_read_in_one_go(
    path: dict[str, list[str]],
) -> None:
    packages = path["packages"]
    reading = packages[packages.index("application") : packages.index("core")]
    assert reading == ["application", "schemas", "evidence"]
