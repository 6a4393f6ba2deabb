"""The slices of a test set as candidates of their own, for rules that hold in each of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from rprime.core.arrays import Array
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.common_items import with_items
from rprime.core.comparison.compare import Comparison, compare
from rprime.core.gates.rules import Rule
from rprime.core.options import Options

MOST_JUDGED = 300
"""Most slices of all rules of a gate together: each is compared on its own, in milliseconds."""
Slice = tuple[tuple[str, str], ...]
"""Column and value of a slice, or several of a crossing."""


def slices_of(rule: Rule, *sides: Side) -> tuple[Slice, ...]:
    """Return the slices that a rule is about, those of the first side first.

    "all" means every slice, crossings too; a name the slices of that column.
    """
    every: dict[Slice, None] = {}
    for known in (side.slices for side in sides if side.slices is not None):
        every |= dict.fromkeys(tuple(sorted(name.items())) for name in known.names)
    return chosen(rule, every)


def chosen(rule: Rule, every: Iterable[Slice]) -> tuple[Slice, ...]:
    """Return those slices that a rule is about."""
    if rule.slices == "all":
        return tuple(every)
    return tuple(one for one in every if len(one) == 1 and one[0][0] in rule.columns)


def too_many(rules: Sequence[Rule], *sides: Side) -> int | None:
    """Return the position of the rule with which the slices are more than `MOST_JUDGED`."""
    counts = [0 if r.slices is None else len(slices_of(r, *sides)) for r in rules]
    beyond = np.flatnonzero(np.cumsum(counts) > MOST_JUDGED)
    return int(beyond[0]) if beyond.size else None


def missing_columns(rule: Rule, found: tuple[Slice, ...]) -> Iterator[str]:
    """Yield the columns that a rule names and no slice has; "all" without any slice."""
    known = {column for one in found for column, _ in one}
    yield from (n for n in rule.columns if n not in known and not (found and n == "all"))


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
