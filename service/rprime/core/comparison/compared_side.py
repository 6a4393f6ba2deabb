"""One side of a comparison: its values and their limits at any quantile."""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from rprime.core.arrays import Array
from rprime.core.estimates import Estimates
from rprime.core.index import Index
from rprime.core.selection import Selection, select
from rprime.core.values import Values, compute

AVERAGES = ("macro", "weighted", "means")
Quantile = tuple[float | Array | None, float | Array | None]
"""Of per-class and of overall limits: one for all, or one for each; None where none is needed."""
MOST_TOGETHER = 1 << 14
"""Most values of classes whose limits are computed although few are needed."""


@dataclass(frozen=True, eq=False)
class ComparedSide:
    """The values of one side over the classes of both.

    Parameters
    ----------
    common
        The estimates over the items of the classes that have items on both sides; None if every
        class does. Averages are compared on it.
    own
        Overall values over the classes that the side declares, shape (overall, ...); None if both
        sides declare the same.
    resampled
        Whether limits include those of the bootstrap, where the report has them.
    """

    estimates: Estimates
    common: Estimates | None = None
    own: Array | None = None
    resampled: bool = False

    @property
    def values(self) -> Values:
        """The values of all items."""
        return self.estimates.values

    @property
    def averages(self) -> Values:
        """The values that averages are compared on."""
        return self.values if self.common is None else self.common.values

    @cached_property
    def overall(self) -> Array:
        """Overall values, shape (overall, ...); NaN where undefined."""
        whole = self.values.overall if self.own is None else self.own
        if self.common is not None:
            whole = np.where(self.over_common, self.averages.overall, whole)
        return np.where(np.isfinite(whole), whole, np.nan)

    @cached_property
    def per_class(self) -> Array:
        """Reported per-class values as averages use them, shape (reported, ..., k)."""
        averaged = self.values.averaged[: self.values.selection.reported]
        return np.where(np.isfinite(averaged), averaged, np.nan)

    @cached_property
    def classes_matter(self) -> Array:
        """Whether an index depends on the list of declared classes, shape (overall, ...)."""
        united = self.values.overall
        if self.own is None:
            return np.zeros(united.shape, dtype=bool)
        differ = ~np.isclose(self.own, united, rtol=1e-12, atol=1e-12, equal_nan=True)
        return differ & ~self.over_common if self.common is not None else differ

    def limits(self, quantile: Quantile) -> tuple[Array, Array]:
        """Compute all limits, per class (2, computed, ..., k) and overall (2, overall, ...).

        At None there are no limits of classes (2, computed, ..., 0), and unknown ones overall.
        """
        per_class, overall = _limits(self.estimates, quantile, resampled=self.resampled)
        if self.common is not None:
            overall = np.where(
                self.over_common, _limits(self.common, quantile, resampled=False)[1], overall
            )
        return per_class, overall

    @property
    def averaging(self) -> Array:
        """Whether an overall index is an average over classes, or an expression of one."""
        averages, options = _averages_of_tables(self.values.selection), self.values.options
        if not options.custom:
            return averages
        keys = {index.key for index in options.custom if index.read.averages}
        custom = [entry.key in keys for entry in self.values.selection.overall]
        return averages | np.array(custom, dtype=bool)

    @cached_property
    def over_common(self) -> Array:
        """Whether an overall index is an average over tables of classes, (overall, 1...)."""
        flags = self.averaging
        return flags.reshape(-1, *(1,) * self.values.table.total.ndim)

    def only(self, selection: Selection) -> "ComparedSide":
        """Return the side with fewer indices, for its limits."""
        return ComparedSide(
            _only(self.estimates, selection),
            None if self.common is None else _only(self.common, selection),
            resampled=self.resampled,
        )


@lru_cache(maxsize=256)
def _averages_of_tables(selection: Selection) -> Array:
    return np.array([e.reads in AVERAGES and not e.scored for e in selection.overall], dtype=bool)


def _limits(estimates: Estimates, quantile: Quantile, *, resampled: bool) -> tuple[Array, Array]:
    prepared, values = estimates.prepared, estimates.values
    drawn = resampled and values.options.intervals == "all"
    limits = prepared.limits_on_request if drawn else prepared.limits
    of_classes, of_all = quantile
    per_class = np.zeros((2, *values.per_class.shape[:-1], 0))
    if of_classes is not None:
        per_class = limits("class", of_classes)
    if of_all is None:
        return per_class, np.full((2, *values.overall.shape), np.nan)
    return per_class, limits("overall", of_all)


def _only(estimates: Estimates, selection: Selection) -> Estimates:
    values, options = estimates.values, replace(estimates.values.options, cell_weights=None)
    return replace(
        estimates,
        values=compute(
            values.sampled, options, selection, values.scores, kept_scores=values.kept_scores
        ),
    )


@dataclass(frozen=True, eq=False)
class LimitSource:
    """The limits of all values of a comparison, as one vector: those of classes, then overall.

    Parameters
    ----------
    sides
        Candidate and baseline; the candidate alone for limits of values.
    both
        Whether the only side is a stack that begins with candidate and baseline.
    scopes
        Whether limits of classes (else no part of the vector), and overall ones, are needed.
    """

    sides: tuple[ComparedSide, ...]
    both: bool = False
    scopes: tuple[bool, bool] = (True, True)

    @property
    def selection(self) -> Selection:
        """The indices, the same on all sides."""
        return self.sides[0].values.selection

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Shapes of the values of one side: (computed, ..., k or 0) and (overall, ...)."""
        values = self.sides[0].values
        per_class, overall = (
            (len(part), *part.shape[1 + self.both :]) for part in (values.per_class, values.overall)
        )
        return (*per_class[:-1], per_class[-1] * self.scopes[0]), overall

    @cached_property
    def starts(self) -> Array:
        """Where each index begins in the vector, shape (computed + overall,)."""
        counts, sizes = zip(*((s[0], int(np.prod(s[1:]))) for s in self.shapes), strict=True)
        lengths = np.repeat(sizes, counts)
        return np.cumsum(lengths) - lengths

    @cached_property
    def places(self) -> tuple[Array, Array]:
        """Positions in the vector, in the shapes of the values."""
        split, total = (int(np.prod(shape)) for shape in self.shapes)
        every = np.arange(split + total)
        return every[:split].reshape(self.shapes[0]), every[split:].reshape(self.shapes[1])

    def at(self, quantile: float | Array) -> Array:
        """Compute the limits, shape (sides, 2, n), at a quantile or at one for each of the n."""
        per_class, overall = quantile, quantile
        if not isinstance(quantile, float):
            spread = [quantile[places] for places in self.places]
            per_class, overall = (part[:, None] if self.both else part for part in spread)
        of_classes, of_all = self.scopes
        quantiles = per_class if of_classes else None, overall if of_all else None
        limits = [side.limits(quantiles) for side in self.sides]
        if self.both:
            parts = [part.swapaxes(0, 2).swapaxes(1, 2) for part in limits[0]]
            return np.concatenate([part.reshape(2, 2, -1) for part in parts], axis=-1)
        return np.stack(
            [np.concatenate([part.reshape(2, -1) for part in pair], axis=-1) for pair in limits]
        )

    def only(self, places: Array) -> tuple["LimitSource", Array]:
        """Return what computes the limits of some values only, and their positions in it."""
        rows = np.searchsorted(self.starts, places, side="right") - 1
        needed = np.unique(rows)
        split = len(self.selection.computed)
        scopes = bool((needed < split).any()), bool((needed >= split).any())
        if self.places[0].size <= MOST_TOGETHER or 2 * needed.size > self.starts.size:
            return replace(self, scopes=scopes), places - (not scopes[0]) * self.places[0].size
        entries = self._entries
        keys = tuple(sorted({entries[row].key for row in needed}))
        options = replace(self.sides[0].values.options, indices=keys)
        selection = select(options, scored=self.sides[0].values.scores is not None)
        source = LimitSource(tuple(side.only(selection) for side in self.sides), self.both, scopes)
        place = {(entry.scope, entry.key): i for i, entry in enumerate(source._entries)}
        moved = np.array([place.get((entry.scope, entry.key), -1) for entry in entries])
        return source, source.starts[moved[rows]] + places - self.starts[rows]

    @property
    def _entries(self) -> tuple[Index, ...]:
        return (*self.selection.computed, *self.selection.overall)
