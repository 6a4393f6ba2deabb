"""The candidate of a gate: the evidence on each result, from values and comparisons."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache, cached_property, partial
from itertools import groupby

import numpy as np

from rprime.core.arrays import FloatArray
from rprime.core.catalog import find
from rprime.core.comparison.aligned_values import AlignedValues
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import Comparison, compare
from rprime.core.comparison.compared_side import ComparedSide
from rprime.core.comparison.difference import METHODS, MOVER, REASONS, Difference
from rprime.core.comparison.missing_items import MatchedItems
from rprime.core.counts import CountRow
from rprime.core.estimates import Estimates
from rprime.core.gates.average import Part, average_evidence
from rprime.core.gates.evidence import (
    GapLimits,
    Positions,
    Rows,
    RuleEvidence,
    Statistic,
    evidence_of,
)
from rprime.core.gates.kinds import Against, VerdictCode
from rprime.core.gates.rules import Gate, Rule
from rprime.core.gates.targets import Estimate
from rprime.core.index import Index
from rprime.core.index_names import nearest_classes
from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.slices.comparison import align_slices, compare_slices, side_of_slice
from rprime.core.slices.evaluation import vague
from rprime.core.slices.slices import Slice
from rprime.core.table import ConfusionTable
from rprime.core.values import compute


@cache
def of_one_class(key: str) -> bool:
    """Whether the value of a class is the same where all other classes are one."""
    entry = find("class", key)
    if entry is None or entry.scored or entry.reads == "table":
        return False
    counts, omitted = np.array([[50.0, 4, 7], [9, 40, 2], [1, 12, 30]]), np.array([3.0, 5, 2])
    of_two = np.add.reduceat(np.add.reduceat(counts, [0, 1], 0), [0, 1], 1)
    whole = ConfusionTable.dense(counts, omitted)
    two = ConfusionTable.dense(of_two, np.add.reduceat(omitted, [0, 1]))
    options = Options(indices=(key,), beta=2.0)
    value, other = (
        compute(table, options, select(options)).lookup("class", key)[0] for table in (whole, two)
    )
    return bool(np.isclose(value, other, rtol=0, atol=CLOSE, equal_nan=True))


CLOSE = 1e-9
"""Largest difference of a value by rounding."""


def worst_class_differences(
    missing: MatchedItems,
    key: str,
    classes: Sequence[str],
    options: Options,
    *,
    right: bool = False,
) -> Difference:
    """Return the difference of an index for some classes, each in its worst case, shape (n,).

    With `right` missing items are right. Classes without items in the baseline are unknown: all of
    their numbers are NaN.
    """
    alone = options.population is None and of_one_class(key)
    options = replace(options, indices=(key,), families=(), left_out=())
    if alone:
        options = replace(options, cost=None, kappa_weights=None, cell_weights=None)
    parts = []
    for label in classes:
        missing_items = missing.of_class(label) if alone else missing
        comparison = compare(
            missing_items.worst_case(key, label, right=right),
            missing_items.baseline,
            options,
            attributed=(),
        )
        there = label in comparison.classes
        parts.append(comparison.of_classes(key, (label,)) if there else Difference.unknown(1))
    return Difference.join(parts) if parts else Difference.unknown(0)


POINT = "point"
"""Method of `test: "none"`: the gate compares the values themselves."""


@dataclass(frozen=True, eq=False)
class GateCandidate:
    """The candidate of a gate, and what it is held against.

    Parameters
    ----------
    comparisons
        With the baseline and, if it was requested, the anchor; None where there is none.
    indices, averages
        Keys of the indices of the rules, and of the means over classes that decide some.
    """

    side: Side
    comparisons: dict[Against, Comparison | None]
    options: Options
    indices: tuple[str, ...]
    averages: tuple[str, ...] = ()

    @cached_property
    def estimates(self) -> Estimates:
        """The values of the evaluation if they hold here: undefined ones stay undefined."""
        requested, options = self.options.indices, self.options
        complete = requested is None or set(self.indices) <= set(requested)
        complete = complete and options.wants_intervals(self.side.table.k)
        if not complete or options.undefined != "null":
            options = replace(options, indices=self.indices, undefined="null")
        return self.side.estimates(options)

    def comparison(self, against: Against | None, part: Slice | None) -> Comparison | None:
        """Return the comparison of all items, or of a slice; None without both sides."""
        if against is None:
            return None
        return self.comparisons[against] if part is None else self.sliced(against, part)

    def averaged(
        self, rule: Rule, parts: Sequence[Part], left_out: tuple[int, ...]
    ) -> list[Difference]:
        """Return the means over the classes of parts, without some of them."""
        key = rule.target.average
        assert key is not None  # noqa: S101 (the policy was checked)
        return [self._values_of(part, key, left_out).of_overall(key)[..., None] for part in parts]

    def _values_of(self, part: Part, key: str, left_out: tuple[int, ...]) -> AlignedValues:
        evidence = part.evidence
        comparison = self.comparison(evidence.against, evidence.slice)
        assert comparison is not None  # noqa: S101 (a part has two sides)
        aligned = comparison.aligned
        everyone = not left_out and not aligned.candidate.values.options.left_out
        if everyone and key in aligned.selection.overall_place:
            return aligned
        place = evidence.against, evidence.slice, left_out
        if place not in self._averaged:
            keys = tuple(dict.fromkeys((key, *self.averages)))
            self._averaged[place] = aligned_without(comparison, keys, left_out)
        return self._averaged[place]

    @cached_property
    def _averaged(
        self,
    ) -> dict[tuple[Against | None, Slice | None, tuple[int, ...]], AlignedValues]:
        """The means so far, by the comparison and the classes left out."""
        return {}

    def sliced(self, against: Against, part: Slice) -> Comparison | None:
        """Return the comparison of a slice; None if a side lacks it or there is no baseline."""
        self.slice_all(against, (part,))
        return self._sliced.get((against, part))

    def slice_all(self, against: Against, parts: Sequence[Slice]) -> None:
        """Compare slices, each once for all rules."""
        whole = self.comparisons[against]
        missing = [part for part in parts if (against, part) not in self._sliced]
        if whole is not None and missing:
            options = replace(self.options, indices=self.indices)
            for part, comparison in zip(
                missing, compare_slices(whole, missing, options), strict=True
            ):
                self._sliced[against, part] = comparison

    def stack(
        self, rule: Rule, against: Against | None, parts: Sequence[Slice]
    ) -> "SliceStack | None":
        """Return the slices of a rule as one stack; None where each needs a comparison."""
        whole = None if against is None else self.comparisons[against]
        place = against, tuple(parts)
        if whole is None or rule.classes is not None or rule.confusion or rule.min_items:
            return None
        if place not in self._stacks:
            options = replace(self.options, indices=self.indices)
            values = align_slices(whole, parts, options) if parts else None
            stack = None if values is None else SliceStack(values, tuple(parts))
            self._stacks[place] = stack
        stack = self._stacks[place]
        return stack if stack is not None and stack.has(rule) else None

    @cached_property
    def _stacks(self) -> "dict[tuple[Against | None, tuple[Slice, ...]], SliceStack | None]":
        """The stacks of slices so far, by what they are compared with."""
        return {}

    @cached_property
    def _sliced(self) -> dict[tuple[Against, Slice], Comparison | None]:
        """The comparisons of slices so far."""
        return {}

    def estimate(self, rule: Rule, few: tuple[int, ...] | None = None) -> tuple[Estimate, Rows]:
        """Return the values that the rule bounds, without few classes, and its rows."""
        estimates = self.estimates
        if few is None:
            few = small_classes(rule, self.side.table.class_items)
        if few:
            options = replace(estimates.values.options, left_out=few)
            estimates = replace(estimates, values=replace(estimates.values, options=options))
        estimate = rule.target.estimate(self.side, estimates)
        return estimate, Rows.of(rule, self.side.labels, estimate.items).without(
            self.side.labels, few
        )

    def difference(
        self, rule: Rule, comparison: Comparison, missing: MatchedItems | None
    ) -> tuple[Difference, Rows]:
        """Return the differences that the rule bounds, and the rows that it is about."""
        few = small_classes(rule, *(side.table.class_items for side in comparison.sides))
        if few:
            comparison = self._without(rule, comparison, few)
        difference = rule.target.difference(comparison)
        absent = absent_classes(rule, comparison, missing)
        others = comparison.without_items + comparison.candidate_only + comparison.baseline_only
        others = tuple(name for name in others if name not in absent)
        rows = Rows.of(rule, comparison.classes, difference.items, others, absent)
        return difference, rows.without(comparison.sides[0].labels, few)

    def missing(self, against: Against | None, part: Slice | None) -> MatchedItems | None:
        """Return the items of a baseline that are missing, of all items or of a slice.

        Those of values are missing from the baseline. None where no side has ids, or none is.
        """
        comparison = self.comparisons[against or "baseline"]
        missing = None if comparison is None else comparison.missing
        if missing is not None and part is not None:
            place = against, part
            if place not in self._missing:
                self._missing[place] = missing.of_slice(part)
            missing = self._missing[place]
        return missing if missing is not None and missing.counts.missing else None

    @cached_property
    def _missing(self) -> dict[tuple[Against | None, Slice], MatchedItems | None]:
        """The missing items of slices so far."""
        return {}

    def _without(self, rule: Rule, comparison: Comparison, few: tuple[int, ...]) -> Comparison:
        """Return the comparison with classes left out of averages."""
        aligned = aligned_without(comparison, rule.target.keys, few)
        return replace(comparison, aligned=aligned)


@dataclass(frozen=True, eq=False)
class SliceStack:
    """The differences of slices in overall indices, as one stack in the order of the slices."""

    values: AlignedValues
    slices: tuple[Slice, ...]

    def has(self, rule: Rule) -> bool:
        """Whether the index of a rule is among those compared."""
        return rule.index in self.values.selection.overall_place

    def evidence(self, rule: Rule, against: Against | None) -> Iterator[RuleEvidence]:
        """Yield the evidence of each slice."""
        every, rows = self.values.of_overall(rule.index), Rows.single(exists=True)
        codes, methods = every.reasons.tolist(), every.methods.tolist()
        for i, name in enumerate(self.slices):
            difference = every[i : i + 1]
            yield evidence_of(
                rule,
                rows,
                difference,
                difference.items,
                against=against,
                pairing="paired",
                methods=_methods(rule, rows, [METHODS[methods[i]] or None]),
                reasons=(REASONS[codes[i]],),
                effective_groups=difference.effective_groups,
                slice=name,
            )


LARGE = 10
"""A class that the baseline has so many items of is not comparable where the candidate has none."""


def absent_classes(
    rule: Rule, comparison: Comparison, missing: MatchedItems | None
) -> dict[str, VerdictCode]:
    """Return the verdicts on the classes that one side alone has items of."""
    sides = comparison.sides
    if comparison.comparability == "different":
        return {}
    if missing is not None:
        sides = missing.candidate, missing.baseline
    ours, theirs = (
        dict(zip(side.labels, side.table.class_items.tolist(), strict=True)) for side in sides
    )
    least, verdicts = max(rule.min_items, 1), {}
    for label in dict.fromkeys((*theirs, *ours)):
        if label in comparison.classes:
            continue
        if (items := theirs.get(label, 0)) >= least:
            lost = VerdictCode.not_comparable if items >= LARGE else VerdictCode.undecided
            verdicts[label] = lost
        elif not items and ours.get(label, 0) >= least:
            verdicts[label] = VerdictCode.no_baseline
    return verdicts


def aligned_without(
    comparison: Comparison, keys: tuple[str, ...], left_out: tuple[int, ...]
) -> AlignedValues:
    """Compute some indices of both sides with classes left out of averages."""
    values = comparison.aligned
    options = replace(
        values.candidate.values.options,
        indices=keys,
        families=(),
        left_out=left_out,
        average_over=None,  # the rule says which classes
        cost=None,
        kappa_weights=None,
    )
    scored = any(side.scores is not None for side in comparison.sides)
    candidate, baseline = (
        ComparedSide(side.estimates(options, scored=scored)) for side in comparison.sides
    )
    return replace(values, candidate=candidate, baseline=baseline)


def gather_evidence(gate: Gate, candidate: GateCandidate, level: float) -> list[RuleEvidence]:
    """Gather the evidence on rules: on values, or on the difference from each baseline.

    `level` is that at which an average passes.
    """
    return [evidence for rule in gate.rules for evidence in _of_rule(rule, candidate, level)]


def _of_rule(rule: Rule, candidate: GateCandidate, level: float) -> Iterator[RuleEvidence]:
    sides: Iterable[tuple[Against | None, Comparison | None]] = [(None, None)]
    if rule.traits.compares:
        sides = candidate.comparisons.items()
    for against, comparison in sides:
        if against is not None and comparison is None:
            yield _without_baseline(rule, candidate, against)
            continue
        if rule.slices is not None:
            results = list(_of_slices(rule, candidate, against))
        else:
            results = [_of_all(rule, candidate, against, comparison)]
        results = [with_missing(result, candidate) for result in results]
        if comparison is None or not rule.decides_by.averages:
            yield from results
        else:
            yield from _with_averages(rule, candidate, results, level)


def _with_averages(
    rule: Rule, candidate: GateCandidate, results: list[RuleEvidence], level: float
) -> Iterator[RuleEvidence]:
    """Yield results with their average behind them: one for all classes, or for each column."""
    every = _parts(rule, candidate, results)
    for columns, group in groupby(every, key=lambda result: columns_of(result[0])):
        pairs = list(group)
        members, parts = [member for member, _ in pairs], [part for _, part in pairs if part]
        average = average_evidence(
            rule,
            parts,
            level=level,
            averaged=partial(candidate.averaged, rule),
            columns=columns,
            pairing=members[0].pairing,
            worst=partial(worst_mean, rule, candidate),
        )
        yield from (replace(evidence, alone=average is None) for evidence in members)
        if average is not None:
            yield average


def _parts(
    rule: Rule, candidate: GateCandidate, results: Sequence[RuleEvidence]
) -> Iterator[tuple[RuleEvidence, Part | None]]:
    """Yield each result with what an average reads of it; None where there is no difference."""
    slices = [result.slice for result in results if result.slice is not None]
    stack = candidate.stack(rule, results[0].against if results else None, slices)
    if stack is not None:
        yield from zip(results, Part.of_stack(results[: len(slices)], stack.values), strict=False)
        yield from ((result, None) for result in results[len(slices) :])
        return
    for evidence in results:
        comparison = candidate.comparison(evidence.against, evidence.slice)
        part = None
        if comparison is not None and isinstance(evidence.statistic, Difference):
            values = comparison.aligned
            part = Part.of(evidence, values, values.gradients[0])
        yield evidence, part


def columns_of(evidence: RuleEvidence) -> tuple[str, ...]:
    """Return the columns of the slice that the evidence is about."""
    return tuple(column for column, _ in evidence.slice or ())


def _of_slices(
    rule: Rule, candidate: GateCandidate, against: Against | None
) -> Iterator[RuleEvidence]:
    """Hold each slice against the same limit; one that a side lacks is not comparable."""
    comparison = None if against is None else candidate.comparisons[against]
    sides = (candidate.side,) if comparison is None else comparison.sides
    if comparison is not None and comparison.missing is not None:
        # A slice may have lost all of its items.
        sides = *sides, comparison.missing.candidate, comparison.missing.baseline
    slices = slices_of(rule, *sides)
    if rule.traits.between_slices and slices:
        yield _of_gap(rule, candidate, slices)
        return
    stack = candidate.stack(rule, against, slices)
    if stack is not None:
        yield from stack.evidence(rule, against)
    elif against is not None:
        candidate.slice_all(against, slices)
    for part in slices if stack is None else ():
        yield replace(_of_slice(rule, candidate, part, against), slice=part)
    for name in missing_columns(rule, slices):
        yield _without_slice(rule, "slice_missing", against, nearest_column(name, *sides))


def _of_slice(
    rule: Rule, candidate: GateCandidate, name: Slice, against: Against | None
) -> RuleEvidence:
    side = side_of_slice(candidate.side, name)
    if side is None:
        return _without_slice(rule, "slice_missing", against)
    sliced = replace(candidate, side=side)
    if against is None:
        return without_vague(_of_all(rule, sliced, None, None), sliced.estimates)
    part = candidate.sliced(against, name)
    if part is None:
        whole = candidate.comparisons[against]
        bare = whole is not None and whole.sides[1].slices is None
        which = "slices" if bare else "slice"
        return _without_slice(rule, f"{which}_missing_in_baseline", against)
    return _of_all(rule, sliced, against, part, name)


def without_vague(evidence: RuleEvidence, estimates: Estimates) -> RuleEvidence:
    """Leave the value of a slice with too few items for a test inconclusive."""
    rule, place = evidence.rule, estimates.values.selection.overall_place
    if rule.classes is not None or rule.index not in place or rule.test != "auto":
        return evidence
    few = vague(estimates)[place[rule.index]][..., None] & np.isfinite(evidence.statistic.value)
    fixed = np.where(few, VerdictCode.undecided, evidence.fixed).astype(np.uint8)
    return replace(evidence, fixed=fixed, reasons=("few_items",) if few.any() else evidence.reasons)


def _of_gap(rule: Rule, candidate: GateCandidate, slices: tuple[Slice, ...]) -> RuleEvidence:
    """Hold the largest difference between slices against the largest one allowed."""
    sides = [side for part in slices if (side := side_of_slice(candidate.side, part)) is not None]
    few = not_in_all(rule, np.array([side.table.class_items for side in sides]))
    # The same indices of each slice, whether or not some of its items have no prediction.
    options = replace(candidate.options, indices=candidate.indices, families=())
    narrowed = [replace(candidate, side=side, options=options) for side in sides]
    estimates = [slice_.estimate(rule, few)[0] for slice_ in narrowed]
    labels, items = candidate.side.labels, np.add.reduce([estimate.items for estimate in estimates])
    limits, rows = GapLimits.of(estimates, rule.min_items), gap_rows(rule, labels, items, few)
    exists = np.isfinite(limits.candidate)
    unlimited = np.where(exists & np.isnan(limits.standard_error), "no_interval", "")
    reasons = np.where(exists, unlimited, _lacking_in(estimates, rule.min_items)).tolist()
    return evidence_of(
        rule,
        rows,
        limits,
        items,
        methods=_methods(rule, rows, [METHODS[MOVER] if there else None for there in exists]),
        reasons=rows.each(reasons, lambda label: _absent(rule, label, labels)),
    )


def _lacking_in(estimates: Sequence[Estimate], least: float) -> list[str]:
    """Return why fewer than two slices have a value of each result, where two have the items."""
    enough = np.add.reduce([estimate.items >= max(least, 1) for estimate in estimates]) > 1
    first = [
        next(filter(None, reasons), "")
        for reasons in zip(*(estimate.reasons for estimate in estimates), strict=True)
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
    every = (name for side in sides if side.slices for part in side.slices.names for name in part)
    near = get_close_matches(column, dict.fromkeys(every), n=1)
    lacking = "There are no slices" if column == "all" else f"There is no column `{column}`"
    return f" {lacking}{f': did you mean `{near[0]}`?' if near else '.'}"


def _without_slice(
    rule: Rule, reason: str, against: Against | None, hint: str = ""
) -> RuleEvidence:
    return RuleEvidence(
        rule=rule,
        rows=Rows.single(exists=False),
        statistic=Difference.unknown(1),
        fixed=np.array([VerdictCode.not_comparable], dtype=np.uint8),
        against=against,
        items=np.full(1, np.nan),
        reasons=(reason,),
        hints={None: hint},
    )


def _without_baseline(rule: Rule, candidate: GateCandidate, against: Against) -> RuleEvidence:
    """Return `no_baseline` for the candidate's classes, `not_comparable` for others."""
    estimate, rows = candidate.estimate(rule)
    count, declared = len(estimate.value), candidate.side.labels
    statistic = Difference.unknown(count)
    statistic.candidate[...] = estimate.value
    return RuleEvidence(
        rule=rule,
        rows=rows,
        statistic=statistic,
        fixed=np.full(count, VerdictCode.no_baseline, dtype=np.uint8),
        against=against,
        items=estimate.items,
        reasons=rows.each(("no_baseline",) * count, lambda label: _absent(rule, label, declared)),
    )


def _of_all(
    rule: Rule,
    candidate: GateCandidate,
    against: Against | None,
    comparison: Comparison | None,
    part: Slice | None = None,
) -> RuleEvidence:
    """Hold the candidate's own values, or their difference from a baseline, against a limit."""
    if comparison is None:
        values, rows = candidate.estimate(rule)
        declared = candidate.side.labels
        return evidence_of(
            rule,
            rows,
            values.statistic,
            values.items,
            methods=_methods(rule, rows, values.methods),
            reasons=rows.each(values.reasons, lambda label: _absent(rule, label, declared)),
            hints=_hints(rule, declared),
            effective_groups=values.effective_groups,
        )
    missing = candidate.missing(against, part)
    difference, rows = candidate.difference(rule, comparison, missing)
    comparable = comparison.comparability != "different"
    codes, methods = difference.reasons.tolist(), difference.methods.tolist()
    reasons = [REASONS[code] if comparable else "different_test_sets" for code in codes]
    return evidence_of(
        rule,
        rows,
        difference,
        difference.items,
        comparable=comparable,
        against=against,
        pairing=comparison.pairing,
        methods=_methods(rule, rows, [METHODS[code] or None for code in methods]),
        reasons=rows.each(
            reasons, lambda label: _missing_class(rule, label, comparison, rows.absent.get(label))
        ),
        hints=_hints(rule, candidate.side.labels),
        effective_groups=difference.effective_groups,
    )


def _methods(rule: Rule, rows: Rows, methods: Sequence[str | None]) -> tuple[str | None, ...]:
    """Return the method of the limits of each result."""
    of_rows = [POINT] * len(methods) if rule.test == "none" else methods
    return tuple(of_rows[row] if row >= 0 else None for row in rows.positions)


def small_classes(rule: Rule, *supports: FloatArray) -> tuple[int, ...]:
    """Return the positions of the classes that an average leaves out: few items on some side."""
    if not rule.min_items or rule.classes is not None:
        return ()
    return tuple(np.flatnonzero(np.minimum.reduce(supports) < rule.min_items).tolist())


def _absent(rule: Rule, label: str | None, declared: tuple[str, ...]) -> str:
    if label is not None:
        return "no_items" if label in declared else "class_missing"
    if rule.classes is not None or rule.min_items or rule.traits.between_slices:
        return "no_class"
    return "class_missing" if rule.target.lacks(declared) else "no_items"


def _hints(rule: Rule, declared: tuple[str, ...]) -> dict[str | None, str]:
    """Say for each class that a rule names and that is not there which one may be meant."""
    named = rule.classes if isinstance(rule.classes, tuple) else ()
    return {label: nearest_classes(label, declared) for label in named if label not in declared}


def _missing_class(
    rule: Rule, label: str | None, comparison: Comparison, code: VerdictCode | None
) -> str:
    both = set(comparison.sides[0].labels) - {*comparison.candidate_only, *comparison.baseline_only}
    if label in comparison.candidate_only or code == VerdictCode.no_baseline:
        return "class_missing_in_baseline"
    if code is not None:
        return "class_lost"
    return _absent(rule, label, tuple(both))


OWN_ITEMS = frozenset({CountRow.support, CountRow.tp, CountRow.fn})
"""What an index counts that items of other classes do not change."""


def rests_on_class(entry: Index) -> bool:
    """Whether a per-class index counts the items of its class alone."""
    return entry.reads == "ratio" and OWN_ITEMS.issuperset(entry.rows)


def with_missing(evidence: RuleEvidence, candidate: GateCandidate) -> RuleEvidence:
    """Add what missing items of the baseline could do to the results of a rule."""
    rule, rows = evidence.rule, evidence.rows.positions
    missing = candidate.missing(evidence.against, evidence.slice)
    judged = [
        (label, row) for label, row in zip(evidence.rows.labels, rows, strict=True) if row >= 0
    ]
    if missing is None or rule.traits.between_slices or not judged:
        return evidence
    counts = np.full(evidence.fixed.shape[-1], float(missing.counts.missing))
    if rule.classes is not None:
        lacking = {label: count.missing for label, count in missing.classes.items()}
        if rests_on_class(rule.target.entry):
            judged = [(label, row) for label, row in judged if label in lacking]
        for label, row in zip(evidence.rows.labels, rows, strict=True):
            if row >= 0 and label is not None:
                counts[row] = lacking.get(label, 0)
    worst = _worst_values if evidence.against is None else _worst_differences
    pieces = worst(evidence, candidate, missing, judged)
    return replace(evidence, worst=tuple(pieces), missing=counts)


Judged = Sequence[tuple[str | None, int]]
"""The classes of results, and their rows."""
RulePiece = tuple[Positions, Statistic]


def _worst_differences(
    evidence: RuleEvidence, candidate: GateCandidate, missing: MatchedItems, judged: Judged
) -> Iterator[RulePiece]:
    """Yield the differences from the baseline with missing items counted as wrong, and as right."""
    rule, options = evidence.rule, _options_against(candidate, evidence.against)
    rows = np.array([row for _, row in judged], dtype=np.intp)
    labels = [label for label, _ in judged if label is not None]
    names = missing.baseline.labels
    few = tuple(names.index(name) for name in evidence.rows.left_out)
    for right in (False, True) if rule.traits.two_sided else (False,):
        if rule.classes is not None:
            yield rows, worst_class_differences(missing, rule.index, labels, options, right=right)
        else:
            overall = replace(options, left_out=few)
            yield rows, _worst_overall(rule, missing, rule.index, overall, right=right)


def _worst_overall(
    rule: Rule, missing: MatchedItems, key: str, options: Options, *, right: bool = False
) -> Difference:
    """Return the difference of an overall index, or of a cell, in the worst case."""
    if rule.confusion is not None:
        side = missing.worst_case("recall", cell=rule.confusion, right=right)
        options = replace(options, indices=("recall",), families=())
        whole = compare(side, missing.baseline, options, attributed=())
        return rule.target.difference(whole)[:1]
    options = replace(options, indices=(key,), families=())
    side = missing.worst_case(key, right=right)
    whole = compare(side, missing.baseline, options, attributed=())
    return whole.of_overall(key)[None]


def worst_mean(
    rule: Rule, candidate: GateCandidate, part: Part, left_out: tuple[int, ...]
) -> Difference | None:
    """Return the mean of a part in the worst case; None if no item is missing."""
    missing = candidate.missing(part.evidence.against, part.evidence.slice)
    if missing is None:
        return None
    names, options = missing.baseline.labels, _options_against(candidate, part.evidence.against)
    few = tuple(names.index(part.labels[i]) for i in left_out)
    options = replace(options, left_out=few, average_over=None)
    return _worst_overall(rule, missing, rule.target.average or "", options)


def _options_against(candidate: GateCandidate, against: Against | None) -> Options:
    """Return the options over the classes of both sides."""
    comparison = candidate.comparisons[against or "baseline"]
    assert comparison is not None  # noqa: S101 (items are missing from a baseline)
    return comparison.aligned.candidate.values.options


def _worst_values(
    evidence: RuleEvidence, candidate: GateCandidate, missing: MatchedItems, judged: Judged
) -> Iterator[RulePiece]:
    """Yield the values of the candidate with missing items counted as wrong."""
    rule = evidence.rule
    for label, row in judged:
        narrowed = rule if label is None else replace(rule, classes=(label,))
        side = missing.worst_values(rule.index or "recall", label, cell=rule.confusion)
        estimate, _ = replace(candidate, side=side).estimate(narrowed)
        place = 0 if label is None else side.labels.index(label)
        yield np.array([row]), estimate.statistic[..., [place]]


MOST_JUDGED = 300
"""Most slices of all rules of a gate together: each is compared on its own, in milliseconds."""


def slices_of(rule: Rule, *sides: Side) -> tuple[Slice, ...]:
    """Return the slices that a rule is about, those of the first side first.

    "all" means every slice, crossings too; a name the slices of that column.
    """
    every: dict[Slice, None] = {}
    for slices in (side.slices for side in sides if side.slices is not None):
        every |= dict.fromkeys(tuple(sorted(name.items())) for name in slices.names)
    return chosen(rule, every)


def chosen(rule: Rule, every: Iterable[Slice]) -> tuple[Slice, ...]:
    """Return those slices that a rule is about."""
    if rule.slices == "all":
        return tuple(every)
    return tuple(part for part in every if len(part) == 1 and part[0][0] in rule.columns)


def rule_with_too_many_slices(rules: Sequence[Rule], *sides: Side) -> int | None:
    """Return the position of the rule with which the slices are more than `MOST_JUDGED`."""
    counts = [0 if r.slices is None else len(slices_of(r, *sides)) for r in rules]
    beyond = np.flatnonzero(np.cumsum(counts) > MOST_JUDGED)
    return int(beyond[0]) if beyond.size else None


def missing_columns(rule: Rule, slices: tuple[Slice, ...]) -> Iterator[str]:
    """Yield the columns that a rule names and no slice has; "all" without any slice."""
    columns = {column for part in slices for column, _ in part}
    yield from (n for n in rule.columns if n not in columns and not (slices and n == "all"))
