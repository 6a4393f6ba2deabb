"""Paired proportions: what the comparison of two classifiers on the same items must hold."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from rprime.core.arrays import Array, FloatArray
from rprime.core.comparison.difference_intervals import (
    discordance_bounds,
    mcnemar_mid_p,
    probability_worse,
    sign_test_p,
    tango_interval,
    tango_z,
)
from rprime.core.comparison.joint_counts import OF_CLASS, JointCounts
from rprime.core.counts import CountRow
from rprime.core.intervals.proportions import binomial_tail_p, distance_found, normal_quantile
from rprime.core.items import Items
from tests.core.comparison_sides import bracket, p_fail, p_pass

REFERENCE = json.loads(
    (Path(__file__).parents[1] / "reference/statistics_visible.json").read_text(encoding="utf-8")
)
PAIRED: dict[str, dict[str, Any]] = REFERENCE["paired"]
TABLES = [case for case in PAIRED.values() if "gain" in case]
JOINT = PAIRED["joint3_n1000_drop2pt"]
Z95 = normal_quantile(0.95)


def verdict(case: dict[str, Any], margin: float, alpha: float = 0.05) -> str:
    """Decide as the gate does, from the two p-values."""
    counts = case["gain"], case["loss"], case["n"]
    if p_pass(*counts, margin) < alpha:
        return "pass"
    return "fail" if p_fail(*counts, margin) < alpha else "inconclusive"


def counts_up_to(largest: int) -> st.SearchStrategy[tuple[int, int, int]]:
    """Draw gains, losses and trials."""
    return st.integers(1, largest).flatmap(
        lambda n: st.integers(0, n).flatmap(
            lambda x: st.tuples(st.just(x), st.integers(0, n - x), st.just(n))
        )
    )


outcomes = st.one_of(counts_up_to(60), counts_up_to(10**12))
small_outcomes = counts_up_to(200)


@pytest.mark.parametrize("case", TABLES)
def test_reference_intervals_are_reproduced(case: dict[str, Any]) -> None:
    counts = case["gain"], case["loss"], case["n"]
    for key, confidence in (("tango_ci95", 0.95), ("tango_ci90", 0.9)):
        interval = tango_interval(*counts, normal_quantile(confidence))
        np.testing.assert_allclose(interval, case[key], rtol=0, atol=1e-9)


@pytest.mark.parametrize("case", TABLES)
def test_reference_noninferiority_is_reproduced(case: dict[str, Any]) -> None:
    counts = case["gain"], case["loss"], case["n"]
    for margin, expected in case["ni"].items():
        delta = float(margin)
        np.testing.assert_allclose(tango_z(*counts, -delta), expected["tango_z"], rtol=1e-9)
        np.testing.assert_allclose(p_pass(*counts, delta), expected["p_pass"], rtol=1e-9)
        np.testing.assert_allclose(p_fail(*counts, delta), expected["p_fail"], rtol=1e-9)
        assert verdict(case, delta) == expected["outcome_alpha05"]


@pytest.mark.parametrize("case", TABLES)
def test_reference_mcnemar_values_are_reproduced(case: dict[str, Any]) -> None:
    gain, loss = case["gain"], case["loss"]
    smaller = np.minimum(mcnemar_mid_p(gain, loss), mcnemar_mid_p(loss, gain))
    np.testing.assert_allclose(2 * smaller, case["mcnemar_midp"], rtol=1e-9)
    np.testing.assert_allclose(probability_worse(gain, loss), case["bayes_p_worse"], rtol=1e-9)
    if gain + loss > 0:
        exact = 2 * binomial_tail_p(max(gain, loss), gain + loss, 0.5)
        np.testing.assert_allclose(np.minimum(exact, 1), case["mcnemar_exact_p"], rtol=1e-9)


def test_reference_joint_table_is_reproduced() -> None:
    for truth, expected in enumerate(JOINT["per_class"]):
        moves = np.array(JOINT["joint_truth_old_new"][truth])
        items, same = moves.sum(), moves[truth, truth]
        gain, loss = moves[:, truth].sum() - same, moves[truth].sum() - same
        assert (items, gain, loss) == (expected["m"], expected["gain"], expected["loss"])
        for value, key in (
            (tango_z(gain, loss, items, -0.05), "tango_z_delta05"),
            (p_pass(gain, loss, items, 0.05), "p_pass"),
            (p_fail(gain, loss, items, 0.05), "p_fail"),
            (mcnemar_mid_p(gain, loss), "midp_one_sided_worse"),
        ):
            np.testing.assert_allclose(value, expected[key], rtol=1e-9, err_msg=key)


def test_reference_power_is_reproduced() -> None:
    power = REFERENCE["power"]
    psi, items, expected = np.array([[r["psi"], r["m"], r["delta_min"]] for r in power["table"]]).T
    np.testing.assert_allclose(
        distance_found(power["alpha"], np.sqrt(psi / items)), expected, rtol=1e-9
    )


@given(outcomes)
def test_interval_contains_the_estimate_and_has_a_width(counts: tuple[int, int, int]) -> None:
    gain, loss, n = counts
    lower, upper = tango_interval(gain, loss, n, Z95)
    assert -1 <= lower <= (gain - loss) / n <= upper <= 1
    assert lower < upper


@given(outcomes)
def test_interval_inverts_the_score(counts: tuple[int, int, int]) -> None:
    gain, loss, n = counts
    lower, upper = tango_interval(gain, loss, n, Z95)
    # One unit in the last place of a limit already moves the score by this much.
    rounding = 1e-9 + 1e-15 * n
    for limit, z in ((lower, Z95), (upper, -Z95)):
        if abs(limit) < 1:
            nearer, farther = tango_z(gain, loss, n, limit + np.array([1e-14, -1e-14]))
            assert nearer - rounding <= z <= farther + rounding


@given(small_outcomes)
def test_limits_solve_the_score_equation(counts: tuple[int, int, int]) -> None:
    gain, loss, n = counts
    lower, upper = tango_interval(gain, loss, n, Z95)
    if loss < n:
        np.testing.assert_allclose(tango_z(gain, loss, n, lower), Z95, rtol=1e-11)
    if gain < n:
        np.testing.assert_allclose(tango_z(gain, loss, n, upper), -Z95, rtol=1e-11)


@given(outcomes)
def test_exchanging_gains_and_losses_mirrors_the_interval(counts: tuple[int, int, int]) -> None:
    gain, loss, n = counts
    lower, upper = tango_interval(gain, loss, n, Z95)
    mirrored = tango_interval(loss, gain, n, Z95)
    assert (lower, upper) == (-mirrored[1], -mirrored[0])


@given(outcomes, st.floats(0.1, 5), st.floats(0.01, 3))
def test_more_confidence_is_wider(counts: tuple[int, int, int], z: float, more: float) -> None:
    lower, upper = tango_interval(*counts, np.array([z, z + more]))
    assert lower[1] <= lower[0]
    assert upper[0] <= upper[1]
    assert upper[0] - lower[0] < upper[1] - lower[1]


@given(small_outcomes)
def test_score_falls_as_the_hypothesis_rises(counts: tuple[int, int, int]) -> None:
    gain, loss, n = counts
    z = tango_z(gain, loss, n, np.linspace(-1, 1, 801))
    assert not np.isnan(z).any()
    assert (z[1:] <= z[:-1] + 1e-9).all()
    assert abs(tango_z(gain, loss, n, (gain - loss) / n)) < 1e-6


@given(small_outcomes, st.floats(0.001, 0.5), st.floats(0.001, 0.4))
def test_p_values_and_limits_decide_alike(
    counts: tuple[int, int, int], margin: float, alpha: float
) -> None:
    lower, upper = tango_interval(*counts, normal_quantile(1 - 2 * alpha))
    passes, fails = p_pass(*counts, margin), p_fail(*counts, margin)
    if abs(passes - alpha) > 1e-9:
        assert (lower > -margin) == (passes < alpha)
    if abs(fails - alpha) > 1e-9:
        assert (upper < -margin) == (fails < alpha)
    np.testing.assert_allclose(passes + fails, 1, rtol=1e-12)


@pytest.mark.parametrize("n", [1, 7, 1000, 10**12])
def test_ends_are_exact(n: int) -> None:
    gained, lost = tango_interval(n, 0, n, Z95), tango_interval(0, n, n, Z95)
    assert gained[1] == 1
    assert gained[0] == pytest.approx(1 - 2 * Z95**2 / (n + Z95**2), abs=1e-15)
    assert lost[0] == -1
    assert tango_z(n, 0, n, 1) == 0
    assert tango_z(1, 0, 5, [-1, 1]).tolist() == [np.inf, -np.inf]


@pytest.mark.parametrize("n", [1, 100, 10**12])
def test_no_discordant_item_is_weak_evidence_and_no_zero_p(n: int) -> None:
    expected = Z95**2 / (n + Z95**2)
    np.testing.assert_allclose(tango_interval(0, 0, n, Z95), [-expected, expected], rtol=1e-9)
    assert tango_z(0, 0, n, 0) == 0
    assert mcnemar_mid_p(0, 0) == 0.5
    assert probability_worse(0, 0) == pytest.approx(0.5)
    assert p_fail(0, 0, n, 0.02) > 0.5


def test_three_items_without_a_change_do_not_pass() -> None:
    assert p_pass(0, 0, 3, 0.02) > 0.05


def test_no_items_are_no_evidence() -> None:
    for value in (
        *tango_interval(0, 0, 0, Z95),
        tango_z(0, 0, 0, -0.05),
        p_pass(0, 0, 0, 0.05),
        p_fail(0, 0, 0, 0.05),
    ):
        assert np.isnan(value)
    assert np.isnan(tango_z(1, 2, 5, 1.5))


def test_an_undefined_entry_does_not_spoil_its_neighbours() -> None:
    gain, loss, n = np.array([3.0, 0.0, np.nan]), np.array([5.0, 0.0, 1.0]), np.array([50, 0, 9])
    lower, upper = tango_interval(gain, loss, n, Z95)
    alone = tango_interval(3, 5, 50, Z95)
    np.testing.assert_allclose((lower[0], upper[0]), alone, rtol=1e-12)
    assert np.isnan(lower[1:]).all()
    assert np.isnan(mcnemar_mid_p(gain, loss)[2])


def test_counts_of_a_trillion_match_the_normal_limit() -> None:
    gain, loss, n = 2e11, 2e11 + 1e6, 1e12
    lower, upper = tango_interval(gain, loss, n, Z95)
    half = Z95 * np.sqrt(gain + loss) / n
    np.testing.assert_allclose((lower, upper), [-1e-6 - half, -1e-6 + half], rtol=0, atol=1e-11)
    z = (gain - loss) / np.sqrt(gain + loss)
    np.testing.assert_allclose(mcnemar_mid_p(gain, loss), stats.norm.cdf(z), rtol=1e-8)


@given(st.integers(0, 300), st.integers(0, 300))
def test_mid_p_is_its_definition(gain: int, loss: int) -> None:
    binomial = stats.binom(gain + loss, 0.5)
    expected = binomial.cdf(gain - 1) + binomial.pmf(gain) / 2
    np.testing.assert_allclose(mcnemar_mid_p(gain, loss), expected, rtol=1e-9)


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_mid_p_of_better_and_worse_add_to_one(gain: int, loss: int) -> None:
    p = mcnemar_mid_p(gain, loss)
    assert 0 < p <= 1
    np.testing.assert_allclose(p + mcnemar_mid_p(loss, gain), 1, rtol=1e-8)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_probability_worse_and_better_add_to_one(gain: int, loss: int) -> None:
    worse = probability_worse(gain, loss)
    np.testing.assert_allclose(worse + probability_worse(loss, gain), 1, rtol=1e-9)
    assert (worse > 0.5) == (loss > gain) or abs(worse - 0.5) < 1e-9


@given(st.integers(1, 60), st.data())
def test_every_pairing_of_two_tables_lies_in_the_bracket(n: int, data: st.DataObject) -> None:
    old, new = data.draw(st.integers(0, n)), data.draw(st.integers(0, n))
    both = np.arange(max(0, old + new - n), min(old, new) + 1)
    gain, loss = new - both, old - both
    fewest, most = discordance_bounds(old, new, n)
    assert (fewest, most) == ((gain + loss).min(), (gain + loss).max())

    def mid_p(gains: FloatArray, losses: FloatArray, _trials: FloatArray) -> FloatArray:
        return mcnemar_mid_p(gains, losses)

    for p_value in (partial(p_pass, margin=0.05), partial(p_fail, margin=0.05), mid_p):
        lowest, highest = bracket(old, new, n, p_value)
        every = p_value(gain.astype(float), loss.astype(float), np.full(len(both), float(n)))
        np.testing.assert_allclose((lowest, highest), (every.min(), every.max()), rtol=1e-9)


def test_a_large_drop_fails_from_two_tables_alone() -> None:
    lowest, highest = bracket(900, 800, 1000, partial(p_fail, margin=0.02))
    assert lowest < highest < 0.001


def test_arguments_broadcast() -> None:
    lower, upper = tango_interval(np.arange(3)[:, None], 2, 20, normal_quantile([0.8, 0.9]))
    assert lower.shape == upper.shape == (3, 2)
    assert tango_z(1, 2, 20, np.linspace(-0.5, 0.5, 5)).shape == (5,)


@pytest.mark.parametrize(("gain", "loss", "n"), [(0.05, 0.08, 200), (0.02, 0.02, 60)])
def test_interval_covers_what_it_promises(gain: float, loss: float, n: int) -> None:
    draws = np.random.default_rng(3).multinomial(n, [gain, loss, 1 - gain - loss], size=4000)
    lower, upper = tango_interval(draws[:, 0], draws[:, 1], n, Z95)
    assert 0.935 <= ((lower <= gain - loss) & (gain - loss <= upper)).mean() <= 0.985


def test_a_drop_of_the_margin_rarely_passes_and_no_drop_rarely_fails() -> None:
    random = np.random.default_rng(4)
    at_margin = random.multinomial(500, [0.03, 0.08, 0.89], size=4000)
    assert (p_pass(at_margin[:, 0], at_margin[:, 1], 500, 0.05) < 0.05).mean() <= 0.065
    unchanged = random.multinomial(500, [0.03, 0.03, 0.94], size=4000)
    assert (p_fail(unchanged[:, 0], unchanged[:, 1], 500, 0.05) < 0.05).mean() <= 0.01


def test_a_missing_count_gives_no_statistic() -> None:
    assert np.isnan(tango_z(np.nan, 1.0, 10.0, -0.1))
    assert np.isnan(tango_z(1.0, np.nan, 10.0, -0.1))


@given(st.integers(0, 200), st.integers(0, 200))
def test_the_sign_test_is_the_binomial_tail(gains: int, losses: int) -> None:
    expected = stats.binom.sf(losses - 1, gains + losses, 0.5)
    assert sign_test_p(gains, losses) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("changed", range(1, 16))
def test_the_exact_test_is_more_cautious_than_tangos_except_far_out(changed: int) -> None:
    losses = np.arange(changed + 1.0)
    gains = changed - losses
    trials = np.full(losses.shape, 200.0)
    exact = sign_test_p(gains, losses)
    asymptotic = special.ndtr(tango_z(gains, losses, trials, np.zeros_like(losses)))
    assert (np.maximum(exact, 1e-3) >= np.minimum(asymptotic, 0.5) - 1e-12).all()


@pytest.mark.parametrize("row", [*OF_CLASS, CountRow.not_wrong, CountRow.answered])
def test_flips_are_the_items_that_enter_and_leave_a_count(row: CountRow) -> None:
    draw, k = np.random.default_rng(5), 4
    true, old, new = draw.integers(0, k, 300), *draw.integers(0, k + 1, (2, 300))

    def counted(predicted: Array, code: int) -> Array:
        members, hit, missed = true == code, predicted == code, predicted == k
        kinds = {
            CountRow.tp: members & hit,
            CountRow.fn: members & ~hit,
            CountRow.fp: ~members & hit,
        }
        kinds |= {CountRow.tn: ~members & ~hit, CountRow.predicted: hit}
        kinds |= {
            CountRow.not_wrong: members & (hit | missed),
            CountRow.answered: members & ~missed,
        }
        return np.asarray(kinds[row])

    sides = [np.array([counted(predicted, i) for i in range(k)]) for predicted in (old, new)]
    expected = [np.count_nonzero(flags & ~other, axis=-1) for flags, other in (sides[::-1], sides)]
    joint = JointCounts.count(Items(true, old), Items(true, new), k)
    np.testing.assert_array_equal(joint.flips(row, per_class=True), expected)
    np.testing.assert_array_equal(joint.flips(row, per_class=False), np.sum(expected, axis=-1))
