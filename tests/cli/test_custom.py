"""`--custom` adds indices of one's own to evaluations and comparisons."""

import json
from pathlib import Path

import pytest

from tests.command import Run

ITEMS = "y_true,y_pred\nfraud,ok\nok,fraud\nok,ok\nfraud,fraud\nok,ok\nok,ok\n"
COST = "cost=(5 * cells['fraud', 'ok'] + cells['ok', 'fraud']) / items"


@pytest.fixture
def items(tmp_path: Path) -> str:
    path = tmp_path / "items.csv"
    path.write_text(ITEMS, encoding="utf-8")
    return str(path)


def test_the_command_adds_them_to_the_summary(rprime: Run, items: str) -> None:
    result = rprime("evaluate", items, "--custom", COST, "--custom", "half = kappa / 2", "--json")
    overall = json.loads(result.stdout)["overall"]
    assert overall["custom.cost"]["value"] == 1
    assert overall["custom.half"]["value"] == pytest.approx(0.125)
    assert "accuracy" in overall


def test_the_report_of_the_command_prints_the_expression(rprime: Run, items: str) -> None:
    result = rprime("evaluate", items, "--custom", COST)
    assert "Cost: (5 * cells['fraud', 'ok'] + cells['ok', 'fraud']) / items" in result.stdout


def test_files_are_compared_in_them(rprime: Run, items: str) -> None:
    result = rprime("compare", items, items, "--custom", COST, "--json")
    assert json.loads(result.stdout)["comparison"]["overall"]["custom.cost"]["value"] == 0


@pytest.mark.parametrize(
    ("custom", "text"),
    [
        ("cost", "--custom is NAME=EXPR"),
        ("cost=recal['ok']", "/custom/cost: Column 1: The catalog has no such index."),
        ("Cost=kappa", "A name has small letters"),
    ],
)
def test_a_wrong_one_ends_with_2(rprime: Run, items: str, custom: str, text: str) -> None:
    result = rprime("evaluate", items, "--custom", custom)
    assert result.returncode == 2
    assert text in result.stderr
