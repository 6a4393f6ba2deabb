"""The search for weak slices against a loop over all slices, and against the tests of scipy."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from rprime.core.multiplicity import holm
from rprime.core.slices.search import (
    NEAR,
    Finder,
    SearchOptions,
    TooManyCellsError,
    hypergeometric_tail_p,
    search_slices,
)
from rprime.core.slices.slices import SliceColumn

Columns = dict[str, SliceColumn]
Name = Mapping[str, str]


def drawn(
    seed: int = 0, items: int = 1500, *, sizes: tuple[int, ...] = (2, 3, 4, 5)
) -> tuple[Columns, np.ndarray, np.random.Generator]:
    """Draw columns, the first of which has items without a value, and errors of a rate of .1."""
    random = np.random.default_rng(seed)
    columns = {
        f"c{i}": SliceColumn(
            tuple(map(str, range(size))), random.integers(size + (not i), size=items)
        )
        for i, size in enumerate(sizes)
    }
    return columns, (random.random(items) < 0.1).astype(float), random


def inside(name: Name, columns: Columns) -> np.ndarray:
    masks = [columns[c].codes == columns[c].values.index(v) for c, v in name.items()]
    return np.asarray(np.logical_and.reduce(masks))


def planted(columns: Columns, losses: np.ndarray, name: Name, most: float) -> np.ndarray:
    """Return losses with more errors in a slice."""
    extra = np.random.default_rng(9).random(losses.size) < most
    return np.asarray(np.maximum(losses, inside(name, columns) & extra))


def looped(columns: Columns, losses: np.ndarray, least: int) -> list[tuple[float, Name]]:
    """Return the score and the name of each slice that may be a candidate, the best first."""
    scores: dict[frozenset[tuple[str, str]], float] = {}
    candidates = []
    n = losses.size
    for width in (1, 2, 3):
        for chosen in combinations(columns, width):
            for values in product(*(columns[name].values for name in chosen)):
                name = dict(zip(chosen, values, strict=True))
                part = losses[inside(name, columns)]
                if not least <= part.size < n:
                    continue
                error = np.sqrt(part.size * losses.var() * (1 - part.size / n))
                score = (part.sum() - part.size * losses.mean()) / error
                pairs = frozenset(name.items())
                scores[pairs] = score
                around = [s for outer, s in scores.items() if outer < pairs]
                if score > max([0.0, *(s - NEAR for s in around)]):
                    candidates.append((score, name))
    return sorted(candidates, key=lambda candidate: -candidate[0])


@pytest.mark.parametrize("least", [1, 20, 60])
@pytest.mark.parametrize("kind", ["errors", "costs"])
def test_pruning_loses_no_candidate(least: int, kind: str) -> None:
    columns, losses, random = drawn()
    losses = planted(columns, losses, {"c1": "2", "c3": "1"}, 0.3)
    if kind == "costs":
        losses = losses * random.exponential(size=losses.size)
    order = np.argsort(losses == 0, kind="stable")
    columns = {n: replace(column, codes=column.codes[order]) for n, column in columns.items()}
    losses = losses[order]
    expected = looped(columns, losses, least)
    assert len(expected) > 10
    finder = Finder(columns, losses, least=least, most=10)
    finder.search(3)
    assert [name for _, name in finder.candidates] == [name for _, name in expected[:10]]
    np.testing.assert_allclose([s for s, _ in finder.candidates], [s for s, _ in expected[:10]])
    assert finder.threshold == finder.candidates[-1][0]
    everything = Finder(columns, losses, least=least, most=10_000)
    everything.search(3)
    assert len(everything.candidates) == len(expected)


def test_what_cannot_be_a_candidate_is_not_counted() -> None:
    columns, losses, _ = drawn()
    losses = planted(columns, losses, {"c1": "2"}, 0.9)
    order = np.argsort(losses == 0, kind="stable")
    columns = {n: replace(column, codes=column.codes[order]) for n, column in columns.items()}
    searched = []
    for most in (1, 1000):
        finder = Finder(columns, losses[order], least=60, most=most)
        finder.search(3)
        assert finder.candidates[0][1] == {"c1": "2"}
        searched.append(finder.searched)
    assert searched[0] < searched[1] / 2


def test_errors_are_compared_by_fishers_exact_test() -> None:
    columns, losses, _ = drawn()
    losses = planted(columns, losses, {"c2": "3"}, 0.15)
    options = SearchOptions(seed=3, candidates=6)
    slices, plan = search_slices(columns, losses, options)
    order = np.random.default_rng(3).permutation(1500)
    tests = np.sort(order[750:])
    test_columns = {n: replace(column, codes=column.codes[tests]) for n, column in columns.items()}
    p = []
    for i, name in enumerate(slices.names):
        part, rest = (
            losses[tests][inside(name, test_columns)],
            losses[tests][~inside(name, test_columns)],
        )
        assert slices.items[i] == part.size
        assert slices.losses[i] == pytest.approx(part.mean())
        assert slices.rests[i] == pytest.approx(rest.mean())
        counts = np.array([[s.sum(), s.size - s.sum()] for s in (part, rest)], int)
        p.append(stats.fisher_exact(counts, alternative="greater").pvalue)
        wilson = [
            stats.binomtest(int(w), int(w + r)).proportion_ci(method="wilson") for w, r in counts
        ]
        below = np.hypot(part.mean() - wilson[0].low, wilson[1].high - rest.mean())
        above = np.hypot(wilson[0].high - part.mean(), rest.mean() - wilson[1].low)
        difference = part.mean() - rest.mean()
        limits = difference - below, difference + above
        np.testing.assert_allclose((slices.lower[i], slices.upper[i]), limits, atol=1e-9)
    np.testing.assert_allclose(slices.p_adjusted, holm(np.array(p)))
    assert plan.halves == (750, 750)
    assert plan.binary
    assert plan.alpha == pytest.approx(0.05 / 6)
    assert list(slices.shrunken) == sorted(slices.shrunken, reverse=True)


def test_other_losses_are_compared_by_welchs_test() -> None:
    columns, _, random = drawn()
    losses = random.exponential(size=1500) * (1 + inside({"c1": "1"}, columns)) - 5
    slices, plan = search_slices(columns, losses, SearchOptions(confidence=0.9))
    tests = np.sort(np.random.default_rng(0).permutation(1500)[750:])
    test_columns = {n: replace(column, codes=column.codes[tests]) for n, column in columns.items()}
    tested: list[Any] = [
        stats.ttest_ind(
            losses[tests][inside(name, test_columns)],
            losses[tests][~inside(name, test_columns)],
            equal_var=False,
            alternative="greater",
        )
        for name in slices.names
    ]
    np.testing.assert_allclose(slices.p_adjusted, holm(np.array([t.pvalue for t in tested])))
    limits = [t.confidence_interval(0.95).low for t in tested]  # one-sided: .9 of two sides
    np.testing.assert_allclose(slices.lower, limits)
    first = slices.losses[0]
    assert first == pytest.approx(losses[tests][inside(slices.names[0], test_columns)].mean())
    assert slices.names[0] == {"c1": "1"}
    assert slices.p_adjusted[0] < 0.01
    assert not plan.binary


@pytest.mark.parametrize("losses", [np.zeros(400), np.ones(400)])
def test_nothing_is_found_where_all_items_are_alike(losses: np.ndarray) -> None:
    columns, *_ = drawn(items=400)
    slices, plan = search_slices(columns, losses, SearchOptions())
    assert slices.names == ()
    assert plan.detectable == []
    assert plan.searched == 0


def test_too_many_values_are_refused() -> None:
    random = np.random.default_rng(0)
    values = tuple(map(str, range(2000)))
    columns = {name: SliceColumn(values, random.integers(2000, size=40_000)) for name in "ab"}
    losses = random.random(40_000)
    with pytest.raises(TooManyCellsError, match="at most 2,097,152"):
        search_slices(columns, losses, SearchOptions(min_items=4))


def test_the_seed_draws_the_halves() -> None:
    columns, losses, _ = drawn()
    once, again, other = (
        search_slices(columns, losses, SearchOptions(seed=s))[0] for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(once.p_adjusted, again.p_adjusted)
    assert once.names == again.names != other.names


@pytest.mark.parametrize(
    ("hits", "items", "marked", "total"),
    [
        (0, 5, 3, 9),
        (1, 5, 3, 9),
        (3, 5, 3, 9),
        (4, 5, 3, 9),
        (60, 200, 100, 1000),
        (5, 9, 900, 1000),
        (12_000, 100_000, 100_000, 1_000_000),
        (300, 1000, 20_000, 200_000),
    ],
)
def test_the_tail_is_that_of_scipy(hits: int, items: int, marked: int, total: int) -> None:
    expected = stats.hypergeom.sf(hits - 1, total, marked, items)
    tail = hypergeometric_tail_p(hits, items, marked, total)
    assert tail == pytest.approx(expected, rel=1e-6, abs=1e-280)
