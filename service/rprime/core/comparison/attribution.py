"""Attribute the change of an index to the cells of the table."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rprime.core.arrays import Array
from rprime.core.cells import SparseCells
from rprime.core.index import Index
from rprime.core.intervals.delta import class_gradient, overall_gradient
from rprime.core.intervals.gradient import Gradient
from rprime.core.intervals.proportions import TWO_SIDED
from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.table import ConfusionTable, coordinates
from rprime.core.values import Values, compute

HEADLINES = ("accuracy", "r_prime", "macro_recall", "macro_f1", "kappa", "mcc")
"""The first of these that a request includes is attributed by default."""
MOST_CLASSES = 300
"""Most classes for attribution by default, which evaluates gradients along a path."""
MOST_DENSE = 100
NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)
TOLERANCE = 1e-10
"""Eight nodes reach it at once for usual tables; the adaptive division is for the others."""
ROUNDED = 1e-12
"""A difference of this share of the items is rounding."""
MOST_ROUNDS = 40
MOST_PANELS = 64
MOST_NUMBERS = 1 << 22
"""Gradients in memory at the same time: 32 MiB."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CellChanges:
    """Old and new counts of cells, the surest changes first.

    Parameters
    ----------
    true, predicted
        Shape (n,), class numbers; k in `predicted` is unclassified, in `true` spurious.
    baseline, candidate
        Shape (n,), counts of both sides.
    change
        Shape (n,), difference of the counts, or of the shares of all items if the totals differ.
    """

    true: Array
    predicted: Array
    baseline: Array
    candidate: Array
    change: Array
    labels: tuple[str, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Attribution:
    """The change of one index as a sum over confusions.

    A confusion contributes what its items would have, had they been predicted correctly instead: of
    accuracy, its change as a share of all items.

    Parameters
    ----------
    key, label
        The index, and the class of a per-class one; None overall.
    true, predicted
        Shape (n,), class numbers as in `CellChanges`: the confusions that contribute most.
    contributions
        Shape (n,), largest magnitude first.
    rest
        Sum over all other confusions, and what classes contribute by other numbers of items.
    residual
        The difference minus the sum of all these.
    """

    key: str
    label: str | None
    true: Array
    predicted: Array
    contributions: Array
    rest: float
    residual: float
    labels: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class TablePath:
    """The straight line from an old table to a new one, over the cells of both.

    Parameters
    ----------
    true, predicted
        Shape (c,), class numbers; k in `predicted` is unclassified, in `true` spurious.
    counts
        Shape (2, c): the old and the new counts.
    totals
        Items of the old and the new table.
    """

    true: Array
    predicted: Array
    counts: Array
    totals: tuple[float, float]
    k: int

    @classmethod
    def between(cls, old: ConfusionTable, new: ConfusionTable) -> "TablePath":
        """Build the path between two single tables over the same classes."""
        sides = [coordinates(table) for table in (old, new)]
        right = np.flatnonzero((old.support > 0) | (new.support > 0)) * (old.k + 2)
        both = np.sort(np.concatenate([right, *(code for code, _ in sides)]), kind="stable")
        codes = both[np.diff(both, prepend=-1) > 0]
        counts = np.zeros((2, codes.size))
        for row, (code, count) in zip(counts, sides, strict=True):
            row[np.searchsorted(codes, code)] = count
        true, predicted = np.divmod(codes, old.k + 1)
        return cls(true, predicted, counts, (float(old.total), float(new.total)), old.k)

    @property
    def one_total(self) -> bool:
        """Whether both tables have the same number of items."""
        return self.totals[0] == self.totals[1]

    @cached_property
    def start(self) -> Array:
        """The old counts, scaled to the new total, shape (c,)."""
        if self.one_total:
            return self.counts[0]
        with np.errstate(all="ignore"):
            return np.asarray(self.counts[0] * np.divide(self.totals[1], self.totals[0]))

    @cached_property
    def change(self) -> Array:
        """New minus old counts on the path, shape (c,)."""
        return np.asarray(self.counts[1] - self.start)

    @cached_property
    def right(self) -> Array:
        """Whether the cells are correct predictions, shape (c,)."""
        return np.asarray((self.true == self.predicted) & (self.true < self.k))

    @cached_property
    def moved(self) -> Array:
        """New minus old items of errors, and of the classes of the right cells, shape (c,).

        A test set fixes the numbers of items of the classes: an item leaves its right cell for an
        error, and moves no other cell.
        """
        grown = np.bincount(self.true, self.change, self.k + 1)[self.true]
        # Old counts that are scaled to another total leave rounding.
        grown = np.where(np.abs(grown) <= ROUNDED * self.totals[1], 0.0, grown)
        return np.where(self.right, grown, self.change)

    def largest_changes(self, labels: tuple[str, ...], limit: int) -> CellChanges:
        """Return the cells that changed most for sure, by their counts or shares of all items.

        They are ordered by how far the interval of the change is from 0, with the counts as
        independent Poisson numbers: a large cell changes by more items without any cause.
        """
        old, new = self.counts
        totals = np.ones((2, 1)) if self.one_total else np.array(self.totals)[:, None]
        with np.errstate(all="ignore"):
            shares = self.counts / totals
            change, spread = shares[1] - shares[0], np.sqrt(np.add.reduce(shares / totals))
        surest = np.where(change == 0, -np.inf, np.abs(change) - TWO_SIDED * spread)
        order = np.argsort(-surest, kind="stable")[:limit]
        order = order[change[order] != 0]
        return CellChanges(
            true=self.true[order],
            predicted=self.predicted[order],
            baseline=old[order],
            candidate=new[order],
            change=change[order],
            labels=labels,
        )

    def at(self, shares: Array) -> ConfusionTable:
        """Stack the tables at the given shares (p,) of the way."""
        counts = self.start + shares[:, None] * self.change
        missing, spurious = self.predicted == self.k, self.true == self.k
        omitted = self._vector(self.true, counts, missing)
        added = self._vector(self.predicted, counts, spurious)
        inside = ~(missing | spurious)
        true, predicted = self.true[inside], self.predicted[inside]
        if self.k > MOST_DENSE:
            cells = SparseCells(true, predicted, counts[:, inside], self.k)
            return ConfusionTable(cells, omitted, added)
        dense = np.zeros((shares.size, self.k, self.k))
        dense[:, true, predicted] = counts[:, inside]
        return ConfusionTable.dense(dense, omitted, added)

    def _vector(self, classes: Array, counts: Array, where: Array) -> Array | None:
        if not where.any():
            return None
        vector = np.zeros((len(counts), self.k))
        vector[:, classes[where]] = counts[:, where]
        return vector


Target = tuple[str, str | None]
"""Key and class of an index; None overall."""


def attribute(
    path: TablePath,
    sides: tuple[Values, Values],
    labels: tuple[str, ...],
    targets: tuple[Target, ...],
) -> tuple[Attribution, ...]:
    """Attribute the change of indices to cells: the Aumann-Shapley path integral.

    The path is that between the tables of both sides, the old one first; targets are smooth
    indices of their selection.

    Returns
    -------
    One attribution for each target, without cells and with a residual of NaN if the index is
    undefined at either end or has no derivative.

    Notes
    -----
    Source: Aumann, Shapley 1974; Sundararajan, Taly, Yan 2017 (integrated gradients). An error
    contributes its change times the mean gradient, relative to that of the right cell of its row,
    on the straight line between the tables, the old one scaled to the total of the new one. The
    line is divided into panels of Gauss-Legendre nodes; a panel is halved if its integral misses
    the change of the index.
    """
    keys = tuple(dict.fromkeys(key for key, _ in targets))
    options = replace(sides[1].options, indices=keys, cell_weights=None, intervals=False)
    integrand = _Integrand(path, labels, options, targets)
    with np.errstate(all="ignore"):
        if path.one_total:
            ends = np.stack([integrand.of_targets(side) for side in sides], axis=-1)
        else:
            ends = integrand.values(np.array([0.0, 1.0]))
        contributions = _integral(integrand, ends)
    return tuple(
        integrand.summary(i, parts, ends[i, 1] - ends[i, 0])
        for i, parts in enumerate(contributions)
    )


@dataclass(frozen=True, eq=False)
class _Integrand:
    """Values and cell gradients of some indices along a path."""

    path: TablePath
    labels: tuple[str, ...]
    options: Options
    targets: tuple[Target, ...]

    def values(self, shares: Array) -> Array:
        """Compute the values at points (p,) of the path, shape (target, p)."""
        return self.of_targets(compute(self.path.at(shares), self.options, select(self.options)))

    def of_targets(self, values: Values) -> Array:
        """Return the values of the targets, shape (target, ...)."""
        places = values.selection
        return np.stack(
            [
                values.overall[places.overall_place[key]]
                if label is None
                else values.per_class[places.place[key], ..., self.labels.index(label)]
                for key, label in self.targets
            ]
        )

    def gradients(self, shares: Array) -> Array:
        """Compute the gradients at points (p,) of the path, shape (target, p, c).

        For an error, relative to the right cell of its row; for a right cell, as it is.
        """
        values = compute(self.path.at(shares), self.options, select(self.options))
        of_classes = class_gradient(values)
        entries = values.selection.overall
        of_overall: dict[str, Array] = {}
        if entries:
            silent = np.array([entry.universe == "classified" for entry in entries])
            gradients = self._at_cells(overall_gradient(values, of_classes), silent)
            of_overall = {
                entry.key: gradient for entry, gradient in zip(entries, gradients, strict=True)
            }
        result = np.empty((len(self.targets), shares.size, self.path.true.size))
        for i, (key, label) in enumerate(self.targets):
            if label is None:
                result[i] = of_overall[key]
            else:
                place = values.selection.place[key]
                classified = values.selection.computed[place].universe == "classified"
                margins = of_classes.margins[:, place]
                gradient = _of_class(margins, self.labels.index(str(label)), silent=classified)
                result[i] = self._at_cells(gradient, np.array([classified]))[0]
        return result

    def _at_cells(self, gradient: Gradient, silent: Array) -> Array:
        """Gradients (n) at the cells of the path, those of errors relative, shape (n, p, c).

        A spurious prediction counts as a prediction only: not at all for the `silent` indices (n,).
        """
        spurious = self.path.true == self.path.k
        true = np.where(spurious, 0, self.path.true)
        result = gradient.at(true, self.path.predicted)
        errors = ~self.path.right
        result[..., errors] -= gradient.at(true[errors], true[errors])
        if spurious.any():
            column = gradient.factors[2][..., self.path.predicted[spurious]]
            result[..., spurious] = np.where(silent[:, None, None], 0.0, column)
        return result

    def summary(self, which: int, parts: Array, change: float) -> Attribution:
        """Return the cells (c,) that contribute most to the change of one target."""
        key, label = self.targets[which]
        finite = bool(np.isfinite(parts).all() and np.isfinite(change))
        errors = np.where(self.path.right, 0.0, parts)
        order = _largest(errors, self.options.top_confusions if finite else 0)
        total = np.add.reduce(parts)
        return Attribution(
            key=key,
            label=label,
            true=self.path.true[order],
            predicted=self.path.predicted[order],
            contributions=parts[order],
            rest=float(total - np.add.reduce(parts[order])),
            residual=float(change - total) if finite else np.nan,
            labels=self.labels,
        )


def _of_class(margins: Array, position: int, *, silent: bool) -> Gradient:
    """Convert the gradient of one class's index (4, p, k) to one by all cells."""
    correct, support, predicted, total = margins[:, :, position]
    factors = np.zeros((3, 1, *margins.shape[1:]))
    factors[1, 0] += total[:, None]
    factors[:, 0, :, position] += np.stack((correct, support, predicted))
    return Gradient(factors, np.zeros_like(factors[1]) if silent else factors[1])


def _integral(integrand: _Integrand, ends: Array) -> Array:
    """Compute the contribution of each cell to each target, shape (target, c); or NaN."""
    defined = np.asarray(np.isfinite(ends).all(-1))
    allowed = TOLERANCE * np.maximum(np.abs(ends).max(-1), 1.0)
    total = np.zeros((len(ends), integrand.path.true.size))
    total[~defined] = np.nan
    panels, rises = np.array([[0.0, 1.0]]), np.diff(ends)
    for _ in range(MOST_ROUNDS):
        parts = _on_panels(integrand, panels)
        missed = np.abs(parts.sum(-1) - rises) > allowed[:, None]
        again = np.flatnonzero((missed & defined[:, None]).any(0))
        if not 0 < 2 * again.size <= MOST_PANELS:
            return total + parts.sum(1)
        total += np.delete(parts, again, axis=1).sum(1)
        low, high = panels[again].T
        middle = (low + high) / 2
        panels = np.stack((low, middle, middle, high), axis=-1).reshape(-1, 2)
        rises = np.diff(integrand.values(panels.ravel()).reshape(len(ends), -1, 2))[..., 0]
    return total + _on_panels(integrand, panels).sum(1)


def _on_panels(integrand: _Integrand, panels: Array) -> Array:
    """Integrate over each panel, shape (target, panel, c)."""
    path, targets = integrand.path, len(integrand.targets)
    result = np.empty((targets, len(panels), path.true.size))
    size = max(MOST_NUMBERS // (targets * NODES.size * max(path.true.size, 1)), 1)
    for start in range(0, len(panels), size):
        low, high = panels[start : start + size].T[..., None]
        shares = (low + high) / 2 + (high - low) / 2 * NODES
        gradients = integrand.gradients(shares.ravel()).reshape(targets, *shares.shape, -1)
        weights = (high - low) / 2 * WEIGHTS
        result[:, start : start + size] = np.einsum("pn,tpnc->tpc", weights, gradients)
    return result * path.moved


def _largest(values: Array, limit: int) -> Array:
    """Return positions of the largest non-zero magnitudes, largest first, ties in table order."""
    order = np.argsort(-np.abs(values), kind="stable")[:limit]
    return order[values[order] != 0]


TP, FN, FP, TN = range(4)


@dataclass(frozen=True, eq=False)
class Costs:
    """The cost of one item in a cell, to first order: n items cost n times as much.

    Parameters
    ----------
    overall, per_class
        The n overall and m per-class indices.
    right, wrong
        Shape (n, k): an item of class i that is predicted as j costs right[i] - wrong[j].
    silent
        Shape (n, k): cost of an unclassified item of a class.
    missed, taken
        Shape (m, k): cost of a misclassified item for the index of its true class, and for the
        index of the class that it is predicted as.
    """

    overall: tuple[Index, ...]
    per_class: tuple[Index, ...]
    right: Array
    wrong: Array
    silent: Array
    missed: Array
    taken: Array


def costs(table: ConfusionTable, keys: tuple[str, ...]) -> Costs:
    """Differentiate smooth indices, in both scopes, at a single table with weights applied."""
    options = Options(indices=keys)
    values = compute(table, options, select(options))
    with np.errstate(invalid="ignore"):  # slopes that are infinite in both directions
        return _costs(values)


def _costs(values: Values) -> Costs:
    of_classes = class_gradient(values)
    gradient = overall_gradient(values, of_classes)
    diagonal, row, column = gradient.factors
    right = column + diagonal
    lost = row if gradient.unclassified is None else gradient.unclassified
    kinds = of_classes.kinds[:, : values.selection.reported]
    return Costs(
        overall=values.selection.overall,
        per_class=values.selection.per_class,
        right=right,
        wrong=column,
        silent=row + right - lost,
        missed=np.asarray(kinds[TP] - kinds[FN]),
        taken=np.asarray(kinds[TN] - kinds[FP]),
    )
