"""The evidence on each result of a rule, from an evaluation and its comparisons."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rprime.core.arrays import Array, FloatArray
from rprime.core.comparison.compare import Pairing
from rprime.core.comparison.compared_side import LimitSource
from rprime.core.comparison.difference import OTHER_EVIDENCE, REASONS, Difference
from rprime.core.comparison.difference_intervals import REFERENCE, MoverLimits, unit_scale
from rprime.core.gates.kinds import Against, Codes, VerdictCode
from rprime.core.gates.rules import Rule
from rprime.core.gates.targets import Estimate
from rprime.core.intervals.proportions import binomial_tail_p, effective_items
from rprime.core.slices.slices import Slice

Statistic = Difference | MoverLimits
"""Values or differences with limits and p-values, shape (..., n)."""
Positions = NDArray[np.intp]
CLASSES_DIFFER = REASONS.index("classes_differ")


@dataclass(frozen=True)
class Rows:
    """The results of a rule among the rows of its evidence: one for each class, or only one.

    `labels` are their classes, None for a single number; `positions` their rows, -1 where there is
    none; `left_out` the classes that the rule leaves out because they have too few items; `absent`
    the verdicts on classes without a row, `not_comparable` unless said otherwise.
    """

    labels: tuple[str | None, ...]
    positions: Positions
    left_out: tuple[str, ...] = ()
    absent: Mapping[str | None, VerdictCode] = field(default_factory=dict[str | None, VerdictCode])

    @classmethod
    def of(
        cls,
        rule: Rule,
        declared: tuple[str, ...],
        items: FloatArray,
        others: tuple[str, ...] = (),
        absent: Mapping[str, VerdictCode] | None = None,
    ) -> "Rows":
        """Choose the classes that a rule is about; "all" means those with items.

        The `declared` classes have a row each; `others` are further ones, which "all" leaves out,
        and `absent` those that one side lacks, with their verdicts.
        """
        if rule.classes is None:
            return cls.single(exists=items.size > 0 and bool(rule.confusion is None or items[0]))
        count = dict(zip(declared, items.tolist(), strict=True))
        everything = rule.classes == "all"
        chosen = declared if everything else rule.classes
        out = {n for n in chosen if everything or count.get(n)}
        out = {name for name in out if count[name] < max(rule.min_items, everything)}
        kept = tuple(name for name in chosen if name not in out) or (None,)
        row: dict[str | None, int] = {name: i for i, name in enumerate(declared) if count[name]}
        positions = np.array([row.get(name, -1) for name in kept], dtype=np.intp)
        left_out = tuple(name for name in chosen if name in out)
        lost: dict[str | None, VerdictCode] = {
            name: code for name, code in (absent or {}).items() if everything or name in chosen
        }
        labels: list[str | None] = list(kept)
        if everything and lost:
            labels = [*(name for name in kept if name is not None), *lost]
            positions = np.array([row.get(name, -1) for name in labels], dtype=np.intp)
        return cls(tuple(labels), positions, left_out + (others if everything else ()), lost)

    @classmethod
    def single(cls, *, exists: bool) -> "Rows":
        """Return the single result of a rule about one number, which may have no row."""
        return cls((None,), np.array([0 if exists else -1], dtype=np.intp))

    def without(self, labels: tuple[str, ...], few: tuple[int, ...]) -> "Rows":
        """Name the classes that an average leaves out; without any left there is no row."""
        if not few:
            return self
        names = tuple(labels[i] for i in few)
        positions = self.positions if len(few) < len(labels) else np.full_like(self.positions, -1)
        return replace(self, positions=positions, left_out=names)

    def each(self, of_rows: Sequence[str], absent: Callable[[str | None], str]) -> tuple[str, ...]:
        """Return the word for each result."""
        return tuple(
            of_rows[i] if i >= 0 else absent(label)
            for i, label in zip(self.positions, self.labels, strict=True)
        )


@dataclass(frozen=True, kw_only=True)
class Average:
    """What a mean is of.

    Parameters
    ----------
    of
        The number of classes or slices.
    columns
        The columns of the slices; empty for classes.
    left_out
        The classes or slices that are too small for it.
    """

    of: int
    columns: tuple[str, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class RuleEvidence:
    """What is known of a rule before it is tested: a column for each row of its evidence.

    `fixed` has codes of `VerdictCode`, `by_test` where a test decides the verdict. `against` is
    what the differences are from, None for values; `slice` the part of the items, None for all.
    Results have `reasons`, empty where the evidence decides, and `methods`; none where nobody asks.
    What is not there has `hints` at the names that may be meant, by the class. `average` is set for
    the mean of other results, `alone` where a rule about several has only these to decide it.

    Where items of the baseline are missing, `missing` is their number behind each row, and `worst`
    has rows with the statistics that count them as wrong. `effective_groups` is their number
    behind each row, None or NaN for independent items.
    """

    rule: Rule
    rows: Rows
    statistic: Statistic
    fixed: Codes
    items: FloatArray
    against: Against | None = None
    reasons: tuple[str, ...] = ()
    methods: tuple[str | None, ...] = ()
    pairing: Pairing | None = None
    slice: Slice | None = None
    hints: Mapping[str | None, str] = field(default_factory=dict[str | None, str])
    average: Average | None = None
    alone: bool = False
    worst: tuple[tuple[Positions, Statistic], ...] = ()
    missing: FloatArray | None = None
    effective_groups: FloatArray | None = None

    def at(self, position: int) -> "RuleEvidence":
        """Return one table of the last axis of a stack of these."""
        here = (..., position, slice(None))
        return replace(
            self, statistic=self.statistic[here], fixed=self.fixed[here], items=self.items[here]
        )


def evidence_of(
    rule: Rule,
    rows: Rows,
    statistic: Statistic,
    items: FloatArray,
    *,
    comparable: bool = True,
    **more: Any,  # noqa: ANN401 (other members of the draft)
) -> RuleEvidence:
    """Hold values or differences against the limit of a rule.

    A value that only the candidate lacks is `undefined`; one that the baseline lacks too is no
    evidence, unless it takes scores that were not sent. Differences of sides that are not
    `comparable` decide nothing. `more` are other members of the draft.
    """
    if isinstance(statistic, Difference):
        fixed = _fixed_differences(statistic) if comparable else VerdictCode.not_comparable
    else:
        exists = np.isfinite(statistic.candidate)
        fixed = np.where(exists, VerdictCode.by_test, VerdictCode.undefined)
    codes = np.full(statistic.value.shape, fixed, dtype=np.uint8)
    return RuleEvidence(rule=rule, rows=rows, statistic=statistic, fixed=codes, items=items, **more)


def _fixed_differences(difference: Difference) -> Codes | VerdictCode:
    """Return the verdicts on differences that no test decides, shape (..., m)."""
    if np.isfinite(difference.value).all() and not difference.reasons.any():
        return VerdictCode.by_test
    missing = ~np.isfinite(difference.value) | difference.undefined
    undefined_before = np.isnan(difference.baseline) & ~difference.undefined
    # A baseline without scores never has the value, whatever items come.
    never = undefined_before & np.isin(difference.reasons, OTHER_EVIDENCE)
    lacking = np.where(never, VerdictCode.not_comparable, VerdictCode.undecided)
    code = np.where(undefined_before, lacking, VerdictCode.undefined)
    fixed = np.where(missing, code, VerdictCode.by_test)
    return np.where(difference.reasons == CLASSES_DIFFER, VerdictCode.not_comparable, fixed)


CELLS = 64
"""Parts of the range in which two slices may have the same value."""
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class GapLimits(MoverLimits):
    """Limits of the largest difference between slices, which share no items.

    The value is that of the candidate, and the baseline 0. `of_slices` are the values of the
    slices, shape (s, ..., m); NaN for a slice that takes no part. The source has a side for each
    slice, or is of one stack; then `places` has the shape of `of_slices`.

    Notes
    -----
    Each difference of two slices has the limits of two independent samples (MOVER). The largest
    of their lower limits, at the level divided by the number of ordered pairs, is a lower limit of
    the largest difference (Bonferroni); the largest of their upper limits needs no adjustment
    (intersection-union: all differences are within a bound if each is).
    """

    of_slices: Array

    @classmethod
    def of(cls, estimates: Sequence[Estimate], least: float) -> "GapLimits":
        """Take the estimates of the slices, without values that rest on fewer items."""
        values = np.array(
            [
                np.where(estimate.items < max(least, 1), np.nan, estimate.value)
                for estimate in estimates
            ]
        )
        sides = tuple(side for estimate in estimates for side in estimate.statistic.source.sides)
        return cls._of(values, LimitSource(sides), estimates[0].statistic.places)

    @classmethod
    def of_stack(cls, estimate: Estimate, slices: list[int], least: float) -> "GapLimits":
        """Take some slices of a stack, its last axis."""
        few = estimate.items < max(least, 1)
        parts = (np.where(few, np.nan, estimate.value), estimate.statistic.places)
        values, places = (np.moveaxis(part[..., slices, :], -2, 0) for part in parts)
        return cls._of(values, estimate.statistic.source, places)

    @classmethod
    def _of(cls, values: Array, source: LimitSource, places: Array) -> "GapLimits":
        there = np.isfinite(values)
        largest = np.where(there, values, -np.inf).max(0) - np.where(there, values, np.inf).min(0)
        gap = np.where(there.sum(0) > 1, largest, np.nan)
        return cls(gap, np.zeros_like(gap), source, places, values)

    def __getitem__(self, position: Any) -> "GapLimits":  # noqa: ANN401 (a numpy index)
        """Select elements, by any numpy index of the last axis."""
        names = ("candidate", "baseline", "places", "of_slices")
        return replace(self, **{name: getattr(self, name)[position] for name in names})

    @classmethod
    def join(cls, parts: "Sequence[MoverLimits]") -> MoverLimits:
        """Return the only part: each has slices, and so a source, of its own."""
        (part,) = parts
        return part

    @property
    def centre(self) -> Array:
        """The mean value of the slices."""
        there = np.isfinite(self.of_slices)
        total = np.where(there, self.of_slices, 0.0).sum(0)
        return total / np.where(there.any(0), there.sum(0), np.nan)

    @property
    def pairs(self) -> Array:
        """Number of ordered pairs of slices, shape (m,)."""
        count = np.isfinite(self.of_slices).sum(0)
        return np.maximum(count * (count - 1), 1)

    def limits(self, level: ArrayLike) -> tuple[Array, Array]:
        """Return the one-sided limits, each at this level; no difference is below 0."""
        low, high = super().limits(np.asarray(level) / self.pairs)[0], super().limits(level)[1]
        return np.maximum(low, 0.0), high

    def p(self, threshold: ArrayLike) -> tuple[Array, Array]:
        """Return the smallest levels at which it is shown to be below, and above, a threshold."""
        below, above = super().p(threshold)
        return below, np.minimum(above * self.pairs, 1.0)

    def tails(self, threshold: Array, span: Array) -> tuple[Array, Array]:
        """Return exact p-values; NaN for those of being below, which nobody needs.

        Notes
        -----
        If slice i lies above slice j by no more than t, then for some c slice i is at most c + t
        and slice j at least c. The binomial tails at both are independent, and their product q has
        the p-value q (1 - log q) (Fisher's combination). The largest over c in `CELLS` cells
        counts: in each the one tail is taken at its upper, the other at its lower end.
        """
        low, high = unit_scale(self._limits_of_slices(np.array(REFERENCE)), span[:, None])
        values, width = unit_scale(self.of_slices, span), threshold / (span[1] - span[0])
        there = np.isfinite(values)
        bottom, top = np.where(there, values, 1.0).min(0), np.where(there, values, 0.0).max(0)
        ends = np.linspace(bottom, np.maximum(top - width, bottom), CELLS + 1)[:, None]
        more, fewer = (effective_items(REFERENCE, values, limit) for limit in (low, high))
        above = binomial_tail_p(values * more, more, ends[1:] + width)
        below = binomial_tail_p((1 - values) * fewer, fewer, 1 - ends[:-1])
        least = np.ones(self.candidate.shape)
        for i, tail in enumerate(np.moveaxis(above, 1, 0)):
            joint = (tail[:, None] * below).max(0)
            joint[i] = np.nan
            least = np.fmin(least, np.fmin.reduce(joint))
        joined = least * (1 - np.log(np.maximum(least, TINY)))
        return np.full_like(joined, np.nan), np.minimum(joined * self.pairs, 1.0)

    def _limits_of_slices(self, quantile: Array) -> Array:
        """Return both limits of the slices, shape (2, s, ..., m)."""
        if quantile.ndim == 0:
            limits = self.source.at(float(quantile))
        else:
            limits = self._limits_at(quantile, self.places)
        if self.places.ndim == self.of_slices.ndim:
            return limits[0][:, self.places]
        return np.moveaxis(limits[..., self.places], 1, 0)

    def _distances(self, quantile: Array) -> tuple[Array, Array]:
        """Return how far the limits are from the value, below and above."""
        low, high = self._limits_of_slices(quantile)
        values, there = self.of_slices, np.isfinite(self.of_slices)
        lowest, highest = np.full((2, *self.candidate.shape), -np.inf)
        for i, value in enumerate(values):
            pairs = there & there[i]
            pairs[i] = False
            below = value - values - np.hypot(value - low[i], high - values)
            above = value - values + np.hypot(high[i] - value, values - low)
            lowest = np.maximum(lowest, np.where(pairs, below, -np.inf).max(0))
            highest = np.maximum(highest, np.where(pairs, above, -np.inf).max(0))
        return self.candidate - lowest, highest - self.candidate
