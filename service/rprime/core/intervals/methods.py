"""The interval methods: one table, and what it decides about the entries of a selection.

A method is one row of `METHODS` and one function, which fills in the limits of its entries.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Flag, auto
from functools import lru_cache

import numpy as np

from rprime.core.arrays import Array, integers, positions
from rprime.core.catalog import CLASS_INDICES, INDICES, find
from rprime.core.counts import CountRow, RatioRows
from rprime.core.families.one_vs_rest import PRECISION, PREVALENCE, RECALL
from rprime.core.index import Index, Parts
from rprime.core.intervals.limits import of_fit, of_mean, of_ranking
from rprime.core.intervals.plan import (
    Averages,
    Bounds,
    IntervalPlan,
    LimitsFunction,
    PartLayout,
    PlannedUniverse,
    ScopeMethods,
    Setting,
    UniversePlan,
    bounds,
    of_index,
)
from rprime.core.intervals.prepared import ScopeLimits, lift_influences
from rprime.core.intervals.proportions import mover_r, quantile_of
from rprime.core.intervals.universe import at
from rprime.core.intervals.variance import CANCELLED
from rprime.core.items import Items, table_of
from rprime.core.selection import Selection, arranged
from rprime.core.table import Universe
from rprime.core.values import Values, compute

MISSES: RatioRows = (CountRow.fn, CountRow.support)
CORRECT: RatioRows = (CountRow.tp, CountRow.total)
WRONG: RatioRows = (CountRow.fn, CountRow.total)
NOT_WRONG: RatioRows = (CountRow.not_wrong, CountRow.total)
PREDICTIONS: RatioRows = (CountRow.predicted, CountRow.total)

# An index rests on the counts without which it would not exist.
RESTS_ON = {
    "no_true_samples": (CountRow.support,),
    "no_predictions": (CountRow.predicted,),
    "single_class": (CountRow.negatives, CountRow.predicted_negatives),
}
AS_ITEMS = {CountRow.support_and_predicted: CountRow.union, CountRow.weighted_union: CountRow.union}

PEIRCE = "peirce_skill_score"
BY_LOGARITHM = "geometric_mean_recall"
ADJUSTED = "adjusted_balanced_accuracy"
MACRO_R_PRIME = "macro_r_prime"
YULE = "yule_q"
MOST_DENSE = 1000
"""Most classes with intervals of indices that read single cells: smoothing fills every cell."""


def of_ratios(scope: ScopeLimits, places: Array) -> None:
    """Wilson or exact limits of plain proportions."""
    counts, quantile = scope.ratios(places), at(scope.quantile, places)
    exact = scope.prepared.values.options.exact
    scope.set_shares(places, (counts.exact_limits if exact else counts.limits)(quantile))


def of_smoothed_tables(scope: ScopeLimits, _: Array) -> None:
    """Limits by effective items, by parts, of averages and of odds ratios."""
    for universe in scope.prepared.universes:
        fill = universe.class_limits if scope.of_classes else universe.overall_limits
        fill(scope.quantile, scope.limits)


def of_pairs(scope: ScopeLimits, places: Array) -> None:
    """MOVER-R limits of the ratios of two proportions."""
    counts = scope.prepared.pairs
    ratios = counts.successes / counts.trials
    pairs = (-1, 2, *ratios.shape[1:])
    shares = counts.limits(at(scope.quantile, np.repeat(places, 2)))
    scope.limits[:, places] = mover_r(
        ratios.reshape(pairs).swapaxes(0, 1), shares.reshape(2, *pairs).swapaxes(1, 2)
    )


def of_lift(scope: ScopeLimits, places: Array) -> None:
    """Limits of the lift by the delta method on its logarithm."""
    values, effects = scope.prepared.values, scope.prepared.effects
    counts = values.classified_counts.classes
    kinds = lift_influences(counts)
    variance = sum(items * influence * influence for items, influence in kinds)
    variance = np.where(variance > CANCELLED / counts.tp, variance, np.nan)
    for place in places.tolist():
        inflated = variance if effects is None else variance * effects.per_class[place]
        half = np.sqrt(inflated) * at(scope.quantile, place)
        value = values.per_class[place]
        scope.limits[:, place] = np.array((value / np.exp(half), value * np.exp(half)))


def of_highest_scores(scope: ScopeLimits, places: Array) -> None:
    """Limits of the same index of the table of the k highest scores."""
    if scope.prepared.highest is None:
        return
    highest = scope.prepared.highest.intervals
    compute_limits = highest.class_limits if scope.of_classes else highest.overall_limits
    scope.limits[:, places] = compute_limits(at(scope.normal, places))


def of_resampling(scope: ScopeLimits, places: Array) -> None:
    """Bootstrap limits, drawn at the confidence of the report.

    Their distances from the value grow with the quantile, as those of a normal estimate do.
    """
    values = scope.prepared.values
    observed = (values.per_class if scope.of_classes else values.overall)[places]
    drawn = scope.prepared.bootstrap[not scope.of_classes][:, places]
    share = at(scope.normal, places) / quantile_of(values.options.confidence)
    low, high = scope.methods.bounds[:, places].reshape(2, -1, *(1,) * (observed.ndim - 1))
    moved = np.clip(observed + (drawn - observed) * share, low, high)
    scope.limits[:, places] = np.where(share == 1, drawn, moved)


def of_scores(limits: Callable[[Values, Index, Array, float | Array], Array]) -> LimitsFunction:
    """Make a function of the limits of single entries, from scores, one of several entries."""

    def fill(scope: ScopeLimits, places: Array) -> None:
        values = scope.prepared.values
        if values.scores is None:
            return
        whole = values.selection.overall, values.overall
        entries, observed = (
            (values.selection.computed, values.per_class) if scope.of_classes else whole
        )
        for place in places.tolist():
            quantile = at(scope.normal, place)
            scope.limits[:, place] = limits(
                values, entries[place], np.asarray(observed[place]), quantile
            )

    return fill


class Needs(Flag):
    """What a method needs to be prepared, or presumes."""

    RATIO = auto()
    """The numerator and the denominator of the index."""
    PARTS = auto()
    """The intervals of its parts, or those of its own ratio, put together by MOVER."""
    EFFECTIVE_ITEMS = auto()
    """The gradient at the smoothed tables."""
    CLASSES = auto()
    """The intervals of the classes that it averages."""
    ODDS = auto()
    """The odds of the row-wise smoothed table."""
    PAIR = auto()
    """Two proportions, its parts."""
    COUNTS = auto()
    """Counts of the classified items alone."""
    INDEPENDENT_ITEMS = auto()
    """Items that are drawn independently: where the class sizes are fixed, `score` replaces it."""
    SCORES = auto()
    """The scores of the items."""
    RANKINGS = auto()
    """The scores, ranked with the influences of the items."""
    TOP_K = auto()
    """The table of the k highest scores."""
    RESAMPLING = auto()
    """Tables or items drawn anew, on request."""

    @property
    def smoothed_tables(self) -> bool:
        """Whether it starts from smoothed tables."""
        return bool(self & (Needs.PARTS | Needs.EFFECTIVE_ITEMS | Needs.CLASSES | Needs.ODDS))


@dataclass(frozen=True, eq=False)
class IntervalMethod:
    """A kind of interval, which an index declares by its name.

    Parameters
    ----------
    limits
        Fills in the limits of its entries.
    reported
        The name in a report; a second one where `exact` limits are asked for, if they differ.
    logarithmic
        Whether limits lie on a logarithmic scale: such a ratio has no largest value.
    words
        Description for people.
    """

    name: str
    limits: LimitsFunction
    needs: Needs
    reported: tuple[str, ...]
    logarithmic: bool
    words: str

    def __post_init__(self) -> None:
        """Refuse a row that decides nothing."""
        if not all((callable(self.limits), self.needs, self.reported, self.words)):
            message = f"The interval method {self.name!r} lacks a function, needs, a name or words"
            raise TypeError(message)

    def reported_as(self, *, exact: bool) -> str:
        """Return the name in a report."""
        return self.reported[-1 if exact else 0]


LINEAR, LOGARITHMIC = False, True

PROPORTION = IntervalMethod(
    "proportion",
    of_ratios,
    Needs.RATIO | Needs.INDEPENDENT_ITEMS,
    ("wilson", "clopper_pearson"),
    LINEAR,
    "Wilson, or Clopper-Pearson where `exact` is asked for",
)
MAPPED = IntervalMethod(
    "mapped",
    of_smoothed_tables,
    Needs.PARTS | Needs.INDEPENDENT_ITEMS,
    ("wilson_mapped",),
    LINEAR,
    "Wilson for a / (a + FP + FN), mapped to the index",
)
SCORE = IntervalMethod(
    "score",
    of_smoothed_tables,
    Needs.EFFECTIVE_ITEMS,
    ("wilson_effective",),
    LINEAR,
    "Wilson on the effective number of items",
)
PARTS = IntervalMethod(
    "parts",
    of_smoothed_tables,
    Needs.PARTS | Needs.EFFECTIVE_ITEMS,
    ("wilson_mover",),
    LINEAR,
    "on each side the wider of Wilson on the effective number of items and of MOVER on the "
    "Wilson intervals of its parts",
)
AVERAGE = IntervalMethod(
    "average",
    of_smoothed_tables,
    Needs.CLASSES | Needs.EFFECTIVE_ITEMS,
    ("wilson_stratified",),
    LINEAR,
    "on each side the wider of Wilson on the effective number of items and of the average "
    "of the intervals of the classes, or of strata, at a reduced quantile",
)
BOOTSTRAP = IntervalMethod(
    "bootstrap",
    of_resampling,
    Needs.RESAMPLING,
    ("bootstrap",),
    LINEAR,
    'bootstrap, if `intervals` is "all"',
)
METHODS = (
    PROPORTION,
    MAPPED,
    SCORE,
    PARTS,
    AVERAGE,
    IntervalMethod(
        "likelihood_ratio",
        of_pairs,
        Needs.PAIR,
        ("mover_r",),
        LOGARITHMIC,
        "MOVER-R on the Wilson intervals of its two proportions",
    ),
    IntervalMethod(
        "odds_ratio",
        of_smoothed_tables,
        Needs.ODDS,
        ("delta_log",),
        LOGARITHMIC,
        "delta method on the logarithm, with half an item more in the cells",
    ),
    IntervalMethod(
        "odds",
        of_smoothed_tables,
        Needs.EFFECTIVE_ITEMS,
        ("delta_log",),
        LINEAR,
        "that of the diagnostic odds ratio, mapped to Yule's Q",
    ),
    IntervalMethod(
        "log_ratio",
        of_lift,
        Needs.COUNTS,
        ("delta_log",),
        LOGARITHMIC,
        "delta method on the logarithm",
    ),
    IntervalMethod(
        "top_k",
        of_highest_scores,
        Needs.TOP_K,
        ("wilson", "clopper_pearson"),
        LINEAR,
        "that of recall, precision or accuracy if items whose true class is among their k highest "
        "scores are predicted as it",
    ),
    BOOTSTRAP,
    IntervalMethod(
        "area",
        of_scores(of_ranking),
        Needs.RANKINGS,
        ("newcombe",),
        LINEAR,
        "score interval with the variance of Hanley and McNeil (Newcombe), wider where that of "
        "DeLong is larger",
    ),
    IntervalMethod(
        "mean_precision",
        of_scores(of_ranking),
        Needs.RANKINGS,
        ("wilson_effective",),
        LINEAR,
        "Wilson, on the effective number of items by the influences of the items",
    ),
    IntervalMethod(
        "items",
        of_scores(of_mean),
        Needs.SCORES,
        ("t_half_error",),
        LINEAR,
        "t interval of a mean over the items and half an error at the highest confidence",
    ),
    IntervalMethod(
        "recalibration",
        of_scores(of_fit),
        Needs.SCORES,
        ("t_sandwich",),
        LINEAR,
        "t interval with the sandwich variance of a logistic regression, each residual as if its "
        "item had taken no part in the fit",
    ),
)

INTERVALS = {method.name: method for method in METHODS}
"""The interval methods, by the name that an index declares."""


def require_methods(entries: Sequence[Index]) -> None:
    """Check that the table has a row for every method that an index names."""
    for entry in entries:
        if entry.interval is not None and entry.interval not in INTERVALS:
            message = f"METHODS has no row for {entry.interval!r}, the interval of {entry.key!r}"
            raise TypeError(message)


require_methods(INDICES)


def method_of(entry: Index) -> IntervalMethod | None:
    """Return the method that an index declares, None without one."""
    return None if entry.interval is None else INTERVALS[entry.interval]


def needs_of(entry: Index) -> Needs:
    """Return what the method of an index needs."""
    method = method_of(entry)
    return Needs(0) if method is None else method.needs


@lru_cache(maxsize=256)
def ranks(selection: Selection) -> bool:
    """Whether intervals of a selection need rankings."""
    return any(Needs.RANKINGS in needs_of(e) for e in (*selection.computed, *selection.overall))


def method_in(setting: Setting, entry: Index) -> IntervalMethod | None:
    """Return the method of an entry in a setting, None without one."""
    f1 = setting.f1 and entry.scope == "class" and entry.key == "f_beta"
    method = MAPPED if f1 else method_of(entry)
    if method is None or entry.scored or not setting.fixed_rows:
        return method
    recall = entry.scope == "class" and entry.rows in {RECALL, MISSES}
    if recall or Needs.INDEPENDENT_ITEMS not in method.needs:
        return method
    # The design fixes prevalences. The other shares do not count independent items.
    return None if entry.rows == PREVALENCE else SCORE


@lru_cache(maxsize=256)
def interval_plan(selection: Selection, setting: Setting, bound: Bounds) -> IntervalPlan:
    """Plan the intervals of the entries of a selection."""
    methods = [method_in(setting, entry) for entry in selection.computed]
    pooled = _pooled_ratios(selection, setting)
    pairs = [i for i, m in enumerate(methods) if m is not None and Needs.PAIR in m.needs]
    parts = [selection.computed[i].parts for i in pairs]
    weakest = _averages_of_classes(selection)
    universes = _universes(selection, setting, bound)
    of_classes = [i for p, _ in universes for i in p.class_places.tolist() if i >= 0]
    of_all = [i for p, _ in universes for i in p.overall_places.tolist()]
    return IntervalPlan(
        per_class=_scope(selection.computed, setting, _ratios(selection, methods), of_classes),
        overall=_scope(selection.overall, setting, pooled, of_all),
        pairs=integers(pairs),
        lifts=positions(m is not None and Needs.COUNTS in m.needs for m in methods),
        pair_ratios=tuple(ratio for part in parts if part is not None for ratio in part.ratios),
        affine=tuple(i for i in pooled if selection.overall[i].score_range is not None),
        predictions=positions(entry.rows == PREDICTIONS for entry in selection.computed),
        mixed=positions(entry.rows == NOT_WRONG for entry in selection.overall),
        weakest=integers(average for average, _ in weakest),
        weakest_of=integers(averaged for _, averaged in weakest),
        weighted=positions(
            entry.reads == "weighted" and i not in pooled and not entry.scored
            for i, entry in enumerate(selection.overall)
        ),
        open_below=positions(
            bool(np.isneginf(entry.range[0]) and np.isfinite(entry.range[1])) and not entry.scored
            for entry in selection.overall
        ),
        universes=universes,
    )


def _ratios(selection: Selection, methods: Sequence[IntervalMethod | None]) -> dict[int, RatioRows]:
    """Return the numerators and denominators of the per-class plain proportions."""
    return {
        i: entry.rows
        for i, (entry, method) in enumerate(zip(selection.computed, methods, strict=True))
        if method is not None and Needs.RATIO in method.needs and not entry.scored
    }


def _pooled_ratios(selection: Selection, setting: Setting) -> dict[int, RatioRows]:
    """Return the numerators and denominators of the overall plain proportions."""
    return {
        i: ratio
        for i, entry in enumerate(selection.overall)
        if (ratio := pooled_ratio(entry, setting)) is not None
    }


def _averages_of_classes(selection: Selection) -> list[tuple[int, int]]:
    """Return the averages in which every class counts the same, each with what it averages."""
    return [
        (i, selection.place[key])
        for i, entry in enumerate(selection.overall)
        if entry.reads in {"macro", "means"}
        for key in entry.of
    ]


def _universes(
    selection: Selection, setting: Setting, bound: Bounds
) -> tuple[PlannedUniverse, ...]:
    """Plan what needs smoothed tables, in each universe that has such entries."""
    planned = [
        (_universe_plan(selection, setting, u, bound), u or "all") for u in setting.universes
    ]
    return tuple((plan, universe) for plan, universe in planned if plan is not None)


def pooled_ratio(entry: Index, setting: Setting) -> RatioRows | None:
    """Return numerator and denominator of an overall entry that is a plain proportion.

    Over all classes micro and weighted recall equal accuracy. So do micro precision and F1 where
    every item is classified and none is spurious.
    """
    if setting.fixed_rows or entry.interval is None or entry.scored:
        return None
    if Needs.RATIO in needs_of(entry):
        return entry.rows if entry.parts is None else entry.parts.ratios[0]
    if entry.reads not in {"micro", "weighted"} or not setting.averages_all:
        return None
    equal = {RECALL: CORRECT, MISSES: WRONG}
    if entry.reads == "micro" and not setting.omits:
        equal |= {
            PRECISION: CORRECT,
            (CountRow.fp, CountRow.predicted): WRONG,
            (CountRow.twice_tp, CountRow.support_and_predicted): CORRECT,
            (CountRow.weighted_tp, CountRow.weighted_union): CORRECT,
        }
    return equal.get(CLASS_INDICES[entry.of[0]].rows)


def _scope(
    entries: Sequence[Index],
    setting: Setting,
    ratios: dict[int, RatioRows],
    smoothed: Sequence[int],
) -> ScopeMethods:
    """Sort the entries of a scope by their functions; the tables are `smoothed` for some."""
    names, named, functions = [], [], {of_smoothed_tables: [*smoothed]}
    on_request: dict[LimitsFunction, list[int]] = {}
    for i, entry in enumerate(entries):
        method = _shown(entry, setting, ratio=i in ratios)
        names.append("" if method is None else method.reported_as(exact=setting.exact))
        named.append(method is not None and Needs.RESAMPLING not in method.needs)
        if entry.resampled:
            on_request.setdefault(BOOTSTRAP.limits, []).append(i)
        interval_method = method_in(setting, entry)
        if i in ratios:
            interval_method = (
                interval_method
                if interval_method is not None and Needs.RATIO in interval_method.needs
                else PROPORTION
            )
        if interval_method is not None:
            functions.setdefault(interval_method.limits, []).append(i)
    return ScopeMethods(
        proportions=integers(ratios),
        ratios=tuple(ratios.values()),
        bounds=np.array([bounds(entry) for entry in entries]).reshape(-1, 2).T,
        rests_on=np.array([(_rows_of(e) * 4)[:4] for e in entries], np.intp).reshape(-1, 4),
        names=tuple(names),
        named=positions(named),
        counted=positions(not entry.scored for entry in entries),
        resampled=positions(entry.resampled for entry in entries),
        logarithmic=positions((m := method_of(e)) is not None and m.logarithmic for e in entries),
        functions=_grouped(functions),
        on_request=_grouped(on_request),
    )


def _grouped(
    functions: dict[LimitsFunction, list[int]],
) -> tuple[tuple[LimitsFunction, Array], ...]:
    return tuple((function, integers(places)) for function, places in functions.items() if places)


def _shown(entry: Index, setting: Setting, *, ratio: bool) -> IntervalMethod | None:
    """Return the method that a report names."""
    if entry.resampled:
        return BOOTSTRAP
    shown = without_top_k(entry)
    if ratio or (shown is not entry and pooled_ratio(shown, setting) is not None):
        method = method_in(setting, shown)
        return method if method is not None and Needs.RATIO in method.needs else PROPORTION
    return method_in(setting, shown)


def _rows_of(entry: Index) -> list[CountRow]:
    if entry.reads in ("ratio", "micro"):
        rows = [AS_ITEMS.get(entry.rows[1], entry.rows[1])]
        return [*rows, CountRow.total] if entry.reads == "micro" else rows
    if entry.scored and entry.scope == "class":
        return [CountRow.support, CountRow.negatives]
    if entry.scope == "overall":
        return [CountRow.answered if entry.universe == "classified" else CountRow.total]
    return [row for why in entry.undefined for row in RESTS_ON.get(why, ())] or [CountRow.total]


def _universe_plan(
    selection: Selection, setting: Setting, universe: Universe | None, bound: Bounds
) -> UniversePlan | None:
    """Plan the intervals of the entries of a universe; None if none needs smoothed tables.

    The universe is None for both, which are the same where every item is classified and none is
    spurious.
    """

    def needed(entry: Index) -> bool:
        """Whether an entry has an interval that needs the smoothed tables of this universe."""
        method = method_in(setting, entry)
        if universe not in {None, entry.universe} or entry.scored or method is None:
            return False
        if setting.effects:
            return True
        if entry.scope == "class":
            return method.needs.smoothed_tables
        mixed = setting.spurious and entry.key == "r_prime"
        return mixed or pooled_ratio(entry, setting) is None

    overall = [
        i
        for i, entry in enumerate(selection.overall)
        if needed(entry) and (not entry.by_cell or bound.k <= MOST_DENSE)
    ]
    chosen = [selection.overall[i] for i in overall]
    averaging = [(i, *average) for i, entry in enumerate(chosen) for average in _averaged(entry)]
    places = [i for i, entry in enumerate(selection.computed) if needed(entry)]
    computed = [selection.computed[i] for i in places]
    if not computed and not chosen:
        return None
    extra = dict.fromkeys(key for _, key, _ in averaging)
    extra |= dict.fromkeys(key for entry in chosen for key in entry.of)
    present = {entry.key for entry in computed}
    for key in [key for key in extra if key not in present]:
        entry = CLASS_INDICES[key]
        here = universe in {None, entry.universe}
        places.append(selection.place.get(key, -1) if here else -1)
        computed.append(entry)
    sub = arranged(tuple(computed), 0, chosen)
    return _laid_out(sub, setting, (places, overall), averaging, bound)


def _laid_out(
    sub: Selection,
    setting: Setting,
    places: tuple[list[int], list[int]],
    averaging: list[tuple[int, str, str]],
    bound: Bounds,
) -> UniversePlan:
    """Find what the entries need; `places` are those of per-class and of overall ones."""
    methods = [method_in(setting, entry) for entry in sub.computed]
    needs = [Needs(0) if method is None else method.needs for method in methods]
    of_parts = [i for i, need in enumerate(needs) if need & (Needs.PARTS | Needs.RATIO)]
    scores = [i for i, need in enumerate(needs) if Needs.EFFECTIVE_ITEMS in need]
    parts = []
    for i in of_parts:
        mapped = methods[i] is MAPPED and sub.computed[i].parts is None
        parts.append(of_index(CLASS_INDICES["f1"] if mapped else sub.computed[i]))
    layout = PartLayout.of_parts(parts)
    reported = [n for n, i in enumerate(of_parts) if Needs.PARTS in needs[i] and places[0][i] >= 0]
    averages, averaged = _averages(sub, averaging, parts, of_parts=of_parts, scores=scores)
    odds = [i for i, need in enumerate(needs) if Needs.ODDS in need]
    return UniversePlan(
        selection=sub,
        class_places=integers(places[0]),
        overall_places=integers(places[1]),
        class_scores=integers(scores),
        class_bounds=bound.ranges([sub.computed[i] for i in scores]),
        overall_bounds=bound.ranges(sub.overall),
        parts=layout,
        parts_of=integers(of_parts),
        class_parts=layout.choice(reported),
        class_parts_of=integers(places[0][of_parts[n]] for n in reported),
        average_parts=layout.choice(averaged),
        with_prevalence=positions(PREVALENCE in part.ratios for part in parts),
        averages=averages,
        odds_ratio=odds[0] if odds else None,
        yule_q=sub.place.get(YULE),
    )


def _averaged(entry: Index) -> list[tuple[str, str]]:
    """Return the per-class indices that an average over classes may be of, and its weights."""
    averages = []
    if entry.key == PEIRCE:
        averages.append(("informedness", "peirce"))
    elif Needs.CLASSES in needs_of(entry):
        averages.append((entry.of[0], "weighted" if entry.reads == "weighted" else "macro"))
    if entry.key == MACRO_R_PRIME:
        averages.append(("recall", "macro"))
    return averages


def _averages(
    sub: Selection,
    averaging: list[tuple[int, str, str]],
    parts: list[Parts],
    *,
    of_parts: list[int],
    scores: list[int],
) -> tuple[Averages, list[int]]:
    """Arrange the averages, and add the positions of the averaged functions of parts."""
    of = [sub.place[key] for _, key, _ in averaging]
    keys = [sub.overall[i].key for i, _, _ in averaging]
    kinds = [kind for _, _, kind in averaging]
    equal = [i for i, key in enumerate(keys) if key == MACRO_R_PRIME]
    by_parts = positions(i in of_parts for i in of)
    by_scores = positions(i in scores and i not in of_parts for i in of)
    averaged = [of_parts.index(of[n]) for n in by_parts]
    sizes = np.array([len(parts[place].ratios) for place in averaged], dtype=np.intp)
    averages = Averages(
        entries=integers(i for i, _, _ in averaging),
        of=integers(of),
        by_parts=by_parts,
        by_scores=by_scores,
        scores=integers(scores.index(of[n]) for n in by_scores),
        macro=positions(kind == "macro" for kind in kinds),
        weighted=positions(kind == "weighted" for kind in kinds),
        peirce=positions(kind == "peirce" for kind in kinds),
        logarithmic=positions(key == BY_LOGARITHM for key in keys),
        adjusted=positions(key == ADJUSTED for key in keys),
        of_yule=positions(key == YULE for _, key, _ in averaging),
        rows=np.concatenate((np.repeat(by_parts, sizes), by_scores)),
        kept=positions(i not in equal[1:] for i in range(len(of))),
        equal=(equal[0], equal[1]) if len(equal) > 1 else None,
    )
    return averages, averaged


def without_top_k(entry: Index) -> Index:
    """Return the index of the table that an index of the highest scores is; others as they are."""
    if Needs.TOP_K not in needs_of(entry):
        return entry
    return find(entry.scope, entry.key.replace("top_k_", "")) or entry


@lru_cache(maxsize=64)
def highest_of(selection: Selection) -> tuple[Selection, tuple[Array, Array]]:
    """Select the indices of the table, and add which entries they are, per class and overall."""
    parts = selection.computed, selection.overall
    per_class, overall = (positions(Needs.TOP_K in needs_of(e) for e in part) for part in parts)
    computed = tuple(without_top_k(selection.computed[i]) for i in per_class)
    reported = int(np.count_nonzero(per_class < selection.reported))
    selected = arranged(computed, reported, [without_top_k(selection.overall[i]) for i in overall])
    return selected, (per_class, overall)


def of_highest(values: Values) -> tuple[Values, Items] | None:
    """Return the values and the items of the table of the k highest scores; None if none is asked.

    An item whose true class is among its k highest scores is predicted as that class there, every
    other one as the class of its highest score. So top-k recall is the recall of that table.
    """
    scores, (selection, _) = values.scores, highest_of(values.selection)
    if scores is None or not (selection.computed or selection.overall):
        return None
    predicted = np.where(scores.within_top(values.options.top_k), scores.true, scores.top)
    items = Items(scores.true, predicted, scores.groups, scores.weights)
    options = replace(values.options, cell_weights=None, population=None)
    highest = compute(table_of(items, scores.k), options, selection)
    return replace(highest, grouped=scores.groups is not None), items
