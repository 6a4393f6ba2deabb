"""CSV: one line a value, and nothing that a spreadsheet would compute."""

import csv
import io
from dataclasses import replace

import pytest

from rprime.core.options import Options
from rprime.report.csv import HEAD, field, render_csv
from rprime.report.subject import ReportSubject
from tests.report.report_subjects import HOSTILE, SUBJECTS, cifar, hostile, many, of_paper


def rows(subject: ReportSubject) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(render_csv(subject), newline=""), strict=True))


@pytest.mark.parametrize("name", SUBJECTS)
def test_every_line_has_every_column(name: str) -> None:
    lines = list(csv.reader(io.StringIO(render_csv(SUBJECTS[name]()), newline=""), strict=True))
    assert lines[0] == HEAD.split(",")
    assert {len(line) for line in lines} == {len(HEAD.split(","))}


@pytest.mark.parametrize("name", SUBJECTS)
def test_no_cell_is_a_formula(name: str) -> None:
    for row in rows(SUBJECTS[name]()):
        for cell in row.values():
            assert not cell.lstrip().startswith(("=", "+", "@", "\t", "\r")) or _is_number(cell)
            assert not cell.startswith("-") or _is_number(cell)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def test_values_changes_and_reasons_stand_in_their_columns() -> None:
    lines = {(r["scope"], r["class"], r["index"]): r for r in rows(cifar())}
    accuracy = lines["overall", "", "accuracy"]
    assert (accuracy["value"], accuracy["baseline"]) == ("0.8334", "0.8756")
    assert (accuracy["change"], accuracy["low"]) == ("-0.0422", "0.8260")
    cat = lines["class", "cat", "recall"]
    assert (cat["value"], cat["change"]) == ("0.6210", "-0.1520")
    assert float(cat["change_low"]) < -0.152 < float(cat["change_high"])
    assert lines["class", "cat", "support"]["value"] == "1000.0000"
    assert lines["class", "cat", "share_of_errors"]["reason"] == "no_interval"


def test_names_come_back_but_for_the_apostrophe() -> None:
    names = {row["class"].removeprefix("'") for row in rows(hostile())} - {""}
    assert set(HOSTILE[:43]) <= names


@pytest.mark.parametrize("name", ["=1", "+1", "-1+1", "-a", "@x", " =1", "\uff1d1"])
def test_a_formula_gets_an_apostrophe(name: str) -> None:
    assert field(name).startswith(("'", "\"'"))


def test_a_class_that_is_a_number_stays_one() -> None:
    assert [field(name) for name in ("-1", "-1.5", "7")] == ["-1", "-1.5", "7"]


def test_every_reported_index_of_every_class_has_a_line() -> None:
    subject = replace(of_paper(options=Options(indices=("recall", "accuracy"))))
    assert [row["index"] for row in rows(subject)][:5] == [
        "accuracy",
        "support",
        "predicted",
        "correct",
        "recall",
    ]
    assert len(rows(subject)) == 1 + 10 * 4
    assert len(rows(many(300))) > 300 * 8
