"""Intervals of a population contain its values as often as they say."""

from typing import NamedTuple

import numpy as np
import pytest

from rprime.core.arrays import Array
from rprime.core.estimates import Estimates
from rprime.core.options import Options
from rprime.core.population import Population, Strata
from rprime.core.selection import select
from rprime.core.table import ConfusionTable

REPLICATES = 4000
LOWEST, HIGHEST = 0.93, 0.975
SLACK = 4 * (0.95 * 0.05 / REPLICATES) ** 0.5
OVER_STRATA = ("prevalence", "negative_predictive_value", "false_omission_rate")
FIXED = "coverage"
"""It is 1 where every item is classified."""


class Design(NamedTuple):
    """A stratified sample.

    Parameters
    ----------
    items, shares
        Of each stratum: in the sample, and in the population.
    within
        The other class of the items of each stratum, (strata, k).
    """

    name: str
    strata: Strata
    items: list[int]
    shares: list[float]
    within: Array


THREE = np.array([[0.85, 0.10, 0.05], [0.08, 0.84, 0.08], [0.05, 0.10, 0.85]])
DESIGNS = [
    Design("map", "predicted", [200] * 3, [0.2, 0.3, 0.5], THREE),
    Design("other prevalence", "true", [200] * 3, [0.5, 0.3, 0.2], THREE),
    Design("far prevalence", "true", [200] * 3, [0.8, 0.15, 0.05], THREE),
    Design("ten classes", "true", [100] * 10, [0.3, *[0.7 / 9] * 9], np.eye(10) * 0.5 + 0.05),
]
# The table of Olofsson et al. 2014, as the population.
OLOFSSON = np.array([[66.0, 0, 5, 4], [0, 55, 8, 12], [1, 0, 153, 11], [2, 1, 9, 313]])
MAP = Design(
    "deforestation",
    "predicted",
    [75, 75, 165, 325],
    [0.02, 0.015, 0.32, 0.645],
    OLOFSSON / OLOFSSON.sum(1, keepdims=True),
)
RARE = [0.01] * 5 + [0.05, 0.10, 0.15, 0.25, 0.40]
HARDER = [
    # Nine strata of which most show no item of a class, and weigh up to forty times its own.
    Design("rare classes", "predicted", [60] * 10, RARE, np.eye(10) * 0.96 + 0.004),
    Design("rare classes with errors", "predicted", [60] * 10, RARE, np.eye(10) * 0.8 + 0.02),
    Design(
        "rare class in a large stratum",
        "predicted",
        [50, 100, 300],
        [0.003, 0.2, 0.797],
        np.array([[0.9, 0.06, 0.04], [0.01, 0.9, 0.09], [0.01, 0.03, 0.96]]),
    ),
    MAP,
]
OF_STRATA = (
    *("recall", "false_negative_rate", "lift", "f1", "r_prime"),
    *("positive_likelihood_ratio", "negative_likelihood_ratio", "diagnostic_odds_ratio"),
)


def coverage(
    design: Design, replicates: int = REPLICATES, indices: tuple[str, ...] | None = None
) -> dict[str, Array]:
    """Share of samples whose interval holds the value of the population, by index."""
    draw, turned = np.random.default_rng(1), design.strata == "predicted"
    pairs = zip(design.items, design.within, strict=True)
    tables = np.stack([draw.multinomial(n, share, replicates) for n, share in pairs], axis=1)
    truth = np.array(design.shares)[:, None] * design.within * 1e6
    if turned:
        tables, truth = np.swapaxes(tables, -1, -2), truth.T
    options = Options(
        population=Population(design.strata, np.array(design.shares)),
        indices=indices,
        families=() if indices else ("core",),
    )
    selection = select(options)
    intervals = Estimates.of(ConfusionTable.dense(tables), options, selection).intervals
    values = Estimates.of(ConfusionTable.dense(truth), Options(indices=indices), selection).values
    result = {}
    for i, entry in enumerate(selection.overall):
        limits = intervals.overall_low[i], intervals.overall_high[i]
        result[entry.key] = _share(limits, values.overall[i])
    for i, entry in enumerate(selection.per_class):
        limits = intervals.per_class_low[i], intervals.per_class_high[i]
        result[f"{entry.key} of a class"] = _share(limits, values.per_class[i])
    return {key: rate for key, rate in result.items() if not np.isnan(rate).any()}


def _share(limits: tuple[Array, Array], value: Array) -> Array:
    there = ~np.isnan(limits[0])
    inside = (limits[0] <= value) & (value <= limits[1])
    return np.where(there.all(0), np.mean(inside, axis=0), np.nan)


def outside(rates: dict[str, Array], replicates: int) -> dict[str, Array]:
    """Return the indices whose coverage is out of bounds, and that coverage."""
    slack = 4 * (0.95 * 0.05 / replicates) ** 0.5
    return {
        key: rate
        for key, rate in rates.items()
        if key != FIXED and not (LOWEST - slack <= rate.min() <= rate.max() <= HIGHEST + slack)
    }


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_intervals_cover_where_strata_hold_errors(design: Design) -> None:
    rates = coverage(design)
    assert {"accuracy", "kappa", "mcc", "macro_f1", "r_prime of a class"} <= rates.keys()
    assert outside(rates, REPLICATES) == {}


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_usual_indices_cover_where_strata_hold_errors(design: Design) -> None:
    rates = coverage(design, 1000, indices=("accuracy", "kappa", "mcc", "macro_f1", "r_prime"))
    assert {"accuracy", "kappa", "mcc", "macro_f1", "r_prime of a class"} <= rates.keys()
    assert outside(rates, 1000) == {}


@pytest.mark.parametrize("design", HARDER, ids=lambda design: design.name)
def test_classes_of_which_strata_show_no_item_are_covered(design: Design) -> None:
    rates = coverage(design, 2000, indices=OF_STRATA)
    assert {"recall of a class", "lift of a class", "r_prime of a class"} <= rates.keys()
    assert outside(rates, 2000) == {}


def test_areas_and_accuracies_of_a_map_with_rare_classes_are_covered() -> None:
    rates = coverage(MAP, indices=("accuracy", "prevalence", "precision", "recall"))
    for key in ("accuracy", "prevalence of a class", "precision of a class"):
        assert rates[key].min() >= LOWEST - SLACK, key
    # A class of which one item is left out in the largest stratum.
    assert rates["recall of a class"].min() >= LOWEST - SLACK


@pytest.mark.slow
def test_every_index_of_a_map_with_rare_classes_is_covered() -> None:
    rates = coverage(MAP, 2000)
    # Sums over the strata keep their own rule.
    sums = {f"{key} of a class" for key in OVER_STRATA}
    wrong = {
        key: rate
        for key, rate in rates.items()
        if key not in {FIXED, *sums} and not (0.92 <= rate.min() <= rate.max() <= 0.985)
    }
    assert wrong == {}
    assert {"lift of a class", "f1_of_macro_averages", "class_mcc of a class"} <= rates.keys()


def test_indices_of_rare_classes_of_a_map_are_covered() -> None:
    rates = coverage(MAP, 400)
    for key in ("r", "lift", "kulczynski", "icsi", "class_mcc", "f1"):
        assert rates[f"{key} of a class"].min() >= 0.90, key
    for key in ("macro_r", "macro_recall", "csi"):
        assert rates[key].min() >= 0.90, key
