"""Slices of two sides: which they share, and how each changed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import prod

import numpy as np

from rprime.core.arrays import Array
from rprime.core.comparison.aligned_values import AlignedValues
from rprime.core.comparison.alignment import Side, estimate_together, with_items
from rprime.core.comparison.compare import PAIRED, Comparison, compare
from rprime.core.comparison.compared_side import ComparedSide
from rprime.core.comparison.constant import ConstantClassifier
from rprime.core.comparison.difference import CODE
from rprime.core.comparison.joint_counts import JointCounts, distinct
from rprime.core.comparison.paired_variance import (
    PairedVariance,
    number_of,
    parts_of,
    without_noise,
)
from rprime.core.counts import CountRow
from rprime.core.estimates import Estimates
from rprime.core.index import Index
from rprime.core.intervals.gradient import Gradient
from rprime.core.options import Options
from rprime.core.population import joint_cells
from rprime.core.selection import select
from rprime.core.slices.evaluation import (
    ADJUST,
    differences_to_rest,
    ordering_index,
    shrink,
    two_sided_p,
    vague,
)
from rprime.core.slices.slices import Slice, SliceName, Slices
from rprime.core.table import ConfusionTable

VALUE, LOWER, UPPER, METHOD, REASON = range(2, 7)
"""Places in `SliceChanges.numbers`, after the values of candidate and baseline."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SliceChanges:
    """The differences of slices, candidate minus baseline.

    Parameters
    ----------
    names, items
        Of the s slices that both sides have; those that got worst first, by the change of `index`
        shrunk towards that of all items, as `SliceEvaluation.weakest` is ordered.
    entries, index
        The overall indices, and the one that orders; None if no value of one of them is best.
    numbers
        Shape (7, overall, s): the values of candidate and baseline, their difference, the lower and
        the upper limit of its two-sided interval (NaN where there is none), and codes into
        `METHODS` and `REASONS` of differences.
    p_adjusted
        Two-sided p-values of no change, adjusted over all slices and indices, shape (overall, s);
        NaN without a test.
    """

    names: tuple[SliceName, ...]
    items: Array
    entries: tuple[Index, ...]
    index: Index | None
    numbers: Array
    p_adjusted: Array


def slice_changes(whole: Comparison, indices: tuple[str, ...]) -> SliceChanges | None:
    """Compare all slices of both sides; None where there are none, or nothing is compared.

    The options of the whole comparison hold, too. Each more index makes the others harder to find.

    Notes
    -----
    Paired if the sides have the same items: then the slices are those of the candidate. Slices are
    of independent items that count once: none is compared with a baseline of others.
    """
    candidate, baseline = whole.sides
    comparable = baseline.counts_once and whole.comparability != "different"
    if candidate.slices is None or not comparable:
        return None
    options = whole.aligned.candidate.values.options
    options = replace(options, indices=indices, families=())
    selection, pairs, slices = select(options), None, candidate.slices
    if baseline.constant is not None or (whole.comparability in PAIRED and slices.columns):
        pairs, other = _paired(whole, slices)
    else:
        slices, other = _shared(slices, baseline.slices)
    if not slices.names:
        return None
    ours, theirs = (Estimates.of(table, options, selection) for table in (slices.tables, other))
    numbers = _measured(whole, ours, theirs, pairs)
    p = np.where(vague(ours) | vague(theirs), np.nan, numbers[-1])
    index, order = ordering_index(options), np.arange(len(slices.names))
    if index is not None and index.key in whole.aligned.selection.overall_place:
        moved = numbers[VALUE, selection.overall_place[index.key]]
        of_all, total = whole.of_overall(index.key), candidate.table.total
        variance = of_all.standard_error**2 * total
        _, order = shrink(moved, slices.tables.total, of_all.value, variance, total)
        order = np.argsort(order if index.higher_is_better else -order, kind="stable")
    return SliceChanges(
        names=tuple(slices.names[i] for i in order),
        items=slices.tables.total[order],
        entries=selection.overall,
        index=index,
        numbers=numbers[:-1, :, order],
        p_adjusted=ADJUST[options.slice_adjust](p.ravel()).reshape(p.shape)[:, order],
    )


def _measured(
    whole: Comparison, ours: Estimates, theirs: Estimates, pairs: "SlicedPairs | None"
) -> Array:
    """Return numbers and p-values of all differences, shape (REASON + 2, index, slices)."""
    options, entries = ours.values.options, ours.values.selection.overall
    numbers = np.full((REASON + 2, *ours.values.overall.shape), np.nan)
    one_test_set = whole.comparability in (*PAIRED, "same_test_set")
    for places, part in differences_to_rest(
        ours,
        theirs,
        pairs=pairs,  # type: ignore[arg-type] # overall differences need no class_variance
        one_test_set=one_test_set,
        constant=whole.sides[1].constant,
    ):
        limits = part.limits((1 - options.confidence) / 2)
        if pairs is None:
            p = two_sided_p(part, entries)
        else:
            p = np.minimum(2 * np.fmin(*part.p_of_no_change), 1.0)
        values = part.candidate, part.baseline, part.value
        numbers[..., places] = *values, *limits, part.methods, part.reasons, p
    # Whether indices depend on the list of classes, which differs.
    place_of = whole.aligned.selection.overall_place
    listed = whole.overall.reasons == CODE["classes_differ"]
    differ = [entry.key in place_of and listed[place_of[entry.key]] for entry in entries]
    for place in (VALUE, LOWER, UPPER, REASON + 1):
        numbers[place, differ] = np.nan
    numbers[REASON, differ] = CODE["classes_differ"]
    return numbers


def _paired(whole: Comparison, slices: Slices) -> tuple["SlicedPairs", ConfusionTable]:
    """Return the paired predictions in slices of the candidate, and the tables of the baseline."""
    candidate, baseline = whole.sides
    if baseline.constant is None:
        pairs = SlicedPairs.of(slices, candidate, baseline)
        return pairs, pairs.baseline
    pairs = SlicedPairs.of_constant(slices.tables, baseline.constant)
    return pairs, baseline.constant.table(slices.tables)


def _shared(ours: Slices, theirs: Slices | None) -> tuple[Slices, ConfusionTable]:
    """Return the slices that both sides have, and the tables of the other side."""
    positions = {} if theirs is None else theirs.positions
    both = [(i, positions[name]) for name, i in ours.positions.items() if name in positions]
    here, there = [i for i, _ in both], [i for _, i in both]
    shared = replace(ours, names=tuple(ours.names[i] for i in here), tables=ours.tables[here])
    return shared, shared.tables if theirs is None else theirs.tables[there]


@dataclass(frozen=True, eq=False)
class SlicedPairs:
    """Old and new predictions of the items of each of s slices; `shape` is s and k.

    The joint counts are those of all slices, those of one slice together. The classes of slice i
    are i k to i k + k - 1, so that s k stands for unclassified.
    """

    joint: JointCounts
    shape: tuple[int, int]

    @classmethod
    def of(cls, slices: Slices, candidate: Side, baseline: Side) -> "SlicedPairs":
        """Count the predictions of both sides, which have items, by slice."""
        new, old, k = candidate.items, baseline.items, candidate.table.k
        if new is None or old is None:
            raise ValueError("pairs need the items of both sides")
        plain = JointCounts.count(old, new, k)
        combination = plain.combination_of(old, new)
        width, size = len(plain.items), len(slices.names)
        keys, counts = [], []
        for position in slices.numbered():
            inside = position < size
            codes = position[inside] * width + combination[inside]
            occurring, number = distinct(codes, size * width)
            keys.append(occurring)
            counts.append(number)
        owner, place = np.divmod(np.concatenate(keys), width)
        old_class, new_class = (
            np.where(part[place] == k, size * k, owner * k + part[place])
            for part in (plain.old, plain.new)
        )
        items = np.concatenate(counts).astype(np.float64)
        joint = JointCounts(owner * k + plain.true[place], old_class, new_class, items, size * k)
        return cls(joint, (size, k))

    @classmethod
    def of_constant(cls, tables: ConfusionTable, constant: ConstantClassifier) -> "SlicedPairs":
        """Pair the likeliest class with the predictions in the tables of the slices."""
        cells, k = joint_cells(tables), tables.k
        owner, true, new = np.nonzero(cells)
        size = len(cells)
        new_class = np.where(new == k, size * k, owner * k + new)
        old = owner * k + constant.likeliest
        joint = JointCounts(owner * k + true, old, new_class, cells[owner, true, new], size * k)
        return cls(joint, (size, k))

    @property
    def baseline(self) -> ConfusionTable:
        """The tables of the baseline, stack shape (s,)."""
        size, k = self.shape
        column = np.where(self.joint.old == size * k, k, self.joint.old % k)
        cells = np.bincount(
            self.joint.true * (k + 1) + column, self.joint.items, size * k * (k + 1)
        )
        cells = cells.reshape(size, k, k + 1)
        return ConfusionTable.dense(cells[..., :k], cells[..., k])

    def flips(self, row: CountRow, *, per_class: bool) -> tuple[Array, Array]:
        """Return the items that enter and that leave an overall count, shape (s,)."""
        assert not per_class  # noqa: S101 (slices are compared in overall indices)
        if row == CountRow.fn:
            return self.flips(CountRow.tp, per_class=False)[::-1]
        joint = self.joint
        entering, leaving = (
            np.bincount(joint.true[part], joint.items[part], joint.k).reshape(self.shape).sum(-1)
            for part in joint.changed(row)
        )
        return entering, leaving

    def overall_variance(self, old: Gradient, new: Gradient) -> PairedVariance:
        """Compute the variances of `PairedItems.overall_variance`, shape (index, s).

        NaN where an index has no derivative, or one that differs from cell to cell.
        """
        joint, (size, k) = self.joint, self.shape
        before, after = (_of_all_classes(side) for side in (old, new))
        count = before.factors.shape[1]
        sums = np.zeros((5, size, count))
        for part in parts_of(len(joint.items), count):
            true, items = joint.true[part], joint.items[part, None]
            g_old = before.at(true, joint.old[part]).T
            phi = after.at(true, joint.new[part]).T - g_old
            owner = true // k
            first = np.flatnonzero(np.diff(owner, prepend=-1))
            squares = phi * phi
            powers = (phi, squares, g_old * g_old, squares * squares, squares * phi)
            for total, influence in zip(sums, powers, strict=True):
                total[owner[first]] += np.add.reduceat(items * influence, first)
        items = joint.support.reshape(self.shape).sum(-1)[:, None]
        square = sums[1] - sums[0] ** 2 / items
        variance = without_noise(square, sums[2]).T
        number = number_of(sums[1], sums[3]).T
        return PairedVariance(variance, variance, contributing=number, third=sums[4].T)


def _of_all_classes(gradient: Gradient) -> Gradient:
    """Return the gradient of a stack as that of one table with the classes of all."""
    factors, silent = gradient.factors, gradient.unclassified
    flat = factors.reshape(*factors.shape[:2], prod(factors.shape[2:]))
    return Gradient(flat, None if silent is None else silent.reshape(flat.shape[1:]))


def align_slices(
    whole: Comparison, parts: Sequence[Slice], options: Options
) -> AlignedValues | None:
    """Compare the overall indices of slices as one stack, in this order.

    None where each slice needs a comparison of its own: the sides do not have the same items, each
    with one prediction that counts once, or an index has no influences in a stack.
    """
    slices = whole.sides[0].slices
    if slices is None or not _stackable(whole, slices, parts):
        return None
    positions = [slices.positions[frozenset(part)] for part in parts]
    names = tuple(slices.names[i] for i in positions)
    pairs, other = _paired(whole, replace(slices, names=names, tables=slices.tables[positions]))
    options = replace(options, undefined="null")
    selection = select(options)
    ours, theirs = (
        ComparedSide(Estimates.of(tables, options, selection))
        for tables in (slices.tables[positions], other)
    )
    values = AlignedValues(
        ours,
        theirs,
        labels=whole.aligned.labels,
        places=np.zeros(0, np.intp),
        pairs=pairs,  # type: ignore[arg-type] # overall differences need no class_variance
        constant=whole.sides[1].constant,
    )
    return None if any(side.overall.by_cell for side in values.gradients) else values


def _stackable(whole: Comparison, slices: Slices, parts: Sequence[Slice]) -> bool:
    """Whether both sides have the same items, in the same slices, as tables of one stack."""
    ours, theirs = whole.sides
    missing, baseline = whole.missing, theirs.slices
    if whole.comparability != "same_items" or (missing is not None and missing.counts.missing):
        return False
    if baseline is not None and not _alike(slices, baseline):
        return False
    if ours.kind is None or ours.kind != theirs.kind or whole.candidate_only or whole.baseline_only:
        return False
    if ours.table.weighted or ours.table.has_omissions or not slices.columns:
        return False
    return all(frozenset(part) in slices.positions for part in parts)


def _alike(slices: Slices, others: Slices) -> bool:
    """Whether the columns that two sides share have the same value for each item."""
    pairs = ((slices.columns[n], others.columns[n]) for n in slices.columns if n in others.columns)
    return all(
        ours.values == theirs.values and np.array_equal(ours.codes, theirs.codes)
        for ours, theirs in pairs
    )


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
