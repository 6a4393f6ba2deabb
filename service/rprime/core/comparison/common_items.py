"""Two test sets that share most of their items, and how two test sets differ."""

from dataclasses import dataclass, replace

import numpy as np

from rprime.core.arrays import Array
from rprime.core.comparison.alignment import Side, comparability, shares_class
from rprime.core.items import Items, table_of
from rprime.core.quantities import plural
from rprime.core.scores.scores import Scores

LEAST_SHARED = 0.9
"""Share of the items of each side that both must have, of the same class, to be paired."""


@dataclass(frozen=True, slots=True)
class CommonItems:
    """How many items two test sets share.

    Parameters
    ----------
    shared
        Items of both: these are compared.
    added, removed
        Items that only the candidate has, and only the baseline.
    relabelled
        Shared items with another true class: the candidate's counts for both.
    """

    shared: int
    added: int
    removed: int
    relabelled: int


def count_common(candidate: Side, baseline: Side) -> tuple[CommonItems | None, tuple[Array, ...]]:
    """Count the items that two sides over one list of classes share by ids; None without ids.

    Add the positions of these items on both sides.
    """
    ours, theirs = candidate.items, baseline.items
    if ours is None or theirs is None or ours.ids is None or theirs.ids is None:
        return None, ()
    _, here, there = np.intersect1d(ours.ids, theirs.ids, assume_unique=True, return_indices=True)
    common = CommonItems(
        shared=len(here),
        added=len(ours.true) - len(here),
        removed=len(theirs.true) - len(there),
        relabelled=int(np.count_nonzero(ours.true[here] != theirs.true[there])),
    )
    return common, (here, there)


def enough(common: CommonItems) -> bool:
    """Whether two sides share so many items of the same class that these are compared, paired."""
    largest = common.shared + max(common.added, common.removed)
    kept = common.shared - common.relabelled
    return kept > 0 and kept >= LEAST_SHARED * largest


def items_differ(common: CommonItems) -> str:
    """Say which items are compared, and which numbers of a report are of other ones."""
    return (
        f"{common.shared:,} items are compared, by their ids: {common.removed:,} others of the "
        f"baseline are missing, {common.added:,} are new, and {common.relabelled:,} have another "
        "true class, where that of the candidate counts. Values are of all items of the "
        "candidate; baselines and changes are of the compared ones."
    )


def sets_differ(candidate: Side, baseline: Side, common: CommonItems | None) -> str:
    """Say in a few words how two test sets differ, and what would help."""
    sides = {"candidate": candidate, "baseline": baseline}
    items = {name: side.items for name, side in sides.items() if side.items is not None}
    without = [name for name, known in items.items() if known.ids is None]
    if len(items) == len(sides) and len(without) == 1:
        return (
            f"The items cannot be matched: the {without[0]} has no column `item_id`, unlike the "
            "other side. Send it with both, or leave it out of both."
        )
    parts = [_numbers(candidate, baseline)]
    advice = "Compare with a baseline that was evaluated on this test set."
    if not shares_class(candidate, baseline):
        parts.append("no class has items on both sides")
    elif common is not None:
        others = f", {common.relabelled:,} with another true class" if common.relabelled else ""
        parts.append(
            f"they share {common.shared:,} items by their ids{others}, and a paired comparison "
            f"needs 90 % of either{' with the same one' if others else ''}"
        )
    elif comparability(candidate, baseline) == "unknown":  # only the shares of the classes differ
        advice = (
            "Compare with a baseline that was evaluated on this test set, or send as `population` "
            "the shares of the classes in use: at these the sides are comparable."
        )
    elif len(items) < len(sides):
        advice = f"Send the items of both in one order, or {_FILES}."
    else:
        advice = f"Bring the items of both into one order, or compare {_FILES}."
    return f"The test sets differ: {'; '.join(parts)}. {advice}"


_FILES = "two files with a column `item_id` (CSV, Arrow, Parquet or NPZ), which need no order"


def _numbers(candidate: Side, baseline: Side) -> str:
    """Say how the numbers of items differ; where they do not, what else does."""
    ours, theirs = candidate.table, baseline.table
    said = plural(float(ours.total), "item")
    said = f"the candidate has {said} and the baseline {theirs.total:,.0f}"
    if ours.total == theirs.total:
        said = f"both have {ours.total:,.0f} items"
    with np.errstate(all="ignore"):
        shares = ours.support / ours.total, theirs.support / theirs.total
        apart = np.nan_to_num(np.abs(shares[0] - shares[1]))
    worst = int(np.argmax(apart))
    if apart[worst] > 0:
        now, before = (100 * float(share[worst]) for share in shares)
        name = candidate.labels[worst]
        return f"{said}; class `{name}` has {now:.3g} % of them instead of {before:.3g} %"
    if ours.total != theirs.total:
        return said
    if candidate.fingerprint is None or baseline.fingerprint is None:
        return f"{said}, but not the same identifier of a test set"
    return f"{said}, in another order or with other true classes"


def supports_differ(candidate: Side, baseline: Side) -> str | None:
    """Say in one or two sentences how the items of the classes differ; None if they do not.

    Both sides are over one list of classes.
    """
    ours, theirs = candidate.table, baseline.table
    apart = np.abs(ours.support - theirs.support)
    worst = int(np.argmax(apart))
    if not apart[worst]:
        return None
    said = (
        f"Class `{candidate.labels[worst]}` has {plural(float(ours.support[worst]), 'item')} in "
        f"the candidate and {theirs.support[worst]:,.10g} in the baseline."
    )
    if np.array_equal(ours.support, theirs.predicted) or np.array_equal(
        theirs.support, ours.predicted
    ):
        said += (
            " The items of the classes on one side are the predictions on the other: one matrix "
            "may be transposed. See `axis`."
        )
    return said


def with_items(side: Side, places: Array, true: Array) -> Side:
    """Return a side with some of its items, and these true classes."""
    known = side.items
    assert known is not None  # noqa: S101 (the callers have checked)
    groups, weights = (None if p is None else p[places] for p in (known.groups, known.weights))
    items = Items(true, known.predicted[places], groups, weights)
    scores = None
    if side.scores is not None:
        scores = Scores(true, side.scores.values[places], groups, weights)
    slices, k = side.slices, len(side.labels)
    return replace(
        side,
        items=items,
        table=table_of(items, k),
        fingerprint=None,
        scores=scores,
        slices=None if slices is None or not slices.columns else slices.of_some(places, items, k),
    )
