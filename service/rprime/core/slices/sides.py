"""The slices of a test set as sides of their own, to be evaluated and compared alone."""

from dataclasses import replace

import numpy as np

from rprime.core.arrays import Array
from rprime.core.comparison.alignment import Side, with_items
from rprime.core.comparison.compare import Comparison, compare
from rprime.core.options import Options
from rprime.core.slices.slices import Slice


def compare_slice(whole: Comparison, one: Slice, options: Options) -> Comparison | None:
    """Compare the items of a slice alone; None if a side lacks it."""
    same = whole.comparability in ("same_items", "common_items")
    ours, theirs = sides_of_slice(*whole.sides, one, same_items=same)
    if ours is None or theirs is None:
        return None
    return compare(ours, theirs, options, attributed=())


def sides_of_slice(
    candidate: Side, baseline: Side, one: Slice, *, same_items: bool
) -> tuple[Side | None, Side | None]:
    """Return both sides with the items of a slice alone; None for a side that lacks it.

    Where they have the same items, over one list of classes, the candidate's slices are those of
    the baseline.
    """
    ours, inside = side_of_slice(candidate, one), _inside(candidate, one)
    if not same_items or inside is None or ours is None or ours.items is None:
        return ours, side_of_slice(baseline, one)
    side = with_items(replace(baseline, slices=None), np.flatnonzero(inside), ours.items.true)
    return ours, replace(side, fingerprint=baseline.fingerprint)


def side_of_slice(side: Side, one: Slice) -> Side | None:
    """Return a side with the items of a slice alone; None if it lacks the slice."""
    known = side.slices
    if known is None or frozenset(one) not in known.positions:
        return None
    place, inside = known.positions[frozenset(one)], _inside(side, one)
    if side.items is None or inside is None:
        return replace(side, table=known.tables[place], items=None, scores=None, slices=None)
    places = np.flatnonzero(inside)
    found = with_items(replace(side, slices=None), places, side.items.true[places])
    return replace(found, fingerprint=side.fingerprint)


def _inside(side: Side, one: Slice) -> Array | None:
    """Return which items of a side are in a slice; None where only tables are known."""
    known = side.slices
    if known is None or not known.columns or frozenset(one) not in known.positions:
        return None
    return known.inside(known.positions[frozenset(one)])
