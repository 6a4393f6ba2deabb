"""Slices in renderings: the weakest first, each beside the value of all items."""

import re

import numpy as np
import orjson
import pytest

from rprime.application.request import read_request
from rprime.core.arrays import Array
from rprime.core.catalog import CLASS_INDICES
from rprime.report.html import render_html
from rprime.report.slices import MOST_SLICES, SliceTable, slice_table
from rprime.report.subject import ReportSubject
from rprime.report.view import slice_plot
from rprime.settings import Limits

DRAW = np.random.default_rng(7)
ITEMS = 1200
TRUE = DRAW.integers(3, size=ITEMS)
SITE = np.array([f"s{i:02}" for i in DRAW.integers(30, size=ITEMS)])
WRONG = DRAW.random(ITEMS) < np.where(SITE < "s04", 0.6, 0.1)
PREDICTED = np.where(WRONG, (TRUE + 1) % 3, TRUE)
# One item, which is wrong, says less than 40 items of which 24 are wrong.
FEW = np.flatnonzero(WRONG & (SITE >= "s04"))[:1]
SITE[FEW] = "few"
EVERY = np.arange(ITEMS)


def subject(kept: Array = EVERY, **more: object) -> ReportSubject:
    """Evaluate items by their sites."""
    columns = (TRUE[kept].astype(str), PREDICTED[kept].astype(str), SITE[kept])
    true, predicted, site = (column.tolist() for column in columns)
    body = {"y_true": true, "y_pred": predicted, "slices": {"site": site}, **more}
    body["labels"] = ["0", "1", "2"]
    request = read_request(orjson.dumps(body), Limits())
    return request.subject(request.evaluate())


def table(subject: ReportSubject, key: str = "", place: int | None = None) -> SliceTable:
    listing = slice_table(subject.evaluation, CLASS_INDICES[key] if key else None, place)
    assert listing is not None
    return listing


def test_the_weakest_come_first_and_few_items_do_not_lead() -> None:
    listing = table(subject())
    first = [line.text for line in listing.lines[:4]]
    assert sorted(first) == ["site=s00", "site=s01", "site=s02", "site=s03"]
    assert {line.tone for line in listing.lines[:4]} == {"worse"}
    few = next(line for line in listing.lines if line.text == "site=few")
    assert (few.items, few.measure.value, few.tone) == (1, 0, "open")
    assert len(listing.lines) == 31
    assert f"; {31 - MOST_SLICES} slices more in the JSON report. " in listing.note
    assert listing.note.endswith(" 4 of 31 slices differ from the rest (adjusted p at most 0.05).")


def test_a_sentence_says_that_no_slice_differs() -> None:
    alike = np.flatnonzero((SITE >= "s04") & (SITE < "s06"))
    listing = table(subject(alike))
    words = " None of 2 slices differs from the rest (adjusted p at most 0.05)."
    assert listing.differing == words
    plot = slice_plot(listing, listing.lines)
    assert plot is not None
    assert plot["note"].endswith(words)
    assert table(subject(alike), "recall", 1).differing == ""  # of a class, nothing is tested


@pytest.mark.parametrize("place", [0, 2])
def test_recall_of_a_class_is_the_accuracy_of_its_items(place: int) -> None:
    of_class = table(subject(), "recall", place)
    alone = table(subject(np.flatnonzero(place == TRUE)))
    lines = [line for line in of_class.lines if line.items]
    assert [line.text for line in lines] == [line.text for line in alone.lines]
    for row, other in zip(lines, alone.lines, strict=True):
        assert row.numbers[:3] == other.numbers[:3]
    assert of_class.whole.value == alone.whole.value
    assert of_class.columns == ("Slice", "Items", "Recall", "95 % interval")


def test_slices_without_an_estimate_stand_last() -> None:
    silent = np.flatnonzero(TRUE != 1)
    listing = table(subject(np.concatenate((silent, np.flatnonzero(SITE == "s09")))), "recall", 1)
    assert listing.lines[0].text == "site=s09"
    assert {line.measure.value for line in listing.lines[1:]} == {None}
    plot = slice_plot(listing)
    assert plot is not None
    assert [mark is None for _, mark in plot["rows"][:2]] == [False, True]


def test_each_mark_has_the_line_of_all_items() -> None:
    listing = table(subject())
    plot = slice_plot(listing)
    assert plot is not None
    assert len({mark.against for _, mark in plot["rows"]}) == 1
    low, high = (float(end) for end in plot["axis"])
    mark, line = plot["rows"][0][1], listing.lines[0]
    for at, value in (
        (mark.at, line.measure.value),
        (mark.start, line.measure.low),
        (mark.start + mark.width, line.measure.high),
        (mark.against, listing.whole.value),
    ):
        assert low + at / 100 * (high - low) == pytest.approx(value, abs=2e-4)
    text = render_html(subject())
    rows = text[text.index('<table class="slices">') :].split("<tr>")[2 : MOST_SLICES + 2]
    assert [re.findall("<bdi>([^<]*)", row)[0] for row in rows] == [
        line.text for line in listing.weakest
    ]
    marks = [row.partition("</tr>")[0].count('class="limit"') for row in rows]
    assert marks == [1] * MOST_SLICES


def test_without_intervals_there_are_dots() -> None:
    listing = table(subject(intervals=False))
    assert {line.measure.low for line in listing.lines} == {None}
    plot = slice_plot(listing)
    assert plot is not None
    assert {mark.width for _, mark in plot["rows"]} == {0.0}
