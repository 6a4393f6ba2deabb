"""Single proportions: what the intervals and the exact tail must hold."""

import json
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from rprime.core.intervals.proportions import (
    TWO_SIDED,
    binomial_tail_exceeds,
    binomial_tail_p,
    clopper_pearson,
    normal_quantile,
    one_sided_quantile,
    quantile_of,
    wilson,
)
from rprime.core.thresholds import exceeds

REFERENCE = json.loads(
    (Path(__file__).parents[1] / "reference/statistics_visible.json").read_text(encoding="utf-8")
)
Z95 = normal_quantile(0.95)


def reference_proportions() -> list[dict[str, Any]]:
    """Return every proportion with intervals in the reference: x, n, wilson, clopper_pearson."""
    matrices = REFERENCE["matrices"].values()
    overall = [index["ci"] for m in matrices for index in m["scalar"].values() if "ci" in index]
    classes = [c[key] for m in matrices for c in m["per_class"] for key in ("recall", "precision")]
    return [proportion for proportion in overall + classes if proportion]


samples = st.integers(1, 10**12).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
small_samples = st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def test_reference_intervals_are_reproduced() -> None:
    proportions = reference_proportions()
    assert len(proportions) >= 30
    successes = [p["x"] for p in proportions]
    trials = [p["n"] for p in proportions]
    for name, interval in (
        ("wilson", wilson(successes, trials, Z95)),
        ("clopper_pearson", clopper_pearson(successes, trials, 0.95)),
    ):
        expected = np.array([p[name] for p in proportions]).T
        np.testing.assert_allclose(interval, expected, rtol=0, atol=1e-9, err_msg=name)


def test_quantiles_are_those_of_the_normal_distribution() -> None:
    levels = [0.5, 0.8, 0.9, 0.95, 0.999]
    np.testing.assert_allclose(normal_quantile(levels), stats.norm.interval(levels)[1], rtol=1e-12)
    assert quantile_of(0.95) == TWO_SIDED == normal_quantile(0.95)
    np.testing.assert_allclose(one_sided_quantile(0.05), 1.6448536269514722, rtol=1e-12)
    np.testing.assert_allclose(one_sided_quantile(1e-40), stats.norm.isf(1e-40), rtol=1e-12)


@given(samples)
def test_intervals_contain_the_estimate_and_have_a_width(sample: tuple[int, int]) -> None:
    x, n = sample
    for lower, upper in (wilson(x, n, Z95), clopper_pearson(x, n, 0.95)):
        assert 0 <= lower <= x / n <= upper <= 1
        assert lower < upper


@given(samples)
def test_failures_have_the_mirrored_interval(sample: tuple[int, int]) -> None:
    x, n = sample
    for interval, mirrored in (
        (wilson(x, n, Z95), wilson(n - x, n, Z95)),
        (clopper_pearson(x, n, 0.95), clopper_pearson(n - x, n, 0.95)),
    ):
        np.testing.assert_allclose(interval[0], 1 - mirrored[1], rtol=0, atol=1e-14)


@given(small_samples, st.floats(0.5, 0.99), st.floats(0.001, 0.009))
def test_more_confidence_is_wider(sample: tuple[int, int], level: float, more: float) -> None:
    x, n = sample
    levels = np.array([level, level + more])
    for lower, upper in (wilson(x, n, normal_quantile(levels)), clopper_pearson(x, n, levels)):
        assert lower[1] <= lower[0]
        assert upper[0] <= upper[1]
        assert upper[0] - lower[0] < upper[1] - lower[1]


@given(small_samples)
def test_wilson_limits_solve_the_score_equation(sample: tuple[int, int]) -> None:
    x, n = sample
    for limit in wilson(x, n, Z95):
        left = (x / n - limit) ** 2
        np.testing.assert_allclose(left, Z95**2 * limit * (1 - limit) / n, atol=1e-14)


@given(samples)
def test_clopper_pearson_limits_leave_half_of_the_rest_outside(sample: tuple[int, int]) -> None:
    x, n = sample
    lower, upper = clopper_pearson(x, n, 0.9)
    if x > 0 and lower < 0.9:  # nearer to 1 the limit itself is only known to 1e-16
        np.testing.assert_allclose(binomial_tail_p(x, n, lower), 0.05, rtol=1e-4)
    if x < n and upper > 0.1:
        np.testing.assert_allclose(binomial_tail_p(n - x, n, 1 - upper), 0.05, rtol=2e-3)


@pytest.mark.parametrize("trials", [1, 2, 41, 10**6, 10**12])
def test_ends_are_exact(trials: int) -> None:
    for none, every in (
        (wilson(0, trials, Z95), wilson(trials, trials, Z95)),
        (clopper_pearson(0, trials, 0.95), clopper_pearson(trials, trials, 0.95)),
    ):
        assert none[0] == 0
        assert every[1] == 1
        assert none[1] > 0
        assert every[0] < 1


def test_invalid_samples_have_no_interval_and_do_not_spoil_their_neighbours() -> None:
    x, n = np.array([0.0, 1.0, -1.0, 3.0, np.nan, 2.0]), np.array([0.0, -1.0, 5.0, 2.0, 4.0, 4.0])
    for limits in (wilson(x, n, Z95), clopper_pearson(x, n, 0.95)):
        for limit in limits:
            assert np.isnan(limit[:5]).all()
            assert np.isfinite(limit[5])


def test_counts_scaled_by_a_design_effect_widen_the_interval() -> None:
    for interval, scaled in (
        (wilson(30, 40, Z95), wilson(30 / 2.7, 40 / 2.7, Z95)),
        (clopper_pearson(30, 40, 0.95), clopper_pearson(30 / 2.7, 40 / 2.7, 0.95)),
    ):
        assert scaled[0] < interval[0] < 0.75 < interval[1] < scaled[1]


def test_samples_and_levels_broadcast() -> None:
    lower, upper = wilson(np.arange(4)[:, None], 10, normal_quantile([0.8, 0.9, 0.95]))
    assert lower.shape == upper.shape == (4, 3)
    assert clopper_pearson(3, 10, [0.8, 0.9])[0].shape == (2,)


@pytest.mark.parametrize(("share", "trials"), [(0.98, 41), (0.5, 30), (0.9, 100), (0.02, 400)])
def test_wilson_covers_what_it_promises(share: float, trials: int) -> None:
    x = np.arange(trials + 1)
    lower, upper = wilson(x, trials, Z95)
    inside = (lower <= share) & (share <= upper)
    assert 0.91 <= stats.binom.pmf(x, trials, share)[inside].sum() <= 0.99


@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
def test_clopper_pearson_never_covers_less_than_it_promises(share: float) -> None:
    x = np.arange(61)
    lower, upper = clopper_pearson(x, 60, 0.95)
    inside = (lower <= share) & (share <= upper)
    assert stats.binom.pmf(x, 60, share)[inside].sum() >= 0.95


def exact_tail(x: int, n: int, share: float) -> Fraction:
    """Sum the probabilities in whole numbers."""
    top, bottom = share.as_integer_ratio()
    ways = sum(comb(n, i) * top**i * (bottom - top) ** (n - i) for i in range(x, n + 1))
    return Fraction(ways, bottom**n)


@given(small_samples, st.sampled_from([0.001, 0.1, 0.1875, 0.3, 0.5, 0.9]))
@example((308, 337), 0.083)  # the factors of the incomplete beta function underflow
@example((462, 480), 0.1875)
@example((100, 100), 0.001)
def test_tail_is_the_sum_of_its_probabilities(sample: tuple[int, int], share: float) -> None:
    expected = exact_tail(*sample, share)
    if expected > Fraction(1, 10**307):
        np.testing.assert_allclose(binomial_tail_p(*sample, share), float(expected), rtol=1e-11)
    else:
        assert 0 < binomial_tail_p(*sample, share) < 1e-306


def test_tail_is_smooth_where_the_computation_changes() -> None:
    for n, share in ((1e5, 0.3), (1e9, 0.5), (1e12, 0.001)):
        deviation = np.sqrt(n * share * (1 - share))
        x = np.rint(n * share + 29.8 * deviation) + np.ceil(deviation / 150) * np.arange(200)
        tails = binomial_tail_p(x, n, share)
        assert tails[0] > 1e-200 > tails[-1]
        assert (np.abs(np.diff(np.log(tails), 2)) < 1e-4).all()
        assert (np.diff(tails) < 0).all()


def test_tail_at_a_trillion_trials_matches_the_normal_limit() -> None:
    n, share = 1e12, 0.25
    deviation = np.sqrt(n * share * (1 - share))
    for z in (-3.0, 0.0, 2.0, 8.0):
        x = np.rint(n * share + z * deviation)
        at = (x - 0.5 - n * share) / deviation
        # The skewness term of the Edgeworth expansion; what is left is of the order 1/n.
        skew = (1 - 2 * share) / deviation * (at**2 - 1) * stats.norm.pdf(at) / 6
        np.testing.assert_allclose(
            binomial_tail_p(x, n, share), stats.norm.sf(at) + skew, rtol=1e-7
        )


def test_tail_of_a_possible_event_is_never_zero_negative_or_above_one() -> None:
    x = np.array([1.0, 10.0, 9e11, 1e12, 1.0, 5e11, 400.0])
    n = np.array([1e12, 1e12, 1e12, 1e12, 1.0, 1e12, 400.0])
    p = np.array([1e-6, 0.5, 0.1, 0.5, 1e-300, 0.5, 1e-3])
    tails = binomial_tail_p(x, n, p)
    assert ((tails > 0) & (tails <= 1)).all()
    assert tails[2] == tails[3] == tails[6] == np.finfo(float).tiny
    np.testing.assert_allclose(tails[[0, 1, 4]], [1, 1, 1e-300], rtol=1e-9)


def test_tail_at_the_edges() -> None:
    assert binomial_tail_p(0, 5, 0.3) == 1
    assert binomial_tail_p(6, 5, 0.3) == 0
    assert binomial_tail_p(1, 5, 0.0) == 0
    assert binomial_tail_p(5, 5, 1.0) == 1
    assert np.isnan(binomial_tail_p(0, 0, 0.3))


def test_tail_falls_as_successes_rise() -> None:
    assert (np.diff(binomial_tail_p(np.arange(2001), 2000, 0.3)) <= 0).all()


@given(st.integers(0, 3000), st.integers(0, 3000), st.floats(0, 1), st.floats(1e-6, 0.5))
def test_the_tail_is_above_a_level_where_its_value_is(
    successes: int, trials: int, share: float, level: float
) -> None:
    x, n, p = np.array([successes, trials, 0]), np.array([trials, trials, 0]), share
    expected = exceeds(binomial_tail_p(x, n, p), level)
    np.testing.assert_array_equal(binomial_tail_exceeds(x, n, p, level), expected)


@pytest.mark.parametrize("trials", [1000, 10**6, 10**12])
@pytest.mark.parametrize("share", [0.01, 0.5, 0.9])
def test_the_smallest_tails_are_the_same_alone_and_beside_others(trials: int, share: float) -> None:
    x = np.linspace(share * trials, trials, 200).round()
    alone = [binomial_tail_p(number, trials, share) for number in x]
    np.testing.assert_array_equal(binomial_tail_p(x, trials, share), alone)
