"""What a comparison must never do: pass a collapse, fail on one item, or see nothing."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import Comparison, compare
from rprime.core.comparison.guard import smoothed_by_rows
from rprime.core.intervals.smoothing import ROW_WISE, full, smoothed
from rprime.core.items import Items
from rprime.core.options import Options
from rprime.core.population import Population
from rprime.core.table import ConfusionTable
from tests.core.comparison_sides import side_of, table_side
from tests.core.gate_cases import drop, gate_of, judged, tabled
from tests.core.index_values import CORE


def paired(true: ArrayLike, old: ArrayLike, new: ArrayLike, k: int) -> Comparison:
    codes = (np.asarray(part) for part in (true, old, new))
    truth, before, after = codes
    return compare(side_of(truth, after, k), side_of(truth, before, k), CORE)


@pytest.mark.parametrize("test_set", [None, "t"])
def test_a_class_that_is_given_up_fails(test_set: str | None) -> None:
    old, new = [[95, 5], [0, 50]], [[95, 5], [50, 0]]
    for index in ("recall", "precision", "f1", "r_prime"):
        gate_result = judged(drop(index=index), tabled(new, test_set), tabled(old, test_set))
        assert gate_result.verdict == "fail", index
    for index in ("accuracy", "kappa", "macro_f1", "balanced_accuracy", "macro_precision"):
        rule = drop(index=index, classes=None)
        gate_result = judged(rule, tabled(new, test_set), tabled(old, test_set))
        assert gate_result.verdict == "fail", index


def test_other_shares_of_the_classes_are_another_test_set() -> None:
    easy, hard = tabled([[8910, 90], [300, 700]]), tabled([[4950, 50], [1000, 4000]])
    rule = drop(0.02, index="accuracy", classes=None)
    assert judged(rule, easy, hard).results[0].verdict == "not_comparable"
    at_one = Options(population=Population.uniform(easy.table))
    assert judged(rule, easy, hard, options=at_one).verdict == "fail"
    alike = tabled([[4940, 60], [1010, 3990]])
    assert compare(alike, hard, CORE).comparability == "unknown"
    small, other = tabled([[18, 2], [1, 9]]), tabled([[9, 1], [2, 18]])
    assert compare(small, other, CORE).comparability == "unknown"


def test_one_item_does_not_fail_a_gate() -> None:
    old = [[500, 1, 0], [2, 500, 0], [0, 0, 1]]
    new = [[500, 1, 0], [2, 500, 0], [0, 1, 0]]
    rules: list[dict[str, Any]] = [
        {"index": index, "classes": "all"} for index in ("recall", "r_prime", "f1", "precision")
    ]
    rules += [
        {"index": index, "classes": None}
        for index in ("balanced_accuracy", "macro_f1", "macro_r_prime")
    ]
    for test_set in (None, "t"):
        for rule in rules:
            gate_result = judged(drop(**rule), tabled(new, test_set), tabled(old, test_set))
            assert gate_result.verdict != "fail", rule


def test_a_class_of_the_list_without_items_fails_nothing() -> None:
    true = np.repeat([0, 1], 50)
    old, new = true.copy(), true.copy()
    old[0], new[0] = 1, 2
    for before, after in ((old, new), (new, old)):
        sides = side_of(true, after, 3), side_of(true, before, 3)
        for index in ("macro_f1", "macro_precision", "csi", "f1_of_macro_averages"):
            gate_result = judged(drop(0.1, index=index, classes=None), *sides)
            assert gate_result.verdict == "pass", index
        gate_result = judged(gate_of(drop(0.2, index="f1"), drop(0.2)), *sides)
        assert [r.verdict for r in gate_result.results] == [
            "pass"
        ] * 6  # an average behind two classes


def test_averages_of_other_test_sets_are_compared_over_common_classes() -> None:
    old = ConfusionTable.dense(np.array([[40.0, 5, 5], [5, 40, 5], [0, 0, 0]]))
    new = ConfusionTable.dense(np.array([[45.0, 5, 0], [5, 45, 0], [9, 0, 1]]))
    comparison = compare(table_side(new), table_side(old), CORE)
    assert comparison.without_items == ("2",)
    assert comparison.of_overall("macro_recall").value == pytest.approx(0.1)
    assert comparison.of_overall("weighted_recall").value == pytest.approx(0.1)
    assert comparison.of_overall("accuracy").candidate == pytest.approx(91 / 110)
    assert comparison.of_overall("macro_f1").methods


OVERALL = [
    "kappa", "mcc", "weighted_f1", "macro_f1", "balanced_accuracy", "csi", "gwet_ac1",
    "geometric_mean_recall", "peirce_skill_score", "f1_of_macro_averages", "macro_class_mcc",
]  # fmt: skip


@pytest.mark.parametrize("recall", [0.9, 1.0])
def test_identical_predictions_pass(recall: float) -> None:
    rng = np.random.default_rng(1)
    true = np.repeat(np.arange(10), 100)
    wrong = rng.random(1000) >= recall
    predicted = np.where(wrong, (true + rng.integers(1, 10, 1000)) % 10, true)
    comparison = paired(true, predicted, predicted.copy(), 10)
    selection = zip(
        comparison.aligned.selection.overall_place, comparison.overall.reach, strict=True
    )
    bounded = [key for key, reach in selection if reach <= 2]
    assert set(OVERALL) <= set(bounded)
    for key in bounded:
        difference = comparison.of_overall(key)
        if difference.methods:
            assert difference.p(-0.02)[1] < 0.05, key
    assert all(comparison.of_overall(key).methods for key in OVERALL)


def test_from_all_right_to_all_wrong_fails_whatever_the_index() -> None:
    true = np.repeat([0, 1, 2], 60)
    comparison = paired(true, true, (true + 1) % 3, 3)
    for key in ("kappa", "mcc", "weighted_f1", "macro_f1", "accuracy"):
        assert comparison.of_overall(key).p(-0.05)[0] < 1e-6, key


def test_a_paired_class_that_is_given_up_fails() -> None:
    true = np.repeat([0, 0, 1, 1], [9500, 100, 10, 990])
    old = np.repeat([0, 1, 0, 1], [9500, 100, 10, 990])
    comparison = paired(true, old, np.zeros_like(true), 2)
    for key in ("recall", "precision", "f1", "icsi", "kulczynski"):
        difference = comparison.of_classes(key, ("1",))[0]
        assert difference.p(-0.05)[0] < 1e-6, key
    for key in ("macro_recall", "macro_precision", "macro_f1", "macro_r_prime", "csi"):
        assert comparison.of_overall(key).p(-0.05)[0] < 1e-6, key


def test_limits_stay_within_the_possible() -> None:
    true = np.repeat([0, 1], 10)
    comparison = paired(true, true, 1 - true, 2)
    tables = compare(
        table_side(ConfusionTable.dense(np.array([[0.0, 10], [10, 0]]))),
        table_side(ConfusionTable.dense(np.diag([10.0, 10]))),
        CORE,
    )
    for difference in (comparison.overall, comparison.per_class, tables.overall, tables.per_class):
        lower, upper = difference.limits(0.05)
        assert (np.isnan(lower) | (lower >= -difference.reach)).all()
        assert (np.isnan(upper) | (upper <= difference.reach)).all()


@pytest.mark.parametrize("kind", ["plain", "weights", "groups", "tables"])
def test_rounding_is_no_evidence(kind: str) -> None:
    # All items are of one class, so that kappa is 0 and R' is 1, whatever is predicted.
    draw = np.random.default_rng(3)
    true = np.zeros(97, dtype=int)
    old, new = (np.where(draw.random(97) < 0.1, 1, 0) for _ in range(2))
    weights = draw.choice([0.1, 0.5, 1.0, 2.7], 97) if kind == "weights" else np.ones(97)
    sides = []
    for predicted in (new, old):
        counts = np.zeros((2, 2))
        np.add.at(counts, (true, predicted), weights)
        table = ConfusionTable.dense(counts, weighted=kind == "weights")
        groups = np.arange(97) // 2 if kind == "groups" else None
        items = Items(true, predicted, groups, weights if kind == "weights" else None)
        whole = Side(labels=("0", "1"), table=table, items=items, fingerprint="same")
        sides.append(table_side(table, None) if kind == "tables" else whole)
    candidate, baseline = sides
    for key in ("kappa", "macro_r_prime", "quadratic_weighted_kappa"):
        rule = drop(index=key, classes=None)
        (result,) = (gate_result := judged(gate_of(rule), candidate, baseline)).results
        assert gate_result.verdict == "inconclusive", key
        assert (result.lower_limit, result.p_value) == (None, None), key
    rule = drop(index="r_prime", classes=("0",))
    (result,) = judged(gate_of(rule), candidate, baseline).results
    assert result.lower_limit is None


def test_the_guard_of_a_table_does_not_depend_on_the_others_of_its_stack() -> None:
    counts, missing = np.array([[[30, 2], [3, 20]], [[10, 1], [0, 9]]]), np.array([[0, 0], [4, 1]])
    stack = ConfusionTable.dense(counts, missing)
    rows = smoothed_by_rows(stack)
    alone = smoothed_by_rows(ConfusionTable.dense(counts[0]))
    np.testing.assert_allclose(full(rows.cells)[0], full(alone.cells), rtol=1e-12)
    of_intervals = smoothed(stack)
    np.testing.assert_allclose(full(rows.cells), full(of_intervals.cells)[ROW_WISE], rtol=1e-12)
    assert rows.unclassified is not None
    assert of_intervals.unclassified is not None
    np.testing.assert_allclose(rows.unclassified, of_intervals.unclassified[ROW_WISE], rtol=1e-12)
