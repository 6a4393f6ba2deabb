"""A planted weak slice is found as often as the search says, and none where none is."""

from dataclasses import replace

import numpy as np
import pytest

from rprime.core.slices.search import SearchOptions, SearchPlan, search_slices
from rprime.core.slices.slices import SliceColumn, SliceName

SIZES = (2, 3, 4, 5, 6, 8)
PLANTED: dict[str, SliceName] = {"one column": {"c5": "1"}, "a crossing": {"c4": "1", "c5": "1"}}
Columns = dict[str, SliceColumn]


def drawn(
    random: np.random.Generator, items: int, *, costs: bool = False
) -> tuple[Columns, np.ndarray]:
    """Draw columns and losses that have nothing to do with them: errors, or costs."""
    columns = {
        f"c{i}": SliceColumn(tuple(map(str, range(size))), random.integers(size, size=items))
        for i, size in enumerate(SIZES)
    }
    losses = random.lognormal(size=items) if costs else (random.random(items) < 0.1).astype(float)
    return columns, losses


def planted(
    random: np.random.Generator, columns: Columns, name: SliceName, size: int
) -> np.ndarray:
    """Change values so that a slice has so many items, and return which."""
    items = next(iter(columns.values())).codes.size
    chosen = random.permutation(items)[:size]
    inside = np.logical_and.reduce([columns[n].codes == int(v) for n, v in name.items()])
    last, value = list(name.items())[-1]
    codes = columns[last].codes.copy()
    codes[inside] = int(value) - 1
    for other, label in name.items():
        moved = codes if other == last else columns[other].codes.copy()
        moved[chosen] = int(label)
        columns[other] = replace(columns[other], codes=moved)
    return np.asarray(chosen)


def false_alarms(items: int, rounds: int, *, costs: bool) -> tuple[float, list[SearchPlan]]:
    """Return how often a slice is called weak where none is, and the plans."""
    random, alarms, plans = np.random.default_rng(1), 0, []
    for seed in range(rounds):
        slices, plan = search_slices(*drawn(random, items, costs=costs), SearchOptions(seed=seed))
        alarms += bool((slices.p_adjusted <= 0.05).any())
        plans.append(plan)
    return alarms / rounds, plans


def found_share(
    items: int, rounds: int, name: SliceName, *, size: int, difference: float, costs: bool
) -> float:
    """Return how often a slice is found that is worse than its rest by so much."""
    random, hits = np.random.default_rng(2), 0
    for seed in range(rounds):
        columns, losses = drawn(random, items, costs=costs)
        chosen = planted(random, columns, name, size)
        worse = random.random(size) < 0.1 + difference
        losses[chosen] = losses[chosen] + difference if costs else worse
        slices, _ = search_slices(columns, losses, SearchOptions(seed=seed))
        hits += any(
            slice_name == name and p <= 0.05
            for slice_name, p in zip(slices.names, slices.p_adjusted, strict=True)
        )
    return hits / rounds


def check(items: int, rounds: int, *, costs: bool, sizes: slice) -> None:
    """Three standard errors are allowed for the simulation itself."""
    alarms, plans = false_alarms(items, rounds, costs=costs)
    assert alarms <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / rounds)
    detectable = [dict(plan.detectable) for plan in plans]
    for size in list(detectable[0])[sizes]:
        difference = float(np.median([by_size[size] for by_size in detectable if size in by_size]))
        for name in PLANTED.values():
            share = found_share(items, rounds, name, size=size, difference=difference, costs=costs)
            assert share >= 0.8 - 3 * np.sqrt(0.8 * 0.2 / rounds)
            assert share < 0.97 or costs


def test_a_planted_slice_is_found_and_none_on_noise() -> None:
    check(2000, 40, costs=False, sizes=slice(1, 2))


@pytest.mark.slow
@pytest.mark.parametrize("items", [1000, 4000])
@pytest.mark.parametrize("costs", [False, True], ids=["errors", "costs"])
def test_planted_slices_are_found_as_often_as_the_plan_says(items: int, *, costs: bool) -> None:
    check(items, 200, costs=costs, sizes=slice(0, 4))
