"""Evaluate confusion tables, whole stacks at once, and what a store keeps of their scores."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from rprime.core.arrays import Array
from rprime.core.catalog import OVERALL_INDICES
from rprime.core.estimates import Estimates
from rprime.core.intervals.intervals import Intervals
from rprime.core.intervals.proportions import quantile_of
from rprime.core.items import Items
from rprime.core.options import DEFAULT_PAGE_VALUES, ClassPage, Options, Paging, ordered
from rprime.core.scores.kept import KeptScores, KeptValue
from rprime.core.scores.scores import Scores
from rprime.core.selection import Selection, select
from rprime.core.table import ConfusionTable
from rprime.core.values import Values
from rprime.core.warnings import Warning, WarningInputs, check_all, phrase  # noqa: A004 (its name)

if TYPE_CHECKING:
    from rprime.core.slices.evaluation import SliceEvaluation


Labels = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The evaluation of one table, of one table of a stack, or of some of them.

    Values and intervals, if requested, are those of the whole stack; the position in it is () or
    (i,), or (slice,) for some tables.
    """

    labels: tuple[str, ...]
    values: Values
    intervals: Intervals | None
    position: tuple[int | slice, ...]
    warnings: tuple[Warning, ...]
    slices: "SliceEvaluation | None" = None
    most_values: int = DEFAULT_PAGE_VALUES
    """Of classes that it shows where no page was requested."""

    @property
    def options(self) -> Options:
        """The options of the evaluation."""
        return self.values.options

    @property
    def selection(self) -> Selection:
        """The indices of the evaluation, reported in their order."""
        return self.values.selection

    @cached_property
    def table(self) -> ConfusionTable:
        """The table of the items, with cell weights applied."""
        table = self.values.sampled
        return table[self.position[0]] if self.position else table

    @cached_property
    def singles(self) -> list[Self]:
        """The evaluation of each table."""
        if not self.position or not isinstance(self.position[0], slice):
            return [self]
        places = range(*self.position[0].indices(len(self.values.table.total)))
        return [replace(self, position=(i,)) for i in places]

    def at(self, values: Array) -> Array:
        """Return this table's part (index, k) or (index,) of an array of the stack."""
        return values[:, self.position[0]] if self.position else values

    def rows(self, values: Array) -> Array:
        """Return the same with the index last: (k, index) or (index,); (n, ...) for n tables."""
        part = self.at(values)
        return part.T if part.ndim <= len(("index", "class")) else np.moveaxis(part, 0, -1)

    def class_rows(self, values: Array) -> Array:
        """Return the rows of the classes to show, with their reported indices."""
        shown = slice(None) if self.page is None else self.page.positions
        return self.rows(values)[..., shown, : self.selection.reported]

    @cached_property
    def page(self) -> ClassPage | None:
        """The classes to show; None means all, in the order of the labels."""
        paging = self.options.classes
        if paging is None:
            fitting = self.most_values // max(self.selection.reported, 1)
            if self.table.k <= fitting:
                return None
            paging = Paging(limit=fitting)
        if paging.order_by == "labels":
            order = np.arange(self.table.k)
        elif paging.order_by in ("support", "predicted"):
            order = ordered(getattr(self.table, paging.order_by), paging.order_by)
        else:
            values = self.values.lookup("class", paging.order_by)
            order = ordered(values[self.position], paging.order_by)
        shown = order[paging.offset : paging.offset + paging.limit]
        return ClassPage(paging, self.table.k, shown)

    @property
    def per_class(self) -> Array:
        """Reported per-class values, shape (index, k); not finite where undefined."""
        return self.at(self.values.shown[: self.selection.reported])

    @property
    def overall(self) -> Array:
        """Overall values, shape (index,); not finite where undefined."""
        return self.at(self.values.overall)

    @classmethod
    def each(cls, estimates: Estimates, labels: Sequence[Labels], first: int = 0) -> list[Self]:
        """Return one evaluation for each table of a stack, or of those from the first one on."""
        values = estimates.values
        with_intervals = values.options.wants_intervals(values.table.k)
        intervals = estimates.intervals if with_intervals else None
        masks = check_all(WarningInputs(values, intervals))
        stacked = bool(values.table.stack_shape)
        positions = [(first + i,) if stacked else () for i in range(len(labels))]
        return [
            cls(names, values, intervals, position, tuple(phrase(masks, names, position)))
            for names, position in zip(labels, positions, strict=True)
        ]


def evaluate(
    table: ConfusionTable,
    labels: Labels,
    options: Options,
    items: Items | None = None,
    *,
    scores: Scores | None = None,
    kept_scores: KeptScores | None = None,
) -> Evaluation:
    """Evaluate a single table of k named classes, stack shape ().

    The codes of the items matter only if these have groups or weights. The kept scores are those of
    a stored evaluation, whose scores are gone.

    Raises
    ------
    KeyError
        If the catalog lacks a requested index.
    """
    omits = table.unclassified is not None
    scored = scores is not None or kept_scores is not None
    selection = select(options, scored=scored, omits=omits)
    estimates = Estimates.of(table, options, selection, items, scores, kept_scores=kept_scores)
    return evaluation_of(estimates, labels)


def evaluate_stack(
    table: ConfusionTable, labels: Sequence[Labels], options: Options
) -> list[Evaluation]:
    """Evaluate a stack of shape (n,) at once; each table as `evaluate` does it alone."""
    selection = select(options, omits=table.unclassified is not None)
    return Evaluation.each(Estimates.of(table, options, selection), labels)


def evaluation_of(estimates: Estimates, labels: Labels) -> Evaluation:
    """Return the evaluation of a single table from its estimates."""
    return Evaluation.each(estimates.whole, [labels], estimates.position)[0]


CHEAP_RESAMPLED = ("expected_calibration_error",)
"""Kept, too, although a report shows it without an interval: it is in the summary."""
KEPT = tuple(
    entry.key
    for entry in OVERALL_INDICES.values()
    if entry.scored and entry.needs is None and entry.family != "calibration"
    if not entry.resampled or entry.key in CHEAP_RESAMPLED
)
"""Indices that are kept of every evaluation with scores; others only if its report has them."""


def kept_scores(evaluation: Evaluation, items: Items | None) -> KeptScores | None:
    """Return the overall indices of scores of a single table; None without scores.

    Those that the report has are taken from it, the others are computed.
    """
    values = evaluation.values
    if values.scores is None:
        return None
    shown: dict[str, KeptValue] = {}
    if evaluation.intervals is not None:
        shown = dict(_kept(values, evaluation.intervals))
    left = tuple(key for key in {*KEPT, *_keys(values)} if key not in shown)
    if left:
        options = replace(values.options, indices=tuple(sorted(left)), families=(), intervals=True)
        selection = select(options, scored=True)
        estimates = Estimates.of(values.table, options, selection, items, values.scores)
        shown |= _kept(estimates.values, estimates.intervals)
    return KeptScores(quantile_of(values.options.confidence), shown)


def _keys(values: Values) -> Iterator[str]:
    selection = values.selection
    return (selection.overall[place].key for place in selection.overall_scored)


def _kept(values: Values, intervals: Intervals) -> Iterator[tuple[str, KeptValue]]:
    reasons = values.overall_reasons
    for place, key in zip(values.selection.overall_scored, _keys(values), strict=True):
        value = float(values.overall[place])
        missing = 0 if reasons is None else int(reasons[place])
        limits = float(intervals.overall_low[place]), float(intervals.overall_high[place])
        code = missing or int(intervals.overall_reasons[place])
        little = bool(intervals.overall_low_reliability[place])
        yield key, KeptValue(value if np.isfinite(value) else np.nan, *limits, code, little)
