"""Attribution: which cells of the table the change of an index comes from."""

from dataclasses import dataclass, replace

import numpy as np

from rprime.core.arrays import Array
from rprime.core.cells import SparseCells
from rprime.core.comparison.paired_variance import select_indices
from rprime.core.intervals.delta import class_gradient, overall_gradient
from rprime.core.intervals.gradient import Gradient
from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.table import ConfusionTable
from rprime.core.values import compute

HEADLINES = ("accuracy", "r_prime", "macro_recall", "macro_f1", "kappa", "mcc")
"""Attributed by default, where the request includes them."""
MOST_CLASSES = 300
"""Up to so many classes attribution comes unasked: it evaluates gradients along a path."""
MOST_DENSE = 100
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
TOLERANCE = 1e-10
MOST_ROUNDS = 40
MOST_PANELS = 64
MOST_NUMBERS = 1 << 22
"""Gradients held at once: 32 MiB."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CellChanges:
    """Cells as old and new counts, those that changed most first.

    Parameters
    ----------
    true, predicted
        Shape (n,), class numbers; k in `predicted` is unclassified, in `true` spurious.
    baseline, candidate
        Shape (n,), counts of both sides.
    change
        Shape (n,), difference of the counts, of shares of all items where the totals differ.
    labels
        Names of the k classes.
    """

    true: Array
    predicted: Array
    baseline: Array
    candidate: Array
    change: Array
    labels: tuple[str, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Attribution:
    """The change of one index as a sum over cells.

    Parameters
    ----------
    key, label
        Which index; the class of a per-class one, None overall.
    true, predicted
        Shape (n,), class numbers as in `CellChanges`: the cells that contribute most.
    contributions
        Shape (n,), largest magnitude first.
    rest
        Sum over all other cells.
    residual
        What the contributions of all cells fall short of the difference.
    labels
        Names of the k classes.
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
    """The straight line from an old table to a new one, on the cells that either has.

    Parameters
    ----------
    true, predicted
        Shape (c,), class numbers; k in `predicted` is unclassified, in `true` spurious.
    old, new
        Shape (c,): counts, the old ones scaled to the new total.
    k
        Number of classes.
    """

    true: Array
    predicted: Array
    old: Array
    new: Array
    k: int

    @classmethod
    def between(cls, old: ConfusionTable, new: ConfusionTable) -> "TablePath":
        """Lay the path between two tables over the same classes."""
        codes, counts = _merged_cells(old, new)
        with np.errstate(all="ignore"):
            scale = new.total / old.total if old.total != new.total else 1.0
        true, predicted = np.divmod(codes, old.k + 1)
        return cls(true, predicted, counts[0] * scale, counts[1], old.k)

    @property
    def change(self) -> Array:
        """New minus old counts, shape (c,)."""
        return self.new - self.old

    def at(self, shares: Array) -> ConfusionTable:
        """Stack the tables at some shares (p,) of the way."""
        counts = self.old + shares[:, None] * self.change
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


def changes(
    old: ConfusionTable, new: ConfusionTable, labels: tuple[str, ...], limit: int
) -> CellChanges:
    """Name the cells that changed most.

    Parameters
    ----------
    old, new
        Single tables over the same classes.
    labels
        Their names.
    limit
        Most cells to name.
    """
    codes, counts = _merged_cells(old, new)
    change = counts[1] - counts[0]
    if old.total != new.total:
        with np.errstate(all="ignore"):
            change = counts[1] / new.total - counts[0] / old.total
    order = _largest(change, limit)
    true, predicted = np.divmod(codes[order], old.k + 1)
    return CellChanges(
        true=true,
        predicted=predicted,
        baseline=counts[0, order],
        candidate=counts[1, order],
        change=change[order],
        labels=labels,
    )


def attribute(
    old: ConfusionTable,
    new: ConfusionTable,
    labels: tuple[str, ...],
    options: Options,
    targets: tuple[Target, ...],
) -> tuple[Attribution, ...]:
    """Attribute the change of indices to cells: the Aumann-Shapley path integral.

    Parameters
    ----------
    old, new
        Single tables over the same classes, cell weights applied.
    labels
        Names of the classes.
    options
        Those of the comparison.
    targets
        Smooth indices that the options select.

    Returns
    -------
    One for each target; without cells and with a residual of NaN where the index is undefined
    at either end or has no derivative.

    Notes
    -----
    Source: Aumann, Shapley 1974; Sundararajan, Taly, Yan 2017 (integrated gradients). A cell
    contributes its change times the mean gradient on the straight line between the tables, the
    old one scaled to the total of the new one. The line is cut into panels of Gauss-Legendre
    nodes, and those are halved on which the integral misses the change of the index.
    """
    if not targets:
        return ()
    keys = tuple(dict.fromkeys(key for key, _ in targets))
    options = replace(options, indices=keys, cell_weights=None, intervals=False)
    integrand = _Integrand(TablePath.between(old, new), labels, options, targets)
    with np.errstate(all="ignore"):
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
        """Values at points (p,) of the path, shape (target, p)."""
        values = compute(self.path.at(shares), self.options, select(self.options))
        overall = {e.key: i for i, e in enumerate(values.selection.overall)}
        return np.stack(
            [
                values.overall[overall[key]]
                if label is None
                else values.per_class[values.selection.place[key], :, self.labels.index(label)]
                for key, label in self.targets
            ]
        )

    def gradients(self, shares: Array) -> Array:
        """Gradients by the cells of the path at points (p,) of it, shape (target, p, c)."""
        values = compute(self.path.at(shares), self.options, select(self.options))
        of_classes = class_gradient(values)
        entries = values.selection.overall
        overall = overall_gradient(values, of_classes) if entries else None
        places = {entry.key: i for i, entry in enumerate(entries)}
        result = np.empty((len(self.targets), shares.size, self.path.true.size))
        for i, (key, label) in enumerate(self.targets):
            if label is None and overall is not None:
                place = places[key]
                result[i] = self._at_cells(
                    select_indices(overall, np.array([place])),
                    classified=entries[place].universe == "classified",
                )
            else:
                place = values.selection.place[key]
                classified = values.selection.computed[place].universe == "classified"
                margins = of_classes.margins[:, place]
                gradient = _of_class(margins, self.labels.index(str(label)), silent=classified)
                result[i] = self._at_cells(gradient, classified=classified)
        return result

    def _at_cells(self, gradient: Gradient, *, classified: bool) -> Array:
        """Gradient at the cells of the path, shape (p, c).

        A spurious prediction counts as a prediction only.
        """
        spurious = self.path.true == self.path.k
        result = gradient.at(np.where(spurious, 0, self.path.true), self.path.predicted)[0]
        if spurious.any():
            column = gradient.column[0][:, self.path.predicted[spurious]]
            result[:, spurious] = 0.0 if classified else column
        return result

    def summary(self, which: int, parts: Array, change: float) -> Attribution:
        """Name the cells (c,) that contribute most to the change of one target."""
        key, label = self.targets[which]
        known = bool(np.isfinite(parts).all() and np.isfinite(change))
        order = _largest(parts, self.options.top_confusions if known else 0)
        total = np.add.reduce(parts)
        return Attribution(
            key=key,
            label=label,
            true=self.path.true[order],
            predicted=self.path.predicted[order],
            contributions=parts[order],
            rest=float(total - np.add.reduce(parts[order])),
            residual=float(change - total) if known else np.nan,
            labels=self.labels,
        )


def _of_class(margins: Array, position: int, *, silent: bool) -> Gradient:
    """Write the gradient of one class's index (4, p, k) by all cells."""
    correct, support, predicted, total = margins[:, :, position]
    factors = np.zeros((3, 1, *margins.shape[1:]))
    factors[1, 0] += total[:, None]
    factors[:, 0, :, position] += np.stack((correct, support, predicted))
    return Gradient(factors, np.zeros_like(factors[1]) if silent else factors[1])


def _integral(integrand: _Integrand, ends: Array) -> Array:
    """Contribution of every cell to every target, shape (target, c), NaN where undefined."""
    change = integrand.path.change
    defined = np.asarray(np.isfinite(ends).all(-1))
    allowed = TOLERANCE * np.maximum(np.abs(ends).max(-1), 1.0)
    total = np.zeros((len(ends), change.size))
    total[~defined] = np.nan
    panels = [(0.0, 1.0)]
    for rounds_left in range(MOST_ROUNDS, -1, -1):
        parts = _on_panels(integrand, panels)
        rises = np.diff(integrand.values(np.ravel(panels)).reshape(len(ends), -1, 2))[..., 0]
        missed = np.abs(parts.sum(-1) - rises) > allowed[:, None]
        again = np.flatnonzero((missed & defined[:, None]).any(0))
        if rounds_left == 0 or 2 * again.size > MOST_PANELS:
            again = again[:0]
        total += np.delete(parts, again, axis=1).sum(1)
        panels = [half for i in again for half in _halves(*panels[i])]
        if not panels:
            break
    return total


def _on_panels(integrand: _Integrand, panels: list[tuple[float, float]]) -> Array:
    """Integrate over each panel, shape (target, panel, c)."""
    path, targets = integrand.path, len(integrand.targets)
    result = np.empty((targets, len(panels), path.true.size))
    size = max(MOST_NUMBERS // (targets * NODES.size * max(path.true.size, 1)), 1)
    for start in range(0, len(panels), size):
        low, high = np.array(panels[start : start + size]).T[..., None]
        shares = (low + high) / 2 + (high - low) / 2 * NODES
        gradients = integrand.gradients(shares.ravel()).reshape(targets, *shares.shape, -1)
        weights = (high - low) / 2 * WEIGHTS
        result[:, start : start + size] = np.einsum("pn,tpnc->tpc", weights, gradients)
    return result * path.change


def _halves(low: float, high: float) -> tuple[tuple[float, float], tuple[float, float]]:
    middle = (low + high) / 2
    return (low, middle), (middle, high)


def _merged_cells(old: ConfusionTable, new: ConfusionTable) -> tuple[Array, Array]:
    """Codes (c,) of the cells that either table fills, and both counts of them, (2, c)."""
    sides = [_coordinates(table) for table in (old, new)]
    both = np.sort(np.concatenate([code for code, _ in sides]), kind="stable")
    codes = both[np.diff(both, prepend=-1) > 0]
    counts = np.zeros((2, codes.size))
    for row, (code, count) in zip(counts, sides, strict=True):
        row[np.searchsorted(codes, code)] = count
    return codes, counts


def _coordinates(table: ConfusionTable) -> tuple[Array, Array]:
    """Code and count of every filled cell, unclassified and spurious items among them."""
    k = table.k
    rows, columns, counts = table.cells.coordinates()
    parts = [(rows * (k + 1) + columns, counts)]
    if table.unclassified is not None:
        classes = np.flatnonzero(table.unclassified)
        parts.append((classes * (k + 1) + k, table.unclassified[classes]))
    if table.spurious is not None:
        classes = np.flatnonzero(table.spurious)
        parts.append((k * (k + 1) + classes, table.spurious[classes]))
    codes, filled = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(codes)
    return codes[order], filled[order]


def _largest(values: Array, limit: int) -> Array:
    """Positions of the largest magnitudes other than 0, largest first, ties in table order."""
    order = np.argsort(-np.abs(values), kind="stable")[:limit]
    return order[values[order] != 0]
