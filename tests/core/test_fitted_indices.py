"""Indices of fitted models: their values, and how long a table can take."""

import time

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from rprime.core.arrays import Array
from rprime.core.families.agreement import chance_shares
from rprime.core.families.rater_agreement import _aickin as fitted_alpha
from tests.core.index_values import dense, overall, values_of


def alpha_of(matrix: ArrayLike) -> float:
    return float(overall(values_of(dense(matrix), indices=("aickin_alpha",)))["aickin_alpha"])


def most_likely_alpha(matrix: list[list[int]]) -> float:
    """Fit Aickin's model by maximum likelihood: items that agree for a cause, and the others."""
    cells = np.asarray(matrix, dtype=float)
    k = len(cells)

    def shares(logits: Array) -> Array:
        rates = np.exp(np.append(logits, 0))
        return np.asarray(rates / rates.sum())

    def loss(x: Array) -> float:
        alpha, p, q = 1 / (1 + np.exp(-x[0])), shares(x[1:k]), shares(x[k:])
        agreed = np.diag(p * q / (p * q).sum())
        modelled = (1 - alpha) * np.outer(p, q) + alpha * agreed
        return -float((cells * np.log(modelled)).sum() / cells.sum())

    starts = np.random.default_rng(1).normal(0, 1, (10, 2 * k - 1))
    fits = [minimize(loss, start, options={"gtol": 1e-10, "maxiter": 5000}) for start in starts]
    return float(1 / (1 + np.exp(-min(fits, key=lambda fit: float(fit.fun)).x[0])))


@pytest.mark.parametrize(
    "matrix",
    [
        [[988, 3, 12], [2, 1048, 1], [1, 2, 1020]],
        [[1001, 1, 2], [0, 1040, 2], [0, 3, 983]],
        [[20, 3, 2], [2, 30, 1], [1, 2, 9]],
    ],
)
def test_aickins_alpha_is_that_of_maximum_likelihood(matrix: list[list[int]]) -> None:
    assert alpha_of(matrix) == pytest.approx(most_likely_alpha(matrix), abs=1e-7)


@pytest.mark.parametrize(
    "matrix",
    [
        [[40, 0, 0], [0, 20, 0], [5, 0, 0]],  # chance falls to 0
        [[62, 0], [1, 65]],
        [[3, 4], [1, 0]],  # agreement below chance: p would be negative
        [[0, 3], [3, 0]],  # any p = q gives this table, with alphas from -1 to 0
    ],
)
def test_aickins_alpha_is_undefined_where_the_model_has_no_solution(
    matrix: list[list[int]],
) -> None:
    assert np.isnan(alpha_of(matrix))


def test_chance_shares_fit_the_errors_where_an_iteration_takes_thousands_of_rounds() -> None:
    errors = np.array([[0, 1e5, 1], [1e5, 0, 1], [1, 0, 0]])
    rows, columns = errors.sum(axis=1), errors.sum(axis=0)
    shares = chance_shares(rows, columns)
    rates = rows / (1 - shares)
    assert (rates.sum() - rates) * shares == pytest.approx(columns, rel=1e-9)


@pytest.mark.parametrize(
    "matrix",
    [
        [[0, 5, 3], [5, 0, 1], [9, 4, 0]],
        [[0, 790, 317], [966, 0, 500], [249, 734, 0]],
        # The first class takes the larger root of its equation.
        [[0, 10, 9], [2, 0, 2], [3, 0, 0]],
        [[0, 3, 0], [0, 0, 997], [997, 0, 0]],
        [[7, 0, 0, 0], [0, 0, 0, 0], [0, 23, 0, 0], [0, 0, 47, 0]],
    ],
)
def test_a_negative_alpha_of_aickin_solves_its_equations(matrix: list[list[int]]) -> None:
    table = dense(matrix)
    with np.errstate(all="ignore"):
        alpha, p, q = fitted_alpha(table)
    cells = np.array(matrix, dtype=float)
    true, predicted = cells.sum(1) / cells.sum(), cells.sum(0) / cells.sum()
    chance = float(p @ q)
    assert alpha < 0
    assert p.sum() == pytest.approx(1, abs=1e-9)
    assert (np.trace(cells) / cells.sum() - chance) / (1 - chance) == pytest.approx(alpha, rel=1e-9)
    assert p * (1 - alpha + alpha * q / chance) == pytest.approx(true, abs=1e-9)
    assert q * (1 - alpha + alpha * p / chance) == pytest.approx(predicted, abs=1e-9)


def test_chance_shares_fit_where_one_class_attracts_nearly_all_errors() -> None:
    errors = np.array([[0, 3, 900], [1, 0, 800], [4, 2, 0]])
    rows, columns = errors.sum(axis=1), errors.sum(axis=0)
    shares = chance_shares(rows, columns)
    rates = rows / (1 - shares)
    assert shares.sum() == pytest.approx(1, abs=1e-12)
    assert (rates.sum() - rates) * shares == pytest.approx(columns, rel=1e-9)


def test_a_table_without_a_solution_takes_little_time() -> None:
    started = time.process_time()
    for _ in range(10):
        alpha_of([[40, 0, 0], [0, 20, 0], [5, 0, 0]])
    # .02 s each on one core; 10 000 rounds of the plain iteration took .6 s.
    assert time.process_time() - started < 1.5


@pytest.mark.parametrize("factor", [1e-3, 0.1, 1 / 3, 7.0, 1e6])
@pytest.mark.parametrize(
    "matrix",
    [[[0, 0.3, 0], [0, 0, 50_000], [47 / 3, 0, 0]], [[0, 0, 10], [0.1, 0, 0], [0, 4985, 0]]],
)
def test_neither_unit_nor_mirror_moves_aickins_alpha_where_two_roots_are_near(
    matrix: list[list[float]], factor: float
) -> None:
    alpha = alpha_of(matrix)
    for same in (np.multiply(matrix, factor), np.transpose(matrix)):
        assert alpha_of(same) == pytest.approx(alpha, rel=1e-10)
