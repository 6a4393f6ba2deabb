"""What the catalog says of indices that are taken for each other."""

import json
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from rprime.core.catalog import CLASS_INDICES, OVERALL_INDICES
from rprime.dashboard.catalog_view import catalog
from tests.core.index_values import dense, overall, per_class, values_of

DRAW = np.random.default_rng(5)


def pair(counts: Any, *keys: str, scope: str = "overall") -> list[Any]:
    values = values_of(dense(counts), indices=keys)
    indices = (overall if scope == "overall" else per_class)(values)
    return [indices[key] for key in keys]


SAID: dict[str, dict[str, dict[str, str]]] = json.loads(
    files("rprime").joinpath("data/neighbours.json").read_bytes()
)


def test_every_index_page_tells_its_index_from_another() -> None:
    assert [e.index.key for e in catalog() if not e.neighbours] == []
    for entry in catalog():
        for key, name, text in entry.neighbours:
            assert key != entry.index.key
            assert name
            assert text.endswith(".")


def test_every_neighbour_is_an_index_of_the_same_scope() -> None:
    for scope, entries in (("overall", OVERALL_INDICES), ("class", CLASS_INDICES)):
        for key, texts in SAID[scope].items():
            assert {key, *texts} <= entries.keys()
            # One sentence for a pair.
            assert not [other for other in texts if key in SAID[scope].get(other, {})]


def test_every_index_page_has_what_else_it_needs() -> None:
    scored_or_priced = {e.index.key for e in catalog() if e.index.scored or e.index.needs}
    for entry in catalog():
        key = entry.index.key
        assert (entry.example is None) == (key in scored_or_priced), key
        if entry.example is not None:
            # What moves it, or that nothing here does.
            assert all(chart.lines for chart, *_ in entry.example["plots"]), key


EQUAL: dict[tuple[str, str], Callable[[dict[str, Any]], Any]] = {
    ("class", "r_prime"): lambda v: v["r"] + v["prevalence"],
    ("class", "specificity"): lambda v: 1 - v["false_positive_rate"],
    ("class", "recall"): lambda v: 1 - v["false_negative_rate"],
    ("class", "precision"): lambda v: 1 - v["false_discovery_rate"],
    ("class", "negative_predictive_value"): lambda v: 1 - v["false_omission_rate"],
    ("class", "class_accuracy"): lambda v: 1 - v["class_error_rate"],
    ("class", "jaccard"): lambda v: v["f1"] / (2 - v["f1"]),
    ("class", "icsi"): lambda v: 2 * v["kulczynski"] - 1,
    ("class", "class_balanced_accuracy"): lambda v: (v["informedness"] + 1) / 2,
    ("class", "lift"): lambda v: v["precision"] / v["prevalence"],
    ("class", "sorgenfrei"): lambda v: v["fowlkes_mallows"] ** 2,
    ("class", "discriminant_power"): lambda v: (
        np.sqrt(3) / np.pi * np.log(v["diagnostic_odds_ratio"])
    ),
    ("class", "diagnostic_odds_ratio"): lambda v: (
        v["positive_likelihood_ratio"] / v["negative_likelihood_ratio"]
    ),
    ("overall", "error_rate"): lambda v: v["quantity_disagreement"] + v["allocation_disagreement"],
    ("overall", "joint_entropy"): lambda v: (
        v["entropy_true"] + v["entropy_predicted"] - v["mutual_information"]
    ),
    ("overall", "conditional_entropy_true"): lambda v: v["entropy_true"] - v["mutual_information"],
    ("overall", "conditional_entropy_predicted"): lambda v: (
        v["entropy_predicted"] - v["mutual_information"]
    ),
    ("overall", "cross_entropy_of_margins"): lambda v: (
        v["entropy_true"] + v["kullback_leibler_divergence"]
    ),
    ("overall", "uncertainty_true"): lambda v: v["mutual_information"] / v["entropy_true"],
}
"""Sentences of the file that are equations."""
ORDERED = [
    ("class", "braun_blanquet", "f1"),
    ("class", "f1", "fowlkes_mallows"),
    ("class", "fowlkes_mallows", "kulczynski"),
    ("class", "kulczynski", "quadratic_mean"),
    ("class", "jaccard", "f1"),
    ("overall", "macro_f1", "f1_of_macro_averages"),
    ("overall", "scott_pi", "kappa"),
    ("overall", "scott_pi", "krippendorff_alpha"),
    ("overall", "kappa", "kappa_max"),
    ("overall", "tschuprows_t", "cramers_v"),
]
"""Sentences that say which of two is never the larger one."""


def test_what_the_sentences_say_holds() -> None:
    for counts in DRAW.integers(1, 30, (50, 4, 4)) + 20 * np.eye(4):
        values = values_of(dense(counts))
        indices = {"class": per_class(values), "overall": overall(values)}
        for (scope, key), other in EQUAL.items():
            np.testing.assert_allclose(indices[scope][key], other(indices[scope]), err_msg=key)
        squared = indices["class"]["informedness"] * indices["class"]["markedness"]
        np.testing.assert_allclose(indices["class"]["class_mcc"] ** 2, squared)
        for scope, lower, higher in ORDERED:
            assert np.all(indices[scope][lower] <= indices[scope][higher] + 1e-12), (lower, higher)
        lambdas = [
            indices["overall"][f"goodman_kruskal_lambda_{kind}"]
            for kind in ("true", "symmetric", "predicted")
        ]
        assert min(lambdas) <= lambdas[1] <= max(lambdas)


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
    values = [
        [column[1] for column in pair([[990 - n, n], [0, 10]], "r_prime", "f1", scope="class")]
        for n in (0, 10)
    ]
    fell = [before - after for before, after in zip(*values, strict=True)]
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
