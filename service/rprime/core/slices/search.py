"""Search for weak slices: found on one half of the items, tested on the other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from rprime.core import special
from rprime.core.arrays import Array
from rprime.core.intervals.proportions import binomial_tail_p, quantile_of, wilson
from rprime.core.multiplicity import holm
from rprime.core.slices.evaluation import shrink
from rprime.core.slices.slices import MOST_CELLS, SliceColumn, SliceName, items_inside, of_places

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


FEWEST_ITEMS = 64
"""Least items of a slice by default; SliceLine takes 32, and here half of them find it."""
SMALLEST_SHARE = 0.01
"""Least share of the items in a slice by default, as in SliceLine."""
POWER = 0.8
_BISECTIONS = 50


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """What is searched.

    `crossed` is the most columns of one slice, 1 to 3; `min_items` the least items of a slice,
    where None means 1 % of all, at least 64; `confidence` that of all tests together, and of each
    interval.
    """

    crossed: int = 3
    candidates: int = 20
    min_items: int | None = None
    confidence: float = 0.95
    seed: int = 0

    def least(self, items: int) -> int:
        """Return the least items of a slice of so many."""
        return self.min_items or max(FEWEST_ITEMS, int(SMALLEST_SHARE * items))


@dataclass(frozen=True, eq=False)
class FoundSlices:
    """Slices as the half of the items tells of them that they were not found on.

    `names` are by the shrunken losses (empirical Bayes), the worst first. Arrays, shape (c,), have
    the mean losses of the items of each slice and of all others, limits of losses - rests, and
    one-sided p-values of a loss no larger than that of the rest, adjusted by Holm.
    """

    names: tuple[SliceName, ...]
    items: Array
    losses: Array
    rests: Array
    lower: Array
    upper: Array
    p_adjusted: Array
    shrunken: Array


@dataclass(frozen=True, kw_only=True)
class SearchPlan:
    """Which slices a search finds.

    `halves` are the numbers of items that find and that test; a candidate exceeded the score
    `threshold`; `alpha` is the level of the first step of Holm, for as many candidates as may be;
    the smallest loss is 0.
    """

    least: int
    halves: tuple[int, int]
    searched: int
    threshold: float
    alpha: float
    mean: float
    variance: float
    largest: float
    binary: bool

    @cached_property
    def detectable(self) -> list[tuple[int, float]]:
        """Numbers of items, and the difference to the rest that is found with power .8 in them.

        Numbers without such a difference are left out.

        Notes
        -----
        Found is a slice whose score in the one half exceeds the threshold, and whose p-value in the
        other half is below the level of Holm's first step. The halves are independent, so the
        probabilities multiply. As the rest is estimated, too, n of N items tell as much as
        n (1 - n / N) items would beside a rest that is known.
        """
        total = sum(self.halves)
        sizes = [self.least << i for i in range(32) if self.least << i <= total // 2]
        if not sizes or self.variance <= 0:
            return []
        parts = np.array(sizes) / total
        low, high = np.zeros(parts.size), np.full(parts.size, self.largest - self.mean)
        there = self._power(parts, high) >= POWER
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            enough = self._power(parts, middle) >= POWER
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return [(n, float(d)) for n, d, reached in zip(sizes, high, there, strict=True) if reached]

    def _power(self, parts: Array, difference: Array) -> Array:
        """Return how likely slices are found that have these parts of all items."""
        items = parts * (1 - parts) * sum(self.halves) / 2
        if not self.binary:
            distance = difference * np.sqrt(items / self.variance)
            critical = special.stdtrit(items - 1, 1 - self.alpha)
            proposed, proven = (special.ndtr(distance - z) for z in (self.threshold, critical))
            return np.asarray(proposed * proven)
        # Such a slice makes the mean of all larger, too.
        n, share = np.floor(items), (self.mean + parts * difference) / self.largest
        worse = np.minimum(share + difference / self.largest, 1.0)
        enough = np.ceil(n * share + self.threshold * np.sqrt(n * share * (1 - share)))
        critical = np.ceil(special.bdtrik(1 - self.alpha, n, share)) + 1
        proposed, proven = (binomial_tail_p(least, n, worse) for least in (enough, critical))
        return np.asarray(proposed * proven)


def search_slices(
    columns: Mapping[str, SliceColumn], losses: Array, options: SearchOptions
) -> tuple[FoundSlices, SearchPlan]:
    """Search for slices whose items have a larger mean loss than the rest.

    Losses are finite, shape (n,), n > 1; a larger one is worse. Returns the candidates, which are
    weak where `p_adjusted` is at most 1 - confidence; and which slices would have been found.
    Raises a `TooManyCellsError`.

    Notes
    -----
    `Finder` says which slices the one half proposes. The other half has not been looked at until
    then, so its tests are about no more than the candidates: Fisher's exact test where there are
    only two losses, else Welch's t-test, which is conservative for losses with a long right tail.
    """
    lowest = losses.min()
    losses = losses - lowest
    order = np.random.default_rng(options.seed).permutation(losses.size)
    finds = np.zeros(losses.size, bool)
    finds[order[: losses.size // 2]] = True
    lost = losses > 0  # only these are summed, so they come first
    places = np.concatenate((np.flatnonzero(finds & lost), np.flatnonzero(finds & ~lost)))
    least = options.least(losses.size)
    # A slice of the least size has two standard deviations less than half of it here.
    fewest = max(int(least / 2 - least**0.5), 2)
    finding = of_places(columns, places)
    finder = Finder(finding, losses[places], least=fewest, most=options.candidates)
    finder.search(options.crossed)
    names = [name for _, name in finder.candidates]
    tests = np.flatnonzero(~finds)
    tested = losses[tests]
    binary = bool(np.isin(tested, (0, tested.max())).all())
    slices = _tested(names, of_places(columns, tests), tested, options.confidence, binary=binary)
    plan = SearchPlan(
        least=least,
        halves=(places.size, tests.size),
        searched=finder.searched,
        threshold=finder.threshold,
        alpha=(1 - options.confidence) / options.candidates,
        mean=float(tested.mean()),
        variance=float(tested.var()),
        largest=float(tested.max()),
        binary=binary,
    )
    means = {part: getattr(slices, part) + lowest for part in ("losses", "rests", "shrunken")}
    return replace(slices, **means), plan


def _tested(
    names: list[SliceName],
    columns: Mapping[str, SliceColumn],
    losses: Array,
    confidence: float,
    *,
    binary: bool,
) -> FoundSlices:
    """Compare slices with their rests."""
    parts = [losses, *(losses[items_inside(name, columns)] for name in names)]
    # The number of items, and the sums of their losses and of their squares.
    moments = np.array([(part.size, part.sum(), part @ part) for part in parts]).T
    whole, sums = moments[:, :1], moments[:, 1:]
    with np.errstate(all="ignore"):
        compare = _exact if binary else _welch
        p, lower, upper = compare(sums, whole - sums, float(losses.max()), confidence)
        means, rests = (part[1] / part[0] for part in (sums, whole - sums))
    shrunken, order = shrink(means, sums[0], losses.mean(), losses.var(), whole[0])
    first = np.argsort(-order, kind="stable")  # NaN comes last
    numbers = (sums[0], means, rests, lower, upper, holm(p), shrunken)
    return FoundSlices(tuple(names[i] for i in first), *(part[first] for part in numbers))


def _exact(
    sums: Array, rest: Array, largest: float, confidence: float
) -> tuple[Array, Array, Array]:
    """Return Fisher's p-values and the limits of Newcombe 1998, by the limits of both shares."""
    (n, hits, _), (m, others, _) = (np.rint(part / [[1], [largest], [1]]) for part in (sums, rest))
    columns = zip(hits, n, hits + others, n + m, strict=True)
    p = np.array([hypergeometric_tail_p(*map(float, column)) for column in columns])
    z = quantile_of(confidence)
    (low, high), (below, above) = wilson(hits, n, z), wilson(others, m, z)
    share, other = hits / n, others / m
    lower = share - other - np.hypot(share - low, above - other)
    upper = share - other + np.hypot(high - share, other - below)
    return p, lower * largest, upper * largest


def _welch(sums: Array, rest: Array, _: float, confidence: float) -> tuple[Array, Array, Array]:
    """Return the p-values and limits of Welch 1947."""
    parts = [(n, s / n, (q - s * s / n) / (n - 1) / n) for n, s, q in (sums, rest)]
    (n, mean, v), (m, other, w) = parts
    error, difference = np.sqrt(v + w), mean - other
    freedom = (v + w) ** 2 / (v**2 / (n - 1) + w**2 / (m - 1))
    reach = special.stdtrit(freedom, (1 + confidence) / 2) * error
    p = special.stdtr(freedom, -difference / error)
    return p, difference - reach, difference + reach


def hypergeometric_tail_p(hits: float, items: float, marked: float, total: float) -> float:
    """Exact one-sided P(X >= hits) where `items` of `total` are drawn, and `marked` of all count.

    Summed in log-space up to 40 standard deviations above the mean; the rest is below 1e-300.
    """
    mean = items * marked / total
    far = max(hits, mean) + 40 * (1 + (mean * (1 - marked / total)) ** 0.5)
    k = np.arange(hits, min(items, marked, far) + 1)
    drawn = _log_binomial(marked, k) + _log_binomial(total - marked, items - k)
    with np.errstate(all="ignore"):  # hits that cannot be are infinitely unlikely
        return float(min(np.exp(special.logsumexp(drawn - _log_binomial(total, items))), 1.0))


def _log_binomial(n: float, k: Array | float) -> Array:
    """Return log(n over k)."""
    return np.asarray(-np.log1p(n) - special.betaln(n - k + 1, k + 1))
