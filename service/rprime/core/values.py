"""The indices of a stack of tables as arrays, and the reasons why some do not exist."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rprime.core.arrays import Array, within
from rprime.core.catalog import OVERALL_INDICES
from rprime.core.counts import Counts
from rprime.core.custom import CELLS, COUNTS, ITEMS, CustomIndex
from rprime.core.families.agreement import Moments
from rprime.core.families.association import Association
from rprime.core.families.averages import macro_means, weighted_means, weighted_reasons
from rprime.core.index import CODE, Index, IndexScope, reason_codes
from rprime.core.options import Options
from rprime.core.scores.kept import KeptScores
from rprime.core.scores.scores import Scores, score_reasons, score_values
from rprime.core.selection import Selection, select
from rprime.core.table import ConfusionTable, Universe

REPLACEMENT = {"zero": 0.0, "one": 1.0}
P_VALUES = {entry.key: entry.p_value for entry in OVERALL_INDICES.values() if entry.p_value}
AVERAGE = {"macro": "macro", "weighted": "weighted", "micro": "pooled"}


@dataclass(frozen=True, eq=False)
class Values:
    """The indices of a stack of tables.

    Parameters
    ----------
    table
        With cell weights applied.
    selection
        In the order of the first axis of the arrays.
    per_class
        Shape (computed, ..., k); not finite where a value does not exist.
    pooled
        Shape (computed, ...): ratios of counts of the averaged classes together, else NaN.
    averaged
        `per_class` as averages, comparisons and gates use it: with a precision of 0 where
        `counted_as_zero`, and undefined values replaced if the options say so.
    counted_as_zero
        Shape (computed, ..., k): whether an index of precision counts as if precision were 0,
        because the class has items and is never predicted. None where this never holds.
    scores
        Of the items of a single table, where the request has them.
    grouped
        Whether the items are grouped, so that tests of independent items do not hold.
    sample
        The tables of the items, where `table` estimates those of a population.
    kept_scores
        The overall indices of scores of a stored evaluation, whose scores are gone.
    """

    table: ConfusionTable
    options: Options
    selection: Selection
    counts: Counts
    classified_counts: Counts
    per_class: Array
    pooled: Array
    averaged: Array
    counted_as_zero: Array | None = None
    scores: Scores | None = None
    grouped: bool = False
    sample: ConfusionTable | None = None
    kept_scores: KeptScores | None = None

    @property
    def sampled(self) -> ConfusionTable:
        """The tables of the items that were sent; `table` may be estimated from them."""
        return self.table if self.sample is None else self.sample

    @cached_property
    def defined(self) -> Array:
        """Whether a class enters averages, comparisons and gates, shape (computed, ..., k).

        It has items and a value, and is not left out; every class with items or without enters
        where undefined values are replaced.
        """
        there = np.isfinite(self.averaged)
        if self.kept_scores is not None:  # whose averages had a value of every class with items
            there[list(self.selection.scored)] = self.table.support > 0
        if self.options.undefined == "null":
            there &= self.has_items
        if self.options.left_out:
            there[..., self.options.left_out] = False
        if self.averaged_classes is not None:
            there &= self.averaged_classes
        return there

    @cached_property
    def averaged_classes(self) -> Array | None:
        """Whether averages are over each class, shape (k,); None where they are over all."""
        chosen = self.options.average_over
        return None if chosen is None else np.isin(np.arange(self.table.k), chosen)

    @property
    def undefined_in_averages(self) -> Array:
        """Whether a class that averages are over does not enter them, (computed, ..., k)."""
        missing = ~self.defined
        return missing if self.averaged_classes is None else missing & self.averaged_classes

    @property
    def averaged_items(self) -> tuple[Array, Array]:
        """The items of the averaged classes, 0 of others, and of all of these: (..., k), (...)."""
        support = self.table.support
        if self.averaged_classes is None:
            return support, self.table.total
        support = support * self.averaged_classes
        return support, np.add.reduce(support, axis=-1)

    @cached_property
    def pooled_rows(self) -> Array:
        """The `CountRow`s of the averaged classes together, shape (rows, ...)."""
        chosen = self.options.average_over
        if chosen is None:
            return self.counts.rows[..., -1]
        return Counts.pooled(self.table, self.options.beta, chosen).rows[..., 0]

    @property
    def has_items(self) -> Array:
        """Whether a class has items in the universe of the index, shape (computed or 1, ..., k)."""
        present = self.table.support[None] > 0
        if self.classified_counts is self.counts:
            return present
        answered = self.table.answered > 0
        outside = [entry.universe == "classified" for entry in self.selection.computed]
        return np.where(np.reshape(outside, (-1, *(1,) * answered.ndim)), answered, present)

    def part(self, position: int) -> "Values":
        """Return the values of one table of a stack of shape (n,)."""
        counts = Counts(self.counts.rows[:, position])
        apart = self.classified_counts is not self.counts
        classified = Counts(self.classified_counts.rows[:, position]) if apart else counts
        counted = self.counted_as_zero
        values = replace(
            self,
            table=self.table[position],
            counts=counts,
            classified_counts=classified,
            per_class=self.per_class[:, position],
            pooled=self.pooled[:, position],
            averaged=self.averaged[:, position],
            counted_as_zero=None if counted is None else counted[:, position],
            sample=None if self.sample is None else self.sample[position],
        )
        vars(values)["overall"] = self.overall[:, position]  # it is known: compute it once
        return values

    @property
    def observed(self) -> Array:
        """`per_class`, with its value inside averages where it is `counted_as_zero`."""
        return self.averaged if self.options.undefined == "null" else self.per_class

    @property
    def shown(self) -> Array:
        """`per_class` as reports show it, shape (computed, ..., k): undefined values replaced."""
        return self.per_class if self.options.undefined == "null" else self.averaged

    @cached_property
    def complete(self) -> bool:
        """Whether every class of every table enters all averages."""
        return bool(self.defined.all())

    @cached_property
    def macro(self) -> Array:
        """Macro averages of all computed indices, shape (computed, ...)."""
        if self.complete:
            return np.add.reduce(self.averaged, axis=-1) / self.table.k
        return macro_means(self.averaged, self.defined)

    @cached_property
    def weighted(self) -> Array:
        """Weighted averages of all computed indices, shape (computed, ...)."""
        support, total = self.averaged_items
        if self.complete:
            return np.add.reduce(self.averaged * support, axis=-1) / total
        return weighted_means(self.averaged, support, total)

    @cached_property
    def moments(self) -> Moments:
        """The sums that chance-corrected indices read."""
        return Moments.of(self.table.classified)

    @cached_property
    def association(self) -> Association:
        """The quantities that the measures of association share."""
        return Association(self.table.classified)

    @cached_property
    def overall(self) -> Array:
        """Overall indices of the selection, shape (overall, ...)."""
        with np.errstate(all="ignore"):
            result = self.averages()
            for place in self.selection.formulas:
                result[place] = self.formula(self.selection.overall[place])
        if self.kept_scores is not None:
            for place in self.selection.overall_scored:
                result[place] = self.kept_scores.of(self.selection.overall[place].key).value
        return within(result, self.selection.overall_ranges)

    def averages(self) -> Array:
        """Overall values of the selection, shape (overall, ...), filled in for averages alone."""
        result = np.empty((len(self.selection.overall), *self.table.stack_shape))
        for kind, (positions, rows) in self.selection.averages.items():
            if positions.size:
                result[positions] = getattr(self, AVERAGE[kind])[rows]
        return result

    def formula(self, entry: Index) -> Any:  # noqa: ANN401 (an array or numpy scalar)
        """Compute an overall index that is not an average."""
        match entry.reads:
            case "ratio":
                numerator, denominator = entry.rows
                pooled = self.counts.rows[..., -1]
                return pooled[numerator] / pooled[denominator]
            case "means":
                return entry.formula(*self.means(entry))
            case "custom":
                custom = self.custom(entry.key)
                if custom is None:
                    return np.full(self.table.stack_shape, np.nan)
                value = custom.read.of([value for value, _ in self.terms(custom)], np.float64)
                return np.where(np.isfinite(value), value, np.nan)
            case "scores":
                return score_values(entry, self.scores, *taken(self.options, entry))
            case _:
                return entry.formula(self._read(entry), *taken(self.options, entry))

    def _read(self, entry: Index) -> Moments | Association | ConfusionTable:
        """What a formula reads of the table; weights add up to the number of items if it matters.

        An index that depends on the number of items is computed from that number, not from a sum of
        weights.
        """
        as_sent = entry.scale_invariant or not self.table.weighted
        if entry.reads == "moments" and as_sent:
            return self.moments
        if entry.reads == "association" and as_sent:
            return self.association
        table = (self.table if as_sent else self.table.numbered).universe(entry.universe)
        if entry.reads == "table":
            return table
        return Moments.of(table) if entry.reads == "moments" else Association(table)

    def means(self, entry: Index) -> list[Array]:
        """Macro averages that an overall index is a function of."""
        rows = [self.selection.place[key] for key in entry.of]
        if entry.through is None:
            means = [self.macro[row] for row in rows]
            if self.averaged_classes is not None and "prevalence" in entry.of:
                # Among the items of c classes the mean prevalence is 1 / c.
                place = entry.of.index("prevalence")
                means[place] = 1 / np.add.reduce(self.defined[rows[place]], axis=-1)
            return means
        return [macro_means(entry.through(self.averaged[r]), self.defined[r]) for r in rows]

    def counts_of(self, universe: Universe) -> Counts:
        """The counts, pooled column included, that an index of this universe reads."""
        return self.classified_counts if universe == "classified" else self.counts

    def lookup(self, scope: IndexScope, key: str) -> Array:
        """Return the values (..., k) or (...) of one index, computed now if not selected."""
        selection = self.selection
        places = selection.place if scope == "class" else selection.overall_place
        if key not in places:
            entry = OVERALL_INDICES.get(key) if scope == "overall" else None
            if entry and entry.reads not in AVERAGE and selection.place.keys() >= {*entry.of}:
                with np.errstate(all="ignore"):
                    value = np.asarray(self.formula(entry))
                return within(value[None], np.array([entry.range]).T)[0]
            options = replace(self.options, indices=(key,), cell_weights=None, population=None)
            values = compute(
                self.table, options, select(options), self.scores, kept_scores=self.kept_scores
            )
            return values.lookup(scope, key)
        return (self.per_class if scope == "class" else self.overall)[places[key]]

    @cached_property
    def behind_custom(self) -> "Values":
        """The indices that those of one's own are expressions of."""
        expressions = [index.read for index in self.options.custom]
        keys = tuple(dict.fromkeys(key for read in expressions for key in read.keys))
        options = replace(self.options, indices=keys, families=(), custom=())
        options = replace(options, cell_weights=None, population=None)
        return compute(self.table, options, select(options))

    def terms(self, custom: CustomIndex) -> Iterator[tuple[Array, Array | int]]:
        """Yield the value of each term of an index of one's own, and why it is undefined."""
        values, places, table = self.behind_custom, dict(custom.places), self.table
        for key, classes in custom.read.terms:
            at = [places[label] for label in classes if label is not None]
            if key == ITEMS:
                yield table.total, 0
            elif key == CELLS:
                yield table.cell(at[0], at[1] if len(at) > 1 else table.k), 0
            elif key in COUNTS:
                yield self.counts.rows[COUNTS[key]][..., at[0]], 0
            elif at:
                row, codes = values.selection.place[key], values.class_reasons
                code = 0 if codes is None else codes[row][..., at[0]]
                yield values.shown[row][..., at[0]], code
            else:
                row, codes = values.selection.overall_place[key], values.overall_reasons
                yield values.overall[row], 0 if codes is None else codes[row]

    def custom(self, key: str) -> CustomIndex | None:
        """Return the index of one's own with this key; None if the options have none."""
        return next((index for index in self.options.custom if index.key == key), None)

    @property
    def has_independent_items(self) -> bool:
        """Whether the items were drawn each by itself, with equal chances."""
        return not self.grouped and self.sample is None

    @cached_property
    def p_values(self) -> dict[str, Array]:
        """Compute the exact p-values of overall indices that have one, shape (...) each.

        NaN where the counts are no numbers of independent items.
        """
        if not self.has_independent_items:
            return {key: np.full(self.table.stack_shape, np.nan) for key in P_VALUES}
        return {key: p_value(self.table) for key, p_value in P_VALUES.items()}

    @cached_property
    def class_reasons(self) -> Array | None:
        """Reason codes of `per_class`; None if every value exists."""
        if np.isfinite(self.per_class).all():
            return None
        codes = np.zeros(self.per_class.shape, dtype=np.uint8)
        for place, entry in enumerate(self.selection.computed):
            values, counts = self.per_class[place], self.counts_of(entry.universe).classes
            if entry.scored:
                codes[place] = score_reasons(entry, values, self.scores)
                if self.kept_scores is not None:
                    codes[place, self.table.support == 0] = CODE["no_true_samples"]
            else:
                codes[place] = reason_codes(entry, values, counts)
        return codes

    @cached_property
    def overall_reasons(self) -> Array | None:
        """Reason codes of `overall`; None if every value exists."""
        missing = ~np.isfinite(self.overall)
        if not np.count_nonzero(missing):
            return None
        codes = np.zeros(self.overall.shape, dtype=np.uint8)
        for place in np.nonzero(missing.reshape(len(missing), -1).any(-1))[0]:
            codes[place] = self._overall_reasons(self.selection.overall[place], self.overall[place])
        return codes

    def _overall_reasons(self, entry: Index, values: Array) -> Array:
        if entry.reads == "custom":
            custom = self.custom(entry.key)
            why = "no_expression" if custom is None else "zero_denominator"
            codes = np.full(values.shape, CODE[why], dtype=np.uint8)
            for value, code in () if custom is None else self.terms(custom):
                codes = np.where(np.isfinite(value), codes, code).astype(np.uint8)
            return np.where(np.isfinite(values), 0, codes).astype(np.uint8)
        if entry.scored and self.kept_scores is not None:
            kept = self.kept_scores.of(entry.key)
            return np.where(np.isfinite(values), 0, kept.code).astype(np.uint8)
        if entry.reads == "scores" or (entry.scored and self.scores is None):
            return score_reasons(entry, values, self.scores)
        if entry.reads == "weighted" and self.class_reasons is not None:
            row = self.selection.averaged(entry)
            codes = np.where(self.defined[row], 0, self.class_reasons[row])
            taken = weighted_reasons(codes, self.averaged_items[0])
            return np.where(np.isfinite(values), 0, taken)
        if entry.reads == "micro":
            pooled = Counts(self.pooled_rows[..., None])
            return reason_codes(entry, values[..., None], pooled)[..., 0]
        table = self.table.universe(entry.universe)
        return reason_codes(entry, values, replace(table, items=self.table.items))


def taken(options: Options, entry: Index) -> tuple[Any, ...]:
    """Return the request option that a formula takes, if any."""
    name = entry.needs or entry.takes
    return () if name is None else (getattr(options, name),)


def compute(
    table: ConfusionTable,
    options: Options,
    selection: Selection,
    scores: Scores | None = None,
    *,
    kept_scores: KeptScores | None = None,
) -> Values:
    """Compute the selected indices of a stack of tables, or of the items of a single table.

    The `population` and the `cell_weights` of the options are applied here.
    """
    sample = None
    if options.population is not None:
        sample, table = table, options.population.table(table)
        kept_scores = None  # these are about the items
    if options.cell_weights is not None:
        table = table.reweighted(options.cell_weights)
    with np.errstate(all="ignore"):
        counts = Counts.of(table, options.beta)
        classified = Counts.of(table.classified, options.beta) if table.has_omissions else counts
        whole = class_values(selection, counts)
        per_class, columns = whole[..., :-1], {"all": counts, "classified": classified}
        for place in selection.functions:
            entry = selection.computed[place]
            if entry.reads == "table":
                per_class[place] = entry.formula(table.universe(entry.universe))
            else:
                per_class[place] = entry.formula(columns[entry.universe].classes)
    for place in selection.scored:
        entry = selection.computed[place]
        per_class[place] = score_values(entry, scores, *taken(options, entry))
    within(per_class, selection.class_ranges)
    averaged, counted = _as_averaged(options, selection, counts, per_class, scores)
    if options.undefined != "null" and scores is None:
        averaged[list(selection.scored)] = np.nan  # values that need missing scores stay missing
    pooled = pooled_values(selection, whole, table, options)
    members = (per_class, pooled, averaged, counted, scores)
    shared = (table, options, selection, counts, classified, *members)
    return Values(*shared, sample=sample, kept_scores=kept_scores)


def _as_averaged(
    options: Options, selection: Selection, counts: Counts, per_class: Array, scores: Scores | None
) -> tuple[Array, Array | None]:
    """Return `averaged` and `counted_as_zero` of `Values`."""
    if options.undefined != "null":
        return np.where(np.isfinite(per_class), per_class, REPLACEMENT[options.undefined]), None
    classes = counts.classes
    never = (classes.predicted == 0) & (classes.support > 0)
    if not (np.count_nonzero(never) or (selection.scored and scores)):
        return per_class, None
    averaged, counted = per_class.copy(), np.zeros(per_class.shape, dtype=bool)
    for place, entry in enumerate(selection.computed):
        if entry.never_predicted is not None and (scores or not entry.scored):
            # The k highest scores predict other classes than the highest one.
            unseen = classes.support > 0 if entry.scored else never
            counted[place] = unseen & ~np.isfinite(per_class[place])
            with np.errstate(all="ignore"):
                value = entry.never_predicted(classes)
            np.copyto(averaged[place], value, where=counted[place])
    return averaged, counted


def pooled_values(
    selection: Selection, whole: Array, table: ConfusionTable, options: Options
) -> Array:
    """Return the ratios of the averaged classes together, shape (computed, ...).

    `whole` is that of `class_values`, whose last column has those of all classes.
    """
    if options.average_over is None:
        return whole[..., -1]
    with np.errstate(all="ignore"):
        counts = Counts.pooled(table, options.beta, options.average_over)
        return class_values(selection, counts)[..., 0]


def class_values(selection: Selection, counts: Counts) -> Array:
    """Compute the per-class ratios of counts, shape (computed, ..., k + 1); NaN for no ratios.

    The last column is pooled.
    """
    rows = counts.rows
    result = np.full((len(selection.computed), *rows.shape[1:]), np.nan)
    result[selection.ratios] = rows[selection.numerators] / rows[selection.denominators]
    return result
