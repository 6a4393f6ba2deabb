"""What the catalog says of indices that are taken for each other."""

from typing import Any

import numpy as np
import pytest

from rprime.core.catalog import CLASS_INDICES, INDICES, OVERALL_INDICES
from tests.core.index_values import dense, overall, per_class, values_of

DRAW = np.random.default_rng(5)


def pair(counts: Any, *keys: str, scope: str = "overall") -> list[Any]:
    values = values_of(dense(counts), indices=keys)
    found = (overall if scope == "overall" else per_class)(values)
    return [found[key] for key in keys]


def test_every_neighbour_is_an_index_of_the_same_scope() -> None:
    known = {"overall": OVERALL_INDICES, "class": CLASS_INDICES}
    said = [(index, *one) for index in INDICES for one in index.neighbours.items()]
    assert len(said) >= 8
    for index, key, text in said:
        assert key in known[index.scope]
        assert key != index.key
        assert text.endswith(".")


def test_mcc_is_further_from_0_than_kappa_unless_the_margins_are_equal() -> None:
    for counts in DRAW.integers(0, 30, (200, 4, 4)):
        kappa, mcc = pair(counts, "kappa", "mcc")
        assert abs(mcc) >= abs(kappa) - 1e-12
        kappa, mcc = pair(counts + counts.T, "kappa", "mcc")
        assert mcc == pytest.approx(kappa, abs=1e-12)


def test_kappa_is_0_for_independent_predictions() -> None:
    kappa, accuracy = pair(np.outer([90, 10], [0.9, 0.1]), "kappa", "accuracy")
    assert kappa == pytest.approx(0, abs=1e-12)
    assert accuracy == pytest.approx(0.82)


def test_who_misses_a_rare_class_loses_a_kth_of_balanced_accuracy() -> None:
    accuracy, balanced = pair([[980, 0], [20, 0]], "accuracy", "balanced_accuracy")
    assert (accuracy, balanced) == (pytest.approx(0.98), 0.5)


def test_false_alarms_of_a_rare_class_move_f1_more_than_r_prime() -> None:
    found = [
        [column[1] for column in pair([[990 - n, n], [0, 10]], "r_prime", "f1", scope="class")]
        for n in (0, 10)
    ]
    fell = [before - after for before, after in zip(*found, strict=True)]
    assert fell == pytest.approx([10 / 1000, 1 - 2 / 3])


def test_recall_and_f1_see_what_r_prime_and_informedness_say() -> None:
    keys = ("recall", "informedness", "r_prime", "f1")
    whole = [c[0] for c in pair([[50, 0], [50, 0]], *keys, scope="class")]
    assert whole[:2] == [1.0, 0.0]
    assert whole[2] == pytest.approx(0.5)
    rare, often = (
        [c[0] for c in pair([[8 * n, 2 * n], [10, 90]], "informedness", "f1", scope="class")]
        for n in (1, 10)
    )
    assert rare[0] == pytest.approx(often[0])
    assert often[1] - rare[1] > 0.1
