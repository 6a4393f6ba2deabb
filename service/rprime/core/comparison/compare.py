"""Compare a candidate with a baseline: differences with their evidence."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from rprime.core.arrays import Array
from rprime.core.comparison.aligned_values import AlignedValues
from rprime.core.comparison.alignment import (
    Alignment,
    Comparability,
    Side,
    comparability,
    estimate_together,
    rows_of,
    shares_differ,
)
from rprime.core.comparison.attribution import (
    HEADLINES,
    MOST_CLASSES,
    Attribution,
    CellChanges,
    TablePath,
    Target,
    attribute,
)
from rprime.core.comparison.compared_side import ComparedSide
from rprime.core.comparison.difference import REASONS, Difference
from rprime.core.comparison.flips import Flips, ItemChanges, Move, Shift, flips, moves, shift
from rprime.core.comparison.missing_items import (
    CommonItems,
    MatchedItems,
    items_differ,
    sets_differ,
    supports_differ,
)
from rprime.core.comparison.paired_variance import PairedItems, PairedPredictions, PairedStrata
from rprime.core.estimates import Estimates
from rprime.core.options import Options
from rprime.core.population import Population
from rprime.core.values import Values, compute
from rprime.core.warnings import Warning  # noqa: A004 (its name)

Pairing = Literal["paired", "unpaired"]
PAIRED = ("same_items", "common_items")


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparison:
    """The results of comparing a candidate with a baseline.

    Parameters
    ----------
    sides
        Candidate and baseline over the union of their classes, as they were compared.
    comparability
        same_items: paired item by item; common_items: paired on the items that both have;
        same_test_set: two tables of one test set; unknown: compared as if independent, with a
        warning; different: not compared.
    without_items
        Classes that both sides declare and at least one has no items of: not compared, and left
        out of the compared averages.
    candidate_only, baseline_only
        Classes that only one side declares: rules about them are `not_comparable`.
    attributed
        The indices whose change is attributed to cells; None: the first headline index.
    warnings
        Reasons why conclusions are weaker than they look.
    common_items
        How many items the sides share, if only these are compared; else None.
    missing
        The items of the baseline as the candidate has them; None without ids on both sides, where
        nothing is known of single items, unless these are the same and may have other slices.
    sets_differ
        One sentence about how the test sets differ, if they are not comparable; else None.
    """

    sides: tuple[Side, Side]
    comparability: Comparability
    pairing: Pairing | None
    without_items: tuple[str, ...]
    candidate_only: tuple[str, ...]
    baseline_only: tuple[str, ...]
    confidence: float
    attributed: tuple[Target, ...] | None
    warnings: tuple[Warning, ...]
    aligned: AlignedValues
    common_items: CommonItems | None = None
    sets_differ: str | None = None
    missing: MatchedItems | None = None

    @cached_property
    def attributions(self) -> tuple[Attribution, ...]:
        """The contributions of cells to the change of each index that is `attributed`."""
        return _attributions(self.aligned, self.attributed)

    @property
    def overall(self) -> Difference:
        """The overall differences, shape (overall,)."""
        return self.aligned.overall

    @property
    def per_class(self) -> Difference:
        """The differences of the classes, shape (reported, classes)."""
        return self.aligned.per_class

    @property
    def classes(self) -> tuple[str, ...]:
        """Classes that have items on both sides, in the candidate's order."""
        return self.aligned.classes

    @cached_property
    def flips(self) -> Flips | None:
        """The items that one side alone got right; None without common items."""
        pairs = self._paired_items
        return None if pairs is None else _flips(self.aligned, pairs)

    @cached_property
    def moves(self) -> tuple[Move, ...] | None:
        """The most frequent changes of a prediction, as `flips`."""
        pairs, values = self._paired_items, self.aligned
        most = values.candidate.values.options.top_confusions
        return None if pairs is None else moves(pairs.joint, values.labels, most)

    @cached_property
    def shift(self) -> Shift | None:
        """The tests of a shift of predictions; None without common items."""
        pairs = self._paired_items
        return None if pairs is None else shift(pairs.joint, grouped=pairs.grouped)

    @cached_property
    def changes(self) -> CellChanges | None:
        """The cells that changed most; None where no class is on both sides."""
        values, alone = self.aligned, (*self.candidate_only, *self.baseline_only)
        if not values.comparable or len(alone) == len(values.labels):
            return None
        most = values.candidate.values.options.top_confusions
        return values.path.largest_changes(values.labels, most)

    @property
    def _paired_items(self) -> PairedItems | None:
        pairs = self.aligned.pairs
        return pairs if isinstance(pairs, PairedItems) and not self.aligned.is_drawn else None

    @property
    def changed_items(self) -> ItemChanges | None:
        """The items whose prediction changed; None unless items with ids are compared in pairs."""
        ours, theirs = (side.items for side in self.sides)
        paired = self.comparability in PAIRED and not self.aligned.is_drawn
        if not paired or ours is None or theirs is None:
            return None
        ids, missing = ours.ids, self.missing
        if missing is not None and missing.comparable:
            whole = missing.candidate.items
            every = None if whole is None else whole.ids
            ids = None if every is None else every[missing.matched[missing.present]]
        return None if ids is None else ItemChanges.of(theirs, ours, ids)

    @property
    def lost_classes(self) -> dict[str, float]:
        """The classes of which only the baseline has items, with how many."""
        ours, theirs = self._supports
        return self._without(ours, theirs)

    @property
    def new_classes(self) -> dict[str, float]:
        """The classes of which only the candidate has items, with how many."""
        ours, theirs = self._supports
        return self._without(theirs, ours)

    @property
    def _supports(self) -> tuple[Array, Array]:
        """The items of the classes on each side, whether compared or not, shape (k,)."""
        missing = self.missing
        ours, theirs = self.sides if missing is None else (missing.candidate, missing.baseline)
        return ours.table.support, theirs.table.support

    def _without(self, lacking: Array, having: Array) -> dict[str, float]:
        places = np.flatnonzero((lacking == 0) & (having > 0)).tolist()
        return {self.sides[0].labels[i]: float(having[i]) for i in places}

    def of_overall(self, key: str) -> Difference:
        """Return the difference of one overall index, shape ()."""
        return self.aligned.of_overall(key)

    def of_classes(self, key: str, classes: tuple[str, ...] | None = None) -> Difference:
        """Return the difference of one per-class index, shape (n,), by default of all classes."""
        return self.aligned.of_classes(key, classes)


def compare(
    candidate: Side,
    baseline: Side,
    options: Options,
    *,
    attributed: tuple[Target, ...] | None = None,
    accept_removed: bool = False,
    accept_relabelled: bool = False,
) -> Comparison:
    """Compare a candidate with a baseline.

    Parameters
    ----------
    candidate, baseline
        Their classes are aligned by name.
    options
        Matrices are in the candidate's order of classes. `undefined` is not used, because a
        replaced value must not decide a comparison; for paired items, `sampling` is not either.
    attributed
        Indices to attribute to cells, each with a class or None; None for the headline indices
        among those that the options select.
    accept_removed, accept_relabelled
        Whether items that the candidate lacks are no reason not to compare, and whether relabelled
        items are compared, with their new true class on both sides.

    Raises
    ------
    KeyError
        If the catalog lacks a requested index.
    """
    aligned = Alignment(candidate, baseline)
    ours, theirs = aligned.onto_union(candidate), aligned.onto_union(baseline)
    indices = options.indices
    if indices is not None and attributed is not None:
        indices = tuple(dict.fromkeys((*indices, *(key for key, _ in attributed))))
    if options.undefined != "null" or indices != options.indices:
        options = replace(options, undefined="null", indices=indices)
    relation = comparability(ours, theirs)
    if relation == "unknown" and options.population is None and shares_differ(ours, theirs):
        relation = "different"
    missing, common, explanation = _match(ours, theirs, relation), None, None
    if missing is not None:
        common = CommonItems.of(missing)
        missing = missing.accepting(removed=accept_removed, relabelled=accept_relabelled)
        if missing.comparable:
            ours, theirs = missing.common()
            if relation == "different":
                relation, explanation = "common_items", items_differ(missing)
    values = _align_values(aligned, ours, theirs, options, relation)
    if relation == "different":
        explanation = sets_differ(ours, theirs, common)
    return Comparison(
        sides=(ours, theirs),
        comparability=relation,
        pairing="paired" if values.pairs else None if relation == "different" else "unpaired",
        without_items=tuple(aligned.labels[i] for i in aligned.common if i not in values.places),
        candidate_only=aligned.only(candidate, baseline),
        baseline_only=aligned.only(baseline, candidate),
        confidence=options.confidence,
        attributed=attributed if aligned.common.size else attributed or (),
        warnings=tuple(_warnings(relation, values, aligned, (ours, theirs), explanation)),
        aligned=values,
        common_items=common if relation == "common_items" else None,
        sets_differ=explanation if relation == "different" else None,
        missing=missing,
    )


def _match(ours: Side, theirs: Side, relation: Comparability) -> MatchedItems | None:
    """Match the items of both sides, where not all of them are the same in the same slices."""
    if relation == "different":
        return MatchedItems.of(ours, theirs)
    new, old = ({} if s.slices is None else s.slices.columns for s in (ours, theirs))
    shared = new.keys() & old.keys()
    if relation == "same_items" and any(new[n].codes is not old[n].codes for n in shared):
        return MatchedItems.of_same(ours, theirs)
    return None


def _align_values(
    aligned: Alignment, ours: Side, theirs: Side, options: Options, relation: Comparability
) -> AlignedValues:
    """Compute the values of both sides over the union of their classes, and over their own."""
    united = _extend_matrices(options, aligned)
    scored = any(s.scores is not None or s.kept_scores is not None for s in (ours, theirs))
    omits = any(side.table.unclassified is not None for side in (ours, theirs))
    pairs: PairedPredictions | None = None
    if relation in PAIRED:
        pairs = _pairs(ours, theirs, united.population)
    estimate_together((ours, theirs), united)
    here, there = (side.table.support > 0 for side in (ours, theirs))
    both = here & there

    def compared(side: Side, declared: Side, options: Options) -> ComparedSide:
        estimates = side.estimates(united, scored=scored, omits=omits)
        selection, common, overall = estimates.values.selection, None, None
        if (here != there).any():
            common = Estimates(compute(rows_of(side.table, both), united, selection))
        if declared.table.k != side.table.k and relation != "common_items":
            overall = _own(declared, estimates.values, options)
        return ComparedSide(estimates, common, overall)

    return AlignedValues(
        candidate=compared(ours, aligned.candidate, options),
        baseline=compared(theirs, aligned.baseline, _without_matrices(options, aligned)),
        labels=aligned.labels,
        places=aligned.common[both[aligned.common]],
        pairs=pairs,
        comparable=relation != "different",
        one_test_set=relation in (*PAIRED, "same_test_set"),
        constant=theirs.constant,
    )


def _own(side: Side, united: Values, options: Options) -> Array:
    """Compute a side's overall values over its own classes, in the order of the selection."""
    keys = tuple(entry.key for entry in united.selection.overall)
    values = side.estimates(replace(options, indices=keys)).values
    by_key = {e.key: values.overall[i] for i, e in enumerate(values.selection.overall)}
    return np.array([by_key.get(key, np.nan) for key in keys])


def _extend_matrices(options: Options, aligned: Alignment) -> Options:
    """Extend matrices to classes that only the baseline has, with unknown costs."""
    k, size = aligned.candidate.table.k, len(aligned.labels)
    if size == k:
        return options
    kappa = options.kappa_weights
    population = options.population
    return replace(
        options,
        cost=_extended(options.cost, k, size, np.nan),
        kappa_weights=kappa if isinstance(kappa, str) else _extended(kappa, k, size, np.nan),
        cell_weights=_extended(options.cell_weights, k, size, 1.0),
        population=None if population is None else population.onto(np.arange(k), size),
    )


def _extended(matrix: Array | None, k: int, size: int, unknown: float) -> Array | None:
    if matrix is None:
        return None
    result = np.full((size, size + matrix.shape[1] - k), unknown)
    result[:k, :k] = matrix[:, :k]
    result[:k, size:] = matrix[:, k:]
    return result


def _without_matrices(options: Options, aligned: Alignment) -> Options:
    """Drop the matrices, which are for the candidate's classes, if the baseline has others."""
    if aligned.same_classes:
        return options
    named = options.kappa_weights if isinstance(options.kappa_weights, str) else None
    custom = (index.among(aligned.baseline.labels) for index in options.custom)
    population = options.population
    if population is not None:
        united = population.onto(np.arange(aligned.candidate.table.k), len(aligned.labels))
        population = replace(united, shares=united.shares[aligned.places(aligned.baseline)])
    over = options.average_over
    if over is not None:
        chosen = np.isin(aligned.places(aligned.baseline), over)
        over = tuple(np.flatnonzero(chosen).tolist())
    return replace(
        options,
        average_over=over,
        cost=None,
        kappa_weights=named,
        cell_weights=None,
        custom=tuple(index for index in custom if index is not None),
        population=population,
    )


def _pairs(ours: Side, theirs: Side, population: Population | None) -> PairedPredictions | None:
    """Count the pairs of predictions; None if a table counts predictions without items."""
    new, old = ours.items, theirs.items
    spurious = ours.table.spurious is not None or theirs.table.spurious is not None
    if spurious:
        return None
    if new is not None and old is not None:
        pairs = PairedItems.of(old, new, ours.table.k)
    elif theirs.constant is not None:
        pairs = PairedItems(theirs.constant.joint(ours.table))
    else:
        return None
    if population is None:
        return pairs
    weights, tables = population.weights(ours.table), (theirs.table, ours.table)
    return PairedStrata.of(pairs, pairs.weighed(weights**2), weights, tables)


def _flips(values: AlignedValues, pairs: PairedItems) -> Flips:
    ours = values.candidate.values
    why = REASONS[values.untestable] if values.untestable else "grouped" if pairs.grouped else None
    if ours.sampled.weighted:
        why = "weighted"
    return flips(pairs.joint, values.labels, why)


def _attributions(
    values: AlignedValues, attributed: tuple[Target, ...] | None
) -> tuple[Attribution, ...]:
    """Attribute the requested changes; the default omits indices without a difference."""
    if not values.comparable:
        return ()
    places = values.selection.overall_place
    if attributed is None:
        few = values.candidate.values.table.k <= MOST_CLASSES
        attributed = tuple((key, None) for key in HEADLINES if few and key in places)[:1]
    there = [
        (key, label)
        for key, label in attributed
        if label is not None or not np.isnan(values.overall.value[places[key]])
    ]
    over_common = values.candidate.over_common & (values.candidate.common is not None)
    attributions: dict[Target, Attribution] = {}
    for averaged in (False, True):
        targets = tuple(
            (key, label)
            for key, label in there
            if averaged == (label is None and bool(over_common[places[key]]))
        )
        if not targets:
            continue
        path, sides = values.path, (values.baseline.values, values.candidate.values)
        if averaged:
            sides = values.baseline.averages, values.candidate.averages
            path = TablePath.between(sides[0].table, sides[1].table)
        parts = attribute(path, sides, values.labels, targets)
        attributions |= dict(zip(targets, parts, strict=True))
    return tuple(attributions[target] for target in there)


def _warnings(
    relation: Comparability,
    values: AlignedValues,
    aligned: Alignment,
    sides: tuple[Side, Side],
    explanation: str | None,
) -> Iterator[Warning]:
    supports = supports_differ(*sides) if values.pairs is None else None
    if relation == "unknown":
        yield _warning("test_set_unknown", supports)
    if relation == "different":
        yield _warning("different_test_sets", explanation)
    elif relation == "common_items":
        yield _warning("items_differ", explanation, at="/comparison/items")
    elif values.one_test_set and values.pairs is None:
        yield _warning("unpaired")
        if supports:
            yield _warning("supports_differ", supports)
    if aligned.common.size and not aligned.same_classes:
        yield _warning("classes_differ")
    if relation in PAIRED and sides[1].constant is None and _predict_the_same(*sides):
        yield _warning("same_predictions", at="/comparison/flips")


def _predict_the_same(ours: Side, theirs: Side) -> bool:
    """Whether no prediction of the same items differs, and no score that both have."""
    new, old = ours.items, theirs.items
    if new is None or old is None or not np.array_equal(new.predicted, old.predicted):
        return False
    if ours.scores is None or theirs.scores is None:
        return True
    return np.array_equal(ours.scores.values, theirs.scores.values)


def _warning(code: str, more: str | None = None, at: str = "/comparison") -> Warning:
    message = " ".join(filter(None, (TEXTS.get(code), more)))
    return Warning(code, at, message, "docs/statistics.md#comparability")


TEXTS = {
    "test_set_unknown": "The request does not show that both sides used the same test set, so they "
    "are compared as independent samples. Send a fingerprint or an identifier of the test set.",
    "unpaired": "Both sides used the same test set, but at least one side lacks per-item "
    "predictions: the standard error of a difference may be up to 2.5 times too large. Send the "
    "per-item predictions of both sides.",
    "supports_differ": "Both sides claim the same test set, but their classes do not have the "
    "same numbers of items.",
    "same_predictions": "No prediction differs from the baseline. Check that it is the model in "
    "use, and not the candidate itself.",
    "classes_differ": "The sides declare different classes: classes of only one side and indices "
    "that depend on the list of classes are not compared.",
}
