"""The differences of two sides over the same classes, with their evidence."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from rprime.core.arrays import Array
from rprime.core.comparison.compared_side import ComparedSide, LimitSource
from rprime.core.comparison.correlation import correlation
from rprime.core.comparison.difference import CODE, INFLUENCE, MOVER, NO_METHOD, TANGO, Difference
from rprime.core.comparison.guard import SideGradients
from rprime.core.comparison.joint_counts import OF_CLASS, Rows, class_rows, overall_rows
from rprime.core.comparison.mover import MoverLimits
from rprime.core.comparison.paired_scores import paired_scores
from rprime.core.comparison.paired_variance import PairedItems, PairedPredictions, PairedVariance
from rprime.core.counts import CountRow
from rprime.core.index import Index, IndexScope
from rprime.core.intervals.delta import classified_entries
from rprime.core.intervals.gradient import ClassGradient
from rprime.core.intervals.methods import bounds
from rprime.core.intervals.proportions import quantile_of
from rprime.core.intervals.weights import Weights
from rprime.core.selection import Selection


@dataclass(frozen=True, eq=False)
class AlignedValues:
    """Two sides as values over one list of classes, single tables or stacks.

    Parameters
    ----------
    candidate, baseline
        Both sides, with one selection.
    labels
        Names of the classes.
    places
        Shape (c,): positions of the compared classes, which have items on both sides.
    pairs
        The paired predictions if both sides have the same items; else None.
    comparable
        Whether the sides may be compared.
    one_test_set
        Whether both tables count the same items, paired or not.
    """

    candidate: ComparedSide
    baseline: ComparedSide
    labels: tuple[str, ...]
    places: Array
    pairs: PairedPredictions | None
    comparable: bool = True
    one_test_set: bool = True

    @property
    def selection(self) -> Selection:
        """The compared indices."""
        return self.candidate.values.selection

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the compared classes."""
        return tuple(self.labels[i] for i in self.places)

    def of_overall(self, key: str) -> Difference:
        """Return the difference of one overall index, shape (...).

        Raises
        ------
        KeyError
            If the index was not compared, because the options do not select it.
        """
        return self.overall[self.selection.overall_place[key]]

    def of_classes(self, key: str, classes: tuple[str, ...] | None = None) -> Difference:
        """Return the difference of one per-class index, shape (..., n), by default of all classes.

        Raises
        ------
        KeyError
            If the index was not compared.
        ValueError
            If a class was not compared.
        """
        row = self.per_class[self.selection.place[key]]
        if classes is None:
            return row
        return row[..., [self.classes.index(name) for name in classes]]

    def correlation(self, targets: Sequence[tuple[IndexScope, str, str | None]]) -> Array:
        """Correlate differences of single tables, from the influences of the items or the cells.

        Parameters
        ----------
        targets
            Scope, key and class of each of m compared indices; the class is None overall.

        Returns
        -------
        Shape (m, m); rows and columns of NaN where a difference is not by influences.
        """
        selection, number = self.selection, {name: i for i, name in enumerate(self.labels)}
        found = [
            (selection.overall_place[key], None)
            if label is None
            else (selection.place[key], number[label])
            for _, key, label in targets
        ]
        strata = self.candidate.values.sample is not None  # they vary independently, not cells
        if strata or self.candidate.values.sampled.weighted:
            return np.full((len(found), len(found)), np.nan)
        pairs = self.pairs if isinstance(self.pairs, PairedItems) else None
        return correlation(pairs, self.gradients, found)

    @cached_property
    def untestable(self) -> int:
        """Code of the reason why no difference has evidence; 0 if there is no such reason."""
        tables = (self.candidate.values.sampled, self.baseline.values.sampled)
        if not self.comparable:
            return CODE["different_test_sets"]
        if any(t.weighted for t in tables):
            return 0 if self.weights_known else CODE["weighted"]
        return CODE["non_integer_counts"] if any(t.fractional.any() for t in tables) else 0

    @cached_property
    def weights_known(self) -> bool:
        """Whether the weights of all items are known, the same for both sides of a pair."""
        sides = [side.estimates for side in (self.candidate, self.baseline)]
        if self.pairs is not None:
            plain = all(side.values.options.cell_weights is None for side in sides)
            return plain and isinstance(self.pairs, PairedItems) and self.pairs.weights is not None
        return all(
            Weights.of(side.values, side.items) is not None
            if side.values.sampled.weighted
            else not side.values.sampled.fractional.any()
            for side in sides
        )

    @cached_property
    def everyone_answered(self) -> bool:
        """Whether both sides classified every item."""
        sides = (self.candidate, self.baseline)
        return not any(side.values.table.has_omissions for side in sides)

    @cached_property
    def bracketable(self) -> bool:
        """Whether two tables of the same items, with equal supports, bound the paired test."""
        ours, theirs = self.candidate.values.table, self.baseline.values.table
        return (
            self.pairs is None
            and not any(side.values.sampled.weighted for side in (self.candidate, self.baseline))
            and not any(side.grouped for side in (self.candidate, self.baseline))
            and self.one_test_set
            and self.candidate.values.sample is None
            and ours.spurious is None
            and theirs.spurious is None
            and bool(np.array_equal(ours.support, theirs.support))
        )

    @cached_property
    def gradients(self) -> tuple[SideGradients, SideGradients]:
        """Gradients of the baseline and the candidate."""
        return SideGradients(self.baseline.values), SideGradients(self.candidate.values)

    @cached_property
    def overall(self) -> Difference:
        """Difference of the overall indices, shape (overall, ...)."""
        candidate, baseline = self.candidate.overall, self.baseline.overall
        value, reasons = self._values(
            candidate,
            baseline,
            self.candidate.values.overall_reasons,
            self.baseline.values.overall_reasons,
        )
        differ = self.candidate.classes_matter | self.baseline.classes_matter
        excluded = ~np.isnan(value) & self._exclusions_differ
        reasons = np.where(differ, CODE["classes_differ"], reasons)
        reasons = np.where(excluded, CODE["excluded_classes_differ"], reasons)
        value = np.where(differ | excluded, np.nan, value)
        items = np.broadcast_to(self.candidate.values.sampled.total, value.shape)
        draft = _Draft(candidate, baseline, value, reasons, items, self.selection.overall)
        if self.untestable:
            return draft.without_evidence(self.untestable)
        rows: Rows = {}
        if self.candidate.values.sample is None:  # at a population, these are sums of strata
            rows = overall_rows(self.selection, everyone_answered=self.everyone_answered)
        return self._with_evidence(draft, rows, per_class=False)

    @cached_property
    def per_class(self) -> Difference:
        """Difference of the per-class indices on the compared classes, (reported, ..., c)."""
        reported = self.selection.reported
        sides = (self.candidate, self.baseline)
        candidate, baseline = (side.per_class[..., self.places] for side in sides)
        found = (side.values.class_reasons for side in sides)
        codes = [None if c is None else c[:reported][..., self.places] for c in found]
        value, reasons = self._values(candidate, baseline, *codes)
        support = self.candidate.values.sampled.support[..., self.places]
        items = np.broadcast_to(support, value.shape)
        draft = _Draft(candidate, baseline, value, reasons, items, self.selection.per_class)
        if self.untestable:
            return draft.without_evidence(self.untestable)
        rows = class_rows(self.selection)
        if self.candidate.values.sample is not None:
            rows = {row: places for row, places in rows.items() if row in OF_STRATUM}
        return self._with_evidence(draft, rows, per_class=True)

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
    def _exclusions_differ(self) -> Array:
        """Whether a plain mean leaves out other classes on one side than on the other."""
        ours, theirs = self.candidate.averages, self.baseline.averages
        result = np.zeros(ours.overall.shape, dtype=bool)
        if ours.complete and theirs.complete:
            return result
        changed = (ours.defined != theirs.defined).any(-1)
        place = self.selection.place
        for i, entry in enumerate(self.selection.overall):
            if entry.reads in ("macro", "means"):
                result[i] = np.logical_or.reduce([changed[place[key]] for key in entry.of])
        return result

    def _with_evidence(self, draft: "_Draft", rows: Rows, *, per_class: bool) -> Difference:
        with np.errstate(all="ignore"):
            evidence = _Evidence.blank(draft.value.shape)
            if self.pairs is None:
                evidence.mover = self._mover(draft, per_class=per_class)
                if self.bracketable:
                    self._bracket(evidence, rows, per_class=per_class)
            else:
                self._pair(evidence, rows, self.pairs, per_class=per_class)
            confidence = self.candidate.values.options.confidence
            return draft.with_evidence(evidence, quantile_of(confidence))

    def _mover(self, draft: "_Draft", *, per_class: bool) -> MoverLimits:
        """Return the limits of both sides, whose results hold more than the compared values."""
        of_classes, overall = self.source.places
        places = of_classes[: self.selection.reported][..., self.places] if per_class else overall
        return MoverLimits(draft.candidate, draft.baseline, self.source, places)

    @cached_property
    def source(self) -> LimitSource:
        """The limits of the candidate and of the baseline."""
        stack, other = self.candidate.estimates.stack, self.baseline.estimates.stack
        if stack is not None and stack is other and self.candidate.common is None:
            return LimitSource((ComparedSide(stack),), both=True)
        return LimitSource((self.candidate, self.baseline))

    def _bracket(self, evidence: "_Evidence", rows: Rows, *, per_class: bool) -> None:
        """Fill in the counts that bound the paired test of a proportion."""
        for row, places in rows.items():
            for name, side in (("candidate", self.candidate), ("baseline", self.baseline)):
                hits = self._of_classes(side.values.counts.rows[row], per_class=per_class)
                evidence.counted[f"{name}_hits"][places] = hits
            evidence.counted["trials"][places] = self.trials(row, per_class=per_class)

    def _pair(
        self, evidence: "_Evidence", rows: Rows, pairs: PairedPredictions, *, per_class: bool
    ) -> None:
        """Fill in the evidence of paired items: Tango for proportions, else the influences."""
        variance, guard = self._paired_variance(pairs, per_class=per_class)
        items = pairs if isinstance(pairs, PairedItems) else None
        grouped = items if items is not None and items.grouped else None
        if grouped is not None:  # one pseudo-item for each effective one
            overall, of_class = grouped.largest_design_effects()
            largest = of_class[self.places] if per_class else overall
            known = variance.design_effect
            guard = guard * np.where(np.isnan(known), largest, known) ** 2
        weights = None if items is None else items.weights
        if weights is not None:  # one effective item in each direction
            guard = guard * weights.unit**2
        evidence.variance[...] = variance.grouped + guard
        for row, places in rows.items() if weights is None else ():
            gains, losses = pairs.flips(row, per_class=per_class)
            if per_class:
                gains, losses = gains[..., self.places], losses[..., self.places]
            counts = (gains, losses, self.trials(row, per_class=per_class))
            effect: Array | float = 1.0
            if grouped is not None:
                known = variance.design_effect[places]
                effect = self._design_effect(grouped, row, known, per_class=per_class)
            evidence.count(places, *(np.asarray(part / effect) for part in counts))
        self._pair_scores(evidence, per_class=per_class)

    def _paired_variance(
        self, pairs: PairedPredictions, *, per_class: bool
    ) -> tuple[PairedVariance, Array]:
        """Compute the variances of the differences, and their guard."""
        old, new = self.gradients
        if not per_class:
            guard = np.maximum(old.overall_guard, new.overall_guard)
            return pairs.overall_variance(old.overall, new.overall), guard
        reported = self.selection.reported
        before, after = (ClassGradient(s.of_classes.margins[:, :reported]) for s in (old, new))
        classified = classified_entries(self.selection)[:reported]
        found = pairs.class_variance(before, after, classified)
        guard = np.maximum(old.class_guard, new.class_guard)[:reported]
        parts = (part[..., self.places] for part in (found.independent, found.grouped))
        return PairedVariance(*parts), guard[..., self.places]

    def _pair_scores(self, evidence: "_Evidence", *, per_class: bool) -> None:
        """Fill in the evidence of indices that read scores."""
        new, old = self.candidate.values, self.baseline.values
        if new.scores is None or old.scores is None:
            return
        for place, entry in enumerate(
            self.selection.per_class if per_class else self.selection.overall
        ):
            if entry.scored:
                found = paired_scores(new, old, entry)
                evidence.variance[place] = (
                    found.variance[self.places] if per_class else found.variance
                )
                if found.gains is not None and found.losses is not None:
                    evidence.count(place, found.gains, found.losses, np.asarray(found.trials))

    def _design_effect(
        self, pairs: PairedItems, row: CountRow, known: Array, *, per_class: bool
    ) -> Array:
        """Return design effects, the largest possible one where nothing varies."""
        overall, of_class = pairs.largest_design_effects()
        by_class = per_class and OF_CLASS.get(row) == CountRow.support
        return np.where(np.isnan(known), of_class[self.places] if by_class else overall, known)

    def _of_classes(self, rows: Array, *, per_class: bool) -> Array:
        """Return counts of the compared classes, or their pooled column."""
        return np.asarray(rows[..., self.places] if per_class else rows[..., -1])

    def trials(self, row: CountRow, *, per_class: bool) -> Array:
        """Return the denominators of a proportion of the compared classes, or overall; never 0."""
        among = OF_CLASS.get(row, CountRow.total) if per_class else CountRow.total
        rows = self.candidate.values.counts.rows[among]
        if per_class and among == CountRow.support:
            rows = self.candidate.values.sampled.support
        trials = self._of_classes(rows, per_class=per_class)
        return np.where(trials > 0, trials, np.nan)


OF_STRATUM = (CountRow.tp, CountRow.fn)
"""Counts of the items of one true class, whose shares no prevalence changes."""
COUNTED = ("gains", "losses", "trials", "baseline_hits", "candidate_hits")


@dataclass(eq=False)
class _Evidence:
    """What is known of differences of one shape; NaN where unknown."""

    counted: dict[str, Array]
    variance: Array
    mover: MoverLimits | None = None

    @classmethod
    def blank(cls, shape: tuple[int, ...]) -> "_Evidence":
        counted = {name: np.full(shape, np.nan) for name in COUNTED}
        return cls(counted, np.full(shape, np.nan))

    def count(self, place: int | Array, gains: Array, losses: Array, trials: Array) -> None:
        """Fill in the counts of a paired proportion."""
        self.counted["gains"][place] = gains
        self.counted["losses"][place] = losses
        self.counted["trials"][place] = trials


@dataclass(frozen=True, eq=False)
class _Draft:
    """A difference before its evidence is known."""

    candidate: Array
    baseline: Array
    value: Array
    reasons: Array
    items: Array
    entries: tuple[Index, ...]

    def with_evidence(self, evidence: _Evidence, quantile: float) -> Difference:
        """Choose the test of each element: Tango, then MOVER or the influences.

        Parameters
        ----------
        quantile
            At which the limits of a report are computed anyway.
        """
        exists = ~np.isnan(self.value)
        counted = {k: np.where(exists, part, np.nan) for k, part in evidence.counted.items()}
        tango = ~np.isnan(counted["gains"] + counted["trials"])
        error = np.sqrt(evidence.variance)
        error = np.where(exists & (error > 0) & ~tango, error, np.nan)
        known, method = ~np.isnan(error), INFLUENCE
        if evidence.mover is not None:
            known, method = exists & np.isfinite(evidence.mover.at(quantile)[0]), MOVER
        tested = known | ~np.isnan(counted["candidate_hits"])
        methods = np.where(tango, TANGO, np.where(tested, method, NO_METHOD))
        varies = np.isnan(error) & (evidence.variance == 0)
        lacking = np.where(varies, CODE["no_evidence"], CODE["no_interval"])
        return self._difference(
            reasons=np.where(exists & (methods == NO_METHOD), lacking, self.reasons),
            methods=methods,
            influence_error=error,
            mover=evidence.mover,
            **counted,
        )

    def without_evidence(self, reason: int) -> Difference:
        """Return the difference without a test, for one reason."""
        nothing = np.full(self.value.shape, np.nan)
        return self._difference(
            reasons=np.where(self.reasons == 0, reason, self.reasons),
            methods=np.zeros(self.value.shape),
            influence_error=nothing,
            mover=None,
            **dict.fromkeys(COUNTED, nothing),
        )

    def _difference(
        self,
        *,
        reasons: Array,
        methods: Array,
        influence_error: Array,
        mover: MoverLimits | None,
        **counted: Array,
    ) -> Difference:
        reach = _reaches(self.entries).reshape(-1, *(1,) * (self.value.ndim - 1))
        return Difference(
            candidate=self.candidate,
            baseline=self.baseline,
            value=self.value,
            reasons=reasons.astype(np.uint8),
            methods=methods.astype(np.uint8),
            influence_error=influence_error,
            reach=np.broadcast_to(reach, self.value.shape),
            items=self.items,
            mover=mover,
            **counted,
        )


@lru_cache(maxsize=256)
def _reaches(entries: tuple[Index, ...]) -> Array:
    """Return the largest possible difference of each index."""
    limits = [bounds(entry) for entry in entries]
    return np.array([high - low for low, high in limits])
