"""Multiplicity: what adjusted p-values and spent levels must hold."""

import json
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rprime.core.gates.multiplicity import holm, spent_alpha

REFERENCE = json.loads(
    (Path(__file__).parents[1] / "reference/statistics_visible.json").read_text(encoding="utf-8")
)

families = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def test_reference_holm_values_are_reproduced() -> None:
    family = REFERENCE["multiplicity"]
    np.testing.assert_allclose(holm(family["p"]), family["holm"], rtol=1e-12)
    joint = REFERENCE["paired"]["joint3_n1000_drop2pt"]
    p_fail = [of_class["p_fail"] for of_class in joint["per_class"]]
    np.testing.assert_allclose(holm(p_fail), joint["holm_p_fail"], rtol=1e-12)


@given(families)
def test_adjusted_is_between_the_p_value_and_bonferroni(p: list[float]) -> None:
    adjusted = holm(p)
    assert (adjusted >= p).all()
    assert (adjusted <= np.minimum(len(p) * np.array(p), 1)).all()


@given(families)
def test_order_of_the_results_does_not_matter(p: list[float]) -> None:
    np.testing.assert_array_equal(holm(p[::-1]), holm(p)[::-1])
    np.testing.assert_array_equal(holm(sorted(p)), np.sort(holm(p)))


@given(families)
def test_adjusting_keeps_the_order_of_the_p_values(p: list[float]) -> None:
    assert (np.diff(holm(p)[np.argsort(p)]) >= 0).all()


def test_results_without_a_test_are_no_part_of_the_family() -> None:
    adjusted = holm([0.02, np.nan, 0.01, np.nan])
    np.testing.assert_allclose(adjusted, [0.02, np.nan, 0.02, np.nan])
    assert np.isnan(holm([np.nan, np.nan])).all()


def test_each_row_of_a_stack_is_a_family() -> None:
    rows = np.array([[0.01, 0.04, 0.03], [np.nan, 0.04, 0.03]])
    np.testing.assert_allclose(holm(rows), [[0.03, 0.06, 0.06], [np.nan, 0.06, 0.06]])
    assert holm(np.empty((4, 0))).shape == (4, 0)
    assert holm([]).shape == (0,)
    assert holm(0.3) == 0.3


def test_family_wise_errors_stay_below_the_level() -> None:
    p = np.random.default_rng(7).uniform(size=(4000, 12))
    assert (holm(p) < 0.05).any(axis=-1).mean() < 0.06


def test_reference_levels_are_reproduced() -> None:
    expected = REFERENCE["power"]["alpha_spending"]["first5"]
    np.testing.assert_allclose(spent_alpha(0.05, np.arange(1, 6)), expected, rtol=1e-12)


def test_all_looks_together_spend_the_level() -> None:
    spent = spent_alpha(0.05, np.arange(1, 100_001)).sum()
    assert 0.0499 < spent < 0.05


def test_there_is_no_level_before_the_first_look() -> None:
    np.testing.assert_array_equal(np.isnan(spent_alpha(0.05, [-1, 0, 1])), [True, True, False])
