"""The slices of an evaluation, the weakest first, as values for every rendering."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rprime.core.arrays import Array
from rprime.core.evaluate import Evaluation
from rprime.core.index import Index
from rprime.core.intervals.proportions import quantile_of
from rprime.core.quantities import condition, plural
from rprime.core.slices.evaluation import shrink
from rprime.core.slices.slices import SliceName
from rprime.report.measures import Measure, finite, measured
from rprime.report.text import ABSENT, count, decimal, percent, shown, signed, span

MOST_SLICES = 20


class SliceLine(NamedTuple):
    """A slice with its value, and its difference from the items outside of it.

    Parameters
    ----------
    items
        How many there are; of a class, how many of that class.
    rest
        Overall value minus that of the rest, both limits of this difference, and its adjusted p;
        None where unknown, and for a class.
    tone
        `worse` or `better` where the adjusted test finds a difference, else `open`.
    """

    name: SliceName
    items: float
    measure: Measure
    rest: list[float | None]
    tone: str

    @property
    def text(self) -> str:
        """The name, fit to be shown."""
        return shown_slice(self.name)

    @property
    def column(self) -> str:
        """The columns that the slice is of, fit to be shown."""
        return " and ".join(map(shown, self.name))

    @property
    def numbers(self) -> tuple[str, ...]:
        """What a table says of it after its name."""
        measure, (difference, low, high, p_adjusted) = self.measure, self.rest
        value = (count(self.items), decimal(measure.value), span(measure.low, measure.high))
        p = ABSENT if p_adjusted is None else f"{p_adjusted:.2g}"
        return (*value, signed(difference), span(low, high), p)


@dataclass(frozen=True, slots=True)
class SliceTable:
    """All slices under one index, whose value for all items is `whole`.

    Parameters
    ----------
    lines
        Worst first by the shrunken values; slices without such a value stand last.
    columns
        Titles of the name and of the `numbers` of a line.
    order
        What orders the lines, in words.
    differing
        How many slices differ from the rest, in words; empty where none is tested.
    """

    index: Index
    whole: Measure
    lines: list[SliceLine]
    columns: tuple[str, ...]
    order: str
    differing: str = ""

    @property
    def note(self) -> str:
        """What orders the lines, how many are not among `weakest`, and how many differ."""
        more = len(self.lines) - MOST_SLICES
        left_out = f"; {plural(more, 'slice')} more in the JSON report" if more > 0 else ""
        return f"{self.order}{left_out}.{self.differing}"

    @property
    def weakest(self) -> list[SliceLine]:
        """The lines that a rendering without further pages shows."""
        return self.lines[:MOST_SLICES]


def shown_slice(name: SliceName) -> str:
    """Write the name of a slice, fit to be shown."""
    return ", ".join(shown(condition(*part)) for part in name.items())


def slice_table(
    e: Evaluation, index: Index | None = None, place: int | None = None
) -> SliceTable | None:
    """Return the slices, worst first; None where there are none, or nothing orders them.

    Parameters
    ----------
    index
        An index of the evaluation; None: the one that orders its weakest slices.
    place
        Position of the class that the index is of; None for an overall index.
    """
    sliced = e.slices
    if sliced is None or (index := index or sliced.index) is None:
        return None
    names, tables = sliced.slices.names, sliced.slices.tables
    items = tables.total if place is None else tables.support[:, place]
    alpha = 1 - e.options.confidence
    stack = replace(e, values=sliced.values, intervals=sliced.intervals, position=())
    whole, values = (_values(evaluation, index, place) for evaluation in (e, stack))
    rest = np.full((4, items.size), np.nan)
    if place is not None:
        total, error = e.table.support[place], (whole[2] - whole[1]) / (2 * quantile_of(1 - alpha))
        shrunken = shrink(values[0], items, whole[0], error**2 * total, total)[1]
        defined = np.flatnonzero(np.isfinite(shrunken))
        falling = index.higher_is_better is False
        order = defined[np.argsort((-shrunken if falling else shrunken)[defined], kind="stable")]
    else:
        row = sliced.values.selection.overall_place[index.key]
        parts = (sliced.difference, sliced.lower, sliced.upper, sliced.p_adjusted)
        rest = finite(np.array(parts)[:, row])
        order = sliced.weakest if index is sliced.index else np.zeros(0, np.intp)
    others = np.setdiff1d(np.arange(items.size), order)
    lines = []
    for i in (*order.tolist(), *others.tolist()):
        measure, tone = _measure(index, values[:, i]), _tone(index, rest[:, i], alpha)
        lines.append(SliceLine(names[i], float(items[i]), measure, _known(rest[:, i]), tone))
    by = f"Weakest first, by {index.name} shrunk towards that of all items"
    by = by if order.size else "In the order of the columns"
    confidence = f"{percent(e.options.confidence)} interval"
    rests = ("Difference to the rest", confidence, "Adjusted p") if place is None else ()
    columns = ("Slice", "Items", index.name, confidence, *rests)
    found_by_tests = _differing([line.rest[-1] for line in lines], alpha)
    return SliceTable(index, _measure(index, whole), lines, columns, by, found_by_tests)


def _differing(p_adjusted: list[float | None], alpha: float) -> str:
    tested = [p for p in p_adjusted if p is not None]
    if not tested:
        return ""
    differing = sum(p <= alpha for p in tested)
    verb = "differ" if differing > 1 else "differs"
    number = f"{differing:,}" if differing else "None"
    words = f"{number} of {plural(len(tested), 'slice')} {verb} from the rest"
    return f" {words} (adjusted p at most {alpha:.2g})."


def _values(e: Evaluation, index: Index, place: int | None) -> Array:
    """Return value, lower and upper limit, shape (3, ...); NaN where unknown."""
    indices = e.selection.overall if place is None else e.selection.per_class
    if index not in indices:
        return np.full(3, np.nan)
    if place is None:
        return np.array(measured(e, "overall", indices.index(index))[:3])
    return np.array(measured(e, "class", (indices.index(index), ..., place))[:3])


def _tone(index: Index, rest: Array, alpha: float) -> str:
    """Say whether the difference from the rest is a good one; open unless it was found."""
    if not rest[3] <= alpha or index.higher_is_better is None:
        return "open"
    return "better" if (rest[0] > 0) == index.higher_is_better else "worse"


def _measure(index: Index, values: Array) -> Measure:
    value, low, high = _known(values)
    return Measure(index, value, None if high is None else low, None if low is None else high)


def _known(numbers: Array) -> list[float | None]:
    return [None if n != n else n for n in numbers.tolist()]  # noqa: PLR0124 (NaN)
