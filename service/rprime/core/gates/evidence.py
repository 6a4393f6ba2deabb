"""The evidence on each result of a rule, from an evaluation and its comparisons."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rprime.core.arrays import Array, FloatArray
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import Comparison, Pairing, compare
from rprime.core.comparison.compared_side import LimitSource
from rprime.core.comparison.difference import METHODS, MOVER, REASONS, Difference
from rprime.core.comparison.mover import REFERENCE, MoverLimits, unit_scale
from rprime.core.estimates import Estimates
from rprime.core.gates.rules import Against, Codes, Gate, Rule, VerdictCode
from rprime.core.gates.targets import Estimate
from rprime.core.intervals.proportions import binomial_tail_p, effective_items
from rprime.core.options import Options
from rprime.core.slices.evaluation import vague
from rprime.core.slices.sides import compare_slice, side_of_slice
from rprime.core.slices.slices import Slice
from rprime.core.suggestions import nearest_classes

Statistic = Difference | MoverLimits
"""Values or differences with limits and p-values, shape (..., n)."""
Positions = NDArray[np.intp]
CLASSES_DIFFER = REASONS.index("classes_differ")


@dataclass(frozen=True)
class Rows:
    """The results of a rule among the rows of its evidence: one for each class, or only one.

    `labels` are their classes, None for a single number; `positions` their rows, -1 where there is
    none; `left_out` the classes that the rule leaves out because they have too few items.
    """

    labels: tuple[str | None, ...]
    positions: Positions
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, rule: Rule, known: tuple[str, ...], items: FloatArray, others: tuple[str, ...] = ()
    ) -> "Rows":
        """Choose the classes that a rule is about; "all" means those with items.

        The `known` classes have a row each; `others` are further ones, which "all" leaves out.
        """
        if rule.classes is None:
            return cls.single(exists=items.size > 0 and bool(rule.confusion is None or items[0]))
        count = dict(zip(known, items.tolist(), strict=True))
        everything = rule.classes == "all"
        wanted = known if everything else rule.classes
        out = {n for n in wanted if everything or count.get(n)}
        out = {name for name in out if count[name] < max(rule.min_items, everything)}
        kept = tuple(name for name in wanted if name not in out) or (None,)
        row: dict[str | None, int] = {name: i for i, name in enumerate(known) if count[name]}
        positions = np.array([row.get(name, -1) for name in kept], dtype=np.intp)
        left_out = tuple(name for name in wanted if name in out)
        return cls(kept, positions, left_out + (others if everything else ()))

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


@dataclass(frozen=True, eq=False, kw_only=True)
class Draft:
    """What is known of a rule before it is tested: a column for each row of its evidence.

    `fixed` has codes of `VerdictCode` where no test decides the verdict. `against` is what the
    differences are from, None for values; `slice` the part of the items, None for all. Results
    have `reasons`, empty where the evidence decides, and `methods`; none where nobody asks. What is
    not there has `hints` at the names that may be meant, by the class.
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

    def at(self, position: int) -> "Draft":
        """Return one table of the last axis of a stack of these."""
        here = (..., position, slice(None))
        return replace(
            self, statistic=self.statistic[here], fixed=self.fixed[here], items=self.items[here]
        )


def draft_of(
    rule: Rule,
    rows: Rows,
    statistic: Statistic,
    items: FloatArray,
    *,
    comparable: bool = True,
    **more: Any,  # noqa: ANN401 (other members of the draft)
) -> Draft:
    """Hold values or differences against the limit of a rule.

    A value that only the candidate lacks is `undefined`; one that the baseline lacks too is no
    evidence, unless it takes scores that were not sent. Differences of sides that are not
    `comparable` decide nothing. `more` are other members of the draft.
    """
    if isinstance(statistic, Difference):
        fixed = _fixed_differences(statistic) if comparable else VerdictCode.not_comparable
    else:
        exists = np.isfinite(statistic.candidate)
        fixed = np.where(exists, VerdictCode.undecided, VerdictCode.undefined)
    codes = np.full(statistic.value.shape, fixed, dtype=np.uint8)
    return Draft(rule=rule, rows=rows, statistic=statistic, fixed=codes, items=items, **more)


def _fixed_differences(known: Difference) -> Codes | VerdictCode:
    """Return the verdicts on differences that no test decides, shape (..., m)."""
    if np.isfinite(known.value).all() and not known.reasons.any():
        return VerdictCode.undecided
    missing = ~np.isfinite(known.value) | known.undefined
    undefined_before = np.isnan(known.baseline) & ~known.undefined
    code = np.where(undefined_before, VerdictCode.inconclusive, VerdictCode.undefined)
    fixed = np.where(missing, code, VerdictCode.undecided)
    return np.where(known.reasons == CLASSES_DIFFER, VerdictCode.not_comparable, fixed)


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
    def of(cls, known: Sequence[Estimate], least: float) -> "GapLimits":
        """Take the estimates of the slices, without values that rest on fewer items."""
        values = np.array([np.where(one.items < max(least, 1), np.nan, one.value) for one in known])
        sides = tuple(side for one in known for side in one.statistic.source.sides)
        return cls._of(values, LimitSource(sides), known[0].statistic.places)

    @classmethod
    def of_stack(cls, known: Estimate, slices: list[int], least: float) -> "GapLimits":
        """Take some slices of a stack, its last axis."""
        few = known.items < max(least, 1)
        parts = (np.where(few, np.nan, known.value), known.statistic.places)
        values, places = (np.moveaxis(part[..., slices, :], -2, 0) for part in parts)
        return cls._of(values, known.statistic.source, places)

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
        low, high = unit_scale(self._limits_of_slices(REFERENCE), span[:, None])
        values, width = unit_scale(self.of_slices, span), threshold / (span[1] - span[0])
        there = np.isfinite(values)
        bottom, top = np.where(there, values, 1.0).min(0), np.where(there, values, 0.0).max(0)
        ends = np.linspace(bottom, np.maximum(top - width, bottom), CELLS + 1)[:, None]
        more, fewer = (effective_items(REFERENCE, values, limit) for limit in (low, high))
        above = binomial_tail_p(values * more, more, ends[1:] + width)
        below = binomial_tail_p((1 - values) * fewer, fewer, 1 - ends[:-1])
        least = np.ones(self.candidate.shape)
        for i, own in enumerate(np.moveaxis(above, 1, 0)):
            joint = (own[:, None] * below).max(0)
            joint[i] = np.nan
            least = np.fmin(least, np.fmin.reduce(joint))
        joined = least * (1 - np.log(np.maximum(least, TINY)))
        return np.full_like(joined, np.nan), np.minimum(joined * self.pairs, 1.0)

    def _limits_of_slices(self, quantile: float | Array) -> Array:
        """Return both limits of the slices, shape (2, s, ..., m)."""
        found = self.source.at(quantile)
        if self.places.ndim == self.of_slices.ndim:
            return found[0][:, self.places]
        return np.moveaxis(found[..., self.places], 1, 0)

    def _distances(self, quantile: Array) -> tuple[Array, Array]:
        """Return how far the limits are from the value, below and above."""
        wanted: float | Array = float(quantile) if quantile.ndim == 0 else self._spread(quantile)
        low, high = self._limits_of_slices(wanted)
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


POINT = "point"
"""Method of `test: "none"`: the gate compares the values themselves."""


@dataclass(frozen=True, eq=False)
class GateCandidate:
    """The candidate of a gate, and what it is held against.

    Parameters
    ----------
    comparisons
        With the baseline and, if it was requested, the anchor; None where there is none.
    """

    side: Side
    comparisons: dict[Against, Comparison | None]
    options: Options
    indices: tuple[str, ...]

    @cached_property
    def estimates(self) -> Estimates:
        """The values of the evaluation if they hold here: undefined ones stay undefined."""
        asked, options = self.options.indices, self.options
        known = asked is None or set(self.indices) <= set(asked)
        known = known and options.wants_intervals(self.side.table.k)
        if not known or options.undefined != "null":
            options = replace(options, indices=self.indices, undefined="null")
        return self.side.estimates(options)

    def sliced(self, against: Against, one: Slice) -> Comparison | None:
        """Compare a slice, once for all rules; None if a side lacks it or there is no baseline."""
        whole, key = self.comparisons[against], (against, one)
        if whole is not None and key not in self._sliced:
            options = replace(self.options, indices=self.indices)
            self._sliced[key] = compare_slice(whole, one, options)
        return self._sliced.get(key)

    @cached_property
    def _sliced(self) -> dict[tuple[Against, Slice], Comparison | None]:
        """The comparisons of slices so far."""
        return {}

    def estimate(self, rule: Rule, few: tuple[int, ...] | None = None) -> tuple[Estimate, Rows]:
        """Return the values that the rule bounds, without few classes, and its rows."""
        known = self.estimates
        if few is None:
            few = small_classes(rule, self.side.table.class_items)
        if few:
            options = replace(known.values.options, left_out=few)
            known = replace(known, values=replace(known.values, options=options))
        found = rule.target.estimate(self.side, known)
        return found, Rows.of(rule, self.side.labels, found.items).without(self.side.labels, few)

    def difference(self, rule: Rule, comparison: Comparison) -> tuple[Difference, Rows]:
        """Return the differences that the rule bounds, and the rows that it is about."""
        few = small_classes(rule, *(side.table.class_items for side in comparison.sides))
        if few:
            comparison = self._without(rule, comparison, few)
        known = rule.target.difference(comparison)
        others = comparison.without_items + comparison.candidate_only + comparison.baseline_only
        rows = Rows.of(rule, comparison.classes, known.items, others)
        return known, rows.without(comparison.sides[0].labels, few)

    def _without(self, rule: Rule, comparison: Comparison, few: tuple[int, ...]) -> Comparison:
        """Compare again, with classes left out of averages."""
        factors, sides = self.options.cell_weights, comparison.sides
        if factors is not None:  # they are of the candidate's own classes, the sides of all
            more = len(sides[0].labels) - len(factors)
            factors = np.pad(factors, ((0, more), (0, more)), constant_values=1.0)
        options = replace(
            self.options,
            indices=rule.target.keys,
            left_out=few,
            cell_weights=factors,
            cost=None,
            kappa_weights=None,
        )
        return compare(*sides, options, attributed=())


def gather_evidence(gate: Gate, candidate: GateCandidate) -> list[Draft]:
    """Gather the evidence on rules: on values, or on the difference from each baseline."""
    return [draft for rule in gate.rules for draft in _drafts(rule, candidate)]


def _drafts(rule: Rule, candidate: GateCandidate) -> Iterator[Draft]:
    held: Iterable[tuple[Against | None, Comparison | None]] = [(None, None)]
    if rule.compares:
        held = candidate.comparisons.items()
    for against, comparison in held:
        if against is not None and comparison is None:
            yield _without_baseline(rule, candidate, against)
        elif rule.slices is not None:
            yield from _of_slices(rule, candidate, against)
        else:
            yield _of_all(rule, candidate, against, comparison)


def _of_slices(rule: Rule, candidate: GateCandidate, against: Against | None) -> Iterator[Draft]:
    """Hold each slice against the same limit; one that a side lacks is not comparable."""
    comparison = None if against is None else candidate.comparisons[against]
    sides = (candidate.side,) if comparison is None else comparison.sides
    found = slices_of(rule, *sides)
    if rule.kind == "max_gap" and found:
        yield _of_gap(rule, candidate, found)
        return
    for one in found:
        yield replace(_of_slice(rule, candidate, one, against), slice=one)
    for name in missing_columns(rule, found):
        yield _without_slice(rule, "slice_missing", against, nearest_column(name, *sides))


def _of_slice(rule: Rule, candidate: GateCandidate, one: Slice, against: Against | None) -> Draft:
    side = side_of_slice(candidate.side, one)
    if side is None:
        return _without_slice(rule, "slice_missing", against)
    own = replace(candidate, side=side)
    if against is None:
        return without_vague(_of_all(rule, own, None, None), own.estimates)
    part = candidate.sliced(against, one)
    if part is None:
        whole = candidate.comparisons[against]
        bare = whole is not None and whole.sides[1].slices is None
        which = "slices" if bare else "slice"
        return _without_slice(rule, f"{which}_missing_in_baseline", against)
    return _of_all(rule, own, against, part)


def without_vague(found: Draft, known: Estimates) -> Draft:
    """Leave the value of a slice with too few items for a test inconclusive."""
    rule, place = found.rule, known.values.selection.overall_place
    if rule.classes is not None or rule.index not in place or rule.test != "auto":
        return found
    few = vague(known)[place[rule.index]][..., None] & np.isfinite(found.statistic.value)
    fixed = np.where(few, VerdictCode.inconclusive, found.fixed).astype(np.uint8)
    return replace(found, fixed=fixed, reasons=("few_items",) if few.any() else found.reasons)


def _of_gap(rule: Rule, candidate: GateCandidate, found: tuple[Slice, ...]) -> Draft:
    """Hold the largest difference between slices against the largest one allowed."""
    sides = [side for one in found if (side := side_of_slice(candidate.side, one)) is not None]
    few = not_in_all(rule, np.array([side.table.class_items for side in sides]))
    known = [replace(candidate, side=side).estimate(rule, few)[0] for side in sides]
    labels, items = candidate.side.labels, np.add.reduce([one.items for one in known])
    limits, rows = GapLimits.of(known, rule.min_items), gap_rows(rule, labels, items, few)
    exists = np.isfinite(limits.candidate)
    unlimited = np.where(exists & np.isnan(limits.standard_error), "no_interval", "")
    reasons = np.where(exists, unlimited, _lacking_in(known, rule.min_items)).tolist()
    return draft_of(
        rule,
        rows,
        limits,
        items,
        methods=_methods(rule, rows, [METHODS[MOVER] if there else None for there in exists]),
        reasons=rows.each(reasons, lambda label: _absent(rule, label, labels)),
    )


def _lacking_in(known: Sequence[Estimate], least: float) -> list[str]:
    """Return why fewer than two slices have a value of each result, where two have the items."""
    enough = np.add.reduce([one.items >= max(least, 1) for one in known]) > 1
    first = [
        next(filter(None, own), "") for own in zip(*(one.reasons for one in known), strict=True)
    ]
    few = "fewer_than_two_slices"
    return [(why or few) if there else few for why, there in zip(first, enough, strict=True)]


def not_in_all(rule: Rule, items: FloatArray) -> tuple[int, ...]:
    """Return the classes without enough items (s, k) in each slice: averages leave them out."""
    if not rule.target.leaves_out or rule.classes is not None:
        return ()
    least = max(rule.min_items, 1)
    fewest = np.min(items[items.sum(-1) >= least], axis=0, initial=np.inf)
    return tuple(np.flatnonzero(fewest < least).tolist())


def gap_rows(rule: Rule, labels: tuple[str, ...], items: FloatArray, few: tuple[int, ...]) -> Rows:
    """Return the results of a rule about slices of so many items together, (..., m)."""
    return Rows.of(rule, labels, items.reshape(-1, items.shape[-1])[0]).without(labels, few)


def nearest_column(column: str, *sides: Side) -> str:
    """Name the column that is not there, and the nearest one that is."""
    every = (name for side in sides if side.slices for one in side.slices.names for name in one)
    near = get_close_matches(column, dict.fromkeys(every), n=1)
    lacking = "There are no slices" if column == "all" else f"There is no column `{column}`"
    return f" {lacking}{f': did you mean `{near[0]}`?' if near else '.'}"


def _without_slice(rule: Rule, reason: str, against: Against | None, hint: str = "") -> Draft:
    return Draft(
        rule=rule,
        rows=Rows.single(exists=False),
        statistic=Difference.unknown(1),
        fixed=np.array([VerdictCode.not_comparable], dtype=np.uint8),
        against=against,
        items=np.full(1, np.nan),
        reasons=(reason,),
        hints={None: hint},
    )


def _without_baseline(rule: Rule, candidate: GateCandidate, against: Against) -> Draft:
    """Return `no_baseline` for the candidate's classes, `not_comparable` for others."""
    known, rows = candidate.estimate(rule)
    count, declared = len(known.value), candidate.side.labels
    statistic = Difference.unknown(count)
    statistic.candidate[...] = known.value
    return Draft(
        rule=rule,
        rows=rows,
        statistic=statistic,
        fixed=np.full(count, VerdictCode.no_baseline, dtype=np.uint8),
        against=against,
        items=known.items,
        reasons=rows.each(("no_baseline",) * count, lambda label: _absent(rule, label, declared)),
    )


def _of_all(
    rule: Rule, candidate: GateCandidate, against: Against | None, comparison: Comparison | None
) -> Draft:
    """Hold the candidate's own values, or their difference from a baseline, against a limit."""
    if comparison is None:
        values, rows = candidate.estimate(rule)
        declared = candidate.side.labels
        return draft_of(
            rule,
            rows,
            values.statistic,
            values.items,
            methods=_methods(rule, rows, values.methods),
            reasons=rows.each(values.reasons, lambda label: _absent(rule, label, declared)),
            hints=_hints(rule, declared),
        )
    known, rows = candidate.difference(rule, comparison)
    comparable = comparison.comparability != "different"
    codes, methods = known.reasons.tolist(), known.methods.tolist()
    reasons = [REASONS[code] if comparable else "different_test_sets" for code in codes]
    return draft_of(
        rule,
        rows,
        known,
        known.items,
        comparable=comparable,
        against=against,
        pairing=comparison.pairing,
        methods=_methods(rule, rows, [METHODS[code] or None for code in methods]),
        reasons=rows.each(reasons, lambda label: _missing_class(rule, label, comparison)),
        hints=_hints(rule, candidate.side.labels),
    )


def _methods(rule: Rule, rows: Rows, known: Sequence[str | None]) -> tuple[str | None, ...]:
    """Return the method of the limits of each result."""
    of_rows = [POINT] * len(known) if rule.test == "none" else known
    return tuple(of_rows[row] if row >= 0 else None for row in rows.positions)


def small_classes(rule: Rule, *supports: FloatArray) -> tuple[int, ...]:
    """Return the positions of the classes that an average leaves out: few items on some side."""
    if not rule.min_items or rule.classes is not None:
        return ()
    return tuple(np.flatnonzero(np.minimum.reduce(supports) < rule.min_items).tolist())


def _absent(rule: Rule, label: str | None, declared: tuple[str, ...]) -> str:
    if label is not None:
        return "no_items" if label in declared else "class_missing"
    if rule.classes is not None or rule.min_items or rule.kind == "max_gap":
        return "no_class"
    return "class_missing" if rule.target.lacks(declared) else "no_items"


def _hints(rule: Rule, declared: tuple[str, ...]) -> dict[str | None, str]:
    """Say for each class that a rule names and that is not there which one may be meant."""
    named = rule.classes if isinstance(rule.classes, tuple) else ()
    return {one: nearest_classes(one, declared) for one in named if one not in declared}


def _missing_class(rule: Rule, label: str | None, comparison: Comparison) -> str:
    both = set(comparison.sides[0].labels) - {*comparison.candidate_only, *comparison.baseline_only}
    if label in comparison.candidate_only:
        return "class_missing_in_baseline"
    return _absent(rule, label, tuple(both))


MOST_JUDGED = 300
"""Most slices of all rules of a gate together: each is compared on its own, in milliseconds."""


def slices_of(rule: Rule, *sides: Side) -> tuple[Slice, ...]:
    """Return the slices that a rule is about, those of the first side first.

    "all" means every slice, crossings too; a name the slices of that column.
    """
    every: dict[Slice, None] = {}
    for known in (side.slices for side in sides if side.slices is not None):
        every |= dict.fromkeys(tuple(sorted(name.items())) for name in known.names)
    return chosen(rule, every)


def chosen(rule: Rule, every: Iterable[Slice]) -> tuple[Slice, ...]:
    """Return those slices that a rule is about."""
    if rule.slices == "all":
        return tuple(every)
    return tuple(one for one in every if len(one) == 1 and one[0][0] in rule.columns)


def too_many(rules: Sequence[Rule], *sides: Side) -> int | None:
    """Return the position of the rule with which the slices are more than `MOST_JUDGED`."""
    counts = [0 if r.slices is None else len(slices_of(r, *sides)) for r in rules]
    beyond = np.flatnonzero(np.cumsum(counts) > MOST_JUDGED)
    return int(beyond[0]) if beyond.size else None


def missing_columns(rule: Rule, found: tuple[Slice, ...]) -> Iterator[str]:
    """Yield the columns that a rule names and no slice has; "all" without any slice."""
    known = {column for one in found for column, _ in one}
    yield from (n for n in rule.columns if n not in known and not (found and n == "all"))
