"""The contract as schemathesis reads it: every check, on every operation.

`RPRIME_TEST_EXAMPLES=200` draws more examples. `RPRIME_TEST_COVERAGE_SECONDS=600` runs the coverage
phase, too, each operation for at most so long: POST /evaluate alone has 13,000 cases.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.services import Serve, environment

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
CONFIG = Path(__file__).with_name("schemathesis.toml")
DOCUMENT = Path(__file__).parents[2] / "openapi" / "openapi.json"
EXAMPLES = os.environ.get("RPRIME_TEST_EXAMPLES", "3")
COVERAGE_SECONDS = int(os.environ.get("RPRIME_TEST_COVERAGE_SECONDS", "0"))
NOT_COVERED = {
    "POST /v1/evaluate": "the same operation as POST /evaluate",
    "POST /v1/import": "lines of JSON are not made from a schema; test_fuzz.py sends these",
}
"""Operations without a coverage phase; they have the examples and the fuzzing."""


def operations() -> list[str]:
    paths = json.loads(DOCUMENT.read_text(encoding="utf-8"))["paths"]
    names = [f"{method.upper()} {path}" for path, methods in paths.items() for method in methods]
    return [name for name in names if name not in NOT_COVERED]


def check(client: httpx.Client, folder: Path, *options: str, seconds: int | None = None) -> int:
    """Run schemathesis, and return the number of cases that passed, which are all of them."""
    document = str(client.base_url.join("/openapi.json"))
    general = ("--checks", "all", "--seed", "1", "--request-timeout", "60")
    done = subprocess.run(
        [SCHEMATHESIS, "--config-file", CONFIG, "run", document, *general, *options],
        cwd=folder,
        env=environment(
            PYTHONPATH=str(CONFIG.parents[2]), SCHEMATHESIS_HOOKS="tests.system.schemathesis_hooks"
        ),
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )
    assert done.returncode == 0, done.stdout
    counted = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
    assert counted, done.stdout
    assert counted[1] == counted[2], done.stdout
    return int(counted[1])


def test_schemathesis_finds_nothing(serve: Serve, tmp_path: Path) -> None:
    phases = ("--phases", "examples,fuzzing", "--max-examples", EXAMPLES)
    with serve() as client:
        assert check(client, tmp_path, *phases) > 100


@pytest.mark.skipif(not COVERAGE_SECONDS, reason="RPRIME_TEST_COVERAGE_SECONDS is not set")
@pytest.mark.parametrize("operation", operations())
def test_the_values_at_the_bounds_of_the_schema_are_answered_as_it_says(
    serve: Serve, tmp_path: Path, operation: str
) -> None:
    with serve() as client:
        options = ("--phases", "coverage", "--include-name", operation)
        assert check(client, tmp_path, *options, seconds=COVERAGE_SECONDS)


def test_every_operation_without_coverage_exists() -> None:
    paths = json.loads(DOCUMENT.read_text(encoding="utf-8"))["paths"]
    for name in NOT_COVERED:
        method, path = name.split()
        assert method.lower() in paths[path]
