"""Intervals and rules where the items of a group are alike and groups differ in size."""

from typing import NamedTuple

import numpy as np
import pytest

from rprime.core.comparison.compare import compare
from rprime.core.estimates import Estimates
from rprime.core.intervals.groups import GroupSpread
from rprime.core.items import Items, table_of
from rprime.core.options import Options
from rprime.core.selection import select
from tests.core.comparison_sides import side_of
from tests.simulation.populations import FloatArray

ALIKE = 0.2
"""Correlation of the rightness of two items of a group."""
SIZES = {
    "20 x 20": [20] * 20,
    "30, geometric 2 to 115": np.geomspace(2, 115, 30).round().astype(int).tolist(),
    "100, sizes 400/i": (400 / np.arange(1, 101)).round().astype(int).tolist(),
    "60, twice 1 to 30": [*range(1, 31)] * 2,
    "6 x 60 + 10 x 30": [60] * 6 + [30] * 10,
    "3 x 200 + 47 x 5": [200] * 3 + [5] * 47,
    "1 x 200 + 19 x 10": [200] + [10] * 19,
}
FEW = ("3 x 200 + 47 x 5", "1 x 200 + 19 x 10")
"""Fewer than 8 effective groups."""


class Rates(NamedTuple):
    """How often 95 % intervals hold, the true value passes and fails, and a value is marked."""

    covers: float
    passes: float
    fails: float
    low: float


def beta(random: np.random.Generator, mean: float, size: int) -> FloatArray:
    return random.beta(mean * (1 / ALIKE - 1), (1 - mean) * (1 / ALIKE - 1), size)


def floors(sizes: list[int], accuracy: float, draws: int, seed: int = 1) -> Rates:
    """Judge a floor of accuracy at its true value."""
    options, counts = Options(indices=("accuracy",)), np.zeros(4)
    for i in range(draws):
        random = np.random.default_rng((seed, i))
        group = np.repeat(np.arange(len(sizes)), sizes)
        right = random.random(len(group)) < beta(random, accuracy, len(sizes))[group]
        true = random.integers(0, 2, len(group))
        items = Items(true, np.where(right, true, 1 - true), group)
        estimates = Estimates.of(table_of(items, 2), options, select(options), items)
        low, high = estimates.prepared.limits("overall", 1.959963984540054)[:, 0]
        below, above = estimates.prepared.limits("overall", 1.6448536269514722)[:, 0]
        marked = estimates.intervals.overall_low_reliability[0]
        counts += low <= accuracy <= high, below >= accuracy, above < accuracy, marked
    return Rates(*(counts / draws).tolist())


def drops(sizes: list[int], lost: float, draws: int, seed: int = 2) -> tuple[Rates, Rates]:
    """Judge the true drop of accuracy and of macro F1, where groups differ in what they lose."""
    options, counts = Options(indices=("accuracy", "macro_f1")), np.zeros((2, 4))
    for i in range(draws):
        random = np.random.default_rng((seed, i))
        group = np.repeat(np.arange(len(sizes)), sizes)
        n, drop = len(group), -0.9 * lost
        true = random.integers(0, 2, n)
        old = np.where(random.random(n) < 0.9, true, 1 - true)
        flipped = (old == true) & (random.random(n) < beta(random, lost, len(sizes))[group])
        candidate = side_of(true, np.where(flipped, 1 - true, old), 2, group)
        difference = compare(
            candidate, side_of(true, old, 2, group), options, attributed=()
        ).overall
        lower, upper = difference.limits(0.025)
        fails, passes = (p < 0.05 for p in difference.p(drop))
        few = difference.effective_groups < 8
        counts += np.transpose([(lower <= drop) & (drop <= upper), passes & ~few, fails, few])
    accuracy, macro = (counts / draws).tolist()
    return Rates(*accuracy), Rates(*macro)


@pytest.mark.parametrize(("name", "least"), [("20 x 20", 0.92), ("3 x 200 + 47 x 5", 0.95)])
def test_unequal_groups_are_covered(name: str, least: float) -> None:
    draws = 150
    rates = floors(SIZES[name], 0.85, draws)
    error = 3 * np.sqrt(least * (1 - least) / draws)
    assert rates.covers >= least - error
    assert rates.passes <= 0.07 + 3 * np.sqrt(0.07 * 0.93 / draws)
    assert rates.low == 1 if name in FEW else rates.low < 0.2


def test_limits_have_a_whole_group_more_where_few_groups_decide() -> None:
    shares = np.full((2, 20), 1 / 20)
    shares[1] = np.arange(1, 21) / 210
    for each in shares:
        # All errors in one group, in four alike, and in all but for a little.
        rates = np.array([np.eye(20)[19], np.arange(20) >= 16, 1 + np.arange(20) / 1e3])
        spread = GroupSpread.of_sums(each * rates, each)
        whole = (each @ each) * rates.max(-1)
        assert spread.high / whole == pytest.approx([1, 1, 0.5])
        assert (spread.low == 0).all()


def test_a_paired_drop_of_unequal_groups_seldom_passes() -> None:
    draws = 120
    for rates in drops(SIZES["100, sizes 400/i"], 0.05, draws):
        assert rates.passes <= 0.07 + 3 * np.sqrt(0.07 * 0.93 / draws)
        assert rates.covers >= 0.92 - 3 * np.sqrt(0.92 * 0.08 / draws)


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_all_settings(name: str) -> None:
    for accuracy, least in ((0.85, 0.92), (0.95, 0.9)):
        rates = floors(SIZES[name], accuracy, 1000)
        print(name, accuracy, *(f"{rate:.3f}" for rate in rates))  # noqa: T201 (docs/coverage.md has these figures)
        assert rates.covers >= least
        assert name in FEW or rates.passes <= 0.07 + 3 * np.sqrt(0.07 * 0.93 / 1000)
    for each in drops(SIZES[name], 0.05, 1000):
        print(name, "drop", *(f"{rate:.3f}" for rate in each))  # noqa: T201 (as above)
        assert each.passes <= 0.07 + 3 * np.sqrt(0.07 * 0.93 / 1000)
