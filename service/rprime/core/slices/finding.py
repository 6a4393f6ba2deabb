"""Find the slices with the largest losses, with SliceLine's pruning."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from rprime.core.arrays import Array
from rprime.core.slices.slices import MOST_CELLS, SliceColumn, SliceName

Column = tuple[str, SliceColumn]
"""A column by its name. Its codes are at most the number of values, which stands for all others."""
NEAR = 1.0
"""By how much the score of a crossing may be below that of a slice that contains it."""


class TooManyCellsError(ValueError):
    """The values with enough items have too many crossings: `cells`."""

    def __init__(self, cells: int) -> None:
        super().__init__(f"{cells:,} crossings of values, at most {MOST_CELLS:,}")


@dataclass(frozen=True, eq=False)
class _Counts:
    """The slices of one column or crossing, an axis for each column.

    `scores` has the largest score of each slice and of those that contain it.
    """

    items: Array
    losses: Array
    scores: Array

    def at(self, position: Any) -> "_Counts":  # noqa: ANN401 (a numpy index)
        """Select slices, or insert axes for columns of a crossing that are not in this one."""
        return _Counts(self.items[position], self.losses[position], self.scores[position])


class Finder:
    """A search on n items for the slices with the largest scores.

    The losses are at least 0, and all that are larger than 0 come before the others.

    Notes
    -----
    The score is z = (E - n m) / sqrt(n v (1 - n / N)): E is the sum of the losses of the n items
    of the slice, m and v are mean and variance of all N. A crossing is no candidate if a slice that
    contains it has a score that is larger by 1: it is weak because that slice is.

    Pruning is that of SliceLine (Sagadeeva, Boehm 2021): of all parts of a slice of n items with
    the sum E, none of at least s items has a larger score than n* items with the sum min(E, n* e),
    where e is the largest loss and n* = E / e, cut to [s, n]. A part of several slices is bounded
    by their least n and their least E. A crossing is not counted if no part of it has a bound above
    the lowest candidate.
    """

    def __init__(
        self, columns: Mapping[str, SliceColumn], losses: Array, *, least: int, most: int
    ) -> None:
        self._columns = columns
        self._losses = losses[: np.count_nonzero(losses)]
        self._least, self._most = least, most
        self._size = losses.size
        self._mean, self._variance = float(losses.mean()), float(losses.var())
        self._largest = float(losses.max())
        self.searched = 0
        self.candidates: list[tuple[float, SliceName]] = []

    @property
    def threshold(self) -> float:
        """The score that a further candidate must exceed."""
        full = len(self.candidates) == self._most
        return self.candidates[-1][0] if full else 0.0

    def search(self, crossed: int) -> None:
        """Search slices of up to so many columns, or raise a `TooManyCellsError`."""
        if self._variance <= 0:
            return
        columns = [
            (name, replace(column, codes=np.minimum(column.codes, len(column.values))))
            for name, column in self._columns.items()
        ]
        counted = [self._count([column], ()) for column in columns]
        parts, by_parts = list[Column](), dict[tuple[int, ...], _Counts]()
        for (name, column), counts in zip(columns, counted, strict=True):
            kept = self._bound(counts.items, counts.losses) > self.threshold
            if kept.any():
                by_parts[len(parts),] = counts.at(kept)
                parts.append((name, _only(column, kept)))
        for width in range(2, crossed + 1):
            for chosen in combinations(range(len(parts)), width):
                inner = [chosen[:i] + chosen[i + 1 :] for i in range(width)]
                if all(places in by_parts for places in inner):
                    around = [
                        by_parts[places].at((*[slice(None)] * i, None))
                        for i, places in enumerate(inner)
                    ]
                    items = reduce(np.minimum, (counts.items for counts in around))
                    losses = reduce(np.minimum, (counts.losses for counts in around))
                    # Else nothing in it can be a candidate.
                    if (self._bound(items, losses) > self.threshold).any():
                        by_parts[chosen] = self._count([parts[i] for i in chosen], around)

    def _count(self, parts: Sequence[Column], around: Sequence[_Counts]) -> _Counts:
        shape = [len(column.values) + 1 for _, column in parts]
        if prod(shape) > MOST_CELLS:
            raise TooManyCellsError(prod(shape))
        joint = parts[0][1].codes.astype(np.intp)
        for (_, column), width in zip(parts[1:], shape[1:], strict=True):
            joint *= width
            joint += column.codes
        within = (slice(-1),) * len(parts)
        items = np.bincount(joint, minlength=prod(shape)).reshape(shape)[within]
        lost = joint[: self._losses.size]
        losses = np.bincount(lost, self._losses, prod(shape)).reshape(shape)[within]
        scores = self._score(items, losses)
        self.searched += int(np.count_nonzero(items >= self._least))
        outer = reduce(np.maximum, (counts.scores for counts in around), np.array(-np.inf))
        self._add(parts, np.where(scores > outer - NEAR, scores, -np.inf))
        return _Counts(items, losses, np.maximum(scores, outer))

    def _add(self, parts: Sequence[Column], scores: Array) -> None:
        """Take the best slices of a crossing among the candidates."""
        flat, threshold = scores.ravel(), self.threshold
        best = np.argsort(-flat, kind="stable")[: self._most] if flat.size else ()
        for place in best:
            if flat[place] <= threshold:
                break
            values = np.unravel_index(place, scores.shape)
            pairs = zip(parts, values, strict=True)
            name = {column: part.values[int(value)] for (column, part), value in pairs}
            self.candidates.append((float(flat[place]), name))
        self.candidates.sort(key=lambda candidate: -candidate[0])
        del self.candidates[self._most :]

    def _score(self, items: Array, losses: Array) -> Array:
        """Return the score of each slice; none for one that is too small, or has all items."""
        with np.errstate(all="ignore"):
            variance = items * self._variance * (1 - items / self._size)
            score = (losses - items * self._mean) / np.sqrt(variance)
        used = (items >= self._least) & (items < self._size)
        return np.where(used, score, -np.inf)

    def _bound(self, items: Array, losses: Array) -> Array:
        """Return what no part of each slice exceeds."""
        fewest = np.clip(losses / self._largest, self._least, np.maximum(items, self._least))
        bound = self._score(fewest, np.minimum(losses, fewest * self._largest))
        return np.where(items >= self._least, bound, -np.inf)


def _only(column: SliceColumn, kept: Array) -> SliceColumn:
    """Return a column with some of its values, by a mask."""
    count = np.count_nonzero(kept)
    codes = np.full(len(column.values) + 1, count, np.uint16)
    codes[:-1][kept] = np.arange(count)
    values = tuple(v for v, keep in zip(column.values, kept, strict=True) if keep)
    return SliceColumn(values, codes[column.codes])
