"""The differences of two sides over the same classes, with their evidence."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from rprime.core.arrays import Array
from rprime.core.comparison.difference import (
    CODE,
    INFLUENCE,
    NO_METHOD,
    TANGO,
    UNPAIRED,
    Difference,
)
from rprime.core.comparison.joint_counts import class_proportion, overall_proportion
from rprime.core.comparison.paired_variance import (
    PairedItems,
    PairedVariance,
    class_guard,
    class_variance,
    grouped_class_variances,
    grouped_variances,
    overall_guard,
    overall_variance,
)
from rprime.core.counts import CountRow
from rprime.core.intervals.delong import paired_score_variance, score_variance
from rprime.core.intervals.delta import class_gradient, classified_entries, overall_gradient
from rprime.core.intervals.gradient import ClassGradient, Gradient
from rprime.core.intervals.variance import class_variances, variances
from rprime.core.values import Values

G = TypeVar("G", Gradient, ClassGradient)


@dataclass(frozen=True, eq=False)
class AlignedValues:
    """Two sides as values over one list of classes.

    Parameters
    ----------
    candidate, baseline
        Values of single tables, with one selection.
    own
        Overall values of candidate and baseline over their own classes, shape (index,) each.
    common
        Shape (c,): the classes that both sides declare.
    pairs
        The paired items if both sides have the same items; else None.
    groups
        Baseline and candidate, each with its items paired with themselves, if the items are
        grouped and `pairs` is None; else None.
    comparable
        Whether the sides may be compared.
    one_test_set
        Whether both tables count the same items, paired or not.
    """

    candidate: Values
    baseline: Values
    own: tuple[Array, Array]
    common: Array
    pairs: PairedItems | None
    groups: tuple[PairedItems | None, PairedItems | None]
    comparable: bool
    one_test_set: bool

    @cached_property
    def untestable(self) -> int:
        """Code of the reason why no difference has evidence; 0 if there is no such reason."""
        tables = (self.candidate.table, self.baseline.table)
        if not self.comparable:
            return CODE["different_test_sets"]
        if any(t.weighted for t in tables):
            return CODE["weighted"]
        return CODE["non_integer_counts"] if any(t.fractional for t in tables) else 0

    @cached_property
    def everyone_answered(self) -> bool:
        """Whether both sides classified every item."""
        return not (self.candidate.table.has_omissions or self.baseline.table.has_omissions)

    @cached_property
    def bracketable(self) -> bool:
        """Whether two tables of the same items, with equal supports, bound the paired test."""
        ours, theirs = self.candidate.table, self.baseline.table
        return (
            self.pairs is None
            and self.groups == (None, None)
            and self.one_test_set
            and ours.spurious is None
            and theirs.spurious is None
            and bool(np.array_equal(ours.support, theirs.support))
        )

    @cached_property
    def class_gradients(self) -> tuple[ClassGradient, ClassGradient]:
        """Gradients of the baseline and the candidate."""
        return class_gradient(self.baseline), class_gradient(self.candidate)

    @cached_property
    def overall_gradients(self) -> tuple[Gradient, Gradient]:
        """Gradients of the baseline and the candidate."""
        old, new = self.class_gradients
        return overall_gradient(self.baseline, old), overall_gradient(self.candidate, new)

    def overall(self) -> Difference:
        """Difference of the overall indices, shape (index,)."""
        entries = self.candidate.selection.overall
        candidate, baseline = (np.where(np.isfinite(v), v, np.nan) for v in self.own)
        value, reasons = self._values(
            candidate, baseline, self.candidate.overall_reasons, self.baseline.overall_reasons
        )
        reasons = np.where(self._classes_matter, CODE["classes_differ"], reasons)
        reasons = np.where(
            ~np.isnan(value) & self._exclusions_differ, CODE["excluded_classes_differ"], reasons
        )
        value = np.where(self._classes_matter | self._exclusions_differ, np.nan, value)
        whole = np.broadcast_to(self.candidate.table.total, value.shape)
        draft = _Draft(candidate, baseline, value, reasons, whole)
        if self.untestable:
            return draft.without_evidence(self.untestable)
        rows = [overall_proportion(e, everyone_answered=self.everyone_answered) for e in entries]
        return self._with_evidence(draft, rows)

    def per_class(self) -> Difference:
        """Difference of the per-class indices on the common classes, shape (index, c)."""
        reported = self.candidate.selection.reported
        sides = (self.candidate, self.baseline)
        candidate, baseline = (
            np.where(np.isfinite(v), v, np.nan)
            for v in (s.per_class[:reported][:, self.common] for s in sides)
        )
        codes = [
            None if s.class_reasons is None else s.class_reasons[:reported][:, self.common]
            for s in sides
        ]
        value, reasons = self._values(candidate, baseline, *codes)
        support = np.broadcast_to(self.candidate.table.support[self.common], value.shape)
        draft = _Draft(candidate, baseline, value, reasons, support)
        if self.untestable:
            return draft.without_evidence(self.untestable)
        rows = [class_proportion(e) for e in self.candidate.selection.per_class]
        return self._with_evidence(draft, rows)

    def _values(
        self, candidate: Array, baseline: Array, ours: Array | None, theirs: Array | None
    ) -> tuple[Array, Array]:
        """Compute differences, with reasons for missing ones, the candidate's reason first."""
        reasons = np.zeros(candidate.shape, dtype=np.uint8)
        for codes, side in ((theirs, baseline), (ours, candidate)):
            if codes is not None:
                reasons = np.where(np.isnan(side), codes, reasons)
        if not self.comparable:
            return np.full(candidate.shape, np.nan), reasons
        return candidate - baseline, reasons

    @cached_property
    def _classes_matter(self) -> Array:
        """Whether an index changes with the list of declared classes, and this one differs."""
        differ = np.zeros(self.own[0].shape, dtype=bool)
        for own, side in zip(self.own, (self.candidate, self.baseline), strict=True):
            if own is not side.overall:
                differ |= ~np.isclose(own, side.overall, rtol=1e-12, atol=1e-12, equal_nan=True)
        return differ

    @cached_property
    def _exclusions_differ(self) -> Array:
        """Whether a plain mean leaves out different classes on the two sides."""
        changed = (self.candidate.defined != self.baseline.defined).any(-1)
        place = self.candidate.selection.place
        return np.array(
            [
                entry.reads in ("macro", "means") and any(changed[place[key]] for key in entry.of)
                for entry in self.candidate.selection.overall
            ],
            dtype=bool,
        )

    def _overall_variance(self) -> "_Variance":
        old, new = self.overall_gradients
        entries = self.candidate.selection.overall
        if self.pairs is None:
            return _Variance.unpaired(
                variances(gradient, side.table, side.options.sampling)
                if groups is None
                else grouped_variances(groups, gradient)
                for groups, gradient, side in self._each_side(old, new)
            )
        means = np.array([entry.reads in ("macro", "means") for entry in entries], dtype=bool)
        guard = np.where(means, overall_guard(old, new, self.candidate.table.support), 0.0)
        return _Variance.paired(overall_variance(self.pairs, old, new), guard)

    def _class_variance(self) -> "_Variance":
        reported = self.candidate.selection.reported
        if self.pairs is None:
            classified = classified_entries(self.candidate.selection)
            return _Variance.unpaired(
                class_variances(side, gradient)[:reported]
                if groups is None
                else grouped_class_variances(groups, gradient, classified)[:reported]
                for groups, gradient, side in self._each_side(*self.class_gradients)
            ).at(self.common)
        old, new = (ClassGradient(g.margins[:, :reported]) for g in self.class_gradients)
        classified = classified_entries(self.candidate.selection)[:reported]
        variance = class_variance(self.pairs, old, new, classified)
        return _Variance.paired(variance, class_guard(old, new)).at(self.common)

    def _add_scores(self, total: Array) -> None:
        """Fill in the variances of indices that read scores, (index,) or (index, c)."""
        new, old = self.candidate, self.baseline
        if new.scores is None or old.scores is None:
            return
        selection, of_class = new.selection, total.ndim > 1
        entries = selection.per_class if of_class else selection.overall
        for place, entry in enumerate(entries):
            if not entry.scored:
                continue
            found = (
                score_variance(new, entry) + score_variance(old, entry)
                if self.pairs is None
                else paired_score_variance(new, old, entry)
            )
            total[place] = found[self.common] if of_class else found

    def _each_side(self, old: G, new: G) -> Iterable[tuple[PairedItems | None, G, Values]]:
        return zip(self.groups, (old, new), (self.baseline, self.candidate), strict=True)

    def _with_evidence(self, draft: "_Draft", rows: list[CountRow | None]) -> Difference:
        """Choose the test of each index: Tango for proportions of paired items, else normal."""
        with np.errstate(all="ignore"):  # missing values stay NaN
            of_class = draft.value.ndim > 1
            variance = self._class_variance() if of_class else self._overall_variance()
            self._add_scores(variance.total)
        exists = ~np.isnan(draft.value)
        error = np.sqrt(variance.total)
        error = np.where(exists & (error > 0), error, np.nan)
        evidence = {name: np.full(draft.value.shape, np.nan) for name in COUNTED}
        for place, row in enumerate(rows):
            counted = {} if row is None else self._counted(row, variance, place)
            for name, values in counted.items():
                evidence[name][place] = np.where(exists[place], values, np.nan)
        tango = ~np.isnan(evidence["gains"])
        methods = np.where(np.isnan(error), NO_METHOD, INFLUENCE if self.pairs else UNPAIRED)
        methods = np.where(~np.isnan(evidence["candidate_hits"]), UNPAIRED, methods)
        methods = np.where(tango, TANGO, methods)
        lacking = np.where(np.isnan(variance.total), CODE["no_interval"], CODE["no_evidence"])
        return Difference(
            candidate=draft.candidate,
            baseline=draft.baseline,
            value=draft.value,
            reasons=np.where(exists & (methods == NO_METHOD), lacking, draft.reasons),
            methods=methods.astype(np.uint8),
            standard_error=np.where(tango, np.nan, error),
            items=draft.items,
            **evidence,
        )

    def _counted(self, row: CountRow, variance: "_Variance", place: int) -> dict[str, Array]:
        """Return the evidence of a proportion in items, for the common classes or overall."""
        per_class = variance.total.ndim > 1
        if self.pairs is not None:
            gains, losses = self.pairs.joint.flips(row, per_class=per_class)
            trials = self._trials(row, per_class=per_class)
            if per_class:
                gains, losses = gains[self.common], losses[self.common]
            counted = {"gains": gains, "losses": losses, "trials": trials}
            if self.pairs.groups is None:
                return counted
            effect = self._design_effect(row, variance.design_effect[place])
            return {name: part / effect for name, part in counted.items()}
        if not self.bracketable:
            return {}
        hits = {
            "candidate_hits": self._hits(self.candidate, row, per_class=per_class),
            "baseline_hits": self._hits(self.baseline, row, per_class=per_class),
        }
        return hits | {"trials": self._trials(row, per_class=per_class)}

    def _design_effect(self, row: CountRow, known: Array) -> Array:
        """Return design effects, the largest possible one where nothing varies."""
        overall, of_class = self._largest_design_effects
        by_class = known.ndim > 0 and OF_CLASS.get(row) == CountRow.support
        return np.where(np.isnan(known), of_class[self.common] if by_class else overall, known)

    @cached_property
    def _largest_design_effects(self) -> tuple[float, Array]:
        return (1.0, np.ones(0)) if self.pairs is None else self.pairs.largest_design_effects()

    def _hits(self, side: Values, row: CountRow, *, per_class: bool) -> Array:
        rows = side.counts.rows[row]
        return rows[self.common] if per_class else rows[-1]

    def _trials(self, row: CountRow, *, per_class: bool) -> Array:
        """Return the denominator of the share; NaN instead of 0."""
        among = OF_CLASS.get(row, CountRow.total) if per_class else CountRow.total
        rows = self.candidate.counts.rows[among]
        trials = rows[self.common] if per_class else rows[-1]
        return np.where(trials > 0, trials, np.nan)


COUNTED = ("gains", "losses", "trials", "baseline_hits", "candidate_hits")
OF_CLASS = {
    CountRow.tp: CountRow.support,
    CountRow.fn: CountRow.support,
    CountRow.fp: CountRow.negatives,
    CountRow.tn: CountRow.negatives,
}
"""The denominators of per-class counts; all items for the others."""


@dataclass(frozen=True, eq=False)
class _Draft:
    """A difference before its evidence is known."""

    candidate: Array
    baseline: Array
    value: Array
    reasons: Array
    items: Array

    def without_evidence(self, reason: int) -> Difference:
        """Return the difference without a test, for one reason."""
        nothing = np.full(self.value.shape, np.nan)
        return Difference(
            candidate=self.candidate,
            baseline=self.baseline,
            value=self.value,
            reasons=np.where(self.reasons == 0, reason, self.reasons).astype(np.uint8),
            methods=np.zeros(self.value.shape, dtype=np.uint8),
            standard_error=nothing,
            items=self.items,
            **dict.fromkeys(COUNTED, nothing),
        )


@dataclass(frozen=True, eq=False)
class _Variance:
    """Variance of differences, including the guard, and the design effects of groups."""

    total: Array
    design_effect: Array

    @classmethod
    def unpaired(cls, sides: Iterable[Array]) -> "_Variance":
        old, new = sides
        return cls(old + new, np.ones(old.shape))

    @classmethod
    def paired(cls, variance: PairedVariance, guard: Array) -> "_Variance":
        return cls(variance.grouped + guard, variance.design_effect)

    def at(self, classes: Array) -> "_Variance":
        return _Variance(self.total[:, classes], self.design_effect[:, classes])
