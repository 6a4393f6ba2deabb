"""Bootstrap intervals exist on request, where nothing else gives an interval."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rprime.core.evaluate import Evaluation, evaluate, evaluate_stack
from rprime.core.index import REASONS
from rprime.core.items import Items
from rprime.core.options import Options
from rprime.core.scores.scores import Scores
from rprime.core.table import ConfusionTable
from rprime.report.document import render
from tests.core.index_values import dense
from tests.core.score_values import drawn, evaluated

GOOD = np.array([[90, 6, 4], [8, 85, 7], [5, 10, 85]])
LABELS = ("a", "b", "c")
KEYS = (
    *("mutual_information", "normalized_mutual_information", "uncertainty_true", "entropy_true"),
    *("goodman_kruskal_tau_true", "quantity_disagreement", "allocation_disagreement"),
    "class_quantity_disagreement",
)


def found(table: ConfusionTable, items: Items | None = None, **options: Any) -> Evaluation:
    labels = tuple(str(i) for i in range(table.k))
    return evaluate(
        table, labels, Options(**{"intervals": "all", "families": ("core",)} | options), items
    )


def limits(evaluation: Evaluation, key: str) -> Any:
    intervals, place = evaluation.intervals, evaluation.selection.overall_place[key]
    assert intervals is not None
    return np.array([intervals.overall_low[place], intervals.overall_high[place]])


def reasons(evaluation: Evaluation) -> set[str]:
    """Reasons of the indices of this file that have no interval."""
    intervals, places = evaluation.intervals, evaluation.selection.overall_place
    assert intervals is not None
    return {REASONS[intervals.overall_reasons[places[key]]] for key in KEYS if key in places}


def test_intervals_of_large_tables_are_those_of_the_delta_method() -> None:
    counts = GOOD * 1000
    shares = counts / counts.sum()
    information = np.log2(shares / (shares.sum(1, keepdims=True) * shares.sum(0)))
    # An item that is predicted as another class moves both by one half.
    signs = np.sign(shares.sum(0) - shares.sum(1))
    quantity = (signs - signs[:, None]) / 2
    evaluation = found(dense(counts))
    for key, influence in (
        ("mutual_information", information),
        ("quantity_disagreement", quantity),
    ):
        mean = (shares * influence).sum()
        error = np.sqrt(((shares * influence**2).sum() - mean**2) / counts.sum())
        expected = [mean - 1.96 * error, mean + 1.96 * error]
        # The quantile of 1000 draws has itself a standard error of 0.09.
        assert limits(evaluation, key) == pytest.approx(expected, abs=0.3 * error), key


def test_a_table_has_the_same_intervals_every_time_and_in_every_stack() -> None:
    tables = [dense(GOOD), dense(GOOD.T), dense(np.diag([5, 4, 3]))]
    stacked = evaluate_stack(
        ConfusionTable.stack(tables), [LABELS] * 3, Options(intervals="all", families=("core",))
    )
    for position, table in enumerate(tables):
        alone, beside = found(table).intervals, stacked[position].intervals
        assert alone is not None
        assert beside is not None
        np.testing.assert_array_equal(alone.overall_high, beside.overall_high[:, position])
        np.testing.assert_array_equal(alone.per_class_low, beside.per_class_low[:, position])


def test_values_at_the_end_of_their_range_have_intervals() -> None:
    faultless = found(dense(np.diag([50, 20, 5])))
    for key in ("goodman_kruskal_tau_true", "normalized_mutual_information"):
        low, high = limits(faultless, key)
        assert 0.5 < low < 1, key
        assert high == pytest.approx(1), key
    equal = found(dense([[30, 0], [0, 30]]))
    assert limits(equal, "entropy_true")[1] == pytest.approx(1)
    assert limits(equal, "entropy_true")[0] < 1


def test_only_the_request_gives_them() -> None:
    assert reasons(found(dense(GOOD), intervals=True)) == {"no_interval"}
    assert reasons(found(dense(GOOD))) == {""}
    others = found(dense(GOOD))
    for key in ("chi2", "goodman_kruskal_lambda_true", "kappa_max", "no_information_rate"):
        assert np.isnan(limits(others, key)).all(), key


def test_what_cannot_be_drawn_has_a_reason() -> None:
    true, predicted = (np.repeat(part.ravel(), GOOD.ravel()) for part in np.indices((3, 3)))
    grouped = Items(true, predicted, np.arange(len(true)) // 5)
    assert reasons(found(dense(GOOD), grouped)) == {"not_resampled"}
    weighted = ConfusionTable.dense(GOOD, weighted=True)
    assert reasons(found(weighted)) == {"not_resampled"}
    assert reasons(found(dense(GOOD + 0.5))) == {"not_resampled"}
    assert reasons(found(dense(np.eye(51)), indices=KEYS)) == {"not_resampled"}


def test_the_design_fixes_what_it_fixes() -> None:
    fixed, random = (found(dense(GOOD), sampling=s) for s in ("fixed_rows", "random"))
    assert np.isnan(limits(fixed, "entropy_true")).all()
    assert np.isfinite(limits(random, "entropy_true")).all()
    assert np.isfinite(limits(fixed, "mutual_information")).all()


def test_unclassified_items_do_not_count() -> None:
    omitting = found(dense(GOOD, [10, 0, 5], [3, 0, 4]))
    for key in ("mutual_information", "quantity_disagreement"):
        np.testing.assert_array_equal(limits(omitting, key), limits(found(dense(GOOD)), key))


SCORED = ("expected_calibration_error", "area_under_risk_coverage", "d2_log_loss")
RANKED = ("micro_roc_auc", "weighted_hand_till_auc", "scored_auc", "probabilistic_auc")


def probable(seed: int, n: int) -> Scores:
    """Probabilities of a model with an accuracy of .87."""
    return drawn(np.random.default_rng(seed), n, 3, 2.0)


def score_limits(scores: Scores, keys: tuple[str, ...] = SCORED) -> tuple[Any, Any]:
    """The values and limits of indices of scores, shapes (m,) and (2, m)."""
    evaluation = evaluated(scores, indices=keys, intervals="all")
    places = [evaluation.selection.overall_place[key] for key in keys]
    return evaluation.overall[places], np.array([limits(evaluation, key) for key in keys]).T


@pytest.mark.slow
def test_indices_of_scores_cover_the_value_of_the_model() -> None:
    truth, _ = score_limits(probable(1, 300_000))
    intervals = np.array([score_limits(probable(10 + seed, 100))[1] for seed in range(50)])
    covered = np.mean((intervals[:, 0] <= truth) & (truth <= intervals[:, 1]), axis=0)
    assert covered.min() >= 0.88  # .91 less a standard error of 50 replicates
    assert np.mean(intervals[:, 1] - intervals[:, 0], axis=0).max() < 0.4


def test_every_index_of_scores_has_limits_around_its_value() -> None:
    for keys in (SCORED, RANKED):
        values, (low, high) = score_limits(probable(5, 120), keys)
        assert (low < values).all()
        assert (values < high).all()
        np.testing.assert_array_equal(score_limits(probable(5, 120), keys)[1], (low, high))


def test_weighted_and_grouped_scores_are_not_drawn() -> None:
    scores = probable(5, 120)
    for other in (
        replace(scores, weights=np.linspace(1, 2, 120)),
        replace(scores, groups=np.arange(120) // 2),
    ):
        assert np.isnan(score_limits(other)[1]).all()


def test_information_of_equal_margins() -> None:
    """The distance of equal margins is 0, and its lower limit."""
    low, high = limits(
        found(dense(GOOD * 5), indices=("kullback_leibler_divergence",)),
        "kullback_leibler_divergence",
    )
    assert 0 <= low < high < 0.1


def test_the_report_shows_them() -> None:
    report = json.loads(render(found(dense(GOOD)), engine_version="1", input_digest="x"))
    assert report["options"]["intervals"] == "all"
    low, high = report["overall"]["mutual_information"]["interval"]
    assert low < report["overall"]["mutual_information"]["value"] < high
    assert report["overall"]["mutual_information"]["method"] == "bootstrap"
    low, high = report["per_class"]["0"]["indices"]["class_quantity_disagreement"]["interval"]
    assert 0 <= low < high
