"""OpenMetrics: parses with the reference parser, bounded, only values that exist."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from rprime.core.evaluate import evaluate
from rprime.core.options import Options
from rprime.core.table import ConfusionTable
from rprime.report.openmetrics import MOST_OF_CLASSES, render_openmetrics
from rprime.report.subject import ReportSubject
from rprime.schemas.provenance import OriginShown
from tests.report.report_subjects import SUBJECTS, cifar, hostile, many, of_paper


def families(subject: ReportSubject) -> dict[str, Metric]:
    text = render_openmetrics(subject)
    return {m.name: m for m in text_string_to_metric_families(text)}  # type: ignore[no-untyped-call] # the library has none


@pytest.mark.parametrize("name", SUBJECTS)
def test_it_parses_and_ends_as_it_must(name: str) -> None:
    subject = SUBJECTS[name]()
    assert families(subject)
    assert render_openmetrics(subject).endswith("\n# EOF\n")


def test_values_carry_their_labels_and_four_decimals() -> None:
    text = render_openmetrics(of_paper())
    common = 'project="digits",model="lenet5",version="1.4.0"'
    assert f'rprime_overall{{{common},index="accuracy"}} 0.9806\n' in text
    assert f'rprime_class{{{common},class="4",index="recall"}} 0.9623\n' in text
    assert f'rprime_overall_low{{{common},index="r_prime"}} 0.9777\n' in text


def test_exactly_one_verdict_holds_and_none_without_a_gate() -> None:
    verdicts = {
        s.labels["rprime_verdict"]: s.value for s in families(cifar())["rprime_verdict"].samples
    }
    assert verdicts == {"pass": 0, "fail": 1, "inconclusive": 0, "no_rules": 0, "no_baseline": 0}
    assert "rprime_verdict" not in families(of_paper())


def test_undefined_values_are_left_out() -> None:
    table = ConfusionTable.dense(np.array([[5, 0, 0], [2, 0, 0], [0, 0, 0]]))
    evaluation = evaluate(table, ("a", "b", "c"), Options())
    samples = families(ReportSubject(evaluation=evaluation, engine_version="1"))[
        "rprime_class"
    ].samples
    there = {(s.labels["class"], s.labels["index"]) for s in samples}
    assert ("b", "recall") in there
    assert ("b", "precision") not in there
    assert ("c", "recall") not in there
    assert all(np.isfinite(sample.value) for sample in samples)


def test_many_classes_are_bounded_and_say_so() -> None:
    found = families(many(2_000))
    samples = found["rprime_class"].samples
    assert len(samples) <= MOST_OF_CLASSES
    counts = Counter(sample.labels["index"] for sample in samples)
    assert counts["recall"] == counts["f1"] == 2_000
    assert "share_of_errors" not in counts
    assert found["rprime_class_left_out"].samples[0].value > 0


def test_hostile_names_are_values_of_labels() -> None:
    classes = {s.labels["class"] for s in families(hostile())["rprime_class_items"].samples}
    assert {
        "a\\",
        "a\\|b",
        "\"quoted\" & 'single', comma; semicolon",
        "{{7*7}}{% raw %}",
    } <= classes


def test_what_is_not_known_is_no_label() -> None:
    subject = replace(of_paper(), origin=OriginShown())
    assert 'rprime_overall{index="accuracy"} 0.9806\n' in render_openmetrics(subject)
