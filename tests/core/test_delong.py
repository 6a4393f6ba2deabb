"""Variances of areas and of means over items, alone, in groups and between two classifiers."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import Comparison, compare
from rprime.core.comparison.difference import INFLUENCE, METHODS, MOVER, REASONS
from rprime.core.intervals.delong import influence_of_items
from rprime.core.options import Options
from rprime.core.scores.ranking import ClassRanking
from rprime.core.scores.scores import Scores
from tests.core.comparison_sides import names, side_of
from tests.core.score_values import drawn, evaluated

RNG = np.random.default_rng(1988)


def components(column: Any, positive: Any) -> tuple[Any, Any]:
    """The structural components of DeLong, by comparing all pairs."""
    x, y = column[positive][:, None], column[~positive]
    psi = (x > y) + (x == y) / 2
    return psi.mean(1), psi.mean(0)


def covariance(first: tuple[Any, Any], second: tuple[Any, Any]) -> float:
    parts = zip(first, second, strict=True)
    return sum(float(np.cov(a, b)[0, 1]) / len(a) for a, b in parts)


@pytest.mark.parametrize("digits", [None, 1])
def test_influences_give_the_covariances_of_delong(digits: int | None) -> None:
    true = (RNG.random(80) < 0.4).astype(np.uint8)
    columns = RNG.standard_normal((2, 80)) + true
    columns = columns if digits is None else np.round(columns, digits)
    parts = [components(column, true == 1) for column in columns]
    influences = [
        ClassRanking.of(column, true, 1).of_area(float(part[0].mean()))
        for column, part in zip(columns, parts, strict=True)
    ]
    for i in range(2):
        for j in range(2):
            expected = covariance(parts[i], parts[j])
            assert influences[i] @ influences[j] == pytest.approx(expected, rel=1e-10)


def scored_side(scores: Scores, groups: Any = None) -> Side:
    side = side_of(scores.true, scores.top, scores.k, groups)
    return Side(
        labels=side.labels,
        table=side.table,
        items=side.items,
        fingerprint="same",
        scores=Scores(scores.true, scores.values, groups),
    )


def both(k: int = 3) -> tuple[Scores, Scores]:
    old = drawn(RNG, 400, k)
    noise = np.exp(RNG.standard_normal(old.values.shape) / 3)
    values = old.values * noise
    return Scores(old.true, values / values.sum(-1, keepdims=True)), old


def comparison(new: Side, old: Side, **options: Any) -> Comparison:
    return compare(new, old, Options(**{"families": ("core",)} | options))


def span(parts: tuple[Any, Any]) -> float:
    """From the least to the largest effect of one item, the positives against the negatives."""
    effects = [(part - part.mean()) / np.sqrt(len(part) * (len(part) - 1.0)) for part in parts]
    return float(np.ptp(np.concatenate(effects)))


def test_a_paired_area_has_the_error_of_delong() -> None:
    new, old = both()
    difference = comparison(scored_side(new), scored_side(old)).of_classes("roc_auc")
    assert (difference.methods == INFLUENCE).all()
    for code in range(3):
        parts = [components(side.values[:, code], side.true == code) for side in (new, old)]
        variance = covariance(parts[0], parts[0]) + covariance(parts[1], parts[1])
        variance -= 2 * covariance(parts[0], parts[1])
        variance += max(span(part) for part in parts) ** 2
        assert difference.standard_error[code] == pytest.approx(np.sqrt(variance), rel=1e-9)


def test_a_paired_loss_has_the_error_of_its_differences() -> None:
    new, old = both()
    result = comparison(scored_side(new), scored_side(old))
    difference = result.of_overall("log_loss")
    steps = old.log_likelihoods - new.log_likelihoods
    assert difference.value == pytest.approx(steps.mean())
    # Half an item more, at which one side errs as at its largest confidence and the other does not.
    surest = [np.sort(side.values[np.argmax(side.confidence)])[-2] for side in (new, old)]
    error, n = -np.log(min(surest)), 400.5
    most = -error if steps.mean() > 0 else error
    items, weights = np.append(steps, most), np.append(np.ones(400), 0.5)
    variance = (items - (items @ weights) / n) ** 2 @ weights / (n * (n - 1))
    assert difference.standard_error == pytest.approx(np.sqrt(variance))
    assert METHODS[int(difference.methods)] == "influence"
    error_of_limits = stats.norm.isf(0.05) * np.sqrt(variance)
    below, above = (0.5 / n * (error + sign * steps.mean()) for sign in (1, -1))
    lower, upper = difference.limits(0.05)
    assert lower == pytest.approx(steps.mean() - below - error_of_limits)
    assert upper == pytest.approx(steps.mean() + above + error_of_limits)
    assert difference.p(float(upper))[0] == pytest.approx(0.05)
    assert difference.p(float(lower))[1] == pytest.approx(0.05)


def test_without_pairs_the_variances_add_up() -> None:
    new, old = both()
    apart = [scored_side(side) for side in (new, old)]
    apart = [Side(labels=s.labels, table=s.table, scores=s.scores) for s in apart]
    difference = comparison(apart[0], apart[1]).of_overall("brier_score")
    squares = [side.brier_scores.var(ddof=1) / 400 for side in (new, old)]
    # Half the width of asymmetric limits.
    assert difference.standard_error == pytest.approx(np.sqrt(sum(squares)), rel=0.05)
    assert int(difference.methods) == MOVER


def test_the_order_of_the_classes_does_not_change_a_comparison() -> None:
    new, old = both()
    turned = Side(
        labels=names(3)[::-1],
        table=side_of((2 - old.true).astype(np.uint8), (2 - old.top).astype(np.uint8), 3).table,
        items=side_of((2 - old.true).astype(np.uint8), (2 - old.top).astype(np.uint8), 3).items,
        fingerprint="same",
        scores=Scores((2 - old.true).astype(np.uint8), old.values[:, ::-1]),
    )
    plain = comparison(scored_side(new), scored_side(old))
    moved = comparison(scored_side(new), turned)
    for key in ("log_loss", "macro_roc_auc", "hand_till_auc"):
        assert moved.of_overall(key).value == pytest.approx(plain.of_overall(key).value)
    np.testing.assert_allclose(
        moved.of_classes("roc_auc").standard_error, plain.of_classes("roc_auc").standard_error
    )


def test_a_side_without_scores_has_no_values_of_them() -> None:
    new, old = both()
    result = comparison(scored_side(new), side_of(old.true, old.top, 3))
    difference = result.of_overall("log_loss")
    assert np.isnan(difference.value)
    assert REASONS[int(difference.reasons)] == "no_scores"
    assert np.isfinite(result.of_overall("accuracy").value)


def test_what_has_no_variance_has_no_interval() -> None:
    new, old = both()
    result = comparison(scored_side(new), scored_side(old))
    for key in ("expected_calibration_error", "area_under_risk_coverage"):
        assert REASONS[int(result.of_overall(key).reasons)] == "no_interval"


@pytest.mark.parametrize("key", ["hand_till_auc", "macro_average_precision"])
def test_influences_give_the_error_of_leaving_out_each_item(key: str) -> None:
    new, old = both()
    sides = [evaluated(side, indices=(key,)) for side in (new, old)]
    entry = sides[0].selection.overall[0]
    first, second = (influence_of_items(side.values, entry, "random") for side in sides)
    assert first is not None
    assert second is not None
    steps = first - second

    def difference(kept: Any) -> float:
        left = (Scores(side.true[kept], side.values[kept]) for side in (new, old))
        return float(
            np.subtract(
                *(evaluated(side, indices=(key,), intervals=False).overall[0] for side in left)
            )
        )

    left_out = np.array([difference(kept) for kept in ~np.eye(400, dtype=bool)])
    jackknife = np.sqrt(399 / 400 * ((left_out - left_out.mean()) ** 2).sum())
    assert np.sqrt(steps @ steps) == pytest.approx(jackknife, rel=0.05)


def test_classes_of_one_side_alone_do_not_disturb_the_others() -> None:
    new, old = both()
    wider = Scores(old.true, np.column_stack((old.values, np.zeros(400))))
    result = comparison(scored_side(new), scored_side(wider))
    plain = comparison(scored_side(new), scored_side(old))
    np.testing.assert_allclose(
        result.of_classes("roc_auc").value, plain.of_classes("roc_auc").value
    )
    assert result.of_overall("log_loss").value == pytest.approx(plain.of_overall("log_loss").value)
