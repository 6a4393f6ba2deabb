"""Movements: which predictions or which cells of the table changed most."""

from dataclasses import dataclass

from rprime.report.decimals import count, plural
from rprime.report.names import shown, shown_if_any
from rprime.schemas.comparison import CellChange, Comparison, Flips, Move


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
        return [_moves(comparison.flips, comparison.moves)] if comparison.moves else []
    return [_cells(comparison.cells)] if comparison.cells is not None else []


def _moves(flips: Flips, moves: list[Move]) -> ChangedPrediction:
    lost, won = count(flips.right_to_wrong), count(flips.wrong_to_right)
    return ChangedPrediction(
        "Changed predictions",
        f"{plural(flips.moved, 'item')} changed: {lost} from right to wrong, "
        f"{won} from wrong to right.",
        ("True class", "Was predicted", "Is predicted"),
        ("Items",),
        tuple(
            (
                (shown(move.true), shown_if_any(move.from_), shown_if_any(move.to)),
                (count(move.items),),
            )
            for move in moves
        ),
    )


def _cells(cells: list[CellChange]) -> ChangedPrediction:
    return ChangedPrediction(
        "Cells that changed most",
        "",
        ("True class", "Predicted as"),
        ("Was", "Is"),
        tuple(
            (
                (shown_if_any(cell.true), shown_if_any(cell.predicted)),
                (count(cell.baseline), count(cell.candidate)),
            )
            for cell in cells
        ),
    )
