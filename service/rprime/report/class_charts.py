"""Class charts: the values of the classes, as a page and a file draw them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rprime.core.arrays import Array
from rprime.core.index import Index
from rprime.core.quantities import plural
from rprime.report.class_selection import ClassSelection, ordered_classes
from rprime.report.marks import Axis, union
from rprime.report.measures import MeasureColumns, Measures, class_changes
from rprime.report.styles import Series, series_style
from rprime.report.subject import ReportSubject

MOST_ROWS = 30
"""On a page of a table, and in the chart beside it."""
MOST_SPOKES = 20
_DRAWN = ("values", "low", "high", "baseline")
FEWEST_SPOKES = 4
"""Of three classes each radar is a triangle: they get bars."""


@dataclass(frozen=True, eq=False)
class ClassChart(MeasureColumns):
    """Values of the classes with those of a baseline, shape (index, class) each."""

    baseline: Array
    support: Array
    total: int
    """Number of classes there are; more than `labels` where only some are shown."""
    order: str = ""
    """Which of them are shown, and in which order; empty where there is nothing to say."""

    @classmethod
    def of(cls, measures: Measures, indices: tuple[Index, ...]) -> "ClassChart":
        """Gather indices of the classes in the order of the labels."""
        columns, baseline = measures.columns(indices), []
        for index in indices:
            changes = class_changes(measures.subject.comparison, index.key)
            # A new class has none.
            by_label = {label: change.baseline for label, change in changes.items()}
            baseline.append([by_label.get(label) for label in columns.labels])
        return cls(
            **vars(columns),
            baseline=np.array(baseline, np.float64).reshape(columns.values.shape),
            support=measures.subject.evaluation.table.class_items[measures.positions],
            total=len(measures.subject.evaluation.labels),
        )

    def as_in_table(self, subject: ReportSubject) -> "ClassChart":
        """Keep the first page of the classes, in the order of the report's table."""
        lines, order = ordered_classes(Measures(subject), ClassSelection(size=MOST_ROWS))
        kept = self.named([line.label for line in lines[:MOST_ROWS]])
        first = f"{len(kept.labels)} of " if len(kept.labels) < kept.total else ""
        return replace(kept, order=f"{first}{plural(kept.total, 'class')}, {order}.")

    @property
    def title(self) -> str:
        """What is shown."""
        return f"{self.indices[0].name if len(self.indices) == 1 else 'Indices'} by class"

    @property
    def compared(self) -> bool:
        """Whether there is anything to compare with."""
        return bool(np.isfinite(self.baseline).any())

    def named(self, labels: Sequence[str]) -> "ClassChart":
        """Keep some classes, in the order given."""
        number = {label: i for i, label in enumerate(self.labels)}
        return self.taken(np.array([number[label] for label in labels], np.intp))

    def taken(self, places: Array) -> "ClassChart":
        """Keep the classes at some places, in the order given."""
        labels = tuple(self.labels[place] for place in places.tolist())
        parts = {name: getattr(self, name)[:, places] for name in (*_DRAWN, "reasons")}
        return replace(self, labels=labels, support=self.support[places], **parts)

    def worst(self, most: int) -> "ClassChart":
        """Keep the worst classes by the first index where there are more than `most`."""
        if len(self.labels) <= most:
            return self
        falling = self.indices[0].higher_is_better is False
        badness = self.values[0] * (-1 if falling else 1)
        kept = self.taken(np.sort(np.argsort(badness, kind="stable")[:most]))
        which = f"the {'highest' if falling else 'lowest'} {self.indices[0].name}"
        number = plural(self.total, "class")
        return replace(kept, order=f"The {len(kept.labels)} of {number} with {which}.")

    def axis(self, row: int) -> Axis:
        """Return the ends of the axis of an index."""
        numbers = np.concatenate([getattr(self, name)[row] for name in _DRAWN])
        return Axis.around(numbers, self.indices[row].range)


@dataclass(frozen=True, eq=False)
class RadarChart:
    """The classes around a circle; of very few, as bars."""

    title: str
    order: str
    labels: tuple[str, ...]
    outlines: tuple[Series, ...]
    axis: Axis

    @classmethod
    def of(
        cls, subject: ReportSubject, indices: tuple[Index, ...], overall: Sequence[str] = ()
    ) -> "RadarChart":
        """Draw every index or, for one index, candidate and baseline; then `overall` ones, by key.

        An overall index is a regular polygon.
        """
        chart = ClassChart.of(Measures(subject), indices).worst(MOST_SPOKES)
        bars = len(chart.labels) < FEWEST_SPOKES
        if bars:
            chart = chart.as_in_table(subject)
        rows = [(index.name, row) for index, row in zip(indices, chart.values, strict=True)]
        if len(rows) == 1 and chart.compared:
            names = (subject.title, subject.baseline or "baseline")
            rows = list(zip(names, (chart.values[0], chart.baseline[0]), strict=True))
        evaluation, corners = subject.evaluation, len(chart.labels)
        keys = set(overall) - {index.key for index in indices}
        whole = zip(evaluation.selection.overall, evaluation.overall.tolist(), strict=True)
        rows += [(i.name, np.full(corners, value)) for i, value in whole if i.key in keys]
        finite = np.concatenate([row[np.isfinite(row)] for _, row in rows])
        # A bar begins at 0. Nothing of a radar lies in its centre, where all spokes are one.
        ends = [0.0, 1.0] if bars or not finite.size else [finite.min() - 0.15 * np.ptp(finite)]
        axis = Axis.around([*finite, *ends], union(index.range for index in indices))
        outlines = tuple(Series(name, series_style(i), row) for i, (name, row) in enumerate(rows))
        return cls(chart.title, chart.order, chart.labels, outlines, axis)

    @property
    def bars(self) -> bool:
        """Whether a radar would say nothing."""
        return len(self.labels) < FEWEST_SPOKES


def default_indices(name: str, *, compared: bool) -> tuple[str, ...]:
    """Return what a chart shows: around the circle, of a comparison, both sides of one index."""
    if name == "card":
        return ("recall", "precision", "f1", "r_prime", "accuracy", "macro_f1", "kappa")
    several = name == "per_class" or (name == "radar" and not compared)
    return ("r_prime", "recall", "precision", "f1") if several else ("r_prime",)


def chart_indices(subject: ReportSubject) -> tuple[Index, ...]:
    """Return the per-class indices of a subject, in the order of its options."""
    evaluation = subject.evaluation
    keys = list(evaluation.options.indices or ())
    entries = [entry for entry in evaluation.selection.per_class if not keys or entry.key in keys]
    return tuple(sorted(entries, key=lambda e: keys.index(e.key) if keys else 0))
