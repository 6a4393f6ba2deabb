"""The evidence that a gate gets from simulated draws of an unchanged model."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rprime.core.arrays import FloatArray
from rprime.core.comparison.difference import (
    CODE,
    INFLUENCE,
    NO_METHOD,
    TANGO,
    UNPAIRED,
    Difference,
)
from rprime.core.comparison.joint_counts import class_proportion, overall_proportion
from rprime.core.comparison.paired_variance import class_guard, overall_guard
from rprime.core.counts import CountRow
from rprime.core.gates.estimate import Estimate, estimate
from rprime.core.gates.resampling import SimulatedPredictions
from rprime.core.gates.rules import Rule
from rprime.core.index import Index
from rprime.core.intervals.delta import class_gradient, overall_gradient
from rprime.core.intervals.gradient import ClassGradient, Gradient
from rprime.core.intervals.variance import class_variances, variances
from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.values import Values, compute

NOISE = 1e-20
"""A variance below this share of the sides' own variances is rounding."""


@dataclass(frozen=True, eq=False)
class Simulation:
    """The evidence of a gate on a stack of draws.

    Parameters
    ----------
    draws
        Of shape (..., k, k).
    indices
        Keys of all rules.
    paired
        Whether the gate has paired items, or only two tables.
    """

    draws: SimulatedPredictions
    indices: tuple[str, ...]
    paired: bool

    @cached_property
    def values(self) -> tuple[Values, Values]:
        """Values of the baseline and the candidate."""
        options = Options(indices=self.indices)
        sides = (self.draws.baseline, self.draws.candidate)
        old, new = (compute(table, options, select(options)) for table in sides)
        return old, new

    @cached_property
    def class_gradients(self) -> tuple[ClassGradient, ClassGradient]:
        """Gradients of the baseline and the candidate."""
        old, new = self.values
        return class_gradient(old), class_gradient(new)

    @cached_property
    def overall_gradients(self) -> tuple[Gradient, Gradient]:
        """Gradients of the baseline and the candidate."""
        pairs = zip(self.values, self.class_gradients, strict=True)
        old, new = (overall_gradient(values, gradient) for values, gradient in pairs)
        return old, new

    @cached_property
    def class_variance(self) -> FloatArray:
        """Variance of the differences of per-class indices, shape (computed, ..., k)."""
        old, new = self.class_gradients
        if self.paired:
            return _class_variance(self.draws, old, new) + class_guard(old, new)
        sides = zip(self.values, self.class_gradients, strict=True)
        before, after = (class_variances(values, gradient) for values, gradient in sides)
        return before + after

    def overall_variance(self, place: int) -> FloatArray:
        """Variance of the differences of one overall index, shape (...)."""
        old, new = (_only(gradient, place) for gradient in self.overall_gradients)
        if not self.paired:
            sides = zip((old, new), self.values, strict=True)
            before, after = (variances(g, side.table, "random")[0] for g, side in sides)
            return before + after
        entry = self.values[0].selection.overall[place]
        variance = _overall_variance(self.draws, old, new)
        if entry.reads not in ("macro", "means"):
            return variance
        return variance + _guard(old, new, self.values[0].table.support)

    def estimate(self, rule: Rule) -> Estimate:
        """Values of the candidate."""
        return estimate(self.values[1], rule.entry)

    def difference(self, rule: Rule) -> Difference:
        """Return the differences of an index, shape (..., k) per class and (..., 1) overall."""
        entry = rule.entry
        if entry.scope == "class":
            place = self.values[0].selection.place[entry.key]
            old, new = (_finite(side.per_class[place]) for side in self.values)
            variance = self.class_variance[place]
        else:
            place = self.values[0].selection.overall.index(entry)
            old, new = (_finite(side.overall[place])[..., None] for side in self.values)
            variance = self.overall_variance(place)[..., None]
        draft = self._untested(old, new, entry)
        exists = np.isfinite(draft.value) & (variance > 0)
        draft = replace(draft, standard_error=np.sqrt(np.where(exists, variance, np.nan)))
        counted = self.flips(entry) if self.paired else None
        if counted is not None:
            return _by_items(draft, *counted)
        method = INFLUENCE if self.paired else UNPAIRED
        return replace(draft, methods=np.where(exists, method, NO_METHOD))

    def _untested(self, old: FloatArray, new: FloatArray, entry: Index) -> Difference:
        """Differences before their evidence is known."""
        changed = np.broadcast_to(self._exclusions_differ(entry), new.shape)
        unknown = np.full(new.shape, np.nan)
        return Difference(
            candidate=new,
            baseline=old,
            value=np.where(changed, np.nan, new - old),
            reasons=np.where(changed, CODE["excluded_classes_differ"], 0),
            methods=np.zeros(new.shape, dtype=np.uint8),
            gains=unknown,
            losses=unknown,
            trials=unknown,
            standard_error=unknown,
            baseline_hits=unknown,
            candidate_hits=unknown,
            items=unknown,
        )

    def _exclusions_differ(self, entry: Index) -> FloatArray:
        """Whether an average leaves out different classes in the draws of the two sides."""
        old, new = self.values
        if entry.reads not in ("macro", "means"):
            return np.zeros((), dtype=bool)
        rows = [old.selection.place[key] for key in entry.of]
        return np.asarray((old.defined[rows] != new.defined[rows]).any((0, -1)))[..., None]

    def flips(self, entry: Index) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Return gains, losses and trials, (..., k) or (..., 1); None for no proportion."""
        overall = entry.scope == "overall"
        row = (
            overall_proportion(entry, everyone_answered=True)
            if overall
            else class_proportion(entry)
        )
        return None if row is None else _flips(self.draws, row, overall=overall)


def _by_items(
    draft: Difference, gains: FloatArray, losses: FloatArray, trials: FloatArray
) -> Difference:
    """Use Tango's test of a proportion of paired items."""
    exists = np.isfinite(draft.value) & (trials > 0)
    known = [np.where(exists, part, np.nan) for part in (gains, losses, trials)]
    return replace(
        draft,
        methods=np.where(exists, TANGO, NO_METHOD),
        gains=known[0],
        losses=known[1],
        trials=known[2],
        standard_error=np.full(draft.shape, np.nan),
    )


def _flips(
    draws: SimulatedPredictions, row: CountRow, *, overall: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Gains and losses of a proportion, and its trials, shape (..., k) or (..., 1)."""
    gains, losses = draws.new - draws.both, draws.old - draws.both
    right = [np.diagonal(part, axis1=-2, axis2=-1) for part in (gains, losses)]
    if row in (CountRow.tp, CountRow.fn, CountRow.not_wrong):
        counted, trials = right, draws.baseline.support
    else:
        entering = [part.sum(-2) for part in (gains, losses)]
        wrongly = [every - own for every, own in zip(entering, right, strict=True)]
        support, total = draws.baseline.support, draws.baseline.total[..., None]
        predicted = row == CountRow.predicted
        counted = entering if predicted else wrongly
        trials = total + 0 * support if predicted else total - support
    better, worse = counted[::-1] if row in (CountRow.fn, CountRow.tn) else counted
    parts = (np.asarray(better), np.asarray(worse), np.asarray(trials))
    if not overall:
        return parts
    gained, lost, tried = (np.add.reduce(part, axis=-1)[..., None] for part in parts)
    return gained, lost, tried


def _class_variance(
    draws: SimulatedPredictions, old: ClassGradient, new: ClassGradient
) -> FloatArray:
    """Sum T phi^2 - (sum T phi)^2 / w of per-class indices, shape (computed, ..., k)."""
    counts = _kinds(draws)
    total = counts.sum((0, 1))
    before = old.kinds.reshape(2, 2, *old.kinds.shape[1:])
    after = new.kinds.reshape(2, 2, *new.kinds.shape[1:])
    first = second = own = np.zeros(())
    for truth, then, now in np.ndindex(2, 2, 2):
        items = counts[2 * truth + then, now]
        phi = after[truth, now] - before[truth, then]
        first, second = first + items * phi, second + items * phi**2
        own = own + items * before[truth, then] ** 2
    return _without_noise(second - first**2 / total, own)


def _kinds(draws: SimulatedPredictions) -> FloatArray:
    """Items of each class by kind before and after: [TP, FN, FP, TN] by [hit, other], (..., k)."""
    same, old, new = draws.kept + draws.both, draws.kept + draws.old, draws.kept + draws.new
    parts = []
    for hits in (_own, _foreign):
        stayed, before, after = hits(same), hits(old), hits(new)
        items = _own_rows(old) if hits is _own else old.sum((-2, -1))[..., None] - _own_rows(old)
        left, came = before - stayed, after - stayed
        parts += [[stayed, left], [came, items - stayed - left - came]]
    return np.array(parts)


def _own(cells: FloatArray) -> FloatArray:
    return np.asarray(np.diagonal(cells, axis1=-2, axis2=-1))


def _foreign(cells: FloatArray) -> FloatArray:
    return np.asarray(cells.sum(-2) - _own(cells))


def _own_rows(cells: FloatArray) -> FloatArray:
    return np.asarray(cells.sum(-1))


def _overall_variance(draws: SimulatedPredictions, old: Gradient, new: Gradient) -> FloatArray:
    """Sum T phi^2 - (sum T phi)^2 / w of one overall index, shape (...)."""
    before, after = _at_cells(old), _at_cells(new)
    then, now = draws.old * before, draws.new * after
    cross = _coincidence(draws, before, after)
    own = ((draws.kept + draws.old) * before**2).sum((-2, -1))
    square = own + ((draws.kept + draws.new) * after**2).sum((-2, -1)) - 2 * cross
    shift = (then - now + draws.kept * (before - after)).sum((-2, -1))
    return _without_noise(square - shift**2 / draws.baseline.total, own)


def _coincidence(draws: SimulatedPredictions, before: FloatArray, after: FloatArray) -> FloatArray:
    """Sum of the products of both influences of every item, shape (...)."""
    if draws.joint is not None:
        return np.asarray(np.einsum("...rij,...ri,...rj->...", draws.joint, before, after))
    moving = np.where(draws.moving > 0, draws.moving, 1.0)
    then, now = (draws.old * before).sum(-1), (draws.new * after).sum(-1)
    return np.asarray((draws.kept * before * after).sum((-2, -1)) + (then * now / moving).sum(-1))


def _at_cells(gradient: Gradient) -> FloatArray:
    """Influence of an item of every cell, shape (..., k, k), of a single index."""
    diagonal, row, column = gradient.factors[:, 0]
    cells = row[..., :, None] + column[..., None, :]
    return np.asarray(cells + diagonal[..., :, None] * np.eye(row.shape[-1]))


def _only(gradient: Gradient, place: int) -> Gradient:
    return Gradient(gradient.factors[:, place : place + 1])


def _guard(old: Gradient, new: Gradient, support: FloatArray) -> FloatArray:
    """Small-class guard of one overall index, shape (...); see `overall_guard`."""
    classes = support.shape[-1]
    before, after = (Gradient(side.factors.reshape(3, -1, classes)) for side in (old, new))
    guard = overall_guard(before, after, support.reshape(-1, classes))
    return np.asarray(guard.reshape(support.shape[:-1]))


def _without_noise(variance: FloatArray, own: FloatArray) -> FloatArray:
    return np.where(variance > NOISE * own, variance, 0.0)


def _finite(values: FloatArray) -> FloatArray:
    return np.where(np.isfinite(values), values, np.nan)
