"""Difference: limits and p-values agree with one another, and nothing is shown by nothing."""

from functools import partial

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rprime.core.comparison.compare import compare
from rprime.core.comparison.difference import INFLUENCE, METHODS, REASONS, TANGO, Difference
from rprime.core.comparison.difference_intervals import tango_interval
from rprime.core.options import Options
from rprime.core.table import ConfusionTable
from tests.core.comparison_sides import (
    JOINT,
    PAIRED,
    bracket,
    p_fail,
    p_pass,
    side_of,
    sides_of,
    table_side,
)
from tests.core.index_values import CORE

KEYS = ("accuracy", "recall", "precision", "kappa", "macro_recall")


def difference(**given_values: float) -> Difference:
    """Make one element; what is not given is unknown."""
    element = Difference.unknown(1)
    for name, value in ({"reach": 1.0} | given_values).items():
        getattr(element, name)[...] = value
    return element


def unpaired(baseline: float, candidate: float, trials: float) -> Difference:
    """Two tables of one test set with these numbers of correct items in the first class."""
    candidate_side, baseline_side = (
        table_side(ConfusionTable.dense(np.array([[hits, trials - hits], [0, 1]])), "t")
        for hits in (candidate, baseline)
    )
    comparison = compare(candidate_side, baseline_side, Options(indices=("recall",)), attributed=())
    return comparison.of_classes("recall", ("0",))


def tango(gains: float, losses: float, trials: float) -> Difference:
    return difference(
        candidate=0.5,
        baseline=0.5 - (gains - losses) / trials,
        value=(gains - losses) / trials,
        gains=gains,
        losses=losses,
        trials=trials,
        methods=TANGO,
    )


@pytest.mark.parametrize("name", [name for name, case in PAIRED.items() if "tango_ci95" in case])
def test_tango_limits_and_p_values_are_those_of_the_reference(name: str) -> None:
    case = PAIRED[name]
    change = tango(case["gain"], case["loss"], case["n"])
    for level, interval in ((0.025, case["tango_ci95"]), (0.05, case["tango_ci90"])):
        np.testing.assert_allclose(np.ravel(change.limits(level)), interval, atol=1e-9)
    for margin, expected in case["ni"].items():
        delta = float(margin)
        assert change.p(-delta)[1][0] == pytest.approx(expected["p_pass"], rel=1e-9)
        assert change.p(-delta)[0][0] == pytest.approx(expected["p_fail"], rel=1e-9)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(1, 300), st.floats(-0.9, 0.9))
def test_a_limit_passes_a_threshold_at_the_level_of_the_p_value(
    gains: int, losses: int, more: int, threshold: float
) -> None:
    for change in (
        tango(gains, losses, gains + losses + more),
        difference(value=0.1, influence_error=0.2, methods=INFLUENCE),
        unpaired(50 - gains, 50 - losses, 100),
    ):
        below, above = change.p(threshold)
        for p, end, sign in ((above, 0, 1), (below, 1, -1)):
            level = float(p[0])
            if 1e-6 < level < 0.49:
                np.testing.assert_allclose(change.limits(level)[end], threshold, atol=1e-6)
                assert sign * (change.limits(level * 1.1)[end][0] - threshold) > 0


@pytest.mark.parametrize("lost", [1, 2])
def test_a_macro_f1_that_few_items_move_has_limits_at_the_levels_of_its_p_values(lost: int) -> None:
    true = np.repeat(np.arange(3), (60, 30, 10))
    old = np.where(np.arange(100) % 10 == 0, (true + 1) % 3, true)
    new = np.where((np.arange(100) >= 99 - lost) & (np.arange(100) < 99), 0, old)
    # The other way round, the same items gain.
    for sign, sides in ((1, (new, old)), (-1, (old, new))):
        candidate, baseline = (side_of(true, codes, 3) for codes in sides)
        difference = compare(candidate, baseline, Options(indices=("macro_f1",))).overall
        assert sign * difference.skewness[0] < 0
        below, above = (abs(limit - difference.value)[0] for limit in difference.limits(0.05))
        assert sign * (below - above) > 0
        for threshold in np.linspace(-0.6, 0.6, 13) + difference.value:
            for level in (1e-6, 0.05, 0.4):
                lower, upper = difference.limits(level)
                fails, passes = difference.p(threshold)
                assert (upper[0] < threshold) == (fails[0] < level)
                assert (lower[0] > threshold) == (passes[0] < level)


def test_without_items_nothing_is_shown() -> None:
    for change in (
        difference(methods=TANGO, gains=0.0, losses=0.0, trials=0.0),
        difference(value=0.0),
        difference(candidate=0.4),
    ):
        assert np.isnan(change.p(-0.05)[0]).all()
        assert np.isnan(change.p(-0.05)[1]).all()
        assert np.isnan(change.limits(0.05)).all()


def test_a_value_that_the_candidate_alone_lost_is_undefined() -> None:
    assert difference(baseline=0.4).undefined.all()
    assert not difference(candidate=0.4).undefined.any()
    assert not difference().undefined.any()
    lost = difference(candidate=0.4, baseline=0.3, reasons=REASONS.index("excluded_classes_differ"))
    assert lost.undefined.all()


def test_the_bracket_holds_whatever_pairing_lies_behind_two_tables() -> None:
    a, b, n = 90.0, 84.0, 100.0
    change = unpaired(a, b, n)
    low, high = bracket(a, b, n, partial(p_fail, margin=0.05))
    low_above, high_above = bracket(a, b, n, partial(p_pass, margin=0.05))
    for gains in range(int(n - a) + 1):
        pair = gains, gains + a - b, n
        assert low - 1e-12 <= p_fail(*pair, 0.05) <= high + 1e-12
        assert low_above - 1e-12 <= p_pass(*pair, 0.05) <= high_above + 1e-12
    assert low <= change.p(-0.05)[0][0] <= high


def test_all_correct_on_both_sides_of_one_test_set_is_evidence() -> None:
    change = unpaired(80.0, 80.0, 80.0)
    lower, upper = change.limits(0.05)
    expected = tango_interval(0, 0, 80, 1.6448536269514722)
    np.testing.assert_allclose((lower[0], upper[0]), expected, rtol=1e-9)
    assert change.p(-0.05)[1][0] == pytest.approx(float(p_pass(0, 0, 80, 0.05)))


def test_selecting_takes_from_every_array() -> None:
    comparison = compare(*sides_of(JOINT["joint_truth_old_new"]), Options(indices=KEYS))
    recall = comparison.of_classes("recall")
    assert recall.shape == (3,)
    assert comparison.of_classes("recall", ("2", "0")).gains.tolist() == [10.0, 6.0]
    assert comparison.of_overall("kappa").shape == ()
    assert [METHODS[code] for code in comparison.overall.methods] == [
        "tango",
        "influence",
        "influence",
    ]
    assert not comparison.overall.reasons.any()
    with pytest.raises(KeyError):
        comparison.of_overall("mcc")


@settings(max_examples=40)
@example([0] * 25 + [5, 25])
@example([0] * 25 + [1, 1])
@given(st.lists(st.integers(0, 25), min_size=27, max_size=27))
def test_swapping_the_sides_mirrors_everything(cells: list[int]) -> None:
    joint = np.array(cells).reshape(3, 3, 3)
    candidate, baseline = sides_of(joint)
    there = compare(candidate, baseline, CORE, attributed=())
    back = compare(baseline, candidate, CORE, attributed=())
    for change, other in ((there.overall, back.overall), (there.per_class, back.per_class)):
        np.testing.assert_allclose(change.value, -other.value, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(change.methods, other.methods)
        lower, upper = change.limits(0.05)
        mirrored = other.limits(0.05)
        np.testing.assert_allclose(lower, -mirrored[1], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(upper, -mirrored[0], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(change.p(-0.03)[0], other.p(0.03)[1], rtol=1e-6, atol=1e-9)


@settings(max_examples=40)
@given(st.lists(st.integers(0, 25), min_size=9, max_size=9))
def test_identical_sides_are_never_different(cells: list[int]) -> None:
    counts = np.array(cells).reshape(3, 3)
    joint = np.zeros((3, 3, 3), dtype=int)
    for j in range(3):
        joint[:, j, j] = counts[:, j]
    candidate, baseline = sides_of(joint)
    new, old = (table_side(side.table, "t") for side in (candidate, baseline))
    for predictions, other in ((candidate, baseline), (new, old)):
        comparison = compare(predictions, other, CORE, attributed=())
        for change in (comparison.overall, comparison.per_class):
            assert (np.isnan(change.value) | (change.value == 0)).all()
            for p in (change.p(0.0)[0], change.p(0.0)[1]):
                assert (np.isnan(p) | (p >= 0.49)).all()
        assert comparison.flips is None or comparison.flips.mid_p == 0.5


def test_swapping_the_sides_of_two_tables_mirrors_their_limits() -> None:
    """The second comparison finds the values of both in the stack of the first."""
    candidate, baseline = (
        table_side(ConfusionTable.dense(np.array([[40, 3, 2], [5, 60, 1], [2, 2, 20]]))),
        table_side(ConfusionTable.dense(np.array([[30, 9, 6], [15, 48, 3], [4, 6, 14]]))),
    )
    there = compare(candidate, baseline, CORE, attributed=())
    back = compare(baseline, candidate, CORE, attributed=())
    for change, other in ((there.overall, back.overall), (there.per_class, back.per_class)):
        lower, upper = change.limits(0.05)
        mirrored = other.limits(0.05)
        np.testing.assert_allclose(lower, -mirrored[1], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(upper, -mirrored[0], rtol=1e-6, atol=1e-9)
