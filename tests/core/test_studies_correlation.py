"""Agreement between indices, against scipy.stats and the R' paper."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from rprime.core.catalog import find
from rprime.core.studies import agreements, box, direction, disagreements

MODELS = json.loads((Path(__file__).parents[1] / "reference/beyond_ap_tables.json").read_text())[
    "ten_models"
]
PRINTED = MODELS["agreement_with_r_prime"]


@pytest.mark.parametrize("name", PRINTED["correlation"])
def test_table_6_of_the_r_prime_paper_is_reproduced(name: str) -> None:
    (agreement,) = agreements({key: MODELS[key] for key in ("r_prime", name)})
    assert agreement.n == 10
    printed = PRINTED["correlation"][name], PRINTED["rmse"][name]
    assert (agreement.pearson, agreement.rmse) == pytest.approx(printed, abs=0.5e-4)


def named(rows: Any) -> dict[str, Any]:
    """Name the values of each index by its position."""
    return {str(position): row for position, row in enumerate(rows)}


def values(models: int) -> st.SearchStrategy[Any]:
    """Draw values with ties and gaps."""
    number = st.sampled_from([np.nan, -1.0, 0.0, 0.1, 0.2, 0.3, 5.0]) | st.floats(-1, 1)
    return arrays(np.float64, (3, models), elements=number)


@given(st.integers(2, 12).flatmap(values))
def test_coefficients_are_those_of_scipy(drawn: Any) -> None:
    for agreement in agreements(named(drawn)):
        pair = drawn[[int(agreement.a), int(agreement.b)]]
        left, right = pair[:, np.isfinite(pair).all(axis=0)]
        assert agreement.n == left.size
        if np.unique(left).size < 2 or np.unique(right).size < 2:
            assert {agreement.pearson, agreement.spearman, agreement.kendall} == {None}
            continue
        if min(np.ptp(left), np.ptp(right)) > 1e-6:  # closer together scipy warns
            expected = stats.pearsonr(left, right).statistic
            assert agreement.pearson == pytest.approx(expected, abs=1e-9)
        expected = stats.spearmanr(left, right).statistic
        assert agreement.spearman == pytest.approx(expected, abs=1e-12)
        assert agreement.kendall == pytest.approx(
            stats.kendalltau(left, right).statistic, abs=1e-12
        )
        assert agreement.rmse == pytest.approx(np.sqrt(np.mean((left - right) ** 2)), abs=1e-12)


def test_many_models_are_compared_block_by_block() -> None:
    drawn = np.random.default_rng(0).normal(size=(6, 1200)).round(1)
    agreement = agreements(named(drawn))[0]
    assert agreement.kendall == pytest.approx(stats.kendalltau(*drawn[:2]).statistic, abs=1e-12)
    assert agreement.spearman == pytest.approx(stats.spearmanr(*drawn[:2]).statistic, abs=1e-12)


def test_nothing_correlates_with_a_constant() -> None:
    # The mean of ten times .1 is not .1 in binary.
    (agreement,) = agreements({"constant": np.full(10, 0.1), "rising": np.arange(10.0)})
    assert {agreement.pearson, agreement.spearman, agreement.kendall} == {None}
    assert agreement.rmse == pytest.approx(np.sqrt(np.mean((np.arange(10.0) - 0.1) ** 2)))


def test_pairs_of_models_that_two_indices_order_differently_are_named() -> None:
    drawn = np.array([[0.1, 0.2, 0.3, np.nan], [0.1, 0.3, 0.2, 0.9]])
    (disagreement,) = disagreements(named(drawn), [1, 1], 10)
    assert (disagreement.a, disagreement.b, disagreement.count, disagreement.compared) == (
        "0",
        "1",
        1,
        3,
    )
    assert disagreement.models == [(2, 1)]


def test_a_tie_is_no_disagreement() -> None:
    drawn = np.array([[0.1, 0.1, 0.3], [0.2, 0.1, 0.3]])
    assert not list(disagreements(named(drawn), [1, 1], 10))


def test_an_error_rate_agrees_with_the_accuracy_that_it_complements() -> None:
    accuracy = np.array([0.1, 0.4, 0.3])
    directions = [direction(find("overall", key)) for key in ("accuracy", "error_rate")]
    assert directions == [1, -1]
    assert not list(
        disagreements({"accuracy": accuracy, "error_rate": 1 - accuracy}, directions, 10)
    )
    assert direction(None) == 1


@given(arrays(np.float64, (2, 7), elements=st.integers(0, 4)))
def test_disagreements_count_what_kendall_counts(drawn: Any) -> None:
    discordant = sum(
        (drawn[0, i] - drawn[0, j]) * (drawn[1, i] - drawn[1, j]) < 0
        for i in range(7)
        for j in range(i)
    )
    pairs = list(disagreements(named(drawn), [1, 1], 3))
    assert sum(pair.count for pair in pairs) == discordant
    assert all(len(pair.models) == min(3, pair.count) for pair in pairs)
    for disagreement in pairs:
        for better, worse in disagreement.models:
            assert drawn[0, better] > drawn[0, worse]
            assert drawn[1, better] < drawn[1, worse]


def test_a_box_has_the_quartiles_of_what_exists() -> None:
    quartiles = box(np.array([3.0, np.nan, 1.0, 2.0, 10.0]))
    assert quartiles is not None
    assert (quartiles.n, quartiles.minimum, quartiles.maximum) == (4, 1, 10)
    assert [quartiles.lower, quartiles.median, quartiles.upper] == [1.75, 2.5, 4.75]
    assert box(np.array([np.nan])) is None
