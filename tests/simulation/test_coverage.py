"""Intervals contain the true value as often as they say."""

from collections import defaultdict

import numpy as np
import pytest

from rprime.core.catalog import INDICES
from rprime.core.custom import CustomIndex
from tests.simulation.coverage import coverage
from tests.simulation.populations import LARGE_ENOUGH, NAMED, REPLICATES, FloatArray, Population

LOWEST, HIGHEST = 0.925, 0.98
"""Promised where each class has 30 items and 5 expected errors."""
ANYWHERE = 0.89
"""Lowest coverage in the other populations, which have down to 10 items and no error in a class."""
FIXED = frozenset({"coverage", "accuracy_on_answered"})
"""Shares of the classified items: without unclassified items, the first is always 1."""

BIASED = ("50 x 30, recall 0.8", "2000 and 20")
WEIGHTED = frozenset(
    f"weighted_{key}"
    for key in (
        *("precision", "negative_predictive_value", "false_discovery_rate"),
        *("false_omission_rate", "markedness", "conditional_kappa_predicted"),
    )
)
"""Averages whose weights and values come from the same small classes: with 50 of them the bias
counts, and with 2 expected errors in a class of 20 one of them covers .82."""


def slack(draws: float) -> float:
    """Four standard errors of a coverage of 95 % over many populations and indices."""
    return 4 * float(np.sqrt(0.95 * 0.05 / draws))


def alike(population: Population) -> list[list[int]]:
    """Group the classes of one size and recall: their draws count together."""
    groups = defaultdict(list)
    for label, kind in enumerate(zip(population.sizes, population.recalls, strict=True)):
        groups[kind].append(label)
    return list(groups.values())


def outside(
    population: Population, lowest: float, highest: float, **options: object
) -> dict[str, list[float]]:
    """Return the indices whose coverage is out of bounds, and that coverage."""
    exceptions = FIXED | WEIGHTED if population.name in BIASED else FIXED
    simulation = coverage(population, REPLICATES, seed=1, **{"intervals": True} | options)
    wrong = {}
    for key, rates in simulation.rates().items():
        if key in exceptions or np.isnan(rates).all():
            continue
        pooled, draws = _pooled(rates, population)
        low, high = lowest - slack(REPLICATES * draws), highest + slack(REPLICATES * draws)
        bad = [float(rate) for rate in pooled if not low <= rate <= high]
        if bad:
            wrong[key] = bad
    return wrong


def _pooled(rates: FloatArray, population: Population) -> tuple[FloatArray, float]:
    """Average the rates of classes that are alike; they are not independent: count half."""
    if rates.size == 1:
        return rates, 1.0
    groups = alike(population)
    means = np.array([np.nanmean(rates[group]) for group in groups])
    return means, max(min(len(group) for group in groups) / 2, 1.0)


@pytest.mark.parametrize("population", LARGE_ENOUGH, ids=lambda population: population.name)
def test_coverage_is_promised_where_classes_have_items_and_errors(population: Population) -> None:
    assert outside(population, LOWEST, HIGHEST) == {}


@pytest.mark.parametrize("population", NAMED, ids=lambda population: population.name)
def test_coverage_never_breaks_down(population: Population) -> None:
    assert outside(population, ANYWHERE, 1.0) == {}


@pytest.mark.parametrize("population", LARGE_ENOUGH, ids=lambda population: population.name)
def test_coverage_holds_for_further_indices(population: Population) -> None:
    further = ("aickin_alpha", "bangdiwala_b", "macro_detection_rate")
    assert outside(population, LOWEST, HIGHEST, indices=further) == {}


@pytest.mark.parametrize(
    "population",
    [population for population in NAMED if population.k <= 10],
    ids=lambda population: population.name,
)
def test_yules_q_is_covered_where_classes_have_hardly_an_error(population: Population) -> None:
    # At recall .999 the effective number of items made .29 of this.
    indices = ("yule_q", "macro_yule_q", "weighted_yule_q")
    assert outside(population, 0.915, 1.0, indices=indices) == {}


RESAMPLED = tuple(dict.fromkeys(entry.key for entry in INDICES if entry.resampled))


@pytest.mark.slow
@pytest.mark.parametrize(
    "population",
    [population for population in LARGE_ENOUGH if population.k <= 10],
    ids=lambda population: population.name,
)
def test_bootstrap_intervals_cover(population: Population) -> None:
    # Entropies of equal classes are at their largest value: their intervals always cover it. Of two
    # classes with 12 expected errors, allocation disagreement takes few values, and covers .905.
    assert outside(population, 0.905, 1.0, intervals="all", indices=RESAMPLED) == {}


OWN = {
    "mix": "0.7 * macro_recall + 0.3 * precision['0']",
    "product": "recall['0'] * precision['1']",
    "cost": "(5 * cells['0', '1'] + cells['1', '0']) / items",
}


@pytest.mark.slow
@pytest.mark.parametrize("population", LARGE_ENOUGH, ids=lambda population: population.name)
def test_coverage_of_indices_of_ones_own(population: Population) -> None:
    labels = tuple(map(str, range(population.k)))
    custom = tuple(CustomIndex.bound(name, text, labels) for name, text in OWN.items())
    options = {"custom": custom, "indices": tuple(index.key for index in custom)}
    assert outside(population, 0.89, 0.98, **options) == {}
