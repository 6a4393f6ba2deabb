"""Align two sides of a comparison on one list of classes, and decide their comparability."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from rprime.core import special
from rprime.core.arrays import Array
from rprime.core.cells import DenseCells
from rprime.core.comparison.constant import ConstantClassifier, ConstantKind
from rprime.core.estimates import Estimates
from rprime.core.items import MOST_DENSE, Items, table_of
from rprime.core.options import Options
from rprime.core.population import Population
from rprime.core.scores.kept import KeptScores
from rprime.core.scores.scores import Scores
from rprime.core.selection import select
from rprime.core.slices.slices import Slices
from rprime.core.table import ConfusionTable

Comparability = Literal["same_items", "common_items", "same_test_set", "unknown", "different"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Side:
    """One side of a comparison: its evidence and the identity of its test set.

    Parameters
    ----------
    table
        A single table, stack shape ().
    items
        Per-item codes into `labels` in the order of the test set, if known. Sides that share
        the identical array `true` have the same items.
    fingerprint
        Fingerprint of the true labels in order; None without items.
    test_set
        Declared identifier of the test set.
    kept_scores
        The overall indices of scores of a stored evaluation, whose scores are gone.
    constant
        The constant classifier that it is of; None for predictions. Where its predictions are
        drawn, the table has expected counts, and `items` the likeliest class.
    """

    labels: tuple[str, ...]
    table: ConfusionTable
    items: Items | None = None
    fingerprint: str | None = None
    test_set: str | None = None
    scores: Scores | None = None
    slices: Slices | None = None
    kept_scores: KeptScores | None = None
    constant: ConstantClassifier | None = None

    def estimates(
        self, options: Options, *, scored: bool = False, omits: bool = False
    ) -> Estimates:
        """Return the values that options request, computed once for each `options`.

        Those of scores are among them if this side has scores, or else if `scored`; the coverage if
        it leaves items without a prediction, or else if `omits`.
        """
        selection = select(
            options,
            scored=scored or self.scores is not None or self.kept_scores is not None,
            omits=omits or self.table.unclassified is not None,
        )
        estimates = self.known.get(options)
        if estimates is None or estimates.values.selection is not selection:
            evidence = self.items, self.scores
            kept = self.kept_scores
            estimates = Estimates.of(self.table, options, selection, *evidence, kept_scores=kept)
            self.known[options] = estimates
        return estimates

    @cached_property
    def known(self) -> dict[Options, Estimates]:
        """The values computed so far."""
        return {}

    @property
    def counts_once(self) -> bool:
        """Whether every item counts once: none is in a group, as far as is known, or weighted."""
        items = self.items
        return not self.table.weighted and (
            items is None or (items.groups is None and items.weights is None)
        )

    @property
    def kind(self) -> tuple[object, ...] | None:
        """What tables of one stack have in common; None for a table that needs its own."""
        table, items = self.table, self.items
        grouped_or_weighted = items is not None and (
            items.groups is not None or items.weights is not None
        )
        dense = isinstance(table.cells, DenseCells) and table.k <= MOST_TOGETHER
        if (
            grouped_or_weighted
            or self.scores is not None
            or self.kept_scores is not None
            or not dense
        ):
            return None
        omitted = table.unclassified is None, table.spurious is None
        return (self.labels, table.weighted, *omitted)


def constant_side(
    kind: ConstantKind, candidate: Side, population: Population | None = None
) -> Side:
    """Return what a constant classifier of the population predicts for the items of a candidate."""
    table = candidate.table
    constant = ConstantClassifier.of(kind, table if population is None else population.table(table))
    items, scores, slices = candidate.items, candidate.scores, candidate.slices
    if items is not None:
        items = replace(items, predicted=np.full_like(items.predicted, constant.likeliest))
    if scores is not None:
        scores = replace(scores, values=np.broadcast_to(constant.shares, scores.values.shape))
    if slices is not None:
        slices = replace(slices, tables=constant.table(slices.tables))
    return replace(
        candidate,
        table=constant.table(table),
        items=items,
        scores=scores,
        slices=slices,
        kept_scores=None,
        constant=constant,
    )


def estimate_together(sides: Sequence[Side], options: Options) -> None:
    """Compute the values of sides as one stack if none is known yet, for half of the cost of two.

    The sides then return them for these options.
    """
    first, *others = sides
    if first.kind is None or any(side.kind != first.kind for side in others):
        return
    if any(side.known for side in sides):
        return
    # Paired items need no intervals of the baseline.
    paired = all(side.items is not None for side in sides)
    together = Estimates.of_stack([side.table for side in sides], options, apart=paired)
    for side, estimates in zip(sides, together, strict=True):
        side.known[options] = estimates


@dataclass(frozen=True, eq=False)
class Alignment:
    """Two sides over the union of their classes: those of the candidate, then the rest."""

    candidate: Side
    baseline: Side

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The union of both lists."""
        return tuple(dict.fromkeys(self.candidate.labels + self.baseline.labels))

    @cached_property
    def same_classes(self) -> bool:
        """Whether both sides declare the same classes, in any order."""
        return len(self.labels) == len(self.candidate.labels) == len(self.baseline.labels)

    @cached_property
    def common(self) -> Array:
        """Union positions of the classes that both sides declare, shape (c,)."""
        declared = set(self.baseline.labels)
        numbers = [i for i, name in enumerate(self.candidate.labels) if name in declared]
        return np.array(numbers, dtype=np.intp)

    def only(self, side: Side, other: Side) -> tuple[str, ...]:
        """Return the classes that only this side declares."""
        declared = set(other.labels)
        return tuple(name for name in side.labels if name not in declared)

    def places(self, side: Side) -> Array:
        """Return the union positions of the classes of a side, shape (k,)."""
        number = {name: i for i, name in enumerate(self.labels)}
        return np.array([number[name] for name in side.labels], dtype=np.intp)

    def onto_union(self, side: Side) -> Side:
        """Renumber a side's classes; classes that it does not declare have no items."""
        if side.labels == self.labels:
            return side
        places, k = self.places(side), len(self.labels)
        items = side.items
        if items is not None:
            items = replace(
                items,
                true=_renumbered(items.true, places, k),
                predicted=_renumbered(items.predicted, places, k),
            )
        return replace(
            side,
            labels=self.labels,
            table=_scatter_table(side.table, places, k),
            items=items,
            scores=None if side.scores is None else side.scores.over(places, k),
            slices=None if side.slices is None else side.slices.over(places, k),
        )


def comparability(candidate: Side, baseline: Side) -> Comparability:
    """Return how far two sides can be compared.

    Both are over one list of classes. Without a class that has items on both sides, the test sets
    differ. Else two fingerprints decide; else, two declared identifiers. The items are the same
    only if both sides have items and the true classes agree one by one.
    """
    ours, theirs = candidate.items, baseline.items
    if not shares_class(candidate, baseline):
        return "different"
    if baseline.constant is not None:
        return "same_items"
    if (
        ours
        and theirs
        and ours.true is theirs.true
        and len(ours.predicted) == len(theirs.predicted)
    ):
        return "same_items"
    if candidate.fingerprint is not None and baseline.fingerprint is not None:
        same = candidate.fingerprint == baseline.fingerprint
    elif candidate.test_set is not None and baseline.test_set is not None:
        same = candidate.test_set == baseline.test_set
    else:
        return "unknown"
    if same and ours is not None and theirs is not None:
        if np.array_equal(ours.true, theirs.true) and _same_ids(ours, theirs):
            return "same_items"
        # Some items of one test set, as those of a slice are, can be matched.
        same = ours.ids is None or theirs.ids is None
    return "same_test_set" if same else "different"


def _same_ids(ours: Items, theirs: Items) -> bool:
    return ours.ids is None or theirs.ids is None or np.array_equal(ours.ids, theirs.ids)


def shares_class(candidate: Side, baseline: Side) -> bool:
    """Whether any class, of one list, has items on both sides."""
    return bool((candidate.table.support * baseline.table.support).any())


BY_CHANCE = 1e-6
"""With a smaller p-value, samples of one population do not have such shares of the classes."""
FAR_APART = 0.05
"""Share of the items that would have to change their class; less changes no index much."""


def shares_differ(candidate: Side, baseline: Side) -> bool:
    """Whether the shares of the classes that both have prove that the test sets differ.

    Notes
    -----
    Pearson's chi-square test of homogeneity; not for weighted counts, whose weights it ignores.
    """
    if candidate.table.weighted or baseline.table.weighted:
        return False
    supports = np.stack([side.table.support for side in (candidate, baseline)])
    supports = supports[:, (supports > 0).all(0)]
    totals = supports.sum(1, keepdims=True)
    shares = supports / totals
    apart = np.abs(shares[0] - shares[1]).sum() / 2
    expected = supports.sum(0) * totals / totals.sum()
    statistic = ((supports - expected) ** 2 / expected).sum()
    p_value = special.chdtrc(max(supports.shape[1] - 1, 1), statistic)
    return bool(apart > FAR_APART and p_value < BY_CHANCE)


def _renumbered(codes: Array, places: Array, k: int) -> Array:
    """Translate the codes of a side; unclassified remains the code after the last class."""
    table = np.append(places, k)
    return table.astype(np.min_scalar_type(k))[codes]


def _scatter_table(table: ConfusionTable, places: Array, k: int) -> ConfusionTable:
    """Move the counts of a table to the positions of its classes among k."""
    vectors = [_scattered(v, places, k) for v in (table.unclassified, table.spurious)]
    items, cells = _scattered(table.items, places, k), table.cells
    if isinstance(cells, DenseCells) and k <= MOST_DENSE:
        counts = np.zeros((k, k))
        counts[np.ix_(places, places)] = cells.counts
        scattered = ConfusionTable.dense(counts, *vectors, weighted=table.weighted)
        return replace(scattered, items=items)
    rows, columns, counts = cells.coordinates()
    scattered = ConfusionTable.sparse(
        places[rows],
        places[columns],
        counts,
        k,
        unclassified=vectors[0],
        spurious=vectors[1],
        weighted=table.weighted,
    )
    return replace(scattered, items=items)


def rows_of(table: ConfusionTable, kept: Array) -> ConfusionTable:
    """Return a stack of tables without the items of the true classes not `kept`, (..., k)."""
    factors, cells = kept.astype(np.float64), table.cells
    unclassified = None if table.unclassified is None else table.unclassified * factors
    return replace(
        table,
        cells=replace(cells, counts=cells.counts * cells.by_row(factors)),
        unclassified=None if unclassified is None or not unclassified.any() else unclassified,
    )


def with_items(side: Side, places: Array, true: Array) -> Side:
    """Return a side with some of its items, and these true classes."""
    all_items = side.items
    assert all_items is not None  # noqa: S101 (the callers have checked)
    groups, weights = (
        None if p is None else p[places] for p in (all_items.groups, all_items.weights)
    )
    items = Items(true, all_items.predicted[places], groups, weights)
    scores = None
    if side.scores is not None:
        scores = Scores(true, side.scores.values[places], groups, weights)
    slices, k = side.slices, len(side.labels)
    table = table_of(items, k)
    return replace(
        side,
        items=items,
        table=table if side.constant is None else side.constant.table(table),
        fingerprint=None,
        scores=scores,
        kept_scores=None,
        slices=None if slices is None or not slices.columns else slices.of_some(places, items, k),
    )


def _scattered(vector: Array | None, places: Array, k: int) -> Array | None:
    if vector is None:
        return None
    result = np.zeros(k)
    result[places] = vector
    return result


MOST_TOGETHER = 100
"""Most classes of tables that are computed as one stack: with more, calls cost less than work."""
