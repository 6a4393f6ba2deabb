"""Intervals of indices of scores: by their published formulas, by simulation, by identities."""

from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from rprime.core.evaluate import Evaluation
from rprime.core.intervals.limits import newcombe
from rprime.core.scores.ranking import ClassRanking, rank
from rprime.core.scores.scores import Scores
from tests.core.score_values import drawn, evaluated, softmax

RNG = np.random.default_rng(2006)
Z = float(stats.norm.isf(0.025))
AREAS = ("roc_auc", "macro_roc_auc", "weighted_roc_auc", "hand_till_auc")
PRECISIONS = ("average_precision", "macro_average_precision", "weighted_average_precision")
MEANS = ("log_loss", "brier_score", "conditional_log_likelihood", "top_k_accuracy")


def limits(evaluation: Evaluation, key: str, scope: str = "overall") -> Any:
    """Limits (2,), or (2, k) of the classes."""
    intervals, selection = evaluation.intervals, evaluation.selection
    assert intervals is not None
    if scope == "overall":
        place = selection.overall_place[key]
        return np.array((intervals.overall_low[place], intervals.overall_high[place]))
    place = selection.place[key]
    return np.array((intervals.per_class_low[place], intervals.per_class_high[place]))


def interval(scores: Scores, key: str, **options: Any) -> Any:
    return limits(evaluated(scores, **options), key)


def hanley_mcneil(t: float, m: int, n: int) -> float:
    """Variance of an area as Newcombe 2006 writes it, with N* items on both sides."""
    half = (m + n) / 2 - 1
    return t * (1 - t) * (1 + half * (1 - t) / (2 - t) + half * t / (1 + t)) / (m * n)


@pytest.mark.parametrize(("m", "n"), [(20, 2000), (2000, 20), (1, 9), (30, 30), (1, 1)])
@pytest.mark.parametrize("area", [0.0, 0.2, 0.5, 0.977, 0.99999, 1.0])
@pytest.mark.parametrize("quantile", [0.1, Z, 6.0])
def test_limits_of_an_area_solve_the_equation_of_newcombe(
    m: int, n: int, area: float, quantile: float
) -> None:
    def excess(t: float) -> float:
        return float((area - t) ** 2 - quantile**2 * hanley_mcneil(t, m, n))

    low, high = newcombe(np.array(area), np.array(m), np.array(n), quantile)
    expected = (
        0.0 if area == 0 else optimize.brentq(excess, 0, area - 1e-9, xtol=1e-15),
        1.0 if area == 1 else optimize.brentq(excess, area + 1e-9, 1, xtol=1e-15),
    )
    assert (low, high) == pytest.approx(expected, abs=1e-12)


def binormal(m: int, n: int, area: float, *, spread: float = 1.0) -> Scores:
    """Normal scores of two classes; those of the m positive items vary `spread` times as much."""
    shift = stats.norm.ppf(area) * np.sqrt(1 + spread**2)
    second = np.append(RNG.standard_normal(n), spread * RNG.standard_normal(m) + shift)
    true = np.repeat(np.array([0, 1], dtype=np.uint8), (n, m))
    return Scores(true, np.column_stack((-second, second)))


@pytest.mark.parametrize(
    ("m", "n", "area", "spread"),
    [(20, 2000, 0.977, 1.0), (30, 30, 0.95, 1.0), (100, 900, 0.9, 3.0)],
)
def test_the_interval_of_an_area_covers_it(m: int, n: int, area: float, spread: float) -> None:
    covered = 0
    for _ in range(300):
        low, high = limits(
            evaluated(binormal(m, n, area, spread=spread), indices=("roc_auc",)), "roc_auc", "class"
        )[:, 1]
        covered += low <= area <= high
    assert 0.925 <= covered / 300 <= 0.995


def test_an_area_of_one_has_an_interval() -> None:
    true = np.repeat(np.arange(3), 20).astype(np.uint8)
    evaluation = evaluated(Scores(true, np.eye(3)[true]))
    for key in (AREAS[0], PRECISIONS[0]):
        low, high = limits(evaluation, key, "class")
        assert (low > 0.7).all()
        assert (low < 1).all()
        assert (high == 1).all()
    for key in (*AREAS[1:], *PRECISIONS[1:]):
        low, high = limits(evaluation, key)
        assert 0.85 < low < high == 1, key


def test_of_two_classes_all_areas_are_one_area() -> None:
    for scores in (drawn(RNG, 80, 2), drawn(RNG, 80, 2, sharp=9.0), binormal(7, 300, 0.9)):
        evaluation = evaluated(scores)
        expected = limits(evaluation, "roc_auc", "class")
        np.testing.assert_allclose(expected[:, 0], expected[:, 1], atol=1e-12)
        for key in AREAS[1:]:
            np.testing.assert_allclose(limits(evaluation, key), expected[:, 0], atol=1e-9)


@pytest.mark.parametrize("digits", [None, 1])
@pytest.mark.parametrize("key", ["roc_auc", "average_precision", "hand_till_auc"])
def test_influences_are_derivatives_by_the_weights_of_the_items(
    key: str, digits: int | None
) -> None:
    scores = drawn(RNG, 60, 3)
    values = scores.values if digits is None else np.round(scores.values, digits)
    weights = RNG.uniform(0.5, 2, 60)
    items = Scores(scores.true, values, weights=weights)
    rankings = rank(items)

    def value(of_class: int, of_item: int, step: float) -> float:
        moved = weights.copy()
        moved[of_item] *= 1 + step
        return float(rank(Scores(scores.true, values, weights=moved)).of_classes(key)[of_class])

    for code in range(3):
        influence = items.influence(key, items.class_ranking(code, ordered=True), rankings)
        if key != "average_precision":  # its variance has no factor n / (n - 1)
            groups = [scores.true == code, scores.true != code]
            if key == "hand_till_auc":
                groups = [scores.true == i for i in range(3)]
            for chosen in groups:
                n = weights[chosen].sum() ** 2 / (weights[chosen] ** 2).sum()
                influence[chosen] /= np.sqrt(n / (n - 1))
        slopes = [(value(code, i, 1e-5) - value(code, i, -1e-5)) / 2e-5 for i in range(60)]
        np.testing.assert_allclose(influence, slopes, atol=1e-9)


def test_the_lower_limit_of_average_precision_allows_for_its_bias() -> None:
    """With random scores, an item finds itself at the top too often: the value is too high."""
    draw, estimates = np.random.default_rng(0), []
    for _ in range(400):
        true = (np.arange(40) < 8).astype(np.uint8)
        column = draw.standard_normal(40)
        ranking = ClassRanking.of(column, true, 1)
        estimates.append((ranking.average_precision, ranking.precision_bias))
    value, bias = np.mean(estimates, axis=0)
    assert value > 0.24  # without skill, items find a precision of 7 / 39 besides their own
    assert value - bias == pytest.approx(7 / 39, abs=0.025)


def test_a_mean_has_the_t_limits_with_and_without_half_an_error_more() -> None:
    n, half = 90, 0.5
    scores = drawn(RNG, n, 4)
    losses = -scores.log_likelihoods
    surest = np.sort(scores.values[np.argmax(scores.confidence)])
    items, weights = np.append(losses, -np.log(surest[-2])), np.append(np.ones(n), half)
    total = n + half
    mean = (items @ weights) / total
    variance = ((items - mean) ** 2 @ weights) / (total - 1)
    with_error = stats.t.isf(0.025, total - 1) * np.sqrt(variance / total)
    without = stats.t.isf(0.025, n - 1) * losses.std(ddof=1) / np.sqrt(n)
    low = min(mean - with_error, losses.mean() - without)
    expected = np.array([low, max(mean + with_error, losses.mean() + without)])
    assert interval(scores, "log_loss") == pytest.approx(expected, rel=1e-9)
    sums = interval(scores, "conditional_log_likelihood")
    assert sums == pytest.approx(-n * expected[::-1], rel=1e-9)


@pytest.mark.parametrize("n", [30, 100])
def test_skewed_losses_are_covered(n: int) -> None:
    """A log loss of few large losses, which a t interval covers in 88 % (n = 100: 92 %)."""
    values = RNG.standard_normal((100_000, 3)) * 2
    values[:, 0] += 4
    losses = -np.log(softmax(values)[:, 0])
    shares = np.exp(-losses)
    covered = 0
    for _ in range(600):
        confidences = RNG.choice(shares, n)
        scores = Scores(
            np.zeros(n, dtype=np.uint8), np.column_stack((confidences, 1 - confidences))
        )
        low, high = interval(scores, "log_loss", indices=("log_loss",))
        covered += low <= losses.mean() <= high
    assert covered / 600 >= 0.925


@pytest.mark.parametrize(
    "key", ["macro_roc_auc", "hand_till_auc", "macro_average_precision", "brier_score"]
)
def test_intervals_cover_what_they_estimate(key: str) -> None:
    population = drawn(RNG, 60_000, 3)
    truth = evaluated(population, indices=(key,), intervals=False).overall[0]
    covered = 0
    for _ in range(300):
        chosen = RNG.integers(0, 60_000, 150)
        sample = Scores(population.true[chosen], population.values[chosen])
        low, high = interval(sample, key, indices=(key,))
        covered += low <= truth <= high
    assert 0.92 <= covered / 300 <= 0.99


def repeated(scores: Scores, times: int, groups: Any) -> Scores:
    return Scores(
        np.repeat(scores.true, times), np.repeat(scores.values, times, axis=0), groups=groups
    )


def test_items_in_groups_of_copies_count_once() -> None:
    scores = drawn(RNG, 200, 3)
    copies = repeated(scores, 3, np.repeat(np.arange(200), 3))
    alone, grouped = (evaluated(sample, top_k=1) for sample in (scores, copies))
    for key in (*AREAS[1:], *PRECISIONS[1:], *MEANS):
        if key != "conditional_log_likelihood":  # a sum
            assert limits(grouped, key) == pytest.approx(limits(alone, key), rel=0.05), key


def test_groups_of_one_item_change_only_the_quantile() -> None:
    scores = drawn(RNG, 2000, 3)
    alone, grouped = (
        evaluated(Scores(scores.true, scores.values, groups), top_k=1)
        for groups in (None, np.arange(2000))
    )
    for key in (*AREAS[1:], *PRECISIONS[1:], *MEANS):
        np.testing.assert_allclose(limits(grouped, key), limits(alone, key), rtol=1e-3)


def test_one_group_says_nothing_about_groups() -> None:
    scores = drawn(RNG, 60, 3)
    evaluation = evaluated(Scores(scores.true, scores.values, np.zeros(60, dtype=np.intp)), top_k=1)
    for key in (*AREAS[1:], *PRECISIONS[1:], *MEANS):
        assert np.isnan(limits(evaluation, key)).all(), key


def test_perfect_scores_of_few_groups_are_not_certain() -> None:
    true = np.tile(np.arange(2), 60).astype(np.uint8)
    perfect, groups = np.eye(2)[true], np.repeat(np.arange(12), 10)
    single, grouped = (
        evaluated(Scores(true, perfect, grouping), top_k=1) for grouping in (None, groups)
    )
    for key in (*AREAS[1:], *PRECISIONS[1:], "top_k_accuracy"):
        assert limits(grouped, key)[0] < 1 - 5 * (1 - limits(single, key)[0]) or (
            limits(grouped, key)[0] < 0.8
        ), key


def test_fixed_rows_leave_out_the_variance_between_the_classes() -> None:
    scores = drawn(RNG, 300, 3)
    easy = scores.true == 0  # between classes that are alike there is no variance
    scores = Scores(scores.true, np.where(easy[:, None], np.eye(3)[0], scores.values))
    most = {"log_loss": 0.98, "weighted_roc_auc": 0.95, "macro_average_precision": 1.03}
    for key, share in most.items():
        free, fixed = (interval(scores, key, sampling=s) for s in ("random", "fixed_rows"))
        assert fixed[1] - fixed[0] < share * (free[1] - free[0]), key


def test_equal_weights_change_no_interval() -> None:
    scores = drawn(RNG, 300, 3)
    alone, weighted = (
        evaluated(Scores(scores.true, scores.values, weights=weights), top_k=1)
        for weights in (None, np.full(300, 2.5))
    )
    for key in (*AREAS[1:], *PRECISIONS[1:], "log_loss", "brier_score", "top_k_accuracy"):
        np.testing.assert_allclose(limits(weighted, key), limits(alone, key), rtol=1e-9)


@pytest.mark.parametrize("key", ["macro_roc_auc", "log_loss", "top_k_accuracy"])
def test_weighted_intervals_cover_what_they_estimate(key: str) -> None:
    population = drawn(RNG, 60_000, 3)
    # Items with a high score weigh more, so the weights are no mere noise.
    drawn_weights = np.exp(RNG.standard_normal(60_000) * 0.7 + population.confidence)
    whole = Scores(population.true, population.values, weights=drawn_weights)
    truth = evaluated(whole, indices=(key,), intervals=False, top_k=1).overall[0]
    covered = 0
    for _ in range(300):
        chosen = RNG.integers(0, 60_000, 150)
        sample = Scores(
            population.true[chosen], population.values[chosen], weights=drawn_weights[chosen]
        )
        low, high = interval(sample, key, indices=(key,), top_k=1)
        covered += low <= truth <= high
    assert 0.92 <= covered / 300 <= 0.995


def test_areas_of_fewer_than_twenty_items_are_marked() -> None:
    values = softmax(RNG.standard_normal((240, 3)))
    for rarest, few in ((19, True), (20, False)):
        true = np.repeat(np.arange(3), (100, 140 - rarest, rarest)).astype(np.uint8)
        evaluation = evaluated(Scores(true, values))
        intervals, selection = evaluation.intervals, evaluation.selection
        assert intervals is not None
        for key in (AREAS[0], PRECISIONS[0]):
            marked = intervals.per_class_low_reliability[selection.place[key]]
            assert marked.tolist() == [False, False, few], key
        for key in (*AREAS[1:], "macro_average_precision"):
            assert intervals.overall_low_reliability[selection.overall_place[key]] == few, key
        assert not intervals.overall_low_reliability[selection.overall_place["log_loss"]]


def test_scores_of_few_effective_groups_are_marked() -> None:
    scores = drawn(RNG, 400, 3)
    for sizes, few in (([20] * 20, False), ([180] + [20] * 11, True)):
        groups = np.repeat(np.arange(len(sizes)), sizes)
        evaluation = evaluated(Scores(scores.true, scores.values, groups), top_k=1)
        intervals, selection = evaluation.intervals, evaluation.selection
        assert intervals is not None
        for key in ("brier_score", "macro_roc_auc", "macro_average_precision"):
            assert intervals.overall_low_reliability[selection.overall_place[key]] == few, key
        assert intervals.per_class_low_reliability[selection.place["roc_auc"]].all() == few
