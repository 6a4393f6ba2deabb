"""Whether scores are probabilities, and how well these are calibrated."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from rprime.core.arrays import Array
from rprime.core.published import PUBLISHED

TOLERANCE = 1e-6
"""Largest distance of the sum of a row of probabilities from 1."""
LEAST = 1e-15
"""Smaller probabilities of the true class are clipped to it, because 0 has no logarithm."""
BINS = 15
"""Bins of a reliability diagram, unless a request names another number."""
BLOCK = 1 << 14
"""Rows in each block; intermediate arrays of this size stay in the cache."""
ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True)
class Binning:
    """How items are sorted into bins by a predicted probability.

    Bins of equal mass hold about as many items each, or as much weight. Equal probabilities stay
    together, so there may be fewer bins than asked for.
    """

    __pydantic_config__: ClassVar = PUBLISHED

    bins: int = BINS
    """How many bins there are."""
    binning: Literal["equal_width", "equal_mass"] = "equal_width"
    """`equal_mass`: about as many items in each bin, or as much weight."""

    def edges(self, confidence: Array, weights: Array | None = None) -> Array:
        """Return the edges of the bins, shape (bins + 1,); a bin excludes its lower edge."""
        if self.binning == "equal_width":
            return np.linspace(0.0, 1.0, self.bins + 1)
        order = np.argsort(confidence)
        mass = np.arange(1, len(order) + 1) if weights is None else np.cumsum(weights.take(order))
        goals = np.arange(1, self.bins) * (mass[-1] / self.bins * (1 - ROUNDING))
        last = np.searchsorted(mass, goals)
        ends = [order.take(np.minimum(last + i, len(order) - 1)) for i in (0, 1)]
        cuts = np.add(*(confidence.take(end).astype(np.float64) for end in ends)) / 2
        return np.unique(np.concatenate(([0.0], cuts, [1.0])))


DEFAULT_BINNING = Binning()


@dataclass(frozen=True, eq=False)
class Reliability:
    """The items, the correct ones and the sums of their predicted probabilities, in bins.

    All but the edges, (bins + 1,), have the shape (bins,), and are weighted if the items are. The
    effective numbers of items are those of Kish, None where every item counts once.
    """

    edges: Array
    items: Array
    correct: Array
    confidence: Array
    effective: Array | None = None

    @classmethod
    def of(
        cls,
        confidence: Array,
        correct: Array,
        weights: Array | None = None,
        binning: Binning | None = None,
    ) -> "Reliability":
        """Sort items into the bins (0, 1/15], (1/15, 2/15] and so on; 0 is in the first."""
        edges = (binning or DEFAULT_BINNING).edges(confidence, weights)
        places, bins = np.searchsorted(edges[1:-1], confidence), len(edges) - 1
        if weights is None:
            of_items = (None, correct, confidence)
            items, right, sums = (np.bincount(places, part, bins) for part in of_items)
            return cls(edges, items, right, sums)
        parts = (weights, weights * correct, weights * confidence)
        items, right, sums = (np.bincount(places, part, bins) for part in parts)
        squares = np.bincount(places, weights * weights, bins)
        number = np.divide(items**2, squares, out=np.zeros(bins), where=squares > 0)
        return cls(edges, items, right, sums, number)

    @property
    def sums(self) -> tuple[Array, Array, Array]:
        """Items, correct ones and sums of their predicted probabilities."""
        return self.items, self.correct, self.confidence

    @property
    def number(self) -> Array:
        """The effective number of items in each bin."""
        return self.items if self.effective is None else self.effective

    @property
    def error(self) -> float:
        """Mean distance between the accuracy and the mean confidence of a bin.

        Source: Naeini, Cooper, Hauskrecht 2015; Guo et al. 2017.
        """
        gaps = np.abs(self.correct - self.confidence)
        return float(np.add.reduce(gaps) / np.add.reduce(self.items))

    @property
    def square_error(self) -> float:
        """Mean square of these distances."""
        return self._mean(self._share(self.correct - self.confidence) ** 2)

    @property
    def largest_error(self) -> float:
        """Largest of these distances."""
        return float(np.max(np.abs(self._share(self.correct - self.confidence))))

    @property
    def debiased_square_error(self) -> float:
        """Mean square of these distances, less what chance adds to it.

        Source: Kumar, Liang, Ma 2019; a bin of a single item adds nothing.
        """
        others, share = self.number - 1, self._share(self.correct)
        squares = self._share(self.correct - self.confidence) ** 2
        chance = share * (1 - share) / np.where(others > ROUNDING, others, 1.0)
        return self._mean(np.where(others > ROUNDING, squares - chance, 0.0))

    @property
    def error_if_calibrated(self) -> float:
        """About what `error` is on average if every probability is true.

        Notes
        -----
        The mean distance of a share of n items from a probability p is about that of a normal
        distribution with the variance p (1 - p) / n, and at most that of a single item.
        """
        share = self._share(self.confidence)
        variance = share * (1 - share)
        normal = np.sqrt(2 / np.pi * variance / np.maximum(self.number, 1.0))
        return self._mean(np.minimum(normal, 2 * variance))

    def _share(self, sums: Array) -> Array:
        return np.divide(sums, self.items, out=np.zeros(len(sums)), where=self.items > 0)

    def _mean(self, of_bins: Array) -> float:
        return float(of_bins @ self.items / np.add.reduce(self.items))

    def bins(self) -> Iterator[dict[str, float]]:
        """Yield the bins that have items."""
        for i in np.flatnonzero(self.items).tolist():
            items = self.items[i].item()
            yield {
                "low": float(self.edges[i]),
                "high": float(self.edges[i + 1]),
                "items": items,
                "confidence": float(self.confidence[i] / items),
                "accuracy": float(self.correct[i] / items),
            }


def are_probabilities(values: Array) -> bool:
    """Whether every row of scores (n, k) is non-negative and sums to 1, but for rounding.

    The sum may differ by 1e-6 or, if all scores have the same few decimals, as those that were
    printed with them, by half a unit of the last one for each class.
    """
    if _sum_to_one(values, TOLERANCE):
        return True
    return any(
        _sum_to_one(values, max(TOLERANCE, values.shape[-1] * 0.5 * 10.0**-decimals))
        for decimals in _PRINTED
        if all(
            np.allclose(part, part.round(decimals), rtol=0, atol=1e-9)
            for part, _ in blocks(values, values)
        )
    )


def _sum_to_one(values: Array, tolerance: float) -> bool:
    return all(
        bool((part >= 0).all() and (np.abs(part.sum(-1) - 1) <= tolerance * _SLACK).all())
        for part, _ in blocks(values, values)
    )


_PRINTED = (6, 5, 4, 3, 2)
"""Numbers of decimals with which scores may have been printed."""
_SLACK = 1 + 1e-9
"""A sum at the tolerance counts as within it."""


def brier_scores(values: Array, true: Array) -> Array:
    """Squared distance of every row (n, k) to the one-hot truth, shape (n,)."""
    distances = []
    for part, classes in blocks(values, true):
        distance = part.astype(np.float64)
        distance[np.arange(len(classes)), classes] -= 1
        distances.append(np.vecdot(distance, distance))
    return np.concatenate(distances)


def ranked_scores(values: Array, true: Array) -> Array:
    """Mean squared distance of every row (n, k), cumulated, to the truth, shape (n,)."""
    below = np.cumsum(values[:, :-1], axis=-1, dtype=np.float64)
    below -= true[:, None] <= np.arange(below.shape[-1])
    return np.vecdot(below, below) / np.float64(below.shape[-1])


def places_of_truth(values: Array, true: Array) -> Array:
    """Find the position of the true class in the row's descending scores, shape (n,), from 0.

    Of equal scores, the class with the lowest index comes first, as in a prediction.
    """
    score = values[np.arange(len(true)), true]
    k = values.shape[1]
    # Class by class: several times faster than a reduction over few classes.
    place = np.zeros(len(true), dtype=np.min_scalar_type(k))
    level = np.zeros_like(place)
    for column in values.T:
        place += column > score
        level += column == score
    if (level > 1).any():
        before = np.arange(k) < true[:, None]
        place += np.add.reduce((values == score[:, None]) & before, axis=-1, dtype=place.dtype)
    return place


def blocks(values: Array, beside: Array) -> Iterator[tuple[Array, Array]]:
    """Yield the same blocks of rows of two arrays."""
    for start in range(0, max(1, len(values)), BLOCK):
        yield values[start : start + BLOCK], beside[start : start + BLOCK]


def ranked(
    confidence: Array, correct: Array, weights: Array | None
) -> tuple[Array, Array, Array, Array | None]:
    """Count items and errors from the most confident one on; say where confidence drops after."""
    order = np.argsort(confidence)[::-1]
    confidence, errors = confidence.take(order), ~correct.take(order)
    drops = confidence[1:] != confidence[:-1]
    if weights is None:
        return np.arange(1, len(order) + 1), np.cumsum(errors), drops, None
    weights = weights.take(order)
    return np.cumsum(weights), np.cumsum(errors * weights), drops, weights


def where_dropping(answered: Array, wrong: Array, drops: Array) -> tuple[Array, Array]:
    """Return the numbers where the confidence drops, from (0, 0) to all items."""
    ends = np.append(np.flatnonzero(drops), len(wrong) - 1)
    return np.append(0, answered[ends]), np.append(0, wrong[ends])
