"""Values that few errors decide: their intervals hold or are marked, and rules seldom pass."""

import numpy as np
import pytest

from rprime.core.comparison.compare import compare
from rprime.core.estimates import Estimates
from rprime.core.items import Items, table_of
from rprime.core.options import Options
from rprime.core.scores.scores import Scores
from rprime.core.selection import select
from rprime.core.table import ConfusionTable
from tests.core.comparison_sides import side_of
from tests.simulation.populations import FloatArray

BRIER = Options(indices=("brier_score",))


def error(rate: float, draws: int) -> float:
    """Return three standard errors of a simulated rate."""
    return 3 * float(np.sqrt(rate * (1 - rate) / draws))


def calibrated(random: np.random.Generator, n: int) -> Scores:
    """Draw a classifier of three classes that is right with its top probability, .99 on average."""
    true = random.integers(0, 3, n)
    surest = 1 - random.beta(0.3, 30, n)
    wrong = (true + 1 + random.integers(0, 2, n)) % 3
    top = np.where(random.random(n) < surest, true, wrong)
    values = np.repeat(((1 - surest) / 2)[:, None], 3, 1)
    values[np.arange(n), top] = surest
    return Scores(true, values)


def brier(scores: Scores) -> Estimates:
    items = Items(scores.true, scores.top)
    selection = select(BRIER, scored=True)
    return Estimates.of(table_of(items, 3), BRIER, selection, items, scores)


def test_the_loss_of_a_model_that_errs_rarely_is_covered() -> None:
    draws, covers, passes, low = 250, 0, 0, 0
    truth = float(calibrated(np.random.default_rng(0), 1_000_000).brier_scores.mean())
    for seed in range(draws):
        estimates = brier(calibrated(np.random.default_rng((1, seed)), 100))
        lower, upper = estimates.prepared.limits("overall", 1.959963984540054)[:, 0]
        covers += bool(lower <= truth <= upper)
        passes += bool(estimates.prepared.limits("overall", 1.6448536269514722)[1, 0] <= truth)
        low += bool(estimates.intervals.overall_low_reliability[0])
    assert covers / draws >= 0.95 - error(0.95, draws)
    assert passes / draws <= 0.05 + error(0.05, draws)
    assert low >= 0.97 * draws


def two(share: float, recall: float) -> FloatArray:
    other = 1 - share
    wrong = 1 - recall
    return np.array([[share * recall, share * wrong], [other * wrong, other * recall]])


@pytest.mark.parametrize(
    ("key", "shares", "items"),
    [
        ("weighted_specificity", two(0.7, 0.95), 100),
        ("weighted_specificity", two(0.8, 0.95), 200),
        ("weighted_conditional_kappa_predicted", two(0.97, 0.9), 300),
        ("class lift", np.array([[0.81, 0.09], [0.09, 0.01]]), 100),
        ("class lift", two(0.97, 0.9), 300),
        ("scott_pi_true_margin", two(0.97, 0.9), 300),
    ],
)
def test_an_interval_holds_or_is_marked(key: str, shares: FloatArray, items: int) -> None:
    draws, name = 1000, key.removeprefix("class ")
    options = Options(indices=(name,))
    selection = select(options)
    drawn = np.random.default_rng(5).multinomial(items, shares.ravel(), draws)
    tables = (ConfusionTable.dense(part) for part in (shares * 1e12, drawn.reshape(-1, 2, 2) * 1.0))
    truth, estimates = (Estimates.of(table, options, selection) for table in tables)
    intervals = estimates.intervals
    if name != key:
        true = truth.values.per_class[0, 0]
        low, high = intervals.per_class_low[0, :, 0], intervals.per_class_high[0, :, 0]
        marked = intervals.per_class_low_reliability[0, :, 0]
    else:
        true, low, high = (
            truth.values.overall[0],
            intervals.overall_low[0],
            intervals.overall_high[0],
        )
        marked = intervals.overall_low_reliability[0]
    exists = np.isfinite(low)
    holds = marked | ((low <= true) & (true <= high))
    assert np.mean(holds[exists]) >= 0.92 - error(0.92, draws)


def test_ordinary_tables_are_not_marked() -> None:
    options = Options(families=("core",))
    selection = select(options)
    shares = (np.eye(3) * 0.775 + 0.075) / 3
    drawn = np.random.default_rng(5).multinomial(300, shares.ravel(), 200).reshape(-1, 3, 3) * 1.0
    intervals = Estimates.of(ConfusionTable.dense(drawn), options, selection).intervals
    marked = intervals.overall_low_reliability.mean(-1)
    keys = [entry.key for entry in selection.overall]
    assert {key for key, share in zip(keys, marked, strict=True) if share > 0.01} == {"coverage"}
    assert intervals.per_class_low_reliability.mean() < 0.01


def test_the_guard_of_averages_costs_less_where_ten_changed() -> None:
    draws, options, passes = 200, Options(indices=("macro_f1",)), np.zeros(2)
    for seed in range(draws):
        random = np.random.default_rng((3, seed))
        true = np.repeat(np.arange(10), 10)
        wrong = (true + random.integers(1, 10, 100)) % 10
        old = np.where(random.random(100) < 0.9, true, wrong)
        for i, lost in enumerate((0.0, 0.056)):
            flip = random.random(100)
            new = np.where((old == true) & (flip < 0.05 / 0.9 + lost), wrong, old)
            new = np.where((old != true) & (flip < 0.5), true, new)
            sides = side_of(true, new, 10), side_of(true, old, 10)
            difference = compare(sides[0], sides[1], options, attributed=()).overall
            passes[i] += float(difference.p(-0.05)[1][0]) < 0.05
    unchanged, at_limit = passes / draws
    assert unchanged >= 0.33 - error(0.33, draws)
    assert at_limit <= 0.06 + error(0.06, draws)
