"""Measures: values with their intervals and changes, ready to be shown."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan
from statistics import NormalDist
from typing import Any, Literal, Self

import numpy as np

from rprime.core.arrays import Array
from rprime.core.catalog import CLASS_INDICES, find
from rprime.core.evaluate import Evaluation
from rprime.core.index import REASONS, Index, IndexScope
from rprime.core.quantities import plural
from rprime.core.scores.calibration import Binning
from rprime.core.scores.scores import Scores
from rprime.core.table import ConfusionTable
from rprime.report.subject import ReportSubject
from rprime.report.text import decimal, percent
from rprime.schemas.comparison import Comparison
from rprime.schemas.gate import Delta

MOST_NAMED = 5
"""Classes named in one remark; the others are counted."""
Kind = Literal["classified", "excluded", "counted_as_zero", "options", "biased"]
MARK: dict[Kind, str] = {
    "classified": "†",
    "excluded": "‡",
    "counted_as_zero": "‡",
    "options": "¶",
    "biased": "§",
}


@dataclass(frozen=True, slots=True)
class Remark:
    """A remark on a value: some words, then the names of classes.

    `classified`: the index is computed on the classified items alone; `excluded`: an average
    leaves classes out; `counted_as_zero`: it counts the precision of classes as 0; `options`:
    in a list, those of one evaluation are not the default; `biased`: it is too large on average.
    """

    kind: Kind
    before: str
    labels: tuple[str, ...] = ()
    unnamed: int = 0
    """How many more classes there are than named."""

    @property
    def mark(self) -> str:
        """What stands beside the value."""
        return MARK[self.kind]

    @property
    def classes(self) -> int:
        """How many classes it names or counts."""
        return len(self.labels) + self.unnamed

    def text(self, write: Callable[[str], str]) -> str:
        """Return it as a sentence without a full stop; `write` makes a class name fit to show."""
        named = ", ".join(map(write, self.labels))
        more = f" and {plural(self.unnamed, 'class')} more" if self.unnamed else ""
        return f"{self.before}{named}{more}"


Remarks = tuple[Remark, ...]


def remarks_of(evaluation: Evaluation) -> Callable[[Index], Remarks]:
    """Return what tells the remarks on each index of an evaluation."""
    universe, values, labels = _universe(evaluation), evaluation.values, evaluation.labels
    left_out = evaluation.at(values.undefined_in_averages)
    counted = values.counted_as_zero
    zero = None if counted is None else evaluation.at(counted)

    def remarks(entry: Index) -> Remarks:
        notes = [universe] if universe and classified_only(entry, evaluation) else []
        if entry.key == "expected_calibration_error" and values.scores is not None:
            notes += _biased(values.scores, evaluation.options.calibration)
        for key in entry.of if entry.reads in ("macro", "weighted", "means") else ():
            row = values.selection.place[key]
            if zero is not None:
                notes += _named("counted_as_zero", "with a precision of 0 for ", zero[row], labels)
            # A class without items weighs nothing in a weighted average.
            if entry.reads != "weighted":
                notes += _named("excluded", "mean without ", left_out[row], labels)
        return tuple(dict.fromkeys(notes))

    return remarks


def _biased(scores: Scores, binning: Binning | None) -> list[Remark]:
    if not scores.are_probabilities:
        return []
    expected = decimal(scores.reliability(binning).error_if_calibrated)
    return [Remark("biased", f"about {expected} on average if every probability were true")]


def classified_only(entry: Index, evaluation: Evaluation) -> bool:
    """Whether an index leaves out unclassified items that the evaluation has."""
    table, cost = evaluation.table, evaluation.options.cost
    if not table.has_omissions:
        return False
    priced = entry.needs == "cost" and cost is not None and cost.shape[-1] == table.k
    return priced or entry.universe == "classified"


def marks(remarks: Remarks) -> str:
    """Return the marks of remarks, to stand beside a value."""
    return "".join(dict.fromkeys(remark.mark for remark in remarks))


def _universe(evaluation: Evaluation) -> Remark | None:
    table = evaluation.table
    if not table.has_omissions:
        return None
    if table.unclassified is None or not table.unclassified.any() or not table.total:
        return Remark("classified", "without spurious predictions")
    share = 1 - float(table.unclassified.sum() / table.total)
    return Remark("classified", f"only on the classified items, {percent(round(share, 4))} of all")


def _named(kind: Kind, before: str, where: Array, labels: Sequence[str]) -> list[Remark]:
    places = np.flatnonzero(where).tolist()
    if not places:
        return []
    named = tuple(labels[i] for i in places[:MOST_NAMED])
    return [Remark(kind, before, named, len(places) - len(named))]


Judged = Literal[
    "better",
    "worse",
    "higher",
    "lower",
    "perhaps better",
    "perhaps worse",
    "perhaps higher",
    "perhaps lower",
    "no clear difference",
    "no interval",
    "not compared",
]
SHOWN = ("better", "worse", "higher", "lower")


@dataclass(frozen=True, slots=True)
class Change:
    """Candidate minus baseline of one value, and the interval of this difference.

    Parameters
    ----------
    reason
        Why there is no difference, or no interval of it; else empty.
    judged
        What the interval says, in words; `higher` and `lower` where no direction is better.
        `perhaps` says that it would not say so if it were as wide as the number of classes asks.
    """

    baseline: float | None
    value: float | None
    low: float | None
    high: float | None
    reason: str
    judged: Judged

    @property
    def demonstrated(self) -> bool:
        """Whether the interval leaves no room for no change."""
        return self.judged in SHOWN

    @property
    def tone(self) -> str:
        """Its style on a page."""
        return self.judged if self.demonstrated else "open"

    @classmethod
    def of(cls, index: Index | None, delta: Delta, stretch: float = 1.0) -> Self:
        """Read the difference of an index, one of several whose intervals `stretch` makes joint."""
        low, high = delta.interval or (None, None)
        if delta.value is None:
            judged: Judged = "not compared"
        else:
            judged = _judged(index, low, high, joint=_stretched(delta.value, low, high, stretch))
        return cls(delta.baseline, delta.value, low, high, delta.reason or "", judged)

    def surest(self, *, lowest: bool) -> tuple[float, float] | None:
        """Return what orders a list by its surest losses, or gains: the end next to zero.

        `lowest` asks for that of a fall. Without an interval no fall and no rise is sure; then the
        difference decides. None where there is no difference.
        """
        if self.value is None:
            return None
        end = self.high if lowest else self.low
        if end is None:
            end = max(self.value, 0.0) if lowest else min(self.value, 0.0)
        return end, self.value


@dataclass(frozen=True, slots=True)
class Measure:
    """One value, None where undefined, and its interval.

    Parameters
    ----------
    reason
        Why there is no value, else why there is no interval; empty where both are there or
        no interval was asked for.
    change
        Against the baseline, None without one.
    """

    index: Index
    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str = ""
    change: Change | None = None
    remarks: Remarks = ()

    @property
    def marks(self) -> str:
        """The marks of its remarks; none where there is no value."""
        return "" if self.value is None else marks(self.remarks)


@dataclass(frozen=True, slots=True)
class ClassLine:
    """One class with its values; `failing` where a rule about it fails the gate."""

    label: str
    support: float
    measures: tuple[Measure, ...]
    failing: bool


@dataclass(frozen=True, eq=False)
class MeasureColumns:
    """Several per-class indices as arrays of shape (index, classes), NaN where there is nothing."""

    labels: tuple[str, ...]
    indices: tuple[Index, ...]
    values: Array
    low: Array
    high: Array
    reasons: Array


@dataclass(frozen=True, eq=False)
class Measures:
    """Everything a rendering shows of the values of its subject."""

    subject: ReportSubject

    @property
    def compared(self) -> bool:
        """Whether there is a baseline."""
        return self.subject.comparison is not None

    @cached_property
    def overall(self) -> dict[str, Measure]:
        """Every overall value by its key, in the order of the report."""
        e, comparison = self.subject.evaluation, self.subject.comparison
        deltas = {} if comparison is None else comparison.overall
        columns = zip(*(part.tolist() for part in measured(e, "overall")), strict=True)
        told = remarks_of(e)
        measures: dict[str, Measure] = {}
        for entry, numbers in zip(e.selection.overall, columns, strict=True):
            delta = deltas.get(entry.key)
            change = None if delta is None else Change.of(entry, delta)
            measures[entry.key] = _measure(entry, numbers, change, told(entry))
        return measures

    @property
    def class_indices(self) -> tuple[Index, ...]:
        """The per-class indices, in the order of the report."""
        return self.subject.evaluation.selection.per_class

    @property
    def support_name(self) -> str:
        """What the support of a class is: items, or their weight where only that is known."""
        return "Items" if self.subject.evaluation.table.is_numbered else "Weight"

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of `class_indices` with the marks of their remarks."""
        told = remarks_of(self.subject.evaluation)
        return tuple(f"{entry.name}{marks(told(entry))}" for entry in self.class_indices)

    def legend(self, write: Callable[[str], str]) -> list[str]:
        """Explain the marks of `overall` and `class_indices`, a line for each."""
        told = remarks_of(self.subject.evaluation)
        shown = [m.index for m in self.overall.values() if m.value is not None]
        remarks: dict[Remark, list[str]] = {}
        for entry in (*shown, *self.class_indices):
            for remark in told(entry):
                remarks.setdefault(remark, []).append(entry.name)
        lines = [f"{r.mark} {', '.join(names)}: {r.text(write)}" for r, names in remarks.items()]
        expressions = self.subject.evaluation.options.expressions
        own = [entry for entry in shown if entry.reads == "custom"]
        return lines + [f"{e.name}: {write(expressions[e.symbol])}" for e in own]

    def columns(self, indices: tuple[Index, ...]) -> MeasureColumns:
        """Return the values of per-class indices, with intervals and reasons, of what is shown."""
        e = self.subject.evaluation
        rows = np.array([e.selection.per_class.index(entry) for entry in indices], np.intp)
        parts = measured(e, "class", np.ix_(rows, self.positions))
        return MeasureColumns(self.labels, indices, *parts)

    @cached_property
    def positions(self) -> Array:
        """The numbers of the classes that are shown, in their order."""
        e = self.subject.evaluation
        return np.arange(len(e.labels)) if e.page is None else e.page.positions

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The classes that are shown."""
        return tuple(self.subject.evaluation.labels[i] for i in self.positions)

    @property
    def margins(self) -> tuple[Array, Array, Array]:
        """Items, predictions and correct predictions of the classes that are shown."""
        table, places = self.subject.evaluation.table, self.positions
        return table.support[places], table.predicted[places], table.correct[places]

    @property
    def left_out(self) -> int:
        """How many classes are not shown at all."""
        return len(self.subject.evaluation.labels) - self.positions.size

    @property
    def own_order(self) -> str:
        """Say how `classes` is sorted."""
        page = self.subject.evaluation.page
        if page is None or page.paging.order_by == "labels":
            return "in the order of the labels"
        by = CLASS_INDICES.get(page.paging.order_by)
        return f"ordered by {by.name if by else page.paging.order_by}"

    @cached_property
    def classes(self) -> tuple[ClassLine, ...]:
        """Every class that is shown, in the order of the labels or of the page."""
        columns = self.columns(self.class_indices)
        comparison = self.subject.comparison
        changes = [class_changes(comparison, entry.key) for entry in columns.indices]
        parts = (columns.values, columns.low, columns.high, columns.reasons)
        items = self.subject.evaluation.table.class_items[self.positions]
        rows = zip(items.tolist(), *(part.T.tolist() for part in parts), strict=True)
        lines = []
        for label, (support, *numbers) in zip(self.labels, rows, strict=True):
            cells = zip(columns.indices, zip(*numbers, strict=True), changes, strict=True)
            measures = tuple(_measure(entry, cell, of.get(label)) for entry, cell, of in cells)
            lines.append(ClassLine(label, support, measures, label in self.failing))
        return tuple(lines)

    @cached_property
    def failing(self) -> frozenset[str | None]:
        """Classes with a result that fails the gate."""
        results = () if self.subject.gate is None else self.subject.gate.results
        return frozenset(result.class_ for result in results if result.effect == "fail")

    def confusions(self) -> Iterator[tuple[str, str, float, float]]:
        """Return the largest confusions: true class, predicted one, count, share of the class."""
        e = self.subject.evaluation
        true, predicted, counts = e.table.cells.largest_errors(e.options.top_confusions)
        shares = (counts / e.table.support[true]).tolist()
        cells = zip(true.tolist(), predicted.tolist(), counts.tolist(), shares, strict=True)
        return ((e.labels[i], e.labels[j], n, share) for i, j, n, share in cells)


def counted_noun(table: ConfusionTable) -> str:
    """Return what the cells of a table count: items, or their weight."""
    return "Weight" if table.weighted else "Items"


def class_changes(comparison: Comparison | None, key: str) -> dict[str, Change]:
    """Read the changes of a per-class index, by label; none without a comparison.

    One is called worse or better only if its interval, stretched as Bonferroni's for all classes,
    still leaves out no change.
    """
    if comparison is None:
        return {}
    classes = len(comparison.per_class) + (comparison.classes.left_out or 0)
    stretch = _stretch(comparison.confidence, max(classes, 1))
    return {
        label: Change.of(find("class", key), deltas[key], stretch)
        for label, deltas in comparison.per_class.items()
        if key in deltas
    }


def _stretch(confidence: float, number: int) -> float:
    """Return how much wider so many intervals are that hold together with this confidence."""
    level = (1 - confidence) / 2
    quantile = NormalDist().inv_cdf
    return quantile(level / number) / quantile(level)


def _stretched(
    value: float, low: float | None, high: float | None, stretch: float
) -> tuple[float, float] | None:
    if low is None or high is None:
        return None
    return value + stretch * (low - value), value + stretch * (high - value)


def measured(
    e: Evaluation,
    scope: IndexScope,
    places: Any = ...,  # noqa: ANN401 (an index of an array)
) -> tuple[Array, Array, Array, Array]:
    """Values, both ends of the intervals and codes of the reasons, at some places; else NaN."""
    intervals, overall = e.intervals, scope == "overall"
    shown = e.overall if overall else e.per_class
    reasons = e.values.overall_reasons if overall else e.values.class_reasons
    codes = np.zeros(shown.shape, np.intp) if reasons is None else e.at(reasons)[: len(shown)]
    values, codes = finite(shown[places]), codes[places].astype(np.intp)
    if intervals is None:
        nothing = np.full_like(values, np.nan)
        return values, nothing, nothing, codes
    limits = (intervals.per_class_low, intervals.per_class_high, intervals.per_class_reasons)
    if overall:
        limits = (intervals.overall_low, intervals.overall_high, intervals.overall_reasons)
    low, high, missing = (e.at(part)[places] for part in limits)
    return values, finite(low), finite(high), np.where(codes > 0, codes, missing)


def finite(values: Array) -> Array:
    """Return values with NaN where they are not finite."""
    return np.where(np.isfinite(values), values, np.nan)


def _measure(
    entry: Index, row: tuple[float, float, float, int], change: Change | None, remarks: Remarks = ()
) -> Measure:
    value, low, high, reason = row
    if isnan(value) or isnan(low) or isnan(high):
        point = None if isnan(value) else value
        return Measure(entry, point, None, None, REASONS[reason], change, remarks)
    return Measure(entry, value, low, high, "", change, remarks)


_PERHAPS: dict[Judged, Judged] = {
    "better": "perhaps better",
    "worse": "perhaps worse",
    "higher": "perhaps higher",
    "lower": "perhaps lower",
}


def _judged(
    entry: Index | None, low: float | None, high: float | None, *, joint: tuple[float, float] | None
) -> Judged:
    if low is None or high is None or joint is None:
        return "no interval"
    if low <= 0 <= high:
        return "no clear difference"
    upward = entry and entry.higher_is_better
    judged: Judged = "higher" if low > 0 else "lower"
    if upward is not None:
        judged = "better" if (low > 0) == upward else "worse"
    return _PERHAPS[judged] if joint[0] <= 0 <= joint[1] else judged
