"""The differences of two sides over the same classes, with their evidence."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from rprime.core.arrays import Array
from rprime.core.catalog import find
from rprime.core.comparison.attribution import TablePath
from rprime.core.comparison.compared_side import ComparedSide, LimitSource
from rprime.core.comparison.constant import ConstantClassifier
from rprime.core.comparison.difference import (
    CODE,
    COUNTED,
    INFLUENCE,
    MOVER,
    NO_METHOD,
    TANGO,
    Difference,
)
from rprime.core.comparison.difference_intervals import MoverLimits
from rprime.core.comparison.guard import SideGradients, correlation
from rprime.core.comparison.joint_counts import OF_CLASS, Rows, class_rows, overall_rows
from rprime.core.comparison.paired_variance import PairedItems, PairedPredictions, PairedVariance
from rprime.core.counts import CountRow
from rprime.core.estimates import Estimates
from rprime.core.index import Index, IndexScope
from rprime.core.intervals.delong import paired_evidence
from rprime.core.intervals.delta import classified_entries
from rprime.core.intervals.design_effect import RESTS_ON, Weights
from rprime.core.intervals.gradient import ClassGradient
from rprime.core.intervals.groups import GroupSpread
from rprime.core.intervals.methods import Needs, highest_of, needs_of, of_highest
from rprime.core.intervals.plan import bounds
from rprime.core.intervals.proportions import quantile_of
from rprime.core.selection import Selection
from rprime.core.values import Values


@dataclass(frozen=True, eq=False)
class AlignedValues:
    """Two sides as values over one list of classes, single tables or stacks.

    Parameters
    ----------
    candidate, baseline
        Both sides, with one selection.
    places
        Shape (c,): positions of the compared classes, which have items on both sides.
    pairs
        The paired predictions if both sides have the same items; else None.
    one_test_set
        Whether both tables count the same items, paired or not.
    constant
        The constant classifier that the baseline is; None for predictions.
    """

    candidate: ComparedSide
    baseline: ComparedSide
    labels: tuple[str, ...]
    places: Array
    pairs: PairedPredictions | None
    comparable: bool = True
    one_test_set: bool = True
    constant: ConstantClassifier | None = None

    @property
    def is_drawn(self) -> bool:
        """Whether the baseline has expected counts, so that none of its items can be named."""
        return self.constant is not None and self.constant.is_drawn

    @property
    def selection(self) -> Selection:
        """The compared indices."""
        return self.candidate.values.selection

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Names of the compared classes."""
        return tuple(self.labels[i] for i in self.places)

    def of_overall(self, key: str) -> Difference:
        """Return the difference of one overall index, shape (...); KeyError if not compared."""
        return self.overall[self.selection.overall_place[key]]

    def of_classes(self, key: str, classes: tuple[str, ...] | None = None) -> Difference:
        """Return the difference of one per-class index, shape (..., n), by default of all classes.

        KeyError if the index was not compared, ValueError if a class was not.
        """
        row = self.per_class[self.selection.place[key]]
        if classes is None:
            return row
        return row[..., [self.classes.index(name) for name in classes]]

    def correlation(self, targets: Sequence[tuple[IndexScope, str, str | None]]) -> Array:
        """Correlate differences of single tables, from the influences of the items or the cells.

        The targets are scope, key and class of m compared indices; the class is None overall. Rows
        and columns (m, m) are NaN where a difference is not by influences.
        """
        selection, number = self.selection, {name: i for i, name in enumerate(self.labels)}
        places = [
            (selection.overall_place[key], None)
            if label is None
            else (selection.place[key], number[label])
            for _, key, label in targets
        ]
        strata = self.candidate.values.sample is not None  # they vary independently, not cells
        if strata or self.candidate.values.sampled.weighted:
            return np.full((len(places), len(places)), np.nan)
        pairs = self.pairs if isinstance(self.pairs, PairedItems) else None
        return correlation(pairs, self.gradients, places)

    @cached_property
    def path(self) -> TablePath:
        """The line from the baseline's table to the candidate's, of single tables."""
        return TablePath.between(self.baseline.values.table, self.candidate.values.table)

    @cached_property
    def untestable(self) -> int:
        """Code of the reason why no difference has evidence; 0 if there is no such reason."""
        tables = (self.candidate.values.sampled, self.baseline.values.sampled)
        if not self.comparable:
            return CODE["different_test_sets"]
        if any(t.weighted for t in tables):
            return 0 if self.weights_known else CODE["weighted"]
        # The table of a constant classifier follows from the true classes.
        counted = tables if self.constant is None else tables[:1]
        return CODE["non_integer_counts"] if any(t.fractional.any() for t in counted) else 0

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
    def bracketable(self) -> bool:
        """Whether two tables of the same items, with equal supports, bound the paired test."""
        ours, theirs = self.candidate.values, self.baseline.values
        if self.pairs is not None or not self.one_test_set or ours.sample is not None:
            return False
        if any(
            v.sampled.weighted or v.grouped or v.table.spurious is not None for v in (ours, theirs)
        ):
            return False
        return bool(np.array_equal(ours.table.support, theirs.table.support))

    @cached_property
    def gradients(self) -> tuple[SideGradients, SideGradients]:
        """Gradients of the baseline and the candidate."""
        old, new = self._gradients
        if self.constant is not None and self.constant.is_drawn:
            old = old.over_predictions(self.constant.shares)
        return old, new

    @property
    def _gradients(self) -> tuple[SideGradients, SideGradients]:
        candidate, baseline = self.candidate.values, self.baseline.values
        if self.stack is None:
            return SideGradients(baseline), SideGradients(candidate)
        both = SideGradients.of_stack(self.stack)
        of_sides = self.baseline.estimates, self.candidate.estimates
        old, new = (side.position for side in of_sides)
        return both.part(old, baseline), both.part(new, candidate)

    @property
    def stack(self) -> Estimates | None:
        """The estimates of both sides, if they were computed as one stack."""
        stack, other = self.candidate.estimates.stack, self.baseline.estimates.stack
        return stack if stack is other else None

    @cached_property
    def overall(self) -> Difference:
        """Difference of the overall indices, shape (overall, ...)."""
        ours, theirs = self.candidate, self.baseline
        sides = tuple((side.overall, side.values.overall_reasons) for side in (ours, theirs))
        difference = self._values(sides, self.selection.overall)
        difference.items[...] = ours.values.sampled.number
        differ = ours.classes_matter | theirs.classes_matter
        excluded = ~np.isnan(difference.value) & self._exclusions_differ
        difference.reasons[differ] = CODE["classes_differ"]
        difference.reasons[excluded] = CODE["excluded_classes_differ"]
        difference.value[differ | excluded] = np.nan
        rows: Rows = {}
        # At a population, these are sums of strata; drawn predictions have no changes to count.
        if ours.values.sample is None and not self.is_drawn:
            omitted = any(side.values.table.has_omissions for side in (ours, theirs))
            rows = overall_rows(
                self.selection,
                everyone_answered=not omitted,
                averages_all=ours.values.averaged_classes is None,
            )
        return self._with_evidence(difference, rows, per_class=False)

    @cached_property
    def per_class(self) -> Difference:
        """Difference of the per-class indices on the compared classes, (reported, ..., c)."""
        reported, sides = self.selection.reported, (self.candidate, self.baseline)
        codes = (side.values.class_reasons for side in sides)
        reasons = (None if c is None else c[:reported][..., self.places] for c in codes)
        values = (side.per_class[..., self.places] for side in sides)
        difference = self._values(
            tuple(zip(values, reasons, strict=True)), self.selection.per_class
        )
        difference.items[...] = self.candidate.values.sampled.class_items[..., self.places]
        rows = {} if self.is_drawn else class_rows(self.selection)
        if self.candidate.values.sample is not None:
            rows = {row: places for row, places in rows.items() if row in OF_STRATUM}
        return self._with_evidence(difference, rows, per_class=True)

    def _values(
        self, sides: tuple[tuple[Array, Array | None], ...], entries: tuple[Index, ...]
    ) -> Difference:
        """Compute differences, with reasons for missing ones, the candidate's reason first."""
        candidate, baseline = (values for values, _ in sides)
        difference = Difference.unknown(candidate.shape)
        difference.candidate[...], difference.baseline[...] = candidate, baseline
        difference.reach[...] = _reaches(entries).reshape(-1, *(1,) * (candidate.ndim - 1))
        if self.comparable:
            np.subtract(candidate, baseline, out=difference.value)
        for values, codes in reversed(sides):
            if codes is not None:
                np.copyto(difference.reasons, codes, where=np.isnan(values))
        return difference

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
            elif entry.reads == "custom":
                result[i] = _other_classes(ours, theirs, entry.key)
        return result

    def _with_evidence(self, difference: Difference, rows: Rows, *, per_class: bool) -> Difference:
        """Fill in the evidence, and choose the test of each element: Tango, else by the pairing."""
        if self.untestable:
            difference.reasons[difference.reasons == 0] = self.untestable
            return difference
        with np.errstate(all="ignore"):
            exists, variance = ~np.isnan(difference.value), np.full(difference.shape, np.nan)
            if self.pairs is not None:
                self._pair(difference, variance, rows, self.pairs, per_class=per_class)
            elif self.bracketable:
                self._bracket(difference, rows, per_class=per_class)
            if not exists.all():
                difference.numbers[COUNTED, ~exists] = np.nan
            tango = ~np.isnan(difference.gains + difference.trials)
            sides = np.fmax(np.abs(difference.candidate), np.abs(difference.baseline))
            error = np.sqrt(variance) / np.where(
                np.isfinite(difference.reach), difference.reach, sides
            )
            variance[error <= ROUNDED] = 0.0
            error = np.where(exists & (variance > 0) & ~tango, np.sqrt(variance), np.nan)
            tested, method = ~np.isnan(error), INFLUENCE
            if self.pairs is None:
                of_classes, places = self.source.places  # of more than the compared values
                if per_class:
                    places = of_classes[: self.selection.reported][..., self.places]
                difference.effective_groups[...] = self._effective_groups(per_class=per_class)
                difference.mover = MoverLimits(
                    difference.candidate, difference.baseline, self.source, places
                )
                # At a quantile at which the limits of a report are computed anyway.
                quantile = quantile_of(self.candidate.values.options.confidence)
                tested, method = exists & np.isfinite(difference.mover.at(quantile)[0]), MOVER
                tested |= ~np.isnan(difference.candidate_hits)
            difference.influence_error[...] = error
            difference.methods[...] = np.where(tango, TANGO, np.where(tested, method, NO_METHOD))
            if self.pairs is not None and self.lacks_scores and not per_class:
                self._unpair_scores(difference)
            lacking = np.where(variance == 0, CODE["no_evidence"], CODE["no_interval"])
            missing = exists & (difference.methods == NO_METHOD)
            np.copyto(difference.reasons, lacking, where=missing, casting="unsafe")
        return difference

    @property
    def lacks_scores(self) -> bool:
        """Whether a side has indices of scores without these, so that they cannot be paired."""
        return any(s.values.kept_scores is not None for s in (self.candidate, self.baseline))

    def _unpair_scores(self, difference: Difference) -> None:
        """Test overall indices of scores of paired items as if the sides were independent."""
        at = np.array(self.selection.overall_scored, dtype=np.intp)
        source = LimitSource((self.candidate, self.baseline), scopes=(False, True))
        difference.mover = MoverLimits(
            difference.candidate, difference.baseline, source, source.places[1]
        )
        quantile = quantile_of(self.candidate.values.options.confidence)
        tested = np.isfinite(difference.value[at]) & np.isfinite(
            difference.mover.at(quantile)[0][at]
        )
        difference.methods[at] = np.where(tested, MOVER, NO_METHOD)
        groups = np.broadcast_to(self._effective_groups(per_class=False), difference.shape)
        difference.effective_groups[at] = groups[at]

    def _effective_groups(self, *, per_class: bool) -> Array | float:
        """Return the smaller effective numbers of groups of both sides; NaN without groups."""
        fewest: Array | float = np.nan
        for side in (self.candidate, self.baseline):
            both = side.estimates.prepared.effective_groups
            if both is not None:
                reported = both[0][: self.selection.reported][..., self.places]
                fewest = np.fmin(fewest, reported if per_class else both[1])
        return fewest

    @cached_property
    def source(self) -> LimitSource:
        """The limits of the candidate and of the baseline."""
        scopes = bool(self.places.size), True
        is_first = self.candidate.estimates.position == 0
        are_all = self.stack is not None and self.stack.values.table.stack_shape == (2,)
        if self.stack is not None and are_all and is_first and self.candidate.common is None:
            return LimitSource((ComparedSide(self.stack),), True, scopes)  # noqa: FBT003 (both sides)
        return LimitSource((self.candidate, self.baseline), scopes=scopes)

    def _bracket(self, difference: Difference, rows: Rows, *, per_class: bool) -> None:
        """Fill in the counts that bound the paired test of a proportion."""
        for row, places in rows.items():
            for hits, side in (
                (difference.candidate_hits, self.candidate),
                (difference.baseline_hits, self.baseline),
            ):
                hits[places] = self._compared(side.values.counts.rows[row], per_class=per_class)
            difference.trials[places] = self._trials(row, per_class=per_class)

    def _pair(
        self,
        difference: Difference,
        variances: Array,
        rows: Rows,
        pairs: PairedPredictions,
        *,
        per_class: bool,
    ) -> None:
        """Fill in the evidence of paired items: Tango for proportions, else the influences."""
        variance, guard = self._paired_variance(pairs, per_class=per_class)
        items = pairs if isinstance(pairs, PairedItems) else None
        effect: Array | None = None
        if items is not None and items.grouped:
            effect, spread = self._group_effects(items, variance, per_class=per_class)
            difference.effective_groups[...] = spread.effective
            difference.more_below[...], difference.more_above[...] = -spread.low, spread.high
            guard = guard * effect**2  # one pseudo-item for each effective one
        weights = None if items is None else items.weights
        if weights is not None:  # one effective item in each direction
            guard = guard * weights.unit**2
        variances[...] = variance.independent * (1.0 if effect is None else effect) + guard
        difference.guard[...] = guard if effect is None else 0.0
        if variance.third is not None:
            skewness = variance.third / variances**1.5
            difference.skewness[...] = np.where(self._averages(skewness.ndim), skewness, 0.0)
        for row, places in rows.items() if weights is None else ():
            changed = np.array(pairs.flips(row, per_class=per_class))
            if per_class:
                changed = changed[..., self.places]
            trials = self._trials(row, per_class=per_class)
            changed = changed[:, None]
            if effect is not None:
                changed, trials = changed / effect[places], trials / effect[places]
            difference.gains[places], difference.losses[places] = changed
            difference.trials[places] = trials
        self._pair_scores(difference, variances, per_class=per_class)

    def _group_effects(
        self, items: PairedItems, variance: PairedVariance, *, per_class: bool
    ) -> tuple[Array, GroupSpread]:
        """Return by how much groups inflate each variance, NaN for one group, and their spread."""
        if not per_class:
            rests = np.zeros((len(variance.independent), 1), dtype=bool)
            effects, spread = items.group_effects(variance.at(np.s_[:, None]), self.places, rests)
            return effects[:, 0], spread.at(np.s_[:, 0])
        entries = self.selection.per_class
        on_class = [e.reads == "ratio" and CountRow(e.rows[1]) in RESTS_ON for e in entries]
        rests = np.array(on_class, dtype=bool)[:, None]
        return items.group_effects(variance, self.places, rests)

    def _paired_variance(
        self, pairs: PairedPredictions, *, per_class: bool
    ) -> tuple[PairedVariance, Array]:
        """Compute the variances of the differences, and their guard."""
        old, new = self.gradients
        if not per_class:
            guard = np.maximum(old.overall_guard, new.overall_guard)
            variance = pairs.overall_variance(old.overall, new.overall)
            return variance, guard * self._guard_shares(variance.contributing, guard.ndim)
        reported = self.selection.reported
        before, after = (ClassGradient(s.of_classes.margins[:, :reported]) for s in (old, new))
        classified = classified_entries(self.selection)[:reported]
        variances = pairs.class_variance(before, after, classified)
        guard = np.maximum(old.class_guard, new.class_guard)[:reported]
        return variances.at(np.s_[..., self.places]), guard[..., self.places]

    def _guard_shares(self, contributing: Array | None, dimensions: int) -> Array:
        """Return the share of the guard that each overall difference has, shape (overall, ...).

        Averages over classes have all of it up to one contributing change, a quarter from four on:
        their largest effect is that of the smallest class, most changes have a smaller one. What
        few large losses add to the error is in their skewness.
        """
        if contributing is None:
            return np.ones((1,) * dimensions)
        with np.errstate(divide="ignore"):
            shares = np.clip(1 / contributing, LEAST_GUARD, 1.0)
        return np.where(self._averages(dimensions), shares, 1.0)

    def _averages(self, dimensions: int) -> Array:
        """Tell which overall indices are averages over classes, shape (overall, ...)."""
        return self.candidate.averaging.reshape(-1, *(1,) * (dimensions - 1))

    def _pair_scores(self, difference: Difference, variances: Array, *, per_class: bool) -> None:
        """Fill in the evidence of indices that read scores."""
        new, old = self.candidate.values, self.baseline.values
        if new.scores is None or old.scores is None:
            return
        for place, entry in enumerate(
            self.selection.per_class if per_class else self.selection.overall
        ):
            if entry.scored and Needs.TOP_K not in needs_of(entry):
                evidence = paired_evidence(new, old, entry)
                at = self.places if per_class else np.s_[...]
                variances[place], difference.guard[place] = evidence.variance[at], 0.0
                difference.more_below[place], difference.more_above[place] = (
                    evidence.more_below[at],
                    evidence.more_above[at],
                )
                difference.effective_groups[place] = evidence.effective_groups[at]
        if self.highest is None:
            return
        highest = self.highest.per_class if per_class else self.highest.overall
        places = highest_of(self.selection)[1][not per_class][: len(highest.value)]
        difference.numbers[COUNTED, places] = highest.numbers[COUNTED]
        variances[places] = highest.influence_error**2

    @cached_property
    def highest(self) -> "AlignedValues | None":
        """The paired tables of the k highest scores, if an index is one of these."""
        candidate, other = (of_highest(side.values) for side in (self.candidate, self.baseline))
        if candidate is None or other is None:
            return None
        (new, ours), (old, theirs) = candidate, other
        return replace(
            self,
            candidate=ComparedSide(Estimates(new, ours)),
            baseline=ComparedSide(Estimates(old, theirs)),
            pairs=PairedItems.of(theirs, ours, new.table.k),
            constant=None,
        )

    def _compared(self, rows: Array, *, per_class: bool) -> Array:
        """Return counts of the compared classes, or their pooled column."""
        return np.asarray(rows[..., self.places] if per_class else rows[..., -1])

    def _trials(self, row: CountRow, *, per_class: bool) -> Array:
        """Return the denominators of a proportion of the compared classes, or overall; never 0."""
        among = OF_CLASS[row] if per_class else CountRow.total
        rows = self.candidate.values.counts.rows[among]
        if among == CountRow.support:
            rows = self.candidate.values.sampled.support
        trials = self._compared(rows, per_class=per_class)
        return np.where(trials > 0, trials, np.nan)


LEAST_GUARD = 0.25
"""The share of the guard that averages have where many changes contribute."""
ROUNDED = 1e-11
"""A standard error below this share of the possible change is rounding: the margins fix it."""
OF_STRATUM = (CountRow.tp, CountRow.fn)
"""Counts of the items of one true class, whose shares no prevalence changes."""


def _other_classes(ours: Values, theirs: Values, key: str) -> Array:
    """Whether a plain mean in an index of one's own leaves out other classes on each side."""
    custom, ours, theirs = ours.custom(key), ours.behind_custom, theirs.behind_custom
    changed, place = (ours.defined != theirs.defined).any(-1), ours.selection.place
    averages = () if custom is None else custom.read.averages
    entries = [find("overall", average) for average in averages]
    plain = [e for e in entries if e is not None and e.reads in ("macro", "means")]
    rows = [changed[place[of]] for entry in plain for of in entry.of]
    return np.logical_or.reduce(rows) if rows else np.zeros(changed.shape[1:], dtype=bool)


@lru_cache(maxsize=256)
def _reaches(entries: tuple[Index, ...]) -> Array:
    """Return the largest possible difference of each index."""
    limits = [bounds(entry) for entry in entries]
    return np.array([high - low for low, high in limits])
