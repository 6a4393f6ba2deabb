"""Class values: some indices of the classes as arrays, with their baseline, to be drawn."""

from dataclasses import dataclass, replace

import numpy as np

from rprime.core.arrays import Array
from rprime.core.evaluate import Evaluation
from rprime.core.index import Index
from rprime.report.decimals import plural
from rprime.report.measures import MeasureColumns, Measures
from rprime.report.subject import ReportSubject


@dataclass(frozen=True, eq=False)
class ClassValueArrays(MeasureColumns):
    """Values of the classes with those of a baseline, shape (index, class) each.

    Parameters
    ----------
    total
        Number of classes there are; more than `labels` where only some are shown.
    """

    baseline: Array
    total: int

    @classmethod
    def of(cls, subject: ReportSubject) -> "ClassValueArrays":
        """Gather every per-class index that a subject has, in the order of its options."""
        evaluation = subject.evaluation
        found = Measures(subject).columns(_in_order(evaluation))
        baseline = np.array([_baseline(subject, entry, found.labels) for entry in found.indices])
        return cls(
            **vars(found),
            baseline=baseline.reshape(found.values.shape),
            total=len(evaluation.labels),
        )

    @property
    def title(self) -> str:
        """Say what is shown."""
        return f"{self.indices[0].name if len(self.indices) == 1 else 'Indices'} by class"

    @property
    def compared(self) -> bool:
        """Whether there is anything to compare with."""
        return bool(np.isfinite(self.baseline).any())

    def worst(self, most: int) -> "ClassValueArrays":
        """Keep the worst classes by the first index where there are more than `most`."""
        if len(self.labels) <= most:
            return self
        badness = self.values[0] * (-1 if self.indices[0].higher_is_better is False else 1)
        return self.taken(np.sort(np.argsort(badness, kind="stable")[:most]))

    def taken(self, places: Array) -> "ClassValueArrays":
        """Keep some classes, in the order given."""
        labels = tuple(self.labels[place] for place in places.tolist())
        names = ("values", "low", "high", "reasons", "baseline")
        return replace(self, labels=labels, **{n: getattr(self, n)[:, places] for n in names})

    @property
    def left_out(self) -> str:
        """Say which classes are shown where not all are; else nothing."""
        if len(self.labels) == self.total:
            return ""
        which = "highest" if self.indices[0].higher_is_better is False else "lowest"
        number = plural(self.total, "class")
        return f"The {len(self.labels)} of {number} with the {which} {self.indices[0].name}."


def _in_order(evaluation: Evaluation) -> tuple[Index, ...]:
    """Return the requested per-class indices."""
    asked = list(evaluation.options.indices or ())
    entries = [entry for entry in evaluation.per_class_indices if not asked or entry.key in asked]
    return tuple(sorted(entries, key=lambda e: asked.index(e.key) if asked else 0))


def _baseline(subject: ReportSubject, entry: Index, labels: tuple[str, ...]) -> list[float]:
    """Return the baseline values of the classes; NaN if unknown."""
    changes = {} if subject.comparison is None else subject.comparison.per_class
    deltas = [changes.get(label, {}).get(entry.key) for label in labels]
    return [np.nan if d is None or d.baseline is None else d.baseline for d in deltas]
