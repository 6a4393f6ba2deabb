"""Items of a baseline that a candidate lacks, relabelled or moved, and their worst case.

`MatchedItems.of` matches the items of two sides by their ids; `Comparison.missing` has the result.
An item of the baseline is present if the candidate has it with the same true class, and only these
are compared. The others are missing: removed, relabelled or, in a slice, moved from it or to it.

`worst_case` gives the candidate with every missing item counted as wrong for one index, paired item
by item with `MatchedItems.baseline`: `compare` of both has the other limit that a pass needs.
`of_slice` is the same for the items of a slice, and `worst_values` the side for floors and
ceilings, which has all items of the candidate. `accepting` takes some reasons to be none.

Notes
-----
These are worst-case bounds for data that are not missing at random (Manski 2003, chapter 1).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import ClassVar

import numpy as np

from rprime.core.arrays import Array
from rprime.core.catalog import find
from rprime.core.comparison.alignment import Side, comparability, shares_class, with_items
from rprime.core.index import Index
from rprime.core.items import Items, table_of
from rprime.core.published import PUBLISHED
from rprime.core.quantities import conditions, plural
from rprime.core.scores.scores import Scores
from rprime.core.slices.slices import Slice, SliceColumn, SliceName, items_inside

Cell = tuple[str, str | None]
"""True and predicted class; None is unclassified."""
PRESENT, REMOVED, RELABELLED, MOVED = REASONS = range(4)
MOST_MISSING = 0.1
"""Largest share of the items of a baseline without which the rest is compared."""


@dataclass(frozen=True)
class MissingCounts:
    """How many items are missing, and why; they are not compared."""

    __pydantic_config__: ClassVar = PUBLISHED

    items: int
    """Items of the baseline."""
    removed: int
    """Items that the candidate lacks."""
    relabelled: int
    """Items with another true class."""
    moved: int = 0
    """Items with another slice of the column, in both of these."""

    @property
    def missing(self) -> int:
        """Items that are missing for any reason."""
        return self.removed + self.relabelled + self.moved


@dataclass(frozen=True, kw_only=True)
class MissingOfSlice(MissingCounts):
    """How many items of a slice are missing, and why."""

    slice: dict[str, str]
    """The value of each column that it is of."""


@dataclass(frozen=True, kw_only=True)
class MissingItems(MissingCounts):
    """Items of the baseline that the candidate lacks, relabelled or moved, and its new ones."""

    added: int
    """Items that only the candidate has."""
    classes: dict[str, MissingCounts]
    """The classes that lack items, by the true class of the baseline."""
    slices: list[MissingOfSlice]
    """The slices that lack items, those that lack the largest share first. One that items moved to
    counts these, too."""
    new_classes: dict[str, int]
    """The added items by their true class."""

    @classmethod
    def of(cls, matched: "MatchedItems") -> "MissingItems | None":
        """Count the items that are missing or new, accepted or not; None if all are compared."""
        every = matched.unaccepted or matched
        if not (every.counts.missing or every.added.size or every.slices):
            return None
        return cls(
            **vars(every.counts),
            added=every.added.size,
            classes=every.classes,
            slices=every.slices,
            new_classes=every.new_classes,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class MatchedItems:
    """The items of a baseline as a candidate has them.

    Parameters
    ----------
    candidate, baseline
        Sides with items, over one list of classes. The baseline has the n items in question,
        those of a slice also where only the candidate has them in it.
    matched
        Position of each item among those of the candidate; -1 if it has none of this id.
    codes
        `PRESENT`, or why an item is missing, shape (n,).
    added
        Positions of the items that only the candidate has.
    unaccepted
        The items before some reasons were accepted; None if none was.
    """

    candidate: Side
    baseline: Side
    matched: Array
    codes: Array
    added: Array
    unaccepted: "MatchedItems | None" = None

    @classmethod
    def of(cls, candidate: Side, baseline: Side) -> "MatchedItems | None":
        """Match the items of two sides by their ids; None if a side has none."""
        ours, theirs = candidate.items, baseline.items
        if ours is None or theirs is None or ours.ids is None or theirs.ids is None:
            return None
        matched = _matched(ours.ids, theirs.ids)
        codes = np.where(matched < 0, REMOVED, PRESENT).astype(np.uint8)
        codes[(matched >= 0) & (theirs.true != ours.true[matched])] = RELABELLED
        added = np.ones(len(ours.true), dtype=np.bool_)
        added[matched[matched >= 0]] = False
        return cls(
            candidate=candidate,
            baseline=baseline,
            matched=matched,
            codes=codes,
            added=np.flatnonzero(added),
        )

    @classmethod
    def of_same(cls, candidate: Side, baseline: Side) -> "MatchedItems":
        """Match sides with the same items in the same order: items can only have moved."""
        matched = np.arange(_true(baseline).size)
        codes, none = np.full(matched.shape, PRESENT, dtype=np.uint8), matched[:0]
        return cls(candidate=candidate, baseline=baseline, matched=matched, codes=codes, added=none)

    def accepting(self, *, removed: bool, relabelled: bool) -> "MatchedItems":
        """Return the same where removed items do not count, or have the new true class.

        The baseline then lacks the removed items, and has the new true classes of the relabelled.
        """
        counts, codes, baseline = self.counts, self.codes.copy(), self.baseline
        relabelled, removed = relabelled and counts.relabelled > 0, removed and counts.removed > 0
        if not removed and not relabelled:
            return self
        true = _true(baseline).copy()
        if relabelled:
            changed = codes == RELABELLED
            true[changed], codes[changed] = _true(self.candidate)[self.matched[changed]], PRESENT
        kept = np.flatnonzero(codes != REMOVED) if removed else np.arange(codes.size)
        return replace(
            self,
            baseline=with_items(baseline, kept, true[kept]),
            matched=self.matched[kept],
            codes=codes[kept],
            unaccepted=self,
        )

    @cached_property
    def present(self) -> Array:
        """Positions of the items that both sides have, in the baseline."""
        return np.flatnonzero(self.codes == PRESENT)

    @cached_property
    def counts(self) -> MissingCounts:
        """How many items are missing in all."""
        return _counts(self.codes)

    @property
    def share(self) -> float:
        """Share of the items of the baseline that are missing."""
        return self.counts.missing / max(self.counts.items, 1)

    @property
    def comparable(self) -> bool:
        """Whether enough items are present for these to be compared."""
        return bool(self.present.size) and self.share <= MOST_MISSING

    @cached_property
    def classes(self) -> dict[str, MissingCounts]:
        """The classes that lack items, by the true class of the baseline."""
        places = _true(self.baseline).astype(np.intp) * len(REASONS) + self.codes
        counts = np.bincount(places, minlength=len(REASONS) * self.baseline.table.k)
        by_class = counts.reshape(-1, len(REASONS))
        return {
            self.baseline.labels[code]: MissingCounts(int(row.sum()), *row[1:].tolist())
            for code, row in enumerate(by_class)
            if row[1:].any()
        }

    @cached_property
    def slices(self) -> list[MissingOfSlice]:
        """The slices of both sides that lack items, those that lack the largest share first."""
        names = [n for side in (self.baseline, self.candidate) for n in _slice_names(side)]
        union = list({frozenset(name.items()): name for name in names}.values())
        ours, theirs = (_slice_numbers(s, union) for s in (self.candidate, self.baseline))
        matched, size = self.matched >= 0, len(union) + 1
        counts = np.zeros((len(REASONS), size), dtype=np.intp)
        for columns in ours.keys() & theirs.keys():
            before = theirs[columns]
            now = np.where(matched, ours[columns][self.matched], len(union))
            apart = matched & (now != before)
            codes = np.where(apart & (self.codes == PRESENT), MOVED, self.codes)
            for code in REASONS:
                of_reason = codes == code
                counts[code] += np.bincount(before[of_reason], minlength=size)
                counts[code] += np.bincount(now[of_reason & apart], minlength=size)
        lacking = [
            MissingOfSlice(int(column.sum()), *column[1:].tolist(), slice=dict(name))
            for name, column in zip(union, counts.T[:-1], strict=True)
            if column[1:].any()
        ]
        return sorted(lacking, key=lambda counts: -counts.missing / counts.items)

    @cached_property
    def new_classes(self) -> dict[str, int]:
        """Number of the items that only the candidate has, by their true class."""
        true = _true(self.candidate)[self.added]
        codes, counts = np.unique(true, return_counts=True)
        names = (self.candidate.labels[code] for code in codes.tolist())
        return dict(zip(names, counts.tolist(), strict=True))

    @property
    def relabelled_right(self) -> tuple[int, int]:
        """How many items the new true classes make right for the candidate and the baseline."""
        every = self.unaccepted or self
        places = np.flatnonzero(every.codes == RELABELLED)
        here = every.matched[places]
        new = _true(every.candidate)[here]
        predictions = _predicted(every.candidate)[here], _predicted(every.baseline)[places]
        ours, theirs = (int(np.count_nonzero(predicted == new)) for predicted in predictions)
        return ours, theirs

    def common(self) -> tuple[Side, Side]:
        """Return both sides with the items that are present, in one order.

        An item that has another slice of a column on each side is in none of this column.
        """
        places, here = self.present, self.matched[self.present]
        true = _true(self.candidate)[here]
        ours, theirs = _agreeing(self.candidate, self.baseline, here, places)
        return with_items(ours, here, true), with_items(theirs, places, true)

    def of_slice(self, part: Slice) -> "MatchedItems | None":
        """Return the same for a slice; None if a side has no columns to slice by.

        An item that is in the slice on one side alone is missing from it.
        """
        here, there = _inside(self.candidate, part), _inside(self.baseline, part)
        if here is None or there is None:
            return None
        matched = self.matched >= 0
        ours = matched & here[self.matched]
        chosen = np.flatnonzero(there | ours)
        codes = self.codes.copy()
        codes[(codes == PRESENT) & (ours != there)] = MOVED
        baseline = replace(self.baseline, slices=None)
        return replace(
            self,
            baseline=with_items(baseline, chosen, _true(self.baseline)[chosen]),
            matched=self.matched[chosen],
            codes=codes[chosen],
            added=self.added[here[self.added]],
        )

    def of_class(self, label: str) -> "MatchedItems":
        """Return the same with all other classes as one.

        Enough for an index that counts one class against all others, and much faster.
        """
        code, k = self.baseline.labels.index(label), self.baseline.table.k
        places = np.ones(k + 1, dtype=np.uint8)
        places[code], places[k] = 0, 2
        candidate, baseline = (_of_two(side, places, label) for side in self._sides)
        return replace(self, candidate=candidate, baseline=baseline, unaccepted=None)

    def worst_case(
        self, key: str, label: str | None = None, *, cell: Cell | None = None, right: bool = False
    ) -> Side:
        """Return the candidate on all items of the baseline, with the missing ones as wrong.

        Its items are those of `baseline`, one by one, so that both are paired.

        Parameters
        ----------
        key, label
            The index, and the class that it is about; None for an overall index or an average.
        cell
            The cell that is counted, in place of an index.
        right
            The other extreme, which bounds a rise: the missing ones as right.

        Notes
        -----
        Missing items are predicted as the cell if they are of its row and it is one of errors, else
        as `label`, else like the other errors of their row, evenly if it has none. Their scores
        have the worst observed loss, at least that of a uniform guess; in areas they rank last in
        their class. Weights, groups and true classes are those of the baseline.
        """
        items, old = _items(self.candidate), _items(self.baseline)
        lost = self.codes != PRESENT
        places = np.where(lost, 0, self.matched)
        predicted = items.predicted[places].astype(np.min_scalar_type(self.candidate.table.k))
        predicted[lost] = old.true[lost] if right else self._predictions(label, cell)
        scores = self._scores(key, places, lost, predicted, right=right)
        merged = Items(
            old.true,
            predicted,
            _merged_groups(items.groups, old.groups, places, lost),
            _merged_weights(items.weights, old.weights, places, lost),
        )
        return self._side(merged, scores)

    def worst_values(self, key: str, label: str | None = None, *, cell: Cell | None = None) -> Side:
        """Return all items of the candidate, with the missing ones as wrong, for its values.

        Relabelled and moved items have the true class of the baseline.
        """
        worst, items, old = self.worst_case(key, label, cell=cell), *map(_items, self._sides)
        new, first = self.added, _items(worst)
        groups = self._groups_of_values(items.groups, old.groups)
        weights = None if first.weights is None else np.ones(new.size)
        if items.weights is not None:
            weights = items.weights[new]
        joined = Items(
            np.concatenate([first.true, items.true[new]]),
            np.concatenate([first.predicted, items.predicted[new]]),
            groups,
            _joined(first.weights, weights),
        )
        scores, of_candidate = None, self.candidate.scores
        if worst.scores is not None and of_candidate is not None:
            scores = np.concatenate([worst.scores.values, of_candidate.values[new]])
        return self._side(joined, scores)

    @property
    def _sides(self) -> tuple[Side, Side]:
        return self.candidate, self.baseline

    def _groups_of_values(self, ours: Array | None, theirs: Array | None) -> Array | None:
        """Return the candidate's groups; those of the baseline for missing items, as it has them.

        A group is the same on both sides if it has an item that both have. Without groups on a
        side, each of its items is its own.
        """
        if ours is None and theirs is None:
            return None
        here, lost = self.matched[self.present], self.codes != PRESENT
        count, n = len(_true(self.candidate)), self.codes.size
        new = np.arange(count) if ours is None else ours.astype(np.int64)
        old = np.arange(n) if theirs is None else theirs.astype(np.int64)
        first = int(new.max(initial=-1)) + 1
        same = np.arange(first, first + int(old.max(initial=-1)) + 1)
        same[old[self.present]] = new[here]
        groups = np.empty(n, dtype=np.int64)
        groups[self.present], groups[lost] = new[here], same[old[lost]]
        return np.unique(np.concatenate([groups, new[self.added]]), return_inverse=True)[1]

    @property
    def _unsliced(self) -> Side:
        return replace(self.candidate, slices=None)

    def _side(self, items: Items, scores: Array | None) -> Side:
        joined = None
        if scores is not None:
            joined = Scores(items.true, scores, items.groups, items.weights)
        return replace(
            self._unsliced,
            items=items,
            table=table_of(items, self.candidate.table.k),
            fingerprint=None,
            scores=joined,
        )

    def _predictions(self, label: str | None, cell: Cell | None) -> Array:
        """Return what the missing items are counted as predicted as."""
        true, k = _true(self.baseline)[self.codes != PRESENT], self.baseline.table.k
        predicted = self._spread.copy()
        if cell is not None:
            row, column = (k if name is None else self.baseline.labels.index(name) for name in cell)
            predicted[(true == row) & (row != column)] = column
        elif label is not None:
            column = self.baseline.labels.index(label)
            predicted[true != column] = column
        return predicted

    @cached_property
    def _spread(self) -> Array:
        """Predictions of the missing items like the other errors of their rows."""
        k, present = self.baseline.table.k, self.matched[self.present]
        true = _true(self.baseline)[self.codes != PRESENT]
        rows, columns = _true(self.candidate)[present], _predicted(self.candidate)[present]
        order = np.argsort(rows, kind="stable")
        rows, columns = rows[order], columns[order]
        spread = np.full(true.shape, k, dtype=np.min_scalar_type(k))
        for row in np.unique(true).tolist() if k > 1 else ():
            start, end = np.searchsorted(rows, [row, row + 1])
            errors = np.bincount(columns[start:end], minlength=k + 1)[:k].astype(np.float64)
            errors[row] = 0
            if not errors.any():
                errors = (np.arange(k) != row).astype(np.float64)
            of_row = true == row
            counts = _shared_out(int(np.count_nonzero(of_row)), errors)
            spread[of_row] = np.repeat(np.arange(k), counts)
        return spread

    def _scores(
        self, key: str, places: Array, lost: Array, predicted: Array, *, right: bool
    ) -> Array | None:
        """Return the scores of all items of the baseline, shape (n, k)."""
        scores = self.candidate.scores
        entry = find("overall", key) or find("class", key)
        if scores is None or entry is None or not entry.scored:
            return None
        kind = np.promote_types(scores.values.dtype, np.float32)
        values, true = scores.values[places].astype(kind, copy=False), _true(self.baseline)[lost]
        rows = np.arange(true.size)
        if entry.of_items is not None and entry.interval is not None and not right:
            values[lost] = _worst_row(scores, entry, true.astype(np.intp))
            return values
        # A tie with the lowest or highest score would not be the last or the first place.
        low, high = float(scores.values.min()) - 1, float(scores.values.max()) + 1
        mean_loss = entry.of_items is not None and scores.are_probabilities
        if mean_loss or "not_probabilities" in entry.undefined:
            low, high = 0.0, 1.0
        wrong = np.full((true.size, scores.k), low)
        wrong[rows, np.minimum(predicted[lost], scores.k - 1)] = high
        wrong[rows, true] = high if right else low
        values[lost] = wrong
        return values


def _worst_row(scores: Scores, entry: Index, true: Array) -> Array:
    """Return scores with the worst loss of an item for items of these classes, shape (m, k)."""
    assert entry.of_items is not None  # noqa: S101 (the caller has checked)
    k = scores.k
    guess = Scores(np.zeros(1, dtype=np.intp), np.full((1, k), 1 / k))
    losses = entry.of_items(scores), entry.of_items(guess)
    if entry.higher_is_better:
        losses = -losses[0], -losses[1]
    worst = int(np.argmax(losses[0]))
    if losses[0][worst] < losses[1][0]:
        return np.full((true.size, k), 1 / k)
    row, label = scores.values[worst].astype(np.float64), int(scores.true[worst])
    rows, places = np.tile(row, (true.size, 1)), np.arange(true.size)
    rows[places, label], rows[places, true] = row[true], row[label]
    return rows


def _items(side: Side) -> Items:
    assert side.items is not None  # noqa: S101 (sides of missing items have some)
    return side.items


def _true(side: Side) -> Array:
    return _items(side).true


def _predicted(side: Side) -> Array:
    return _items(side).predicted


def _counts(codes: Array) -> MissingCounts:
    _, removed, relabelled, moved = np.bincount(codes, minlength=len(REASONS)).tolist()
    return MissingCounts(codes.size, removed, relabelled, moved)


def _matched(ours: Array, theirs: Array) -> Array:
    """Return the position among our ids of each of theirs, -1 if it has none."""
    _, here, there = np.intersect1d(ours, theirs, assume_unique=True, return_indices=True)
    matched = np.full(len(theirs), -1, dtype=np.intp)
    matched[there] = here
    return matched


def _of_two(side: Side, places: Array, label: str) -> Side:
    """Return a side over a class and the others; `places` are the new codes of the old ones."""
    original = _items(side)
    items = replace(original, true=places[original.true], predicted=places[original.predicted])
    return replace(
        side,
        labels=(label, f"not {label}"),
        table=table_of(items, 2),
        items=items,
        fingerprint=None,
        scores=None,
        slices=None,
    )


def _agreeing(ours: Side, theirs: Side, here: Array, there: Array) -> tuple[Side, Side]:
    """Take items out of the columns in which they have different slices on both sides."""
    if ours.slices is None or theirs.slices is None:
        return ours, theirs
    new, old = dict(ours.slices.columns), dict(theirs.slices.columns)
    for name in new.keys() & old.keys():
        column, other = new[name], old[name]
        places = {value: i for i, value in enumerate(column.values)}
        same = np.array([*(places.get(v, -1) for v in other.values), len(column.values)])
        codes, numbers = np.minimum(column.codes[here], len(column.values)), other.codes[there]
        apart = codes != same[np.minimum(numbers, len(other.values))]
        if apart.any():
            new[name] = _outside(column, here[apart])
            old[name] = _outside(other, there[apart])
    return (
        replace(ours, slices=replace(ours.slices, columns=new)),
        replace(theirs, slices=replace(theirs.slices, columns=old)),
    )


def _outside(column: SliceColumn, places: Array) -> SliceColumn:
    """Return a column where some items are in no slice."""
    size = len(column.values)
    codes = column.codes.astype(np.promote_types(column.codes.dtype, np.min_scalar_type(size)))
    codes[places] = size
    return replace(column, codes=codes)


def _slice_names(side: Side) -> tuple[SliceName, ...]:
    slices = side.slices
    return () if slices is None or not slices.columns else slices.names


def _slice_numbers(side: Side, union: list[SliceName]) -> dict[frozenset[str], Array]:
    """Return, by columns, the position of each item's slice in a list of names, its length else."""
    names, slices = _slice_names(side), side.slices
    if slices is None or not names:
        return {}
    places = {frozenset(name.items()): i for i, name in enumerate(union)}
    positions = np.array([*(places[frozenset(name.items())] for name in names), len(union)])
    columns = [frozenset(chosen) for chosen, _ in groupby(names, tuple)]
    return {
        chosen: positions[numbers]
        for chosen, numbers in zip(columns, slices.numbered(), strict=True)
    }


def _inside(side: Side, part: Slice) -> Array | None:
    """Return which items of a side are in a slice, none if it lacks its values, shape (n,)."""
    slices, name = side.slices, dict(part)
    if slices is None or not slices.columns.keys() >= name.keys():
        return None
    if any(value not in slices.columns[column].values for column, value in part):
        return np.zeros(_true(side).shape, dtype=np.bool_)
    return items_inside(name, slices.columns)


def _shared_out(number: int, shares: Array) -> Array:
    """Divide a number into whole numbers by shares: the largest remainders are rounded up."""
    exact = number * shares / shares.sum()
    counts = np.floor(exact).astype(np.intp)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: number - int(counts.sum())]] += 1
    return counts


def _merged_weights(
    ours: Array | None, theirs: Array | None, here: Array, lost: Array
) -> Array | None:
    """Return the candidate's weights, and the baseline's for the missing items."""
    if ours is None and theirs is None:
        return None
    new = np.ones(here.shape) if ours is None else ours[here]
    old = np.ones(here.shape) if theirs is None else theirs
    return np.where(lost, old, new)


def _merged_groups(
    ours: Array | None, theirs: Array | None, here: Array, lost: Array
) -> Array | None:
    """Return the baseline's groups, which pairs have; without them a missing item is its own."""
    if ours is None or theirs is not None:
        return theirs
    groups = ours[here].astype(np.int64)
    groups[lost] = int(ours.max()) + 1 + np.arange(np.count_nonzero(lost))
    return groups


def _joined(first: Array | None, second: Array | None) -> Array | None:
    """Join the weights or the groups of the candidate's items."""
    if first is None or second is None:
        return None
    return np.concatenate([first, second])


@dataclass(frozen=True, slots=True)
class CommonItems:
    """How many items two test sets share, by their ids."""

    __pydantic_config__: ClassVar = PUBLISHED

    shared: int
    """Items of both; those of the same true class are compared."""
    added: int
    """Items that only the candidate has."""
    removed: int
    """Items that only the baseline has."""
    relabelled: int
    """Shared items with another true class."""

    @classmethod
    def of(cls, missing: MatchedItems) -> "CommonItems":
        """Count the items of two sides."""
        counts = missing.counts
        return cls(
            shared=counts.items - counts.removed,
            added=missing.added.size,
            removed=counts.removed,
            relabelled=counts.relabelled,
        )


def items_differ(missing: MatchedItems) -> str:
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
            *_lacking([(f"slice {conditions(part.slice)}", part) for part in every.slices]),
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


def _only_new(missing: MatchedItems) -> Iterator[str]:
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
