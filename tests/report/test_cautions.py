"""Warnings in a report: each is said once, for all the classes that it holds for."""

import math

import numpy as np
import pytest

from rprime.core.evaluate import evaluate
from rprime.core.options import Options
from rprime.core.table import ConfusionTable
from rprime.core.warnings import MOST_NAMED
from rprime.report.grouped_warnings import grouped_warnings
from rprime.report.html import render_html
from rprime.report.markdown import render_markdown
from rprime.report.marks import Axis
from rprime.report.subject import ReportSubject
from rprime.report.terminal import render_terminal
from rprime.report.text import decimal, fixed, signed
from tests.report.report_subjects import HOSTILE, SURROGATE


def with_absent_classes(labels: tuple[str, ...]) -> ReportSubject:
    """Only the first two classes have items, and one of them is never predicted."""
    k = len(labels)
    counts = np.zeros((k, k))
    counts[0, 0], counts[1, 0] = 50, 40
    evaluation = evaluate(ConfusionTable.dense(counts), labels, Options())
    return ReportSubject(evaluation=evaluation, engine_version="0.1.0")


def test_classes_share_one_warning_and_all_are_counted() -> None:
    cautions = {
        c.code: c for c in grouped_warnings(with_absent_classes(tuple(map(str, range(150)))))
    }
    absent, never = cautions["class_absent"], cautions["class_never_predicted"]
    assert (absent.lead, absent.labels[0], len(absent.labels)) == ("Classes", "2", MOST_NAMED)
    assert absent.unnamed == 148 - MOST_NAMED
    assert (never.lead, never.labels, never.unnamed) == ("Class", ("1",), 0)


@pytest.mark.parametrize("render", [render_markdown, render_html, render_terminal])
def test_a_rendering_names_some_and_counts_the_others(render: object) -> None:
    assert callable(render)
    text = render(with_absent_classes(tuple(f"class-{i}" for i in range(150))))
    assert "and 128 more" in text
    assert "never predicted" in text


def test_names_are_taken_out_of_their_sentences_whatever_they_are() -> None:
    labels = ("first", "s", *HOSTILE, SURROGATE)
    cautions = {c.code: c for c in grouped_warnings(with_absent_classes(labels))}
    assert cautions["class_never_predicted"].labels == ("s",)
    assert cautions["class_absent"].labels[0] == HOSTILE[0]
    assert set(cautions["class_absent"].labels) <= {*HOSTILE, SURROGATE}


def test_numbers_are_written_for_people() -> None:
    assert decimal(12345.67891) == "12,345.6789"
    assert decimal(-0.00001) == "0.0000"
    assert fixed(-0.00001) == "0.0000"
    assert decimal(-0.5) == "\u22120.5000"
    assert (signed(0.0), signed(0.00001), signed(-0.00001)) == ("0.0000", "+0.0000", "\u22120.0000")
    assert (decimal(None), signed(None)) == ("\u2013", "\u2013")


@pytest.mark.parametrize(
    ("numbers", "ends"),
    [
        ([0.9777, 0.9831], ("0.976", "0.984")),
        ([0.62, 0.91, None], ("0.6", "1")),
        ([0.5, 0.5], ("0.4", "0.6")),
        ([], ("0", "1")),
        ([0.0], ("0", "0.2")),
        ([float("nan"), float("inf")], ("0", "1")),
    ],
)
def test_axes_have_round_ends_around_their_numbers(
    numbers: list[float | None], ends: tuple[str, str]
) -> None:
    axis = Axis.around(numbers, (0.0, 1.0))
    assert axis.ends == ends
    assert all(0 <= axis.at(n) <= 100 for n in numbers if n is not None and not math.isnan(n))
