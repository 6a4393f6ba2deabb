"""Whether scores are probabilities, and how well these are calibrated."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rprime.core.arrays import Array

TOLERANCE = 1e-6
"""Largest distance of the sum of a row of probabilities from 1."""
LEAST = 1e-15
"""Smaller probabilities of the true class are clipped to it, because 0 has no logarithm."""
BINS = 15
EDGES = np.linspace(0.0, 1.0, BINS + 1)
"""Upper edges of the bins; a bin excludes its lower edge."""
BLOCK = 1 << 14
"""Rows in each block; intermediate arrays of this size stay in the cache."""


@dataclass(frozen=True, eq=False)
class Reliability:
    """The items, the correct ones and the sums of their top scores, in bins of equal width.

    All have the shape (bins,), and are weighted if the items are.
    """

    items: Array
    correct: Array
    confidence: Array

    @classmethod
    def of(cls, confidence: Array, correct: Array, weights: Array | None = None) -> "Reliability":
        """Sort items into the bins (0, 1/15], (1/15, 2/15] and so on; 0 is in the first."""
        places = np.searchsorted(EDGES[1:-1], confidence)
        parts = (weights, correct, confidence)
        if weights is not None:
            parts = (weights, weights * correct, weights * confidence)
        return cls(*(np.bincount(places, part, BINS) for part in parts))

    @property
    def error(self) -> float:
        """Mean distance between the accuracy and the mean confidence of a bin.

        Source: Naeini, Cooper, Hauskrecht 2015; Guo et al. 2017.
        """
        gaps = np.abs(self.correct - self.confidence)
        return float(np.add.reduce(gaps) / np.add.reduce(self.items))

    def bins(self) -> Iterator[dict[str, float]]:
        """Yield the bins that have items."""
        for i in np.flatnonzero(self.items).tolist():
            items = self.items[i].item()
            yield {
                "low": float(EDGES[i]),
                "high": float(EDGES[i + 1]),
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
