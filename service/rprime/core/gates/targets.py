"""What a rule of a gate bounds, and the values that it bounds."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from typing import Any, Literal

import numpy as np

from rprime.core.arrays import FloatArray
from rprime.core.catalog import CLASS_INDICES, find
from rprime.core.comparison.aligned_values import AlignedValues
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import Comparison, compare
from rprime.core.comparison.compared_side import ComparedSide, LimitSource
from rprime.core.comparison.difference import Difference
from rprime.core.comparison.difference_intervals import MoverLimits
from rprime.core.custom import CustomIndex, unknown_custom
from rprime.core.estimates import Estimates
from rprime.core.index import REASONS, Index, IndexScope
from rprime.core.items import Items
from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.table import ConfusionTable
from rprime.core.values import compute


@dataclass(frozen=True, eq=False)
class Estimate:
    """Values of one index with their evidence; arrays of shape (..., m).

    Parameters
    ----------
    known
        Values of the index among others.
    entry
        The index; m is k for a per-class one and 1 overall.
    """

    known: Estimates
    entry: Index

    @cached_property
    def value(self) -> FloatArray:
        """The values as averages use them, NaN where undefined or without items."""
        values = self.known.values
        if self._by_class:
            numbers = values.averaged[self._place]
            return np.where(values.defined[self._place] & np.isfinite(numbers), numbers, np.nan)
        numbers = self._rows(values.overall[self._place])
        return np.where(np.isfinite(numbers), numbers, np.nan)

    @property
    def items(self) -> FloatArray:
        """The number of items behind each value."""
        table = self.known.values.sampled
        return self._rows(table.class_items if self._by_class else table.number)

    @cached_property
    def statistic(self) -> MoverLimits:
        """The limits of the values, and their p-values."""
        source = LimitSource((ComparedSide(self.known, resampled=self.entry.resampled),))
        places = self._rows(source.places[not self._by_class][self._place])
        return MoverLimits(self.value, np.zeros_like(self.value), source, places)

    @property
    def effective_groups(self) -> FloatArray | None:
        """The effective number of groups behind each value; None for independent items."""
        both = self.known.prepared.effective_groups
        return None if both is None else self._rows(both[not self._by_class][self._place])

    @property
    def methods(self) -> tuple[str | None, ...]:
        """Method of each interval of a single table, None without an interval."""
        low = self._rows(self._of_report("low")) + 0 * self.value
        name = self._of_report("methods")
        return tuple(name if exists else None for exists in np.isfinite(low))

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reason why a value of a single table or its interval is missing, else empty."""
        values = self.known.values
        codes = values.class_reasons if self._by_class else values.overall_reasons
        missing = 0 if codes is None else self._rows(codes[self._place]) * np.isnan(self.value)
        lacking = self._rows(self._of_report("reasons"))
        return tuple(REASONS[int(code)] for code in np.where(missing, missing, lacking))

    @property
    def _by_class(self) -> bool:
        return self.entry.scope == "class"

    @property
    def _place(self) -> int:
        selection = self.known.values.selection
        places = selection.place if self._by_class else selection.overall_place
        return places[self.entry.key]

    def _of_report(self, name: str) -> Any:  # noqa: ANN401 (an array, or the name of a method)
        prefix = "per_class" if self._by_class else "overall"
        return getattr(self.known.intervals, f"{prefix}_{name}")[self._place]

    def _rows(self, values: FloatArray) -> FloatArray:
        """Add an axis of one result to overall values."""
        return values if self._by_class else np.asarray(values)[..., None]


Classes = Literal["all"] | tuple[str, ...] | None
Mistake = tuple[str, str, str]
"""The member of the rule, a stable code, and a sentence."""
Correlated = tuple[IndexScope, str, str | None]
"""Scope, key and class by which a comparison knows the influences of a number."""


@cache
def ignores_omissions(scope: IndexScope, key: str) -> bool:
    """Whether an index is no worse on a table that loses half of its predictions."""
    entry = find(scope, key)
    if entry is None or entry.scored or entry.best is None:
        return False
    if entry.universe == "classified":
        return True
    options = Options(indices=(key,), beta=2.0, cost=1 - np.eye(3), kappa_weights="linear")
    counts = np.array([[[80.0, 10, 10], [10, 80, 10], [6, 14, 80]]]) / [[[1.0]], [[2.0]]]
    table = ConfusionTable.dense(counts, counts[:1].sum(-1) - counts.sum(-1))
    before, after = compute(table, options, select(options)).lookup(scope, key).reshape(2, -1)
    gain = after - before if entry.higher_is_better else before - after
    return not (gain < -CLOSE).any()


CLOSE = 1e-9
"""Largest change of an index by rounding."""


@dataclass(frozen=True)
class IndexTarget:
    """An index of the catalog: the overall one, or that of classes."""

    key: str
    classes: Classes = None

    @property
    def scope(self) -> IndexScope:
        """The scope of the index."""
        return "overall" if self.classes is None else "class"

    @property
    def entry(self) -> Index:
        """The index in the catalog; every checked target has one."""
        entry = find(self.scope, self.key)
        if entry is None:
            message = f"There is no {self.scope} index {self.key}."
            raise KeyError(message)
        return entry

    @property
    def name(self) -> str:
        """The key."""
        return self.key

    @property
    def keys(self) -> tuple[str, ...]:
        """The key alone."""
        return (self.key,)

    @property
    def best(self) -> float | None:
        """The value of a perfect classifier."""
        return self.entry.best

    @cached_property
    def average(self) -> str | None:
        """Key of the overall index whose mean over slices is tested; None if there is no test.

        For classes that is their own mean. An index without a finite range has none: its mean
        rests on the one class with the largest value.
        """
        if self.classes is None:
            entry: Index | None = self.entry
        else:
            entry = find("overall", f"macro_{self.key}")
        tested = entry is not None and entry.interval is not None and not entry.resampled
        return entry.key if entry and tested and np.isfinite(self.entry.range).all() else None

    @property
    def leaves_out(self) -> bool:
        """Whether classes with few items can be left out: it has classes or averages over them."""
        return self.classes is not None or self.entry.reads in ("macro", "means")

    def mistakes(self, options: Options | None) -> Iterator[Mistake]:
        """Yield what is wrong with the key and the classes."""
        entry = find(self.scope, self.key)
        if entry is None:
            yield "index", "unknown_index", _missing_index(self.scope, self.key)
            return
        if entry.needs and getattr(options, entry.needs, None) is None:
            yield "index", "option_missing", f"{self.key} needs the option {entry.needs}."
        if entry.reads == "custom" and options is not None and self._custom(options) is None:
            yield "index", "unknown_index", unknown_custom(self.key, options.expressions)
        if self.classes == ():
            text = "A rule without classes checks nothing: name classes, or write all."
            yield "classes", "empty", text
        if self.classes not in (None, "all") and len(set(self.classes)) < len(self.classes):
            yield "classes", "duplicate", "A class appears twice."

    def _custom(self, options: Options) -> CustomIndex | None:
        return next((index for index in options.custom if index.key == self.key), None)

    def grows(self, options: Options | None) -> bool:
        """Whether it is an index of one's own that grows with the counts."""
        custom = None if options is None else self._custom(options)
        return custom is not None and not custom.read.scale_invariant

    def subject(self, label: str | None) -> str:
        """Name the index, and the class."""
        return self.key if label is None else f"{self.key} of class `{label}`"

    @property
    def ignores_omissions(self) -> bool:
        """Whether it is no worse where items have no prediction, as R', kappa or precision."""
        return ignores_omissions(self.scope, self.key)

    def lacks(self, declared: tuple[str, ...]) -> bool:  # noqa: ARG002 (classes are rows)
        """Return False: every class has a row of its own."""
        return False

    def estimate(self, side: Side, estimates: Estimates) -> Estimate:  # noqa: ARG002 (all is known)
        """Return the values of the index, a row for each class that the candidate declares."""
        return Estimate(estimates, self.entry)

    def difference(self, comparison: Comparison) -> Difference:
        """Return the differences, shape (rows,), a row for each class of the comparison."""
        return index_differences(self.entry, comparison)

    def correlated(self, label: str | None) -> Correlated | None:
        """Return scope, key and class, by which a comparison knows the influences."""
        return (self.scope, self.key, label)


@dataclass(frozen=True)
class CellTarget:
    """A cell of the table: the share of the items of one class that are predicted as another.

    Notes
    -----
    It is the recall of the first class of a table of two: the items of the true class, predicted
    as the other class or not. So it has the interval and the tests of every recall.
    """

    true: str
    predicted: str

    keys = ()
    entry = CLASS_INDICES["recall"]
    average = "recall"
    leaves_out = False

    @property
    def name(self) -> str:
        """Both classes."""
        return f"confusion({self.true}, {self.predicted})"

    @property
    def best(self) -> float:
        """The share of a perfect classifier."""
        return float(self.true == self.predicted)

    def mistakes(self, options: Options | None) -> Iterator[Mistake]:  # noqa: ARG002 (unused)
        """Yield nothing: the classes are compared with the evidence."""
        yield from ()

    def grows(self, options: Options | None) -> bool:  # noqa: ARG002 (a share)
        """Return False: a share does not grow with the counts."""
        return False

    def subject(self, label: str | None) -> str:  # noqa: ARG002 (a single number)
        """Name the share."""
        return f"the share of class `{self.true}` predicted as `{self.predicted}`"

    @property
    def ignores_omissions(self) -> bool:
        """Whether items without a prediction are no confusion."""
        return self.true != self.predicted

    def lacks(self, declared: tuple[str, ...]) -> bool:
        """Whether one of the two classes is not declared."""
        return not {self.true, self.predicted} <= set(declared)

    def estimate(self, side: Side, estimates: Estimates) -> Estimate:
        """Return the recall of the table of two; the second row is none."""
        # The prevalence of the classes, the only population that is allowed, changes no recall.
        original, kept = estimates.values.options, ("confidence", "exact", "intervals", "sampling")
        settings = {name: getattr(original, name) for name in kept}
        options = Options(indices=("recall",), **settings)
        return Estimate(self._side(side).estimates(options), self.entry)

    def difference(self, comparison: Comparison) -> Difference:
        """Return the difference of the recalls of two tables of two; the second row is none."""
        relation = comparison.comparability
        sides = [self._side(side) for side in comparison.sides]
        if relation == "same_test_set":
            # All items of the true class look alike: only paired ones may be paired.
            sides = [replace(side, items=None) for side in sides]
        identity = None if relation == "unknown" else self.name
        ours, theirs = (replace(side, fingerprint=identity) for side in sides)
        recalls = compare(ours, theirs, Options(indices=("recall",)), attributed=())
        return index_differences(self.entry, recalls)

    def _side(self, side: Side) -> Side:
        """Return the items of the true class as a table of two; empty without the classes."""
        if self.lacks(side.labels):
            return Side(labels=CELL_CLASSES, table=ConfusionTable.dense(np.zeros((2, 2))))
        row, column = side.labels.index(self.true), side.labels.index(self.predicted)
        rows, columns, counts = side.table.cells.coordinates()
        hits = counts[(rows == row) & (columns == column)].sum()
        total = side.table.support[row]
        table = ConfusionTable.dense(
            np.array([[hits, total - hits], [0, 0]]), weighted=side.table.weighted
        )
        items, constant = _binary(side.items, row, column), side.constant
        if constant is not None:
            share = constant.shares[column]
            constant = replace(constant, shares=np.array([share, 1 - share]))
        return Side(labels=CELL_CLASSES, table=table, items=items, constant=constant)

    def correlated(self, label: str | None) -> Correlated | None:  # noqa: ARG002 (a single number)
        """Return None: the comparison does not know its influences."""
        return None


CELL_CLASSES = ("predicted as the other class", "not")
"""The classes of the table of two."""


def _binary(items: Items | None, row: int, column: int) -> Items | None:
    """Return the items of one class, predicted as another one (0) or not (1)."""
    if items is None:
        return None
    of_row = items.true == row
    predicted = (items.predicted[of_row] != column).astype(np.uint8)
    groups, weights = (
        None if part is None else part[of_row] for part in (items.groups, items.weights)
    )
    return Items(np.zeros_like(predicted), predicted, groups, weights)


def index_differences(entry: Index, compared: Comparison | AlignedValues) -> Difference:
    """Return the differences of an index, shape (..., rows), a row for each compared class."""
    if entry.scope == "overall":
        return compared.of_overall(entry.key)[..., np.newaxis]
    return compared.of_classes(entry.key)


Target = IndexTarget | CellTarget
"""A number that a rule bounds, or one for each class: the rows of its evidence."""


@lru_cache(maxsize=256)
def target_of(index: str, classes: Classes, confusion: tuple[str, str] | None) -> Target:
    """Return the target of a rule."""
    return IndexTarget(index, classes) if confusion is None else CellTarget(*confusion)


def _missing_index(scope: IndexScope, key: str) -> str:
    other: IndexScope = "class" if scope == "overall" else "overall"
    if find(other, key) is None:
        return f"The catalog has no index {key}."
    if other == "overall":
        return f"{key} has no per-class values: remove classes."
    return f"{key} is a per-class index: add classes, or use macro_{key}."
