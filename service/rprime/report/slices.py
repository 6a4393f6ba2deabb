"""The weakest slices of an evaluation, as rows of words and numbers for every rendering."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from rprime.core.evaluate import Evaluation
from rprime.report.decimals import ABSENT, count, decimal, percent, plural, signed, span
from rprime.report.names import shown

MOST_SLICES = 20


class SliceTable(NamedTuple):
    """The weakest slices.

    Parameters
    ----------
    columns
        Their titles: the first holds names, the others numbers.
    rows
        Worst first: the name of a slice, fit to be shown, then its numbers.
    note
        What orders them, and how many are left out.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str


def slice_table(evaluation: Evaluation) -> SliceTable | None:
    """Return the weakest slices; None where there are no slices, or nothing orders them."""
    found = evaluation.slices
    if found is None or found.index is None or not found.weakest.size:
        return None
    place = found.values.selection.overall_place[found.index.key]
    limits = (np.full(found.lower.shape, np.nan),) * 2
    if found.intervals is not None:
        limits = found.intervals.overall_low, found.intervals.overall_high
    parts = (
        found.values.overall,
        *limits,
        found.difference,
        found.lower,
        found.upper,
        found.p_adjusted,
    )
    rows = []
    for i in found.weakest[:MOST_SLICES].tolist():
        numbers = (float(part[place, i]) for part in parts)
        value, low, high, moved, lower, upper, p = (n if np.isfinite(n) else None for n in numbers)
        rows.append(
            (
                named(found.slices.names[i]),
                count(found.slices.tables.total[i]),
                decimal(value),
                span(low, high),
                signed(moved),
                span(lower, upper),
                ABSENT if p is None else f"{p:.2g}",
            )
        )
    confidence = f"{percent(evaluation.options.confidence)} interval"
    columns = ("Slice", "Items", found.index.name, confidence, "Difference to the rest")
    more = len(found.slices.names) - len(rows)
    note = f"Weakest first, by {found.index.name} shrunk towards that of all items"
    note += f"; {plural(more, 'slice')} more in the JSON report." if more else "."
    return SliceTable((*columns, confidence, "Adjusted p"), tuple(rows), note)


def named(slice_: Mapping[str, str]) -> str:
    """Name a slice by its columns and values, fit to be shown."""
    return ", ".join(shown(f"{name}={text}") for name, text in slice_.items())
