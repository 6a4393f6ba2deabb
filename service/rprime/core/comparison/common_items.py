"""Two test sets that share most of their items, and how two test sets differ."""

from dataclasses import dataclass, replace

import numpy as np

from rprime.core.arrays import Array
from rprime.core.comparison.alignment import Side, shares_class
from rprime.core.items import Items, table_of
from rprime.core.scores.scores import Scores

LEAST_SHARED = 0.9
"""Share of the items of each side that both must have to be paired."""


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
    """Whether two sides share so many items that these are compared, paired."""
    largest = common.shared + max(common.added, common.removed)
    return common.shared > 0 and common.shared >= LEAST_SHARED * largest


def sets_differ(candidate: Side, baseline: Side, common: CommonItems | None) -> str:
    """Say in one sentence how two test sets differ, and whether ids would help."""
    ours, theirs = candidate.table, baseline.table
    parts = [f"the candidate has {ours.total:,.0f} items and the baseline {theirs.total:,.0f}"]
    with np.errstate(all="ignore"):
        shares = ours.support / ours.total, theirs.support / theirs.total
        apart = np.nan_to_num(np.abs(shares[0] - shares[1]))
    worst = int(np.argmax(apart))
    if apart[worst] > 0:
        now, before = (100 * float(share[worst]) for share in shares)
        name = candidate.labels[worst]
        parts.append(f"class `{name}` has {now:.3g} % of them instead of {before:.3g} %")
    advice = "Compare with a baseline that was evaluated on this test set."
    if not shares_class(candidate, baseline):
        parts.append("no class has items on both sides")
    elif common is not None:
        parts.append(
            f"they share {common.shared:,} items by their ids, and a paired comparison needs 90 % "
            "of either"
        )
    elif candidate.items is None or baseline.items is None:
        advice = f"Send the items of both with {_COLUMN}: then shared ones are compared."
    else:
        advice = f"Send both with {_COLUMN}: then the items that they share are compared."
    return f"The test sets differ: {'; '.join(parts)}. {advice}"


_COLUMN = "a column `item_id` in a body of columns (CSV, Arrow, Parquet, NPZ)"


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
        f"Class `{candidate.labels[worst]}` has {ours.support[worst]:,.10g} items in the candidate "
        f"and {theirs.support[worst]:,.10g} in the baseline."
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
