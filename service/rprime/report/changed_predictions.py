"""Movements: which predictions or which cells of the table changed most."""

from dataclasses import dataclass

from rprime.core.comparison.attribution import CellChanges
from rprime.core.comparison.compare import Comparison
from rprime.core.comparison.flips import Flips
from rprime.report.decimals import count, plural
from rprime.report.names import shown


@dataclass(frozen=True, slots=True)
class ChangedPrediction:
    """A table of changes: columns of classes, None for unclassified, then columns of numbers."""

    title: str
    note: str
    names: tuple[str, ...]
    numbers: tuple[str, ...]
    rows: tuple[tuple[tuple[str | None, ...], tuple[str, ...]], ...]


def changed_predictions(comparison: Comparison | None) -> list[ChangedPrediction]:
    """Tell what changed: item by item where items are known, else cell by cell."""
    if comparison is None:
        return []
    if comparison.flips is not None:
        return [_moves(comparison.flips)] if comparison.flips.moves else []
    return [_cells(comparison.changes)] if comparison.changes is not None else []


def _moves(flips: Flips) -> ChangedPrediction:
    lost, won = (count(side[-1]) for side in (flips.right_to_wrong, flips.wrong_to_right))
    return ChangedPrediction(
        "Changed predictions",
        f"{plural(flips.moved, 'item')} changed: {lost} from right to wrong, "
        f"{won} from wrong to right.",
        ("True class", "Was predicted", "Is predicted"),
        ("Items",),
        tuple(
            ((shown(move.true), _name(move.before), _name(move.after)), (count(move.items),))
            for move in flips.moves
        ),
    )


def _cells(changes: CellChanges) -> ChangedPrediction:
    names = (*(shown(label) for label in changes.labels), None)
    columns = (changes.true, changes.predicted, changes.baseline, changes.candidate)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return ChangedPrediction(
        "Cells that changed most",
        "",
        ("True class", "Predicted as"),
        ("Was", "Is"),
        tuple(((names[i], names[j]), (count(old), count(new))) for i, j, old, new in rows),
    )


def _name(label: str | None) -> str | None:
    return None if label is None else shown(label)
