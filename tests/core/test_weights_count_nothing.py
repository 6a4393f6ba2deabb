"""Weights say how much items count, never how many there are."""

from typing import Any

import numpy as np
import pytest

import rprime
from rprime.core.items import Items, table_of
from rprime.core.table import ConfusionTable
from tests.core.index_values import dense, overall, values_of

TRUE = ["a"] * 200 + ["b"] * 5
PREDICTED = ["a"] * 200 + ["b"] * 3 + ["a"] * 2
FEW = {"rules": [{"index": "recall", "classes": "all", "max_drop": 0.1, "min_items": 30}]}


def evaluated(weights: Any, **more: Any) -> rprime.Report:
    return rprime.evaluate(
        y_true=TRUE, y_pred=PREDICTED, sample_weight=np.asarray(weights).tolist(), **more
    )


@pytest.mark.parametrize("unit", [1, 100, 0.01])
def test_the_unit_of_weights_changes_no_gate_no_warning_and_no_number_of_items(unit: float) -> None:
    weights = unit * np.ones(205)
    report = evaluated(weights, baseline={"y_pred": TRUE}, gates=FEW)
    plain = rprime.evaluate(y_true=TRUE, y_pred=PREDICTED, baseline={"y_pred": TRUE}, gates=FEW)
    assert report.counts.items == 205
    assert report.counts.weight == (None if unit == 1 else pytest.approx(205 * unit))
    assert report.gate is not None
    assert plain.gate is not None
    assert [(r.class_, r.verdict) for r in report.gate.results] == [("a", "pass")]
    codes = {warning.code for warning in report.warnings}
    assert {"few_items", "classes_left_out"} <= codes
    # The p-value of the no-information rate is of items that count once.
    only = {"accuracy_not_above_no_information_rate"}
    assert codes - only == {warning.code for warning in plain.warnings} - only


def test_everything_but_the_sum_of_the_weights_is_the_same_in_any_unit() -> None:
    weights = np.random.default_rng(1).uniform(0.5, 3, 205)
    keys = {"families": ["all"], "confidence": 0.9}
    report = evaluated(weights, **keys)
    sums = {"true_positives", "false_positives", "false_negatives", "true_negatives"}
    for unit in (10, 0.1, 1 / 3):
        other = evaluated(unit * weights, **keys)
        for key, value in report.overall.items():
            if not any(key.endswith(name) for name in sums):
                again = other.overall[key]
                assert again.reason == value.reason, key
                if value.value is not None:
                    assert again.value == pytest.approx(value.value, rel=1e-9, abs=1e-12), key
                assert (again.interval is None) == (value.interval is None), key
                if value.interval is not None:
                    assert again.interval == pytest.approx(value.interval, rel=1e-9), key
        assert other.counts.items == report.counts.items
        assert other.counts.effective_items == pytest.approx(report.counts.effective_items)
        assert [w.code for w in report.warnings] == [w.code for w in other.warnings]


@pytest.mark.parametrize("unit", [1 / 3, 0.1, 7.0])
def test_equal_weights_are_never_more_effective_items_than_there_are(unit: float) -> None:
    report = evaluated(unit * np.ones(205))
    assert report.counts.effective_items is not None
    assert report.counts.effective_items <= 205
    numbers = [value.effective_items for value in report.overall.values() if value.effective_items]
    assert numbers
    assert max(numbers) <= 205 + 1e-9


def test_an_item_that_weighs_nothing_is_none() -> None:
    items = Items(np.array([0, 0, 1]), np.array([0, 1, 1]), weights=np.array([2.0, 0.0, 0.5]))
    table = table_of(items, 2)
    assert table.class_items.tolist() == [1, 1]
    assert float(table.number) == 2


def test_numbers_of_items_are_stacked_taken_apart_and_kept_under_cell_weights() -> None:
    table = table_of(Items(np.array([0, 1]), np.array([0, 1]), weights=np.array([2.0, 3.0])), 2)
    stack = ConfusionTable.stack([table, dense([[1, 2], [3, 4]])])
    assert stack.class_items.tolist() == [[1, 1], [3, 7]]
    assert stack[1].class_items.tolist() == [3, 7]
    factors = np.array([[1.0, 0.5], [2, 1]])
    assert dense([[1, 2], [3, 4]]).reweighted(factors).class_items.tolist() == [3, 7]


def test_counts_that_are_no_numbers_of_items_have_no_value_that_needs_these() -> None:
    shares = dense(np.array([[0.3, 0.1], [0.1, 0.4]]))
    indices = overall(values_of(shares))
    pairs = ("rand_index", "adjusted_rand_index", "pair_fowlkes_mallows")
    assert np.isnan([indices[key] for key in pairs]).all()
    unknown = ConfusionTable.dense(np.array([[3.3, 0.1], [0.1, 4.4]]), weighted=True)
    weighted_indices = overall(values_of(unknown))
    assert np.isnan([weighted_indices[key] for key in (*pairs, "chi2", "krippendorff_alpha")]).all()
    assert np.isfinite([weighted_indices[key] for key in ("kappa", "cramers_v", "phi")]).all()


def test_missing_intervals_of_weights_have_a_reason_in_every_rendering() -> None:
    grouped = evaluated(np.linspace(1, 2, 205), groups=list(range(205)))
    assert grouped.overall["accuracy"].interval is None
    assert "weighted_without_intervals" in {warning.code for warning in grouped.warnings}
    matrix = rprime.evaluate(confusion_matrix=[[8.5, 1.5], [2.0, 7.0]], weighted=True)
    assert "weighted_without_intervals" in {warning.code for warning in matrix.warnings}
    assert matrix.counts.items is None
    assert matrix.counts.weight == 19


WEIGHTED: dict[str, Any] = {
    "labels": ["a", "b"],
    "confusion_matrix": [[960.0, 40], [2, 48]],
    "weighted": True,
}


def test_a_table_of_weights_says_how_many_items_it_has() -> None:
    baseline: Any = WEIGHTED | {"confusion_matrix": [[1000.0, 0], [0, 50]]}
    rule = {"index": "recall", "classes": "all", "max_drop": 0.1, "min_items": 30}
    judged = {
        items: rprime.evaluate(
            **WEIGHTED,
            class_items=items,
            baseline=baseline | {"class_items": items},
            gates={"rules": [rule]},
        )
        for items in ((200, 5), (5, 200), (200, 200))
    }
    assert {items: report.counts.items for items, report in judged.items()} == {
        items: sum(items) for items in judged
    }
    left_out = {
        items: [w.detail for w in report.warnings if w.code == "classes_left_out"]
        for items, report in judged.items()
    }
    assert ["`b`" in text for text in left_out[200, 5]] == [True]
    assert ["`a`" in text for text in left_out[5, 200]] == [True]
    assert left_out[200, 200] == []
    few = {i: "few_items" in {w.code for w in r.warnings} for i, r in judged.items()}
    assert few == {(200, 5): True, (5, 200): True, (200, 200): False}


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"class_items": [200]}, "wrong_length"),
        ({"class_items": [200, 0]}, "not_items"),
        ({"class_items": [200, 4.5]}, "not_items"),
        ({"class_items": [200, -1]}, "out_of_range"),
        ({"class_items": [200, 5], "weighted": False}, "not_weighted"),
    ],
)
def test_numbers_of_items_that_cannot_be_are_refused(changed: Any, code: str) -> None:
    with pytest.raises(rprime.ProblemError) as refused:
        rprime.evaluate(**WEIGHTED | changed)
    assert [error.code for error in refused.value.errors] == [code]
