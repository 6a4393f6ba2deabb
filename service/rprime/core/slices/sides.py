"""The slices of a test set as sides of their own, to be evaluated and compared alone."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from rprime.core.arrays import Array
from rprime.core.comparison.alignment import Side, estimate_together, with_items
from rprime.core.comparison.compare import Comparison, compare
from rprime.core.options import Options
from rprime.core.slices.slices import Slice


def compare_slices(
    whole: Comparison, parts: Sequence[Slice], options: Options
) -> list[Comparison | None]:
    """Compare the items of each slice alone; None if a side lacks it."""
    same = whole.comparability in ("same_items", "common_items")
    pairs = [sides_of_slice(*whole.sides, part, same_items=same) for part in parts]
    if options.undefined != "null":
        options = replace(options, undefined="null")
    there = [side for pair in pairs if None not in pair for side in pair if side is not None]
    if same:
        for _, alike in groupby(sorted(there, key=_kind), key=_kind):
            estimate_together(list(alike), options)
    return [_compared(whole, *pair, options) for pair in pairs]


def _kind(side: Side) -> str:
    return repr(side.kind)


def _compared(
    whole: Comparison, ours: Side | None, theirs: Side | None, options: Options
) -> Comparison | None:
    if ours is None or theirs is None:
        return None
    if whole.comparability == "different":
        ours, theirs = _without_ids(ours), _without_ids(theirs)
    return compare(ours, theirs, options, attributed=())


def sides_of_slice(
    candidate: Side, baseline: Side, part: Slice, *, same_items: bool
) -> tuple[Side | None, Side | None]:
    """Return both sides with the items of a slice alone; None for a side that lacks it.

    Where they have the same items, over one list of classes, only those count that are in the slice
    on both sides; a baseline without slices has those of the candidate.
    """
    inside, other = _inside(candidate, part), _inside(baseline, part)
    if not same_items or inside is None or candidate.items is None:
        return side_of_slice(candidate, part), side_of_slice(baseline, part)
    if other is not None:
        inside &= other
    if not inside.any():
        return None, None
    ours = _side_of(candidate, inside)
    assert ours.items is not None  # noqa: S101 (so has the candidate)
    side = with_items(replace(baseline, slices=None), np.flatnonzero(inside), ours.items.true)
    return ours, replace(side, fingerprint=baseline.fingerprint)


def side_of_slice(side: Side, part: Slice) -> Side | None:
    """Return a side with the items of a slice alone; None if it lacks the slice."""
    slices = side.slices
    if slices is None or frozenset(part) not in slices.positions:
        return None
    place, inside = slices.positions[frozenset(part)], _inside(side, part)
    if side.items is None or inside is None:
        scoreless = replace(side, scores=None, kept_scores=None, slices=None)
        return replace(scoreless, table=slices.tables[place], items=None)
    return _side_of(side, inside)


def _side_of(side: Side, inside: Array) -> Side:
    """Return a side with some of its items, which keep their ids."""
    all_items, places = side.items, np.flatnonzero(inside)
    assert all_items is not None  # noqa: S101 (the callers have checked)
    kept = with_items(replace(side, slices=None), places, all_items.true[places])
    items = kept.items
    if all_items.ids is not None and items is not None:
        items = replace(items, ids=all_items.ids[places])
    return replace(kept, items=items, fingerprint=side.fingerprint)


def _without_ids(side: Side) -> Side:
    """Return a side whose items cannot be matched: too few of all items are on both sides."""
    return side if side.items is None else replace(side, items=replace(side.items, ids=None))


def _inside(side: Side, part: Slice) -> Array | None:
    """Return which items of a side are in a slice; None where only tables are known."""
    slices = side.slices
    if slices is None or not slices.columns or frozenset(part) not in slices.positions:
        return None
    return slices.inside(slices.positions[frozenset(part)])
