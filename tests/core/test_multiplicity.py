"""Multiplicity: what adjusted p-values must hold."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special

from rprime.core.multiplicity import Block, holm, step_down

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


# Step-down max-T


def equal(size: int, rho: float) -> Block:
    correlation = np.full((size, size), rho)
    np.fill_diagonal(correlation, 1.0)
    return Block(np.arange(size), correlation)


def union(size: int, rho: float, p: float) -> float:
    """Probability that one of equally correlated statistics is beyond, by quadrature."""
    z = -special.ndtri(p)

    def kept(t: float) -> float:
        inner = special.ndtr((z - np.sqrt(rho) * t) / np.sqrt(1 - rho)) ** size
        return float(inner * np.exp(-t * t / 2) / np.sqrt(2 * np.pi))

    return 1 - integrate.quad(kept, -9, 9, epsabs=1e-12)[0]


@pytest.mark.parametrize("size", [2, 10, 60])
@pytest.mark.parametrize("rho", [0.0, 0.3, 0.9, 0.99])
@pytest.mark.parametrize("p", [0.05, 0.01, 0.001])
def test_the_tail_of_a_block_is_that_of_the_joint_normal_law(
    size: int, rho: float, p: float
) -> None:
    tail = equal(size, rho).tail(np.ones(size, dtype=bool), p)
    assert tail == pytest.approx(union(size, rho, p), rel=0.06)


def test_tails_between_known_ones_are_those_of_the_draws() -> None:
    block, every = equal(40, 0.4), np.ones(40, dtype=bool)
    p = np.geomspace(0.0002, 0.05, 400)
    order = np.random.default_rng(3).permutation(p.size)
    tails = np.zeros(p.size)
    for i in order:
        tails[i] = block.tail(every, float(p[i]))
    fresh = np.array([equal(40, 0.4).tail(every, float(p_value)) for p_value in p])
    assert np.count_nonzero(tails != fresh) > 300
    np.testing.assert_allclose(tails, fresh, rtol=0.04)


def test_one_result_keeps_its_exact_p_value() -> None:
    assert equal(3, 0.5).tail(np.array([False, True, False]), 0.0314) == 0.0314
    np.testing.assert_array_equal(step_down([0.0314], 0.05, lambda: [equal(1, 0.0)]), [0.0314])


def test_statistics_that_determine_each_other_have_a_tail() -> None:
    signs = np.where(np.arange(100) % 2, 1.0, -1.0)
    opposite = Block(np.arange(100), np.outer(signs, signs))
    assert opposite.tail(np.ones(100, dtype=bool), 0.01) == pytest.approx(0.02, rel=0.03)
    angles = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    circle = Block(np.arange(100), np.cos(angles[:, None] - angles))
    # Some direction of a normal vector in the plane is beyond z if the vector is that long.
    long = np.exp(-(special.ndtri(0.01) ** 2) / 2)
    assert circle.tail(np.ones(100, dtype=bool), 0.01) == pytest.approx(long, rel=0.03)


def test_equal_tests_are_one_test() -> None:
    adjusted = step_down([0.03, 0.03, 0.03], 0.05, lambda: [equal(3, 1.0)])
    np.testing.assert_allclose(adjusted, 0.03, rtol=1e-9)


@given(families, st.floats(0, 0.99))
def test_max_t_lies_between_the_p_value_and_holm(p: list[float], rho: float) -> None:
    adjusted = step_down(p, 0.05, lambda: [equal(len(p), rho)])
    assert (adjusted >= np.array(p) - 1e-15).all()
    assert (adjusted <= holm(p) + 1e-15).all()
    assert (np.diff(adjusted[np.argsort(p)]) >= -1e-15).all()


def test_independent_tests_gain_little() -> None:
    p = [0.004, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 0.99, 0.995, 0.999, 0.9999]
    adjusted = step_down(p, 0.05, lambda: [equal(len(p), 0.0)])
    assert adjusted[0] == pytest.approx(1 - (1 - 0.004) ** len(p), rel=0.01)


def test_results_without_a_known_law_are_added() -> None:
    p = [0.02, 0.5, 0.6, 0.7]
    adjusted = step_down(p, 0.05, lambda: [equal(3, 0.9999)])
    assert adjusted[0] == pytest.approx(0.02 + union(3, 0.9999, 0.02), rel=0.02)
    np.testing.assert_array_equal(adjusted[1:], holm(p)[1:])
    two = [equal(2, 1.0), Block(np.array([2, 3]), np.ones((2, 2)))]
    assert step_down(p, 0.05, lambda: two)[0] == pytest.approx(0.04)


def test_max_t_is_computed_only_where_it_can_decide() -> None:
    block = equal(3, 0.9)
    for p in ([0.2, 0.3, 0.4], [0.001, 0.2, 0.3], [0.05, 0.05, 0.05], [np.nan] * 3):
        np.testing.assert_array_equal(step_down(p, 0.05, lambda: [block]), holm(p))
    assert "root" not in vars(block)


def test_a_large_family_has_the_values_of_holm() -> None:
    p = np.linspace(0.001, 1, 201)
    np.testing.assert_array_equal(step_down(p, 0.05, lambda: [equal(201, 1.0)]), holm(p))


def test_stacks_are_stepped_row_by_row() -> None:
    p = np.array([[[0.02, 0.03, 0.04]], [[0.2, np.nan, 0.3]]])
    stacked = step_down(p, 0.05, lambda: [equal(3, 0.8)])
    np.testing.assert_array_equal(stacked[0, 0], step_down(p[0, 0], 0.05, lambda: [equal(3, 0.8)]))
    np.testing.assert_array_equal(stacked[1, 0], holm(p[1, 0]))


def test_family_wise_errors_of_max_t_are_close_to_the_level() -> None:
    block = equal(12, 0.7)
    root = np.linalg.cholesky(block.correlation)
    z = np.random.default_rng(7).standard_normal((3000, 12)) @ root.T
    rejects = (step_down(special.ndtr(-z), 0.05, lambda: [block]) < 0.05).any(-1).mean()
    assert 0.04 < rejects < 0.06
    assert (holm(special.ndtr(-z)) < 0.05).any(-1).mean() < 0.03


def test_a_p_value_of_zero_is_adjusted() -> None:
    adjusted = step_down([0.0, 0.03, 0.03], 0.05, lambda: [equal(3, 0.5)])
    assert adjusted[0] < 1e-300
