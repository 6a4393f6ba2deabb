"""An unchanged model predicts its items twice: two sets of predictions, in stacks of replicates."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rprime.core.arrays import FloatArray
from rprime.core.comparison.aligned_values import AlignedValues
from rprime.core.comparison.compared_side import ComparedSide
from rprime.core.comparison.joint_counts import JointCounts
from rprime.core.comparison.paired_variance import (
    PairedItems,
    PairedPredictions,
    PairedStrata,
    PairedVariance,
    number_of,
    variance_of_patterns,
    without_noise,
)
from rprime.core.counts import CountRow
from rprime.core.estimates import Estimates
from rprime.core.intervals.gradient import ClassGradient, Gradient
from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.table import ConfusionTable

MOST_DRAWN = 10**8
"""Most items of a class for drawing a coincidence; above, the mean replaces it."""
GRID = 2.0**20
PRIOR = 2.0
"""Items with the recall of all classes, added to each class to know how often it errs."""


@dataclass(frozen=True, eq=False)
class SimulatedPredictions:
    """Old and new predictions of the same items, cell by cell; arrays of shape (..., k, k).

    The new model does not predict the kept items anew: both models predict the same class. The
    others are there as each model predicts them, and `both` has those that are in the same cell.

    Parameters
    ----------
    joint
        Shape (..., k, k, k): items by true class, old and new prediction; None where unknown,
        then the expected coincidences of the other items are used.
    centred
        As for `PairedItems`.
    """

    kept: FloatArray
    old: FloatArray
    new: FloatArray
    both: FloatArray
    joint: FloatArray | None = None
    centred: bool = True

    def weighed(self, weights: FloatArray) -> "SimulatedPredictions":
        """Return the items with a weight for each true class; variances are then squares alone."""
        kept, old, new, both = (
            part * weights[..., None] for part in (self.kept, self.old, self.new, self.both)
        )
        joint = None if self.joint is None else self.joint * weights[..., None, None]
        return SimulatedPredictions(kept, old, new, both, joint, centred=False)

    @property
    def baseline(self) -> ConfusionTable:
        """Tables of the old model."""
        return ConfusionTable.dense(self.kept + self.old)

    @property
    def candidate(self) -> ConfusionTable:
        """Tables of the new model."""
        return ConfusionTable.dense(self.kept + self.new)

    @property
    def moving(self) -> FloatArray:
        """Items of each class that are not kept, shape (..., k)."""
        return np.add.reduce(self.old, axis=-1)

    @property
    def k(self) -> int:
        """The number of classes."""
        return self.old.shape[-1]

    def compared(
        self, options: Options, labels: tuple[str, ...], pairs: PairedPredictions | None
    ) -> AlignedValues:
        """Compare the two models, by their pairs of predictions or as two tables."""
        tables = self.baseline, self.candidate
        baseline, candidate = (
            ComparedSide(Estimates.of(table, options, select(options))) for table in tables
        )
        places = np.flatnonzero(tables[0].support.reshape(-1, self.k).any(0))
        together = pairs is not None
        if options.population is not None and pairs is self:
            weights = options.population.weights(tables[1])
            pairs = PairedStrata.of(self, self.weighed(weights**2), weights, tables)
        return AlignedValues(candidate, baseline, labels, places, pairs, one_test_set=together)

    def losing(
        self, shares: FloatArray, errors: FloatArray, random: np.random.Generator
    ) -> "SimulatedPredictions":
        """Have the new model lose a share of the items of each class that it gets right.

        They are predicted like its other `errors`, whose shares have the shape (k, k). An item that
        the old model got wrong in the same way by chance is not counted as a coincidence.
        """
        diagonal = np.arange(self.k)
        kept, old, new, both = (
            np.array(part) for part in (self.kept, self.old, self.new, self.both)
        )
        of_kept, of_new, shared = (
            part[..., diagonal, diagonal].astype(np.int64) for part in (kept, new, both)
        )
        lost_kept, lost_new = (random.binomial(part, shares) for part in (of_kept, of_new))
        kept[..., diagonal, diagonal] -= lost_kept
        old[..., diagonal, diagonal] += lost_kept
        new[..., diagonal, diagonal] -= lost_new
        new += random.multinomial(lost_kept + lost_new, errors)
        both[..., diagonal, diagonal] -= random.hypergeometric(shared, of_new - shared, lost_new)
        return SimulatedPredictions(kept, old, new, both)

    def of_slices(self, places: Sequence[int]) -> "SimulatedPredictions":
        """Return the items of some tables of the last axis of a stack."""
        kept, old, new, both = (
            part[..., places, :, :] for part in (self.kept, self.old, self.new, self.both)
        )
        return replace(self, kept=kept, old=old, new=new, both=both, joint=None)

    def of_cell(self, row: int, column: int) -> "SimulatedPredictions":
        """Return the items of one class, predicted as another one or not, as tables of two."""

        def share(counts: FloatArray, total: FloatArray) -> FloatArray:
            table = np.zeros((*total.shape, 2, 2))
            table[..., 0, 0] = counts[..., row, column]
            table[..., 0, 1] = total - counts[..., row, column]
            return table

        moving = self.moving[..., row]
        old, new = share(self.old, moving), share(self.new, moving)
        both = np.zeros_like(old)
        both[..., 0, 0] = self.both[..., row, column]
        both[..., 0, 1] = both[..., 0, 0] + moving - old[..., 0, 0] - new[..., 0, 0]
        kept = share(self.kept, np.add.reduce(self.kept, axis=-1)[..., row])
        return SimulatedPredictions(kept, old, new, both)

    def items(self) -> PairedItems:
        """Return the counts of true class, old and new prediction of a single expected draw."""
        diagonal = np.arange(self.k)
        joint = self.old[:, :, None] * self.new[:, None, :]
        joint /= np.where(self.moving > 0, self.moving, 1.0)[:, None, None]
        joint[:, diagonal, diagonal] += self.kept
        true, old, new = np.nonzero(joint)
        return PairedItems(JointCounts(true, old, new, joint[true, old, new], self.k))

    def flips(self, row: CountRow, *, per_class: bool) -> tuple[FloatArray, FloatArray]:
        """Return the items that enter and that leave a count, shape (..., k) or (...)."""
        came, left = self.new - self.both, self.old - self.both
        if row in (CountRow.tp, CountRow.fn, CountRow.not_wrong):
            entering, leaving = diagonal_of(came), diagonal_of(left)
        elif row == CountRow.predicted:
            entering, leaving = came.sum(-2), left.sum(-2)
        else:
            entering, leaving = _foreign(came), _foreign(left)
        if row in (CountRow.fn, CountRow.tn):
            entering, leaving = leaving, entering
        if per_class:
            return entering, leaving
        return np.add.reduce(entering, axis=-1), np.add.reduce(leaving, axis=-1)

    def class_variance(
        self, old: ClassGradient, new: ClassGradient, classified: NDArray[np.bool_]
    ) -> PairedVariance:
        """Compute the variances of differences of per-class indices, shape (index, ..., k)."""
        same = self.kept + self.both
        before, after = self.kept + self.old, self.kept + self.new
        parts = []
        for hits in (_foreign, diagonal_of):
            stayed, left, came = hits(same), hits(before), hits(after)
            support = np.add.reduce(before, axis=-1)
            items = (
                support
                if hits is diagonal_of
                else np.add.reduce(support, axis=-1)[..., None] - support
            )
            parts += [items - left - came + stayed, came - stayed, left - stayed, stayed]
        variance = variance_of_patterns(
            _PATTERNS, np.array(parts), old, new, classified, centred=self.centred
        )
        return PairedVariance(variance, variance)

    def overall_variance(self, old: Gradient, new: Gradient) -> PairedVariance:
        """Compute the variances of differences of overall indices, shape (index, ...)."""
        variances, numbers, third = np.empty((3, old.factors.shape[1], *self.old.shape[:-2]))
        for i in range(len(variances)):
            before, after = _at_cells(old, i), _at_cells(new, i)
            variances[i] = self._variance(before, after)
            second, third[i], fourth = self._moments(before, after)
            numbers[i] = number_of(second, fourth)
        return PairedVariance(variances, variances, contributing=numbers, third=third)

    def _moments(
        self, before: FloatArray, after: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Sum T (after - before) to the powers of 2, 3 and 4, each of shape (...)."""
        then, now = self.kept + self.old, self.kept + self.new
        # Products: numpy takes twenty times as long for any power but 2.
        before_2, after_2 = before * before, after * after
        before_3, after_3 = before_2 * before, after_2 * after
        second = (then * before_2).sum((-2, -1)) + (now * after_2).sum((-2, -1))
        second = second - 2 * self._coincidence(before, after)
        third = (now * after_3).sum((-2, -1)) - (then * before_3).sum((-2, -1))
        third = third + 3 * self._coincidence(before_2, after)
        third = third - 3 * self._coincidence(before, after_2)
        fourth = (then * before_3 * before).sum((-2, -1)) + (now * after_3 * after).sum((-2, -1))
        fourth = fourth + 6 * self._coincidence(before_2, after_2)
        fourth = fourth - 4 * self._coincidence(before, after_3)
        fourth = fourth - 4 * self._coincidence(before_3, after)
        return np.maximum(second, 0.0), third, np.maximum(fourth, 0.0)

    def _variance(self, before: FloatArray, after: FloatArray) -> FloatArray:
        """Sum T phi^2 - (sum T phi)^2 / w of one overall index, shape (...)."""
        then, now = self.old * before, self.new * after
        cross = self._coincidence(before, after)
        of_old = ((self.kept + self.old) * before**2).sum((-2, -1))
        square = of_old + ((self.kept + self.new) * after**2).sum((-2, -1)) - 2 * cross
        shift = (then - now + self.kept * (before - after)).sum((-2, -1))
        return without_noise(square - self.centred * shift**2 / self.baseline.total, of_old)

    def _coincidence(self, before: FloatArray, after: FloatArray) -> FloatArray:
        """Sum of the products of both influences of every item, shape (...)."""
        if self.joint is not None:
            return np.asarray(np.einsum("...rij,...ri,...rj->...", self.joint, before, after))
        moving = np.where(self.moving > 0, self.moving, 1.0)
        then, now = (self.old * before).sum(-1), (self.new * after).sum(-1)
        kept = (self.kept * before * after).sum((-2, -1))
        return np.asarray(kept + (then * now / moving).sum(-1))


_PATTERNS = np.array([0, 1, 3, 4, 9, 10, 12, 13])
"""The patterns without unclassified items: true, old and new class are this one or another."""


def diagonal_of(cells: FloatArray) -> FloatArray:
    """Return the diagonal of tables, shape (..., k)."""
    return np.asarray(np.diagonal(cells, axis1=-2, axis2=-1))


def _foreign(cells: FloatArray) -> FloatArray:
    return np.asarray(cells.sum(-2) - diagonal_of(cells))


def _at_cells(gradient: Gradient, place: int) -> FloatArray:
    """Influence of an item of every cell on one index, shape (..., k, k)."""
    diagonal, row, column = gradient.factors[:, place]
    cells = row[..., :, None] + column[..., None, :]
    return np.asarray(cells + diagonal[..., :, None] * np.eye(row.shape[-1]))


@dataclass(frozen=True, eq=False)
class UnchangedModel:
    """An unchanged model with the class-wise behaviour of tables of whole counts, (..., k, k).

    `redrawn`, shape (..., k), is the share of the items of each class that the new model predicts
    anew, in the same proportions; 1 for another test set.
    """

    counts: FloatArray
    redrawn: FloatArray

    @classmethod
    def paired(cls, counts: FloatArray, discordance: float) -> "UnchangedModel":
        """Make a given share of the items discordant: only one of the two models gets them right.

        Two predictions made anew are discordant with probability 2 rho (1 - rho), so classes
        that are almost always right or wrong reach less: no unchanged model differs more. Where
        few items of a class hide its errors, those of other classes are discordant in its place.
        """
        support = np.add.reduce(counts, axis=-1)
        items = np.add.reduce(support, axis=-1, keepdims=True)
        mean = np.add.reduce(diagonal_of(counts), axis=-1, keepdims=True) / np.where(
            items > 0, items, 1.0
        )
        likely = _discordant((diagonal_of(counts) + PRIOR * mean) / (support + PRIOR))
        discordant = np.add.reduce(
            support * np.minimum(likely, discordance), axis=-1, keepdims=True
        )
        most = _discordant(diagonal_of(counts) / np.where(support > 0, support, 1.0))
        level = _level(most, support, discordant)
        return cls(counts, np.minimum(level / np.where(most > 0, most, np.inf), 1.0))

    @classmethod
    def unpaired(cls, counts: FloatArray) -> "UnchangedModel":
        """Predict every item anew."""
        return cls(counts, np.ones(counts.shape[:-1]))

    @property
    def discordance(self) -> float:
        """The expected share of discordant items of a single table."""
        support = np.maximum(self.support, np.finfo(float).tiny)
        anew = self.redrawn * support * _discordant(diagonal_of(self.counts) / support)
        return float(anew.sum() / support.sum())

    @property
    def support(self) -> FloatArray:
        """Items of each class, shape (..., k)."""
        return np.asarray(np.add.reduce(self.counts, axis=-1))

    def expected(self) -> SimulatedPredictions:
        """Return the expected counts, one draw for each table."""
        # Rounded to a grid on which sums are exact, so that the tables stay whole.
        moving = np.rint(self.counts * self.redrawn[..., None] * GRID) / GRID
        total = np.add.reduce(moving, axis=-1, keepdims=True)
        both = moving * moving / np.where(total > 0, total, 1.0)
        return SimulatedPredictions(self.counts - moving, moving, moving, both)

    def draw(self, replicates: int, random: np.random.Generator) -> SimulatedPredictions:
        """Draw replicates with the class sizes of the tables, stack shape (replicates, ...)."""
        support = np.rint(self.support).astype(np.int64)
        shares = self.counts / np.where(support > 0, support, 1)[..., None]
        shares[support == 0, 0] = 1.0
        # Most cells of large tables are empty: draw the others alone, the largest ones first.
        filled = int(np.count_nonzero(shares, axis=-1).max(initial=2))
        order = np.argsort(-shares, axis=-1, kind="stable")[..., :filled]
        shares = np.take_along_axis(shares, order, axis=-1)
        moving = random.binomial(support, self.redrawn, (replicates, *support.shape))
        kept, old, new = (random.multinomial(n, shares) for n in (support - moving, moving, moving))
        total = moving[..., None]
        if moving.max(initial=0) > MOST_DRAWN:
            both = np.rint(old * (new / np.maximum(total, 1)))
        else:  # the items in the same cell of two independent predictions, given both margins
            both = random.hypergeometric(old, total - old, new)
        cells = np.zeros((4, replicates, *self.counts.shape))
        for drawn, part in zip((kept, old, new, both), cells, strict=True):
            np.put_along_axis(part, np.broadcast_to(order, drawn.shape), drawn, axis=-1)
        return SimulatedPredictions(*cells)


def _discordant(recall: FloatArray) -> FloatArray:
    """Return the share of items that just one of two independent predictions gets right."""
    return 2 * recall * (1 - recall)


def _level(most: FloatArray, items: FloatArray, total: FloatArray) -> FloatArray:
    """Return the share of each class at which all have this total, though none more than its most.

    The total is the least of what is linear in the share from each number of full classes on.
    """
    order = np.argsort(most, axis=-1)
    items = np.take_along_axis(items, order, axis=-1)
    full = items * np.take_along_axis(most, order, axis=-1)
    others = np.cumsum(items[..., ::-1], axis=-1)[..., ::-1]
    shares = (total - np.cumsum(full, axis=-1) + full) / np.where(others > 0, others, np.inf)
    return np.asarray(np.max(shares, axis=-1, keepdims=True))
