"""The evidence on each result of a rule, from an evaluation and its comparisons."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property

import numpy as np

from rprime.core.arrays import FloatArray
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import Comparison, compare
from rprime.core.comparison.difference import METHODS, MOVER, REASONS, Difference
from rprime.core.estimates import Estimates
from rprime.core.gates.draft import Draft, Rows, draft_of
from rprime.core.gates.estimate import Estimate
from rprime.core.gates.gap import GapLimits
from rprime.core.gates.rule_tests import RuleTests, plan_of
from rprime.core.gates.rules import Gate, Rule
from rprime.core.gates.sliced import Slice, compare_slice, missing_columns, side_of_slice, slices_of
from rprime.core.gates.verdict import Against, VerdictCode
from rprime.core.options import Options
from rprime.core.slices.evaluation import vague
from rprime.core.suggestions import nearest_classes

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
            few = small_classes(rule, self.side.table.support)
        if few:
            options = replace(known.values.options, left_out=few)
            known = replace(known, values=replace(known.values, options=options))
        found = rule.target.estimate(self.side, known)
        return found, Rows.of(rule, self.side.labels, found.items).without(self.side.labels, few)

    def difference(self, rule: Rule, comparison: Comparison) -> tuple[Difference, Rows]:
        """Return the differences that the rule bounds, and the rows that it is about."""
        few = small_classes(rule, *(side.table.support for side in comparison.sides))
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


def gather_evidence(gate: Gate, candidate: GateCandidate) -> RuleTests:
    """Gather the evidence on rules: on values, or on the difference from each baseline."""
    drafts = [draft for rule in gate.rules for draft in _drafts(rule, candidate)]
    return RuleTests(drafts, plan_of(gate, drafts))


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
    few = not_in_all(rule, np.array([side.table.support for side in sides]))
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
