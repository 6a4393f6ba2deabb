"""Calibration: whether scores are probabilities, and how far these can be believed."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rprime.core.arrays import Array

TOLERANCE = 1e-6
"""How far a row of probabilities may be from a sum of 1."""
LEAST = 1e-15
"""Smaller probabilities of the true class are clipped to it: their logarithm has to exist."""
BINS = 15
EDGES = np.linspace(0.0, 1.0, BINS + 1)
"""Of the bins, the lower edge excluded."""
BLOCK = 1 << 14
"""Rows in each block, so that intermediate arrays stay in the cache."""


@dataclass(frozen=True, eq=False)
class Reliability:
    """The items in bins of equal width by their top score.

    Parameters
    ----------
    items, correct, confidence
        Shape (bins,): how many, how many of them right, and the sum of their top scores.
    """

    items: Array
    correct: Array
    confidence: Array

    @classmethod
    def of(cls, confidence: Array, correct: Array) -> "Reliability":
        """Sort items into the bins (0, 1/15], (1/15, 2/15] and so on; 0 is in the first."""
        places = np.searchsorted(EDGES[1:-1], confidence)
        return cls(
            np.bincount(places, minlength=BINS),
            np.bincount(places, weights=correct, minlength=BINS),
            np.bincount(places, weights=confidence, minlength=BINS),
        )

    @property
    def error(self) -> float:
        """Mean distance between the share of right answers and the mean confidence in a bin.

        Source: Naeini, Cooper, Hauskrecht 2015; Guo et al. 2017.
        """
        gaps = np.abs(self.correct - self.confidence)
        return float(np.add.reduce(gaps) / np.add.reduce(self.items))

    def bins(self) -> Iterator[dict[str, float]]:
        """Return the bins that have items."""
        for i in np.flatnonzero(self.items).tolist():
            items = int(self.items[i])
            yield {
                "low": float(EDGES[i]),
                "high": float(EDGES[i + 1]),
                "items": items,
                "confidence": float(self.confidence[i] / items),
                "accuracy": float(self.correct[i] / items),
            }


def are_probabilities(values: Array) -> bool:
    """Whether every row of scores (n, k) is non-negative and sums to 1 within 1e-6."""
    return all(
        bool((part >= 0).all() and (np.abs(part.sum(-1) - 1) <= TOLERANCE).all())
        for part, _ in blocks(values, values)
    )


def brier_scores(values: Array, true: Array) -> Array:
    """Squared distance of every row (n, k) to the one-hot truth, shape (n,)."""
    result = np.empty(len(true))
    place = 0
    for part, own in blocks(values, true):
        distance = part.astype(np.float64)
        distance[np.arange(len(own)), own] -= 1
        result[place : place + len(own)] = np.vecdot(distance, distance)
        place += len(own)
    return result


def places_of_truth(values: Array, true: Array) -> Array:
    """Position of the true class in the row's descending order of scores, shape (n,), from 0.

    Of equal scores the class of the highest index comes first, as scikit-learn has it; of two
    classes the first one does, which is its rule there.
    """
    result = np.empty(len(true), dtype=np.min_scalar_type(values.shape[1]))
    place = 0
    for part, own in blocks(values, true):
        result[place : place + len(own)] = _places(part, own)
        place += len(own)
    return result


def _places(values: Array, true: Array) -> Array:
    own = values[np.arange(len(true)), true]
    k = values.shape[1]
    # Class by class, which is several times faster than a reduction over few classes.
    ahead = np.zeros(len(true), dtype=np.min_scalar_type(k))
    level = np.zeros_like(ahead)
    for column in values.T:
        ahead += column > own
        level += column == own
    if (level > 1).any():
        before = np.arange(k) < true[:, None] if k == 2 else np.arange(k) > true[:, None]
        ahead += np.add.reduce((values == own[:, None]) & before, axis=-1, dtype=ahead.dtype)
    return ahead


def blocks(values: Array, beside: Array) -> Iterator[tuple[Array, Array]]:
    """Yield blocks of rows of two arrays of n rows."""
    for start in range(0, len(values), BLOCK):
        yield values[start : start + BLOCK], beside[start : start + BLOCK]


def area_under_risk_coverage(confidence: Array, correct: Array) -> float:
    """Mean, over all coverages, of the error rate among the most confident items.

    Items of equal confidence count as if in random order: their errors are spread evenly.

    Source: Geifman, El-Yaniv 2017.
    """
    wrong, drops = _ranked(confidence, correct)
    answered = np.arange(1.0, len(wrong) + 1)
    if not drops.all():
        ends, errors = _where_dropping(wrong, drops)
        wrong = np.interp(answered, ends, errors)
    return float(np.mean(np.divide(wrong, answered, out=answered)))


def errors_by_confidence(confidence: Array, correct: Array) -> tuple[Array, Array]:
    """Count the most confident items, and the wrong ones among them, where confidence drops.

    Returns
    -------
    Both of shape (distinct confidences + 1,), from (0, 0) to all items, most confident first.
    """
    return _where_dropping(*_ranked(confidence, correct))


def _ranked(confidence: Array, correct: Array) -> tuple[Array, Array]:
    """Wrong items among the most confident 1, 2, ... n, and whether confidence drops after 1 ..."""
    order = np.argsort(confidence)[::-1]
    ranked = confidence.take(order)
    return np.cumsum(~correct.take(order)), ranked[1:] != ranked[:-1]


def _where_dropping(wrong: Array, drops: Array) -> tuple[Array, Array]:
    ends = np.append(np.flatnonzero(drops) + 1, len(wrong))
    return np.append(0, ends), np.append(0, wrong[ends - 1])
