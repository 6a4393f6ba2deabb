"""Text charts: every sign stands where its number is, whatever the names are."""

import re
from dataclasses import replace
from typing import Any

import pytest
from rich.cells import cell_len

from rprime.core.gates.results import Result
from rprime.report.markdown import MOST_LINES, NAMES, WIDTH, text_chart
from rprime.report.verdicts import threshold
from rprime.schemas.gate import Gate
from tests.report.report_subjects import SUBJECTS, cifar, many, of_paper

NUMBER = r"[−-]?\d+(?:\.\d+)?"


def gate_of(name: str) -> Gate | None:
    return SUBJECTS[name]().gate


def one(result: Result, **changed: Any) -> list[str]:
    gate = cifar().gate
    assert gate is not None
    results = [replace(result, **changed)]
    return text_chart(gate.model_copy(update={"results": results})).splitlines()[1:-1]


@pytest.fixture
def result() -> Result:
    gate = cifar().gate
    assert gate is not None
    return next(r for r in gate.results if r.rule == "recall.max_drop" and r.effect == "fail")


def at(line: str, ends: tuple[float, float], sign: str) -> float:
    """The number at a sign of a line."""
    low, high = ends
    place = line.index(sign) - NAMES - 1
    return low + (high - low) * place / (WIDTH - 1)


def test_each_sign_is_at_its_number_to_half_a_character(result: Result) -> None:
    head, line, _, legend = one(result, class_="cat", effect="fail")
    assert head.startswith("▸ recall.max_drop")
    assert line.startswith("  ✗ cat ")
    low, high = (float(n.replace("−", "-")) for n in re.findall(NUMBER, head.split("drop")[1]))
    half = (high - low) / (WIDTH - 1) / 2 + 1e-9
    assert result.delta is not None
    assert at(line, (low, high), "●") == pytest.approx(result.delta, abs=half)
    assert at(line, (low, high), "├") == pytest.approx(result.lower_limit, abs=half)
    assert at(line, (low, high), "┤") == pytest.approx(result.upper_limit, abs=half)
    assert at(line, (low, high), "┆") == pytest.approx(threshold(result), abs=half)
    assert "95 % confidence" in legend


def test_a_value_without_limits_is_a_point(result: Result) -> None:
    _, line, _, legend = one(result, lower_limit=None, upper_limit=None, level=None)
    assert not {"├", "─", "┤"} & set(line + legend)
    assert {"●", "┆"} <= set(line)


@pytest.mark.parametrize("name", SUBJECTS)
def test_no_name_moves_the_axis(name: str) -> None:
    lines = text_chart(gate_of(name)).splitlines()
    drawn = [line for line in lines if line.startswith("  ")]
    for line in drawn:
        before = re.split("[├●┆┼]", line, maxsplit=1)[0]
        assert NAMES + 1 <= cell_len(re.sub("[\u2066-\u2069]", "", before)) <= NAMES + 1 + WIDTH
    assert len(drawn) <= MOST_LINES


def test_what_fails_is_kept_and_the_rest_is_counted() -> None:
    gate = many().gate
    assert gate is not None
    lines = text_chart(gate).splitlines()
    signs = [line[2] for line in lines if line.startswith("  ")]
    failing = sum(result.effect == "fail" for result in gate.results)
    assert signs.count("✗") == min(failing, MOST_LINES)
    assert lines[-4] == f"… and {len(gate.results) - MOST_LINES} results more"


def test_without_values_nothing_is_drawn(result: Result) -> None:
    assert text_chart(None) == text_chart(of_paper().gate) == ""
    assert one(result, delta=None) == []
    assert one(result, slice={"region": "EU"}, class_=None)[1].startswith("  ✗ region=EU ")


def test_long_names_that_differ_in_their_ends_are_told_apart(result: Result) -> None:
    lines = {one(result, class_=f"a very long name of a class {i}")[1][: NAMES + 1] for i in "12"}
    assert len(lines) == 2
