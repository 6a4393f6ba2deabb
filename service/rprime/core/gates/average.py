"""The average of a rule: the mean of its results over classes, or over slices of a column."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rprime.core.arrays import Array, FloatArray, or_nothing
from rprime.core.comparison.aligned_values import AlignedValues
from rprime.core.comparison.compare import Pairing
from rprime.core.comparison.compared_side import LimitSource
from rprime.core.comparison.difference import (
    INFLUENCE,
    METHODS,
    MOVER,
    TANGO,
    Difference,
    stretched,
)
from rprime.core.comparison.difference_intervals import MoverLimits
from rprime.core.comparison.guard import SideGradients
from rprime.core.gates.evidence import Average, Rows, RuleEvidence
from rprime.core.gates.kinds import VerdictCode
from rprime.core.gates.rules import Rule
from rprime.core.intervals.proportions import one_sided_quantile

SMALLEST = 5
"""Fewest items of a class or slice that counts in an average."""
TOO_SMALL = "too_small_to_average"
"""The reason of an average that no class or slice is large enough for."""
Averaged = Callable[[Sequence["Part"], tuple[int, ...]], Sequence[Difference]]
"""Computes the mean over the classes of each of some parts, (..., 1), without some classes."""
WorstMean = Callable[["Part", tuple[int, ...]], Difference | None]
"""Returns the mean of a part, without some classes, where missing items count as wrong."""


@dataclass(frozen=True, eq=False)
class Part:
    """The results of a rule on all items, or on one slice, that take part in an average.

    Parameters
    ----------
    evidence
        On m rows.
    labels
        All classes of both sides.
    rows
        The rows of the j judged results, those with a value on both sides, shape (j,).
    places
        The positions of their classes, shape (j,); empty for a single number.
    effects
        The largest change of each result by one item of the baseline, shape (j,).
    items
        The items of the baseline behind each, shape (j,).
    """

    evidence: RuleEvidence
    labels: tuple[str, ...]
    rows: NDArray[np.intp]
    places: NDArray[np.intp]
    effects: FloatArray
    items: FloatArray

    @classmethod
    def of(cls, evidence: RuleEvidence, values: AlignedValues, baseline: SideGradients) -> "Part":
        """Take the judged results; `baseline` are the gradients of a single table."""
        rule, rows = evidence.rule, evidence.rows.positions
        rows = rows[rows >= 0]
        judged = evidence.fixed[..., rows] == VerdictCode.by_test
        rows = rows[judged.any(tuple(range(judged.ndim - 1)))]
        places = rows[:0]
        if rule.classes is None:
            items = np.reshape(evidence.items, (-1, evidence.items.shape[-1]))[0, rows]
            effects = _overall_effects(rule, baseline, items)
        else:
            places = values.places[rows]
            items = baseline.values.sampled.class_items[places]
            squares = baseline.class_guard[baseline.values.selection.place[rule.index]][places]
            effects = _or_shares(np.sqrt(squares / 2), items)
        return cls(evidence, values.labels, rows, places, effects, items)

    @classmethod
    def of_stack(cls, evidence: Sequence[RuleEvidence], values: AlignedValues) -> "list[Part]":
        """Take the overall result of each table of a stack of shape (n,), which one rule bounds."""
        rule = evidence[0].rule
        place = values.selection.overall_place[rule.index]
        items = np.concatenate([result.items for result in evidence])
        effects = _or_shares(np.sqrt(values.gradients[0].overall_guard[place] / 2), items)
        nowhere, parts = np.zeros(0, np.intp), []
        for i, result in enumerate(evidence):
            rows = np.flatnonzero(result.fixed == VerdictCode.by_test)
            numbers = effects[i : i + rows.size], items[i : i + rows.size]
            parts.append(cls(result, values.labels, rows, nowhere, *numbers))
        return parts

    @property
    def names(self) -> tuple[str, ...]:
        """The judged results: the classes, or the slice."""
        if self.places.size:
            return tuple(self.labels[i] for i in self.places)
        return (", ".join(value for _, value in self.evidence.slice or ()),) * self.rows.size


def _overall_effects(rule: Rule, baseline: SideGradients, items: FloatArray) -> FloatArray:
    if rule.confusion is not None:
        return 1 / np.maximum(items, 1.0)
    place = baseline.values.selection.overall_place[rule.index]
    return _or_shares(np.sqrt(baseline.overall_guard[place : place + 1] / 2)[: items.size], items)


def _or_shares(effects: FloatArray, items: FloatArray) -> FloatArray:
    """Take an item for one of so many where its effect is unknown, as for areas, or none.

    It is none where the predictions of the baseline are drawn.
    """
    return np.where(effects > 0, effects, 1 / np.maximum(items, 1.0))


def large_enough(
    effects: FloatArray, items: FloatArray, limit: float, level: float
) -> NDArray[np.bool_]:
    """Decide which results count in an average, shape (m,).

    One item that flips in each direction must leave room for a pass of an unchanged model: those
    results are left out, the ones with the largest effect first, of which one item moves the
    average by more than limit / (z sqrt 2), and those with fewer than `SMALLEST` items. Only the
    baseline decides, so that no candidate can choose it.
    """
    most = limit / (one_sided_quantile(level) * np.sqrt(2))
    order = np.argsort(-effects, kind="stable")
    order = order[items[order] >= SMALLEST]
    left = order.size - np.arange(order.size)
    fits = effects[order] <= most * left
    chosen = np.zeros(effects.size, dtype=bool)
    if fits.any():
        chosen[order[np.argmax(fits) :]] = True
    return chosen


def average_evidence(
    rule: Rule,
    parts: Sequence[Part],
    *,
    level: float,
    averaged: Averaged,
    columns: tuple[str, ...] = (),
    pairing: Pairing | None = None,
    worst: WorstMean | None = None,
) -> RuleEvidence | None:
    """Return the evidence on the average of a rule; None where fewer than two results are judged.

    Parameters
    ----------
    parts
        All items, or the slices of some columns.
    averaged
        Computes the mean over the classes of a part.
    columns
        Those of the slices.
    worst
        Returns the mean of a part with missing items counted as wrong.
    """
    effects = np.concatenate([part.effects for part in parts]) if parts else np.zeros(0)
    if effects.size < 2:
        return None
    items = np.concatenate([part.items for part in parts])
    chosen = large_enough(effects, items, rule.limit, level)
    names = [name for part in parts for name in part.names]
    left_out = tuple(name for name, inside in zip(names, chosen, strict=True) if not inside)
    count, first = int(np.count_nonzero(chosen)), parts[0].evidence
    average = Average(of=count, columns=columns, left_out=left_out)
    inside = list(_inside(parts, chosen))
    kept = [(part, _left_out(part, flags)) for part, flags in inside]
    means = _means(kept, averaged)
    weights = np.array([np.count_nonzero(flags) for _, flags in inside]) / max(count, 1)
    statistic: Any = Difference.unknown((*first.fixed.shape[:-1], 1))
    if means:
        statistic = _combined(means, weights, sliced=bool(columns))
    cases = [None if worst is None else worst(part, few) for part, few in kept]
    pieces: tuple[tuple[Any, Any], ...] = ()
    if any(case is not None for case in cases):
        worse = [case or mean for case, mean in zip(cases, means, strict=True)]
        pieces = ((np.zeros(1, np.intp), _combined(worse, weights, sliced=bool(columns))),)
    tested = np.isfinite(statistic.value) & np.isfinite(statistic.standard_error)
    fixed = np.where(tested, VerdictCode.by_test, VerdictCode.undecided).astype(np.uint8)
    reason = "" if tested.any() else "no_interval" if means else TOO_SMALL
    method = METHODS[INFLUENCE if pairing == "paired" else MOVER]
    return RuleEvidence(
        rule=rule,
        rows=Rows.single(exists=True),
        statistic=statistic,
        fixed=fixed,
        items=np.full(fixed.shape, float(items[chosen].sum()) or np.nan),
        against=first.against,
        reasons=(reason,),
        methods=(method if tested.any() else None,),
        pairing=pairing,
        average=average,
        worst=pieces,
        effective_groups=_fewest([mean.effective_groups for mean in means]),
    )


def _inside(
    parts: Sequence[Part], chosen: NDArray[np.bool_]
) -> Iterator[tuple[Part, NDArray[np.bool_]]]:
    """Yield the parts with a chosen result, and which of theirs are."""
    start = 0
    for part in parts:
        flags = chosen[start : start + part.rows.size]
        start += part.rows.size
        if np.count_nonzero(flags):
            yield part, flags


def _combined(means: Sequence[Difference], weights: FloatArray, *, sliced: bool) -> Any:  # noqa: ANN401 (a statistic)
    """Return the mean of one part, or the weighted one of slices."""
    return AverageOfSlices.of(means, weights) if sliced else means[0]


def _fewest(groups: Sequence[FloatArray]) -> FloatArray | None:
    """Return the smallest effective number of groups of the parts; None without parts."""
    return np.fmin.reduce(groups) if groups else None


def _left_out(part: Part, inside: NDArray[np.bool_]) -> tuple[int, ...]:
    """Return the positions of the classes that take no part in the mean of a part."""
    if not part.places.size:
        return ()
    kept = np.zeros(len(part.labels), dtype=bool)
    kept[part.places[inside]] = True
    return tuple(np.flatnonzero(~kept).tolist())


def _means(kept: Sequence[tuple[Part, tuple[int, ...]]], averaged: Averaged) -> list[Difference]:
    """Return the mean of the results of each part; those without the same classes together."""
    means: dict[int, Difference] = {}
    together: dict[tuple[int, ...], list[int]] = {}
    for i, (part, left_out) in enumerate(kept):
        if part.evidence.rule.classes is not None:
            together.setdefault(left_out, []).append(i)
        else:
            statistic = part.evidence.statistic
            assert isinstance(statistic, Difference)  # noqa: S101 (rules with an average compare)
            means[i] = statistic[..., part.rows]
    for left_out, places in together.items():
        parts = [kept[i][0] for i in places]
        means.update(zip(places, averaged(parts, left_out), strict=True))
    return [means[i] for i in range(len(kept))]


@dataclass(frozen=True, eq=False)
class AverageOfSlices(MoverLimits):
    """The weighted mean of the differences of slices that share no items, shape (..., 1).

    `error` and `skewness` are its standard error and skewness where items are paired, NaN
    elsewhere; then the limits of the slices decide. `sources` has those of the slices of each
    source, shape (slices, ..., 1), with their weights; `complete` is whether every slice has some.

    Notes
    -----
    The variances of the slices add up. The guard of paired differences, an item that flips in each
    direction, counts once, where its effect on the mean is largest. Unpaired limits are combined as
    those of two samples are (MOVER, Zou, Donner 2008).
    """

    sources: tuple[tuple[FloatArray, MoverLimits], ...]
    complete: bool
    error: Array
    skewness: Array

    @classmethod
    def of(cls, means: Sequence[Difference], weights: FloatArray) -> "AverageOfSlices":
        """Average the differences of slices."""
        candidate, baseline = (
            np.add.reduce([w * getattr(m, side) for w, m in zip(weights, means, strict=True)])
            for side in ("candidate", "baseline")
        )
        squares = weights**2
        variances = [_variance(mean) for mean in means]
        variance = np.add.reduce([w * v for w, (v, _) in zip(squares, variances, strict=True)])
        guard = np.maximum.reduce([w * g for w, (_, g) in zip(squares, variances, strict=True)])
        places = np.zeros(np.shape(candidate), dtype=np.intp)
        error = np.sqrt(variance + guard)
        cubes = [or_nothing(mean.skewness * mean.influence_error**3) for mean in means]
        skewness = np.add.reduce([w**3 * cube for w, cube in zip(weights, cubes, strict=True)])
        with np.errstate(all="ignore"):
            skewness = np.where(error > 0, skewness / error**3, 0.0)
        limits = [
            (weight, mean.mover)
            for weight, mean in zip(weights, means, strict=True)
            if mean.mover is not None
        ]
        sources = tuple(_by_source(limits))
        complete = len(limits) == len(means)
        return cls(candidate, baseline, LimitSource(()), places, sources, complete, error, skewness)

    def __getitem__(self, position: Any) -> "AverageOfSlices":  # noqa: ANN401 (a numpy index)
        """Select elements, by any numpy index."""
        return replace(
            self,
            candidate=self.candidate[position],
            baseline=self.baseline[position],
            places=self.places[position],
            error=self.error[position],
            skewness=self.skewness[position],
            sources=tuple((w, _of_each(limits, position)) for w, limits in self.sources),
        )

    @classmethod
    def join(cls, parts: "Sequence[MoverLimits]") -> MoverLimits:
        """Return the only part: each has slices, and so a source, of its own."""
        (part,) = parts
        return part

    def _distances(self, quantile: Array) -> tuple[Array, Array]:
        """Return how far the limits are from the mean, below and above."""
        paired = [
            stretched(quantile, np.maximum(sign * self.skewness, 0.0)) * self.error
            for sign in (-1, 1)
        ]
        if not np.isnan(self.error).any():
            return paired[0], paired[1]
        below, above = np.full((2, *self.candidate.shape), 0.0 if self.complete else np.nan)
        for weights, limits in self.sources:
            low, high = limits.at(quantile)
            below = np.hypot(below, np.hypot.reduce(weights * (limits.value - low)))
            above = np.hypot(above, np.hypot.reduce(weights * (high - limits.value)))
        lost = np.isnan(self.error)
        return np.where(lost, below, paired[0]), np.where(lost, above, paired[1])


def _by_source(
    limits: Sequence[tuple[float, MoverLimits]],
) -> Iterator[tuple[FloatArray, MoverLimits]]:
    """Stack the limits of one source, which computes all of its limits at once."""
    together: dict[int, list[tuple[float, MoverLimits]]] = {}
    for weight, mover in limits:
        together.setdefault(id(mover.source), []).append((weight, mover))
    for members in together.values():
        weights = np.array([weight for weight, _ in members])
        movers = [mover for _, mover in members]
        weights = weights.reshape(-1, *(1,) * movers[0].candidate.ndim)
        arrays = (
            np.stack([getattr(mover, name) for mover in movers])
            for name in ("candidate", "baseline", "places")
        )
        candidate, baseline, places = arrays
        yield weights, MoverLimits(candidate, baseline, *movers[0].source.only(places))


def _of_each(limits: MoverLimits, position: Any) -> MoverLimits:  # noqa: ANN401 (a numpy index)
    """Select elements of each slice, by any numpy index."""
    candidate, baseline, places = (
        np.stack([row[position] for row in part])
        for part in (limits.candidate, limits.baseline, limits.places)
    )
    return MoverLimits(candidate, baseline, limits.source, places)


def _variance(mean: Difference) -> tuple[Array, Array]:
    """Return the variance of a paired mean without its guard, and the guard; NaN if unpaired."""
    with np.errstate(all="ignore"):
        changed, moved = mean.gains + mean.losses, mean.gains - mean.losses
        counted = (changed - moved**2 / mean.trials) / mean.trials**2
        whole = mean.influence_error**2
        inside = np.minimum(or_nothing(mean.guard), whole)
        tango, influence = mean.methods == TANGO, mean.methods == INFLUENCE
        variance = np.where(tango, counted, np.where(influence, whole - inside, np.nan))
        guard = np.where(tango, 2 / mean.trials**2, np.where(influence, inside, np.nan))
    return variance, guard
