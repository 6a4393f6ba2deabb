"""HTML: one file, nothing that runs or loads, every name as text."""

import base64
import hashlib
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from rprime.core.gates.rules import Gate, Rule
from rprime.report.class_selection import MOST_CLASSES
from rprime.report.html import render_html
from rprime.report.verdicts import MOST_OPEN, gate_groups
from tests.report.report_subjects import (
    HOSTILE,
    SUBJECTS,
    cifar,
    empty,
    hostile,
    many,
    of_items,
    of_paper,
    passing_with_undecided,
    undecided,
)

VOID = {"meta", "br", "wbr"}
PROSE = {"a", "b", "bdi", "br", "code", "dd", "div", "dl", "dt", "i", "li", "p", "span", "wbr"}
PARTS = {"body", "details", "footer", "head", "header", "html", "main", "meta", "section", "style"}
HEADINGS = {"h1", "h2", "h3"}
TABLES = {"caption", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "summary", "title", "ul"}
DRAWN = {"abbr", "g", "path", "svg", "text"}
MATH = {"math", "mfrac", "mi", "mn", "mo", "mrow", "msqrt", "mstyle", "msub", "msubsup", "msup"}
MATH |= {"mover", "mpadded", "mspace", "mtext", "munder", "munderover"}
TAGS = PROSE | PARTS | HEADINGS | TABLES | DRAWN | MATH


class Reader(HTMLParser):
    """Collects tags and texts, and checks that they nest."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.comments: list[str] = []
        self.isolated: list[str] = []
        self.style = ""
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "style":
            self.style += data
        else:
            self.texts.append(data)
        if self._open and self._open[-1] == "bdi":
            self.isolated.append(data)


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    return reader


@pytest.mark.parametrize("name", SUBJECTS)
def test_it_is_well_formed_and_has_only_our_tags(name: str) -> None:
    reader = read(render_html(SUBJECTS[name]()))
    assert set(reader.tags) <= TAGS
    assert not reader.comments
    assert not reader._open  # noqa: SLF001 (nothing is left open)


@pytest.mark.parametrize("name", SUBJECTS)
def test_nothing_runs_and_nothing_is_loaded(name: str) -> None:
    text = render_html(SUBJECTS[name]())
    for attribute, value in read(text).attributes:
        assert not attribute.startswith("on")
        assert attribute not in {"style", "src", "srcset", "xlink:href", "action"}
        if attribute == "href":
            assert re.match(r"#|https://(rprime|ci)\.example/[\w/]+$", value or "")
    assert "@import" not in text
    assert "url(" not in text


def test_the_policy_allows_exactly_our_style() -> None:
    text = render_html(of_paper())
    style = read(text).style
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in text
    assert "unsafe" not in text


def test_the_table_of_the_heat_map_has_the_totals_of_its_rows_and_columns() -> None:
    subject = cifar()
    table = subject.evaluation.table
    (counts,) = re.findall(r'<table class="counts.*?</table>', render_html(subject), re.DOTALL)
    rows = re.findall(r"<tr>.*?</tr>", counts, re.DOTALL)
    cells = [re.findall(r'class="n soft">([\d,]+)', row) for row in rows[1:]]
    totals = [[int(number.replace(",", "")) for number in row] for row in cells]
    assert [n for row in totals[:-1] for n in row] == table.support.tolist()
    assert totals[-1] == table.predicted.tolist()


def test_hostile_names_are_isolated_text() -> None:
    isolated = set(read(render_html(hostile())).isolated)
    assert set(HOSTILE[:43]) <= isolated


def test_identifiers_are_unique_and_every_reference_has_its_target() -> None:
    for subject in (of_paper(), cifar(), undecided(), empty()):
        attributes = read(render_html(subject)).attributes
        identifiers = [value for name, value in attributes if name == "id"]
        assert len(set(identifiers)) == len(identifiers)
        targets = {value and value[1:] for n, value in attributes if n == "href" and value}
        labels = {value for name, value in attributes if name == "aria-labelledby"}
        inside = {t for t in targets if t and not t.startswith("ttps")}
        assert inside | labels <= set(identifiers)


def test_every_drawn_interval_is_said_in_words() -> None:
    reader = read(render_html(cifar()))
    words = [value for name, value in reader.attributes if name == "aria-label"]
    assert "R' = accuracy 0.8334, interval [0.8260, 0.8406], baseline 0.8756" in words
    hidden = [value for name, value in reader.attributes if name == "aria-hidden"]
    assert len(words) > 60
    assert set(hidden) == {"true"}


def test_the_verdict_the_values_and_their_definitions_are_there() -> None:
    text = " ".join(read(render_html(cifar())).texts)
    for words in (
        "Gate failed, 4 results undecided",
        "6 of 13 checks failed",
        "0.8334",
        "10,000",
        "Where the change comes from",
        "Cells that changed most",
        "Share of the items of the class that are predicted as it.",
    ):
        assert words in text
    assert "Changed predictions" in render_html(hostile())
    assert "Gate not judged: no baseline" in render_html(undecided())


def test_forty_classes_with_a_baseline_and_a_gate_are_less_than_three_thousand_elements() -> None:
    reader = read(render_html(of_items(tuple(f"c{i}" for i in range(40)), 8_000)))
    assert 2_000 < reader.tags.total() < 3_000


def test_a_thousand_classes_are_cut_and_it_says_so() -> None:
    text = render_html(many())
    assert f"{1_000 - MOST_CLASSES} classes more" in text
    assert len(text) < 250_000  # with a baseline, a gate and intervals
    assert read(text).tags.total() < 4_500
    assert '<table class="heat' not in text


def test_the_limit_of_a_rise_stands_above_zero_and_that_of_a_drop_below() -> None:
    limits = {
        ("error_rate", "max_gain"): "+0.2000",
        ("accuracy", "max_drop"): "\N{MINUS SIGN}0.2000",
    }
    for (index, kind), limit in limits.items():
        gate = Gate(rules=(Rule(id="calm", index=index, kind=kind, limit=0.2),))
        assert f"limit {limit}" in render_html(cifar(gate))


def test_a_pass_names_what_is_undecided() -> None:
    page = render_html(passing_with_undecided())
    assert "Gate passed, 1 result undecided" in page
    assert (
        "The gate passed; 1 result has too few items to pass alone: recall.max_drop of class "
        "<code><bdi>1</bdi></code>." in page
    )


def test_without_a_failure_the_first_warnings_are_in_view_suspects_first() -> None:
    rule = Rule(index="recall", kind="max_drop", limit=0.05, classes="all")
    gate = of_items(tuple("abcdefghijklmnop"), 20, gate=Gate(rules=(rule,))).gate
    assert gate is not None
    results = [replace(result, effect="warn", suspect=False) for result in gate.results]
    results[-1] = replace(results[-1], suspect=True)
    (group,) = gate_groups(gate.model_copy(update={"results": results}))
    assert (group["folded"], len(group["results"])) == (False, MOST_OPEN)
    assert group["results"][0]["label"] == results[-1].class_
    assert group["more"].startswith(f"{len(results) - MOST_OPEN} results more")
    results[3] = replace(results[3], effect="fail")
    failed, folded = gate_groups(gate.model_copy(update={"results": results}))
    assert (failed["folded"], folded["folded"]) == (False, True)
