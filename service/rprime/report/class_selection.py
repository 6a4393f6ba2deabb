"""Class selection: which classes a table shows, and in which order."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Generic, TypeVar

from rprime.report.measures import ClassLine, Measures
from rprime.report.text import shown

T = TypeVar("T")

MOST_CLASSES = 100
"""Of a file, which has no further pages."""


@dataclass(frozen=True, slots=True)
class SelectedClasses(Generic[T]):
    """A page of classes."""

    lines: list[T]
    found: int
    """Number of classes that match, on all pages."""
    page: int
    """From 1."""
    pages: int


@dataclass(frozen=True, slots=True)
class Order:
    """By what a list is ordered."""

    order: str = ""
    """What it is called; with a leading "-" the other way round."""

    @property
    def by(self) -> str:
        """What it is ordered by."""
        return self.order.removeprefix("-")

    @property
    def reversed(self) -> bool:
        """Whether it is the other way round."""
        return self.order.startswith("-")

    def sorted(
        self, lines: list[T], value: Callable[[T], Any], *, lowest_first: bool = True
    ) -> list[T]:
        """Sort lines; those without a value come last in either direction."""
        numbered = [(number, line) for line in lines if (number := value(line)) is not None]
        numbered.sort(key=itemgetter(0), reverse=lowest_first == self.reversed)
        return [line for _, line in numbered] + [line for line in lines if value(line) is None]


@dataclass(frozen=True, slots=True)
class ClassSelection(Order):
    """What a reader asks for.

    The order is "labels", "support" or the key of an index that the table shows, worst or largest
    first. Empty: as the report is ordered by itself.
    """

    name: str = ""
    """A part of the names of the classes, in any case."""
    page: int = 1
    size: int = MOST_CLASSES
    """Most classes on the page."""

    def of(self, lines: list[T], label: Callable[[T], str]) -> SelectedClasses[T]:
        """Select the page of classes that are in their order."""
        name = self.name.casefold()
        matches = [line for line in lines if name in shown(label(line)).casefold()]
        pages = max(-(-len(matches) // self.size), 1)
        page = min(self.page, pages)
        kept = matches[(page - 1) * self.size : page * self.size]
        return SelectedClasses(kept, len(matches), page, pages)


def ordered_classes(measures: Measures, selection: ClassSelection) -> tuple[list[ClassLine], str]:
    """Put the classes of a report in the order that is asked for, and say which it is.

    By itself a report has all classes in their order where they fit, else the worst first.
    """
    lines = list(measures.classes)
    if selection.by == "labels":
        return lines[:: -1 if selection.reversed else 1], "in the order of the labels"
    if selection.by == "support":
        ordered = selection.sorted(lines, lambda line: line.support, lowest_first=False)
        return ordered, f"{'fewest' if selection.reversed else 'most'} items first"
    keys = [index.key for index in measures.class_indices]
    if selection.by in keys:
        at = keys.index(selection.by)
        index = measures.class_indices[at]
        falling = index.higher_is_better is not False
        ordered = selection.sorted(
            lines, lambda line: line.measures[at].value, lowest_first=falling
        )
        first = "lowest" if falling != selection.reversed else "highest"
        return ordered, f"{first} {index.name} first"
    if measures.compared or len(lines) > selection.size:
        return _worst_first(measures)
    return lines, measures.own_order


def _worst_first(measures: Measures) -> tuple[list[ClassLine], str]:
    """Put failing classes first, then the surest losses or, without a baseline, the lowest.

    A loss is as sure as the end of its interval next to zero: a few items lose much by chance.
    Worse is what has the worse F1, which sees both kinds of error, else a worse headline.
    """
    lines, indices = list(measures.classes), measures.class_indices
    by = [i for i in indices if i.key == "f1"] or [i for i in indices if i.higher_is_better]
    if not by:
        return sorted(lines, key=lambda line: not line.failing), measures.own_order
    at, name = indices.index(by[0]), by[0].name

    def value(line: ClassLine) -> tuple[float, float] | None:
        measure = line.measures[at]
        if not measures.compared:
            return None if measure.value is None else (measure.value, 0.0)
        return None if measure.change is None else measure.change.surest(lowest=True)

    lines = Order().sorted(lines, value)
    lines.sort(key=lambda line: not line.failing)
    first = "those that fail a rule first, then " if measures.failing - {None} else ""
    lost = any(change is not None and change[1] < 0 for change in map(value, lines))
    surest = f"clearest loss of {name}" if lost else f"smallest gain of {name}"
    words = surest if measures.compared else f"lowest {name}"
    return lines, f"{first}{words} first"
