"""Two test sets that share most of their items, and how two test sets differ."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rprime.core.comparison.alignment import Side, comparability, shares_class
from rprime.core.comparison.missing_items import MissingCounts, MissingItems
from rprime.core.quantities import plural
from rprime.core.slices.slices import SliceName


@dataclass(frozen=True, slots=True)
class CommonItems:
    """How many items two test sets share.

    Parameters
    ----------
    shared
        Items of both: those of the same true class are compared.
    added, removed
        Items that only the candidate has, and only the baseline.
    relabelled
        Shared items with another true class.
    """

    shared: int
    added: int
    removed: int
    relabelled: int

    @classmethod
    def of(cls, missing: MissingItems) -> "CommonItems":
        """Count the items of two sides."""
        counts = missing.counts
        return cls(
            shared=counts.items - counts.removed,
            added=missing.added.size,
            removed=counts.removed,
            relabelled=counts.relabelled,
        )


def items_differ(missing: MissingItems) -> str:
    """Say which items are compared, and which numbers of a report are of other ones."""
    every = missing.unaccepted or missing
    counts, of = every.counts, f"of the {every.counts.items:,} of the baseline"
    numbers = {
        f"the candidate lacks {counts.removed:,}": counts.removed,
        f"{plural(counts.relabelled, 'item', 'have')} another true class": counts.relabelled,
        f"{plural(missing.added.size, 'item', 'are')} new": missing.added.size,
    }
    differ = "; ".join(text for text, number in numbers.items() if number)
    return " ".join(
        (
            f"{missing.present.size:,} items are compared, by their ids, {of}: {differ}.",
            *_lacking([(f"class `{name}`", part) for name, part in every.classes.items()]),
            *_lacking([(f"slice {shown(name)}", part) for name, part in every.slices]),
            *_only_new(missing),
            *([RELABELLED_ADVICE] if counts.relabelled and missing is every else []),
            VALUES_OF_ALL,
        )
    )


RELABELLED_ADVICE = (
    "Evaluate the predictions of the baseline again on the new true classes "
    "(`rprime evaluate BASELINE.csv`, with the new `y_true`), and compare with that."
)
VALUES_OF_ALL = (
    "Values are of all items of the candidate; baselines and changes are of the compared ones."
)
MOST_NAMED = 5
"""Classes or slices that a sentence names."""


def _lacking(parts: list[tuple[str, MissingCounts]]) -> Iterator[str]:
    """Name the classes or slices that lack items, the largest share first, and of how many."""
    parts = sorted(parts, key=lambda part: -part[1].missing / part[1].items)
    named = [
        f"{name} {counts.missing:,} of {counts.items:,}" for name, counts in parts[:MOST_NAMED]
    ]
    more = len(parts) - MOST_NAMED
    if named:
        yield f"Not compared: {', '.join(named)}{f', and of {more:,} more' if more > 0 else ''}."


def shown(name: SliceName) -> str:
    """Return a slice as text."""
    return ", ".join(f"{column}={value}" for column, value in name.items())


def _only_new(missing: MissingItems) -> Iterator[str]:
    """Name the classes of which only the candidate has items."""
    labels, support = missing.baseline.labels, missing.baseline.table.support
    names = [name for name in missing.new_classes if not support[labels.index(name)]]
    named = ", ".join(f"`{name}`" for name in names[:MOST_NAMED])
    more = len(names) - MOST_NAMED
    if names:
        yield f"Only the candidate has items of {named}{f' and {more:,} more' if more > 0 else ''}."


def sets_differ(candidate: Side, baseline: Side, common: CommonItems | None) -> str:
    """Say in a few words how two test sets differ, and what would help."""
    sides = {"candidate": candidate, "baseline": baseline}
    items = {name: side.items for name, side in sides.items() if side.items is not None}
    without = [name for name, of_side in items.items() if of_side.ids is None]
    if len(items) == len(sides) and len(without) == 1:
        return (
            f"The items cannot be matched: the {without[0]} has no `item_id`, unlike the "
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
            f"needs 90 % of the baseline's{' with the same one' if others else ''}"
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


_FILES = "two sides with `item_id`, which need no order"


def _numbers(candidate: Side, baseline: Side) -> str:
    """Say how the numbers of items differ; where they do not, what else does."""
    ours, theirs = candidate.table, baseline.table
    text = plural(float(ours.total), "item")
    text = f"the candidate has {text} and the baseline {theirs.total:,.0f}"
    if ours.total == theirs.total:
        text = f"both have {ours.total:,.0f} items"
    with np.errstate(all="ignore"):
        shares = ours.support / ours.total, theirs.support / theirs.total
        apart = np.nan_to_num(np.abs(shares[0] - shares[1]))
    worst = int(np.argmax(apart))
    if apart[worst] > 0:
        now, before = (100 * float(share[worst]) for share in shares)
        name = candidate.labels[worst]
        return f"{text}; class `{name}` has {now:.3g} % of them instead of {before:.3g} %"
    if ours.total != theirs.total:
        return text
    if candidate.fingerprint is None or baseline.fingerprint is None:
        return f"{text}, but not the same identifier of a test set"
    return f"{text}, in another order or with other true classes"


def supports_differ(candidate: Side, baseline: Side) -> str | None:
    """Say in one or two sentences how the items of the classes differ; None if they do not.

    Both sides are over one list of classes.
    """
    ours, theirs = candidate.table, baseline.table
    apart = np.abs(ours.support - theirs.support)
    worst = int(np.argmax(apart))
    if not apart[worst]:
        return None
    text = (
        f"Class `{candidate.labels[worst]}` has {plural(float(ours.support[worst]), 'item')} in "
        f"the candidate and {theirs.support[worst]:,.10g} in the baseline."
    )
    if np.array_equal(ours.support, theirs.predicted) or np.array_equal(
        theirs.support, ours.predicted
    ):
        text += (
            " The items of the classes on one side are the predictions on the other: one matrix "
            "may be transposed. See `axis`."
        )
    return text
