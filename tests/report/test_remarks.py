"""What a value leaves out stands beside it in every rendering."""

import csv
import io
import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from rprime.core.evaluate import evaluate as evaluate_table
from rprime.core.options import Options
from rprime.core.table import ConfusionTable
from rprime.report.csv import render_csv
from rprime.report.html import render_html
from rprime.report.junit import render_junit
from rprime.report.markdown import render_markdown
from rprime.report.measures import Remark
from rprime.report.openmetrics import render_openmetrics
from rprime.report.subject import ReportSubject
from rprime.report.terminal import render_terminal
from tests.report.report_subjects import of_paper, partial

LABELS = ("cat", "dog", "emu", "fox")
SHARE = "only on the classified items, 82.52 % of all"
"""36 items of 206 are unclassified."""


def subject() -> ReportSubject:
    return partial(LABELS)


def test_the_console_marks_the_value_and_explains_the_mark() -> None:
    text = render_terminal(subject())
    assert "† Cohen's kappa, Matthews correlation coefficient: " + SHARE in text
    lines = {line[2:34].strip(): line for line in text.splitlines()}
    assert "†" in lines["Cohen's kappa"]
    assert "†" not in lines["Accuracy"]
    assert "‡ Balanced accuracy, Macro precision, Macro recall, Macro F1: mean without fox" in text
    assert "‡" in lines["Macro F1"]


def test_the_decimals_of_the_console_stand_in_a_column() -> None:
    text = render_terminal(subject())
    rows = [line for line in text.splitlines() if line[2:].startswith(("Accuracy", "Cohen"))]
    assert len({row.index("0.") for row in rows}) == 1


def test_markdown_marks_the_value_and_names_the_class_as_code() -> None:
    text = render_markdown(subject())
    (kappa,) = (line for line in text.splitlines() if line.startswith("| Cohen's kappa"))
    assert kappa.split(" | ")[1].endswith("**†")
    averages = "Balanced accuracy, Macro precision, Macro recall, Macro F1"
    assert f"‡ {averages}: mean without `fox`" in text
    assert "without <code>" in render_markdown(partial())


def test_a_page_marks_the_value() -> None:
    text = render_html(subject())
    assert f'<abbr title="{SHARE}">†</abbr>' in text
    assert '<abbr title="mean without fox">‡</abbr>' in text


def test_the_table_has_columns_for_them() -> None:
    rows = {r["index"]: r for r in csv.DictReader(io.StringIO(render_csv(subject()), newline=""))}
    assert rows["kappa"]["universe"] == rows["mcc"]["universe"] == "classified"
    assert rows["accuracy"]["universe"] == rows["support"]["universe"] == "all"
    assert (rows["macro_f1"]["excluded"], rows["accuracy"]["excluded"]) == ("1", "")


def test_openmetrics_counts_the_classes() -> None:
    text = render_openmetrics(subject())
    assert 'rprime_overall_excluded_classes{index="macro_f1"} 1.0000' in text
    assert 'rprime_overall_excluded_classes{index="accuracy"}' not in text


def test_junit_names_the_rules_on_classified_items() -> None:
    root = ET.fromstring(render_junit(subject()))  # noqa: S314 (what we wrote ourselves)
    properties = {p.attrib["name"]: p.attrib["value"] for p in root.iter("property")}
    assert properties["classified_only"] == f"kappa: {SHARE}"


@pytest.mark.parametrize(
    "render", [render_terminal, render_markdown, render_html, render_csv, render_openmetrics]
)
def test_what_leaves_nothing_out_has_no_mark(render: object) -> None:
    assert callable(render)
    text = render(of_paper())
    assert not {"†", "‡"} & set(text)
    assert ",classified," not in text
    assert "_classes{" not in text


def test_a_column_of_classes_is_marked_too() -> None:
    report = partial(LABELS, ("class_mcc",))
    name = next(entry.name for entry in report.evaluation.selection.per_class)
    for text in (render_terminal(report), render_markdown(report)):
        assert f"{name}†" in text
        assert f"† {name}: {SHARE}" in text


def test_a_weight_is_not_called_items_where_the_numbers_of_items_are_unknown() -> None:
    table = ConfusionTable.dense(np.array([[4.5, 1.0], [0.5, 3.0]]), weighted=True)
    evaluation = evaluate_table(table, ("cat", "dog"), Options())
    report = ReportSubject(evaluation=evaluation, engine_version="0.1.0")
    head = re.compile(r"Class\W+Weight")
    assert head.search(render_terminal(report))
    assert head.search(render_markdown(report))
    classes = render_html(report).split('<table class="classes">')[1]
    assert ">Weight</th>" in classes.split("</thead>")[0]


def test_a_class_given_up_is_named_where_its_precision_counts_as_0() -> None:
    counts = np.array([[40.0, 5, 0], [5, 40, 0], [9, 1, 0]])
    options = Options(families=("core",))
    evaluation = evaluate_table(ConfusionTable.dense(counts), ("cat", "dog", "emu"), options)
    report = ReportSubject(evaluation=evaluation, engine_version="0.1.0")
    text = render_terminal(report)
    assert re.search("‡ Macro precision[^:]*: with a precision of 0 for emu", text)
    rows = {r["index"]: r for r in csv.DictReader(io.StringIO(render_csv(report), newline=""))}
    assert rows["weighted_precision"]["counted_as_zero"] == "1"
    assert rows["macro_recall"]["counted_as_zero"] == rows["macro_precision"]["excluded"] == ""
    text = render_openmetrics(report)
    assert 'rprime_overall_counted_as_zero_classes{index="macro_precision"} 1.0000' in text
    _, row = render_html(report).split(" macro_precision</th>", 1)
    assert "‡</abbr>" in row[:160]


def test_many_classes_are_counted() -> None:
    remark = Remark("excluded", "without ", ("a", "b"), 3)
    assert remark.text(str.upper) == "without A, B and 3 classes more"
    assert remark.classes == 5
