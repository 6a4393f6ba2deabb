"""Measures of ordered classes: their values by SciPy and scikit-learn, dense and sparse."""

from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics

import rprime
from rprime.core.catalog import declared
from rprime.core.cells import SparseCells
from rprime.core.evaluate import evaluate
from rprime.core.options import Options
from rprime.core.table import ConfusionTable
from tests.core.index_values import dense, overall, per_class, values_of


def drawn(k: int, seed: int) -> Any:
    """Counts of ordered classes: most errors are near, and some classes have no items."""
    random = np.random.default_rng(seed)
    near = 40 / (1 + np.abs(np.subtract.outer(np.arange(k), np.arange(k)))) ** 3
    counts = random.poisson(near)
    counts[random.random(k) < 0.2] = 0
    return counts


@pytest.mark.parametrize("k", [2, 3, 8, 30])
def test_values_are_those_of_scipy_and_scikit_learn(k: int) -> None:
    counts = drawn(k, k)
    true, predicted = (np.repeat(codes.ravel(), counts.ravel()) for codes in np.indices((k, k)))
    values = overall(values_of(dense(counts), families=("ordinal",)))
    errors = {
        int(c): metrics.mean_absolute_error(true[true == c], predicted[true == c])
        for c in np.unique(true)
    }
    assert values == {
        "mean_absolute_rank_error": pytest.approx(metrics.mean_absolute_error(true, predicted)),
        "macro_absolute_rank_error": pytest.approx(np.mean(list(errors.values()))),
        "weighted_absolute_rank_error": pytest.approx(metrics.mean_absolute_error(true, predicted)),
        "off_by_one_accuracy": pytest.approx(np.mean(np.abs(true - predicted) <= 1)),
        "somers_d": pytest.approx(stats.somersd(true, predicted).statistic),
        "kendall_tau_b": pytest.approx(stats.kendalltau(true, predicted).statistic),
    }
    of_classes = per_class(values_of(dense(counts), families=("ordinal",)))["absolute_rank_error"]
    assert {c: of_classes[c] for c in errors} == pytest.approx(errors)


@pytest.mark.parametrize("k", [2, 5, 16, 33])
def test_sparse_tables_have_the_same_values_and_gradients(k: int) -> None:
    counts = np.stack([drawn(k, k), drawn(k, k + 1)]).astype(float)
    rows, columns = np.nonzero(counts.any(0))
    table = ConfusionTable(cells=SparseCells(rows, columns, counts[:, rows, columns], k))
    for key, expected in overall(values_of(dense(counts), families=("ordinal",))).items():
        np.testing.assert_allclose(overall(values_of(table, indices=(key,)))[key], expected)
    cells = np.indices((k, k)).reshape(2, -1)
    for entry in declared("ordinal"):
        if entry.cell_gradient is not None:
            with np.errstate(all="ignore"):
                stored, full = (entry.cell_gradient(t, *cells) for t in (table, dense(counts)))
            np.testing.assert_allclose(stored, full, err_msg=entry.key)


def test_two_ordered_classes_are_two_classes() -> None:
    random = np.random.default_rng(5)
    true, high = random.integers(0, 2, 300), random.random(300)
    scores = np.stack([1 - high, high], axis=-1)
    report = rprime.evaluate(
        y_true=true.tolist(),
        y_score=scores.tolist(),
        indices=["ranked_probability_score", "brier_score", "somers_d", "informedness"],
    )
    values = {key: value.value or 0.0 for key, value in report.overall.items()}
    assert values["ranked_probability_score"] == pytest.approx(values["brier_score"] / 2)
    assert values["somers_d"] == pytest.approx(report.per_class["1"]["informedness"].value)


def test_the_score_is_the_mean_brier_score_of_the_thresholds() -> None:
    random = np.random.default_rng(6)
    true, scores = random.integers(0, 5, 200), random.dirichlet(np.ones(5), 200)
    weights = random.random(200)
    report = rprime.evaluate(
        y_true=true.tolist(),
        y_score=scores.tolist(),
        sample_weight=weights.tolist(),
        indices=["ranked_probability_score"],
    )
    expected = [
        metrics.brier_score_loss(true <= j, scores[:, : j + 1].sum(-1), sample_weight=weights)
        for j in range(4)
    ]
    assert report.overall["ranked_probability_score"].value == pytest.approx(np.mean(expected))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "recall", "items"),
    [
        ((1, 1, 1, 1, 1), 0.7, 200),
        ((1, 1, 1, 1, 1), 0.85, 500),
        ((50, 25, 15, 7, 3), 0.7, 300),
        ((1, 1, 1), 0.9, 90),
    ],
)
def test_intervals_hold_the_true_value(sizes: tuple[int, ...], recall: float, items: int) -> None:
    """A class two ranks away is predicted a quarter as often as one next to the true one."""
    k, builds = len(sizes), 1000
    distance = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    errors = np.where(distance, 4.0**-distance, 0.0)
    rows = errors / errors.sum(-1, keepdims=True) * (1 - recall) + np.eye(k) * recall
    joint = np.array(sizes)[:, None] / sum(sizes) * rows
    draws = np.random.default_rng(1).multinomial(items, joint.ravel(), builds)
    keys = ("mean_absolute_rank_error", "off_by_one_accuracy", "somers_d", "kendall_tau_b")
    options, labels = Options(indices=keys), tuple(str(i) for i in range(k))
    truth = evaluate(dense(joint * 1e9), labels, options).values.overall
    holding = np.zeros(len(keys))
    for counts in draws.reshape(builds, k, k):
        estimated = evaluate(dense(counts), labels, options).intervals
        assert estimated is not None
        low, high = (
            np.array(end, dtype=float) for end in (estimated.overall_low, estimated.overall_high)
        )
        holding += (low <= truth) & (truth <= high)
    assert ((holding >= 0.92 * builds) & (holding <= 0.985 * builds)).all(), holding / builds


GRADES = ["low", "medium", "high"]


def graded(counts: Any, before: Any = None, **rule: Any) -> Any:
    baseline: Any = {"confusion_matrix": before, "labels": GRADES} if before else None
    gates = {"rules": [rule]}
    report = rprime.evaluate(confusion_matrix=counts, labels=GRADES, baseline=baseline, gates=gates)
    assert report.gate is not None
    return report.gate.results[0]


def test_gates_bound_errors_in_ranks() -> None:
    near = [[90, 10, 0], [5, 90, 5], [0, 10, 90]]
    far = [[90, 0, 10], [5, 90, 5], [10, 0, 90]]
    ceiling = {"index": "mean_absolute_rank_error", "max_value": 0.15}
    assert graded(near, **ceiling).verdict == "pass"
    assert graded(far, **ceiling).verdict == "undecided"
    rise = {"index": "mean_absolute_rank_error", "max_gain": 0.01}
    assert graded([[60, 0, 40], [5, 90, 5], [40, 0, 60]], near, **rise).verdict == "fail"
    assert graded(near, near, **rise).verdict == "undecided"
