"""The five facts about R' that the documentation states."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.core.index_values import dense, overall, per_class, values_of

Table = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
cells = st.integers(0, 40)
square = st.integers(2, 5).flatmap(lambda k: arrays(np.float64, (k, k), elements=cells))


@given(square)
def test_fact_1_overall_r_prime_is_accuracy_and_its_macro_mean_is_macro_recall(
    counts: Table,
) -> None:
    assume(counts.sum() > 0)
    indices = overall(values_of(dense(counts)))
    assert indices["r_prime"] == indices["accuracy"]
    if (counts.sum(1) > 0).all():
        assert indices["macro_r_prime"] == pytest.approx(indices["macro_recall"], abs=1e-12)


@given(square, st.integers(0, 30), st.integers(0, 30))
def test_fact_2_r_prime_counts_wrong_and_spurious_predictions_but_no_omissions(
    counts: Table, omitted: int, false: int
) -> None:
    assume(counts.sum() + omitted > 0)
    k = len(counts)
    extra = np.eye(k)[0]
    indices = overall(values_of(dense(counts, omitted * extra, false * extra)))
    w = counts.sum() + omitted
    wrong = counts.sum() - np.trace(counts) + false
    assert indices["r_prime"] == pytest.approx(1 - wrong / w, abs=1e-12)
    shares = indices["accuracy"] + omitted / w - false / w
    assert indices["r_prime"] == pytest.approx(shares, abs=1e-12)


def test_fact_2_leaving_everything_unclassified_gives_1() -> None:
    indices = overall(values_of(dense(np.zeros((3, 3)), [5, 6, 7])))
    assert indices["r_prime"] == 1
    assert indices["coverage"] == 0


@given(square)
def test_fact_3_r_prime_is_prevalence_plus_the_rest_times_informedness(counts: Table) -> None:
    indices = per_class(values_of(dense(counts)))
    mu, j = indices["prevalence"], indices["informedness"]
    exists = np.isfinite(j)
    expected = (mu + (1 - mu) * j)[exists]
    np.testing.assert_allclose(indices["r_prime"][exists], expected, atol=1e-12)


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_fact_3_predicting_without_looking_gives_the_prevalence(share: float) -> None:
    support = np.array([40.0, 160.0])
    counts = np.outer(support, [share, 1 - share])
    indices = per_class(values_of(dense(counts)))
    np.testing.assert_allclose(indices["r_prime"], support / 200, atol=1e-12)


def test_fact_4_with_one_true_class_r_prime_is_1_for_every_classifier() -> None:
    for row in ([30, 0, 0], [0, 30, 0], [10, 5, 15]):
        indices = per_class(values_of(dense([row, [0] * 3, [0] * 3])))
        assert indices["r_prime"][0] == pytest.approx(1)


@given(square)
def test_fact_5_the_weighted_mean_of_r_prime_is_not_the_overall_one(counts: Table) -> None:
    support = counts.sum(1)
    assume((support > 0).sum() > 1)
    indices = overall(values_of(dense(counts)))
    s = ((support / counts.sum()) ** 2).sum()
    expected = s + (1 - s) * indices["peirce_skill_score"]
    assert indices["weighted_r_prime"] == pytest.approx(expected, abs=1e-9)
