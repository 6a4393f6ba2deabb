"""The runbook in docs/operations.md names states, answers, metrics and lines that exist."""

import re
from pathlib import Path

import httpx
import pytest

from rprime.problems.kinds import KINDS
from rprime.settings import Limits, Settings
from rprime.store.database import STATES

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
[RUNBOOK] = re.findall(
    r"^## What you see and what to do\n(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL
)
ROWS = [line.strip("| ").split(" | ") for line in RUNBOOK.splitlines() if line.startswith("| ")][1:]
SEEN = " ".join(row[0] for row in ROWS)
NAMES = set(re.findall(r"`(\w+)`", RUNBOOK))
EVENTS = {
    name
    for name in re.findall(r"`(\w+)` in the log|`(stopped_\w+)`", RUNBOOK)
    for name in name
    if name
}


def test_every_row_says_what_it_means_and_what_to_do() -> None:
    assert len(ROWS) > 20
    assert all(len(row) == 3 and all(row) for row in ROWS)


@pytest.mark.parametrize("state", [state for state in STATES if state != "ok"])
def test_every_state_of_the_store_has_a_row(state: str) -> None:
    assert f"`/readyz` `{state}`" in SEEN


# A client solves the others itself.
@pytest.mark.parametrize(
    "code",
    [code for code, kind in KINDS.items() if kind.status in {401, 408, 413, 421, 429, 431}]
    + [code for code, kind in KINDS.items() if kind.status >= 500 and kind.status != 501],
)
def test_every_answer_that_an_operator_has_to_solve_has_a_row(code: str) -> None:
    assert re.search(rf"\b{KINDS[code].status} `{code}`", RUNBOOK)


def test_every_status_with_a_code_is_that_of_its_kind() -> None:
    named = re.findall(r"\b([45]\d\d) `(\w+)`", RUNBOOK)
    assert len(named) > 10
    assert all(KINDS[code].status == int(status) for status, code in named)


def test_every_metric_is_one(client: httpx.Client) -> None:
    described = set(re.findall(r"^# HELP (\w+)", client.get("/metrics").text, re.MULTILINE))
    metrics = {name for name in NAMES if name.startswith("rprime_")}
    assert len(metrics) > 4
    assert metrics <= described


def test_every_line_of_the_log_is_written_by_the_service() -> None:
    sources = (ROOT / "service" / "rprime").rglob("*.py")
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    assert len(EVENTS) > 4
    for event in EVENTS:
        assert f'"{event}"' in text, event


def test_every_setting_and_limit_is_one() -> None:
    settings = {name for name in NAMES if name.startswith("RPRIME_")}
    assert settings <= {f"RPRIME_{name.upper()}" for name in Settings.model_fields}
    limits = {name for name in NAMES if re.search(r"_(bytes|seconds|requests)$", name)}
    limits -= set(KINDS)
    assert limits - {name for name in NAMES if name.startswith("rprime_")} <= set(
        Limits.model_fields
    )
