"""Shift: what the tests of symmetry and of marginal homogeneity must hold."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import special

from rprime.core.comparison.flips import bowker, connected, stuart_maxwell

REFERENCE = json.loads(
    (Path(__file__).parents[1] / "reference/statistics_visible.json").read_text(encoding="utf-8")
)
MATRICES: dict[str, dict[str, Any]] = REFERENCE["matrices"]

tables = st.integers(2, 6).flatmap(lambda k: arrays(np.int64, (k, k), elements=st.integers(0, 40)))


def pairs_that_occur(table: list[list[int]]) -> int:
    """Count them in plain Python."""
    k = len(table)
    return sum(table[i][j] + table[j][i] > 0 for i in range(k) for j in range(i))


def test_some_reference_tables_have_pairs_that_do_not_occur() -> None:
    full = [m["k"] * (m["k"] - 1) // 2 == pairs_that_occur(m["matrix"]) for m in MATRICES.values()]
    assert any(full)
    assert not all(full)


@pytest.mark.parametrize("name", MATRICES)
def test_reference_symmetry_is_reproduced(name: str) -> None:
    """The reference counts every pair as a degree of freedom, the service those that occur."""
    expected = MATRICES[name]["bowker_symmetry"]
    test = bowker(MATRICES[name]["matrix"])
    np.testing.assert_allclose(test.statistic, expected["stat"], rtol=1e-9)
    assert test.df == pairs_that_occur(MATRICES[name]["matrix"])
    assert special.chdtrc(expected["df"], test.statistic) == pytest.approx(expected["p"], abs=1e-9)
    if test.df == expected["df"]:
        np.testing.assert_allclose(test.p_value, expected["p"], rtol=1e-9)


@pytest.mark.parametrize("name", MATRICES)
def test_reference_homogeneity_is_reproduced(name: str) -> None:
    expected = MATRICES[name]["stuart_maxwell"]
    test = stuart_maxwell(MATRICES[name]["matrix"])
    if expected["stat"] is None:
        assert np.isnan(test.statistic)
        assert np.isnan(test.p_value)
        assert test.df == 0
    else:
        np.testing.assert_allclose(test.statistic, expected["stat"], rtol=1e-9)
        assert test.df == expected["df"]
        np.testing.assert_allclose(test.p_value, expected["p"], rtol=0, atol=1e-9)


def test_nothing_moved_is_no_test() -> None:
    unmoved = np.diag([50, 20, 5, 0])
    for test in (bowker(unmoved), stuart_maxwell(unmoved), bowker([[7]]), stuart_maxwell([[7]])):
        assert test.df == 0
        assert np.isnan(test.p_value)


@given(st.integers(0, 500), st.integers(0, 500))
def test_two_classes_are_the_test_of_mcnemar(there: int, back: int) -> None:
    table = [[30, there], [back, 10]]
    for test in (bowker(table), stuart_maxwell(table)):
        if there + back == 0:
            assert np.isnan(test.p_value)
        else:
            expected = (there - back) ** 2 / (there + back)
            np.testing.assert_allclose(test.statistic, expected, rtol=1e-12, atol=1e-12)
            assert test.df == 1


@given(tables)
def test_exchanging_old_and_new_changes_nothing(table: np.ndarray[Any, Any]) -> None:
    for test in (bowker, stuart_maxwell):
        result, other = test(table), test(table.T)
        assert result.df == other.df
        np.testing.assert_allclose(result.statistic, other.statistic, rtol=1e-9, atol=1e-9)


@given(tables)
def test_unmoved_items_and_unused_classes_change_nothing(table: np.ndarray[Any, Any]) -> None:
    more = np.pad(table, (0, 2))
    more[np.diag_indices_from(more)] += 17
    for test in (bowker, stuart_maxwell):
        result, other = test(table), test(more)
        assert result.df == other.df
        np.testing.assert_allclose(result.statistic, other.statistic, rtol=1e-9, atol=1e-9)


@given(tables)
def test_statistic_is_that_of_the_pseudo_inverse(table: np.ndarray[Any, Any]) -> None:
    moves = (table + table.T) * (1 - np.eye(len(table)))
    covariance = np.diag(moves.sum(0)) - moves
    difference = table.sum(1) - table.sum(0)
    expected = difference @ np.linalg.pinv(covariance, hermitian=True) @ difference
    test = stuart_maxwell(table)
    assert test.df == np.linalg.matrix_rank(covariance, hermitian=True)
    if test.df > 0:
        np.testing.assert_allclose(test.statistic, expected, rtol=1e-7, atol=1e-9)


def test_separate_parts_add_up() -> None:
    first, second = np.array([[9, 5], [1, 9]]), np.array([[4, 2], [8, 4]])
    nothing = np.zeros((2, 2))
    whole = stuart_maxwell(np.block([[first, nothing], [nothing, second]]))
    parts = [stuart_maxwell(first), stuart_maxwell(second)]
    assert whole.df == 2
    np.testing.assert_allclose(whole.statistic, sum(part.statistic for part in parts))


@given(st.integers(0, 30), st.integers(0, 3), st.floats(0, 0.2), st.integers(0, 2**32))
def test_classes_are_connected_if_moves_lead_from_one_to_the_other(
    k: int, graphs: int, density: float, seed: int
) -> None:
    moves = np.random.default_rng(seed).random((graphs, k, k)) < density
    moves |= moves.mT
    steps = moves | np.eye(k, dtype=bool)
    reach = np.linalg.matrix_power(steps.astype(np.float64), k) > 0
    np.testing.assert_array_equal(connected(moves), reach)
    chain = np.eye(k, k=1, dtype=bool) | np.eye(k, k=-1, dtype=bool)
    assert connected(chain).all()


def test_a_stack_is_tested_table_by_table() -> None:
    stack = np.random.default_rng(5).integers(0, 9, (3, 2, 4, 4))
    stack[1, 1] = np.diag([3, 4, 5, 6])
    for test in (bowker, stuart_maxwell):
        of_stack = test(stack)
        for place in np.ndindex(3, 2):
            single = test(stack[place])
            np.testing.assert_allclose(of_stack.statistic[place], single.statistic)
            np.testing.assert_allclose(of_stack.p_value[place], single.p_value)
            assert of_stack.df[place] == single.df


def test_counts_of_a_trillion_do_not_overflow() -> None:
    table = np.array([[10**12, 10**6], [10**6 + 3000, 10**12]])
    for test in (bowker(table), stuart_maxwell(table)):
        np.testing.assert_allclose(test.statistic, 3000**2 / (2 * 10**6 + 3000), rtol=1e-9)


def test_an_unshifted_classifier_is_rarely_called_shifted() -> None:
    random = np.random.default_rng(11)
    moves = np.array([[0.5, 0.04, 0.02], [0.04, 0.2, 0.03], [0.02, 0.03, 0.12]])
    stack = random.multinomial(600, moves.ravel(), size=4000).reshape(-1, 3, 3)
    for test in (bowker(stack), stuart_maxwell(stack)):
        assert 0.035 < (test.p_value < 0.05).mean() < 0.065
