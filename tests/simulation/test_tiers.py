"""Equally good versions seldom part into tiers, however many there are."""

import numpy as np
import pytest

from rprime.core.arrays import Array
from rprime.core.comparison.alignment import Side
from rprime.core.items import Items, table_of
from rprime.core.options import Options
from rprime.history.leaderboard import LEVEL, TierRanking
from rprime.history.series import Measured, Point

ITEMS = 500
CLASSES = 3


OPTIONS = Options(indices=("accuracy",))


def tiers(
    rng: np.random.Generator, accuracies: Array, *, shared: float = 0.0, items: int = ITEMS
) -> list[list[str]]:
    """Rank versions of the given accuracies on one test set, and return the tiers.

    `shared` is the share of the items that all versions answer alike.
    """
    true = rng.integers(0, CLASSES, items).astype(np.uint8)
    same, alike = rng.random(items) < shared, rng.random(items)
    sides, points = {}, []
    for number, accuracy in enumerate(accuracies):
        right = np.where(same, alike, rng.random(items)) < accuracy
        moved = (true + rng.integers(1, CLASSES, items)) % CLASSES
        predicted = np.where(right, true, moved).astype(np.uint8)
        name, answers = str(number), Items(true, predicted)
        table = table_of(answers, CLASSES)
        sides[name] = Side(labels=("a", "b", "c"), table=table, items=answers, fingerprint="f")
        points.append(point(name, float(right.mean())))
    measured, options = Measured.of("accuracy", None), dict.fromkeys(sides, OPTIONS)
    fields = {"sides": sides, "options": options}  # so that no store is read
    ranking = TierRanking(None, measured, 50, (), points, **fields)  # type: ignore[arg-type] # none
    return [[member.evaluation for member in tier] for tier, _ in ranking.tiers()]


def point(name: str, value: float) -> Point:
    """Return the point of a version."""
    return Point(name, "m", name, None, None, None, value, None, "", classified_only=False)


def parted(versions: int, draws: int, seed: int, *, shared: float) -> float:
    """Return the share of draws in which equally good versions are not all in one tier."""
    rng = np.random.default_rng(seed)
    return float(
        np.mean([len(tiers(rng, np.full(versions, 0.85), shared=shared)) > 1 for _ in range(draws)])
    )


@pytest.mark.parametrize(("versions", "draws"), [(2, 400), (5, 150), (20, 40)])
@pytest.mark.parametrize("shared", [0.0, 0.8])
def test_equally_good_versions_seldom_part(versions: int, draws: int, shared: float) -> None:
    error = (LEVEL * (1 - LEVEL) / draws) ** 0.5
    assert parted(versions, draws, versions, shared=shared) <= LEVEL + 3 * error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("versions", "accuracy", "items", "draws"), [(3, 0.95, 1000, 300), (10, 0.7, 300, 80)]
)
def test_equally_good_versions_seldom_part_at_other_sizes(
    versions: int, accuracy: float, items: int, draws: int
) -> None:
    rng, error = np.random.default_rng(versions), (LEVEL * (1 - LEVEL) / draws) ** 0.5
    rankings = (tiers(rng, np.full(versions, accuracy), items=items) for _ in range(draws))
    assert np.mean([len(ranking) > 1 for ranking in rankings]) <= LEVEL + 3 * error


def test_clearly_worse_versions_part() -> None:
    rng = np.random.default_rng(0)
    rankings = [tiers(rng, np.repeat([0.95, 0.8], 5)) for _ in range(20)]
    assert (
        sum(sorted(map(sorted, ranking)) == [list("01234"), list("56789")] for ranking in rankings)
        >= 19
    )
