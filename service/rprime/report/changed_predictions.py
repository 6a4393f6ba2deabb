"""Changed predictions: which predictions, or cells of the table, changed most."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rprime.core.catalog import find
from rprime.core.comparison.flips import Flips, Move
from rprime.core.comparison.missing_items import MissingItems
from rprime.core.index import Index
from rprime.core.quantities import plural
from rprime.core.slices.slices import SliceName
from rprime.report.slices import MOST_SLICES, shown_slice
from rprime.report.text import count, decimal, percent, shown, shown_if_any, signed, span
from rprime.schemas.comparison import CellChange, Comparison, SliceChange, SliceDelta

MOST_BESIDE_MOVES = 5
"""Cells of the table, which are net of moves there and back, where the moves are shown, too."""


@dataclass(frozen=True, slots=True)
class NameTable:
    """A table: columns of classes, None for unclassified, then columns of numbers.

    `slices` has those that the table names, by how it names them; `noun` is what a row is.
    """

    title: str
    note: str
    names: tuple[str, ...]
    numbers: tuple[str, ...]
    rows: Sequence[tuple[tuple[str | None, ...], tuple[str, ...]]]
    slices: Mapping[str, SliceName] = field(default_factory=dict)
    noun: str = "row"


def changed_predictions(comparison: Comparison | None) -> list[NameTable]:
    """Tell what changed: cell by cell, then item by item where items are known."""
    if comparison is None:
        return []
    tables = []
    if comparison.missing is not None and comparison.missing.classes:
        tables.append(_missing(comparison.missing))
    if comparison.cells:
        most = None if comparison.flips is None else MOST_BESIDE_MOVES
        tables.append(_cells(comparison.cells[:most]))
    if comparison.flips is not None and comparison.moves:
        tables.append(_moves(comparison.flips, comparison.moves))
    return [*tables, _slices(comparison)] if comparison.slices else tables


_AS_TABLES = (
    " The slices are compared as tables, because their items are not known on both sides: item by "
    "item, more can be found."
)


def worse_slices(comparison: Comparison) -> list[tuple[SliceChange, Index, SliceDelta]]:
    """Return the slices that are shown to have got worse, and by which index."""
    alpha, worse = 1 - comparison.confidence, []
    for change in comparison.slices or ():
        for key, delta in change.overall.items():
            index, moved, p = find("overall", key), delta.value, delta.p_adjusted
            if index is None or moved is None or p is None or p > alpha:
                continue
            if index.higher_is_better is not None and (moved < 0) == index.higher_is_better:
                worse.append((change, index, delta))
    return worse


def _slices(comparison: Comparison) -> NameTable:
    slices, worse = comparison.slices or [], worse_slices(comparison)
    names = {shown_slice(change.slice): change.slice for change, _, _ in worse}
    number = f"{len(names):,}" if names else "None"
    level = f"adjusted p at most {1 - comparison.confidence:.2g}"
    note = f"{number} of {plural(len(slices), 'slice')} got worse ({level})."
    if any(delta.method == "mover" for change in slices for delta in change.overall.values()):
        note += _AS_TABLES
    rows = []
    for change, index, delta in worse[:MOST_SLICES]:
        interval = span(*(delta.interval or (None, None)))
        sides = (decimal(delta.baseline), decimal(delta.candidate))
        numbers = (index.name, signed(delta.value), interval, *sides, count(change.items))
        rows.append(((shown_slice(change.slice),), numbers))
    confidence = f"{percent(comparison.confidence)} interval"
    columns = ("Index", "Change", confidence, "Was", "Is", "Items")
    return NameTable("Slices that got worse", note, ("Slice",), columns, rows, names)


def _missing(missing: MissingItems) -> NameTable:
    """List the classes that lack items of the baseline, the largest share first."""
    shares = {
        label: (lost.removed + lost.relabelled) / lost.items
        for label, lost in missing.classes.items()
    }
    rows = []
    for label in sorted(shares, key=shares.__getitem__, reverse=True):
        counts = missing.classes[label]
        numbers = (count(counts.removed), count(counts.relabelled), count(counts.items))
        rows.append(((shown(label),), numbers))
    note = (
        f"Of the {plural(missing.items, 'item')} of the baseline the candidate lacks "
        f"{count(missing.removed)}, and {count(missing.relabelled)} have another true class."
    )
    columns = ("Missing", "Relabelled", "Of the baseline")
    return NameTable("Items that are not compared", note, ("True class",), columns, rows)


def _moves(flips: Flips, moves: list[Move]) -> NameTable:
    lost, won = count(flips.right_to_wrong), count(flips.wrong_to_right)
    changed = plural(flips.moved, "item")
    other = flips.moved - flips.right_to_wrong - flips.wrong_to_right
    still = f", {count(other)} from wrong to wrong" if other > 0 else ""
    note = f"{changed} changed: {lost} from right to wrong, {won} from wrong to right{still}."
    rows = [
        ((shown(move.true), shown_if_any(move.from_), shown_if_any(move.to)), (count(move.items),))
        for move in moves
    ]
    columns = ("True class", "Before", "Now")
    return NameTable("Changed predictions", note, columns, ("Items",), rows)


def _cells(cells: list[CellChange]) -> NameTable:
    rows = []
    for cell in cells:
        names = (shown_if_any(cell.true), shown_if_any(cell.predicted))
        rows.append((names, (count(cell.baseline), count(cell.candidate))))
    columns = ("True class", "Predicted as")
    return NameTable("Cells that changed most", "", columns, ("Was", "Is"), rows)
