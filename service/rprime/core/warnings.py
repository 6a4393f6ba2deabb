"""The conditions under which an index misleads, checked for every report."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from rprime.core.arrays import Array
from rprime.core.catalog import INDICES, OVERALL_INDICES
from rprime.core.families.accuracy import not_beating_no_information
from rprime.core.index import CODE, IndexScope
from rprime.core.intervals.intervals import Intervals
from rprime.core.published import PUBLISHED
from rprime.core.selection import Selection
from rprime.core.table import ConfusionTable
from rprime.core.thresholds import exceeds, falls_short, reaches
from rprime.core.values import Values

MOST_NAMED = 20
"""Most classes that a warning lists; the others are counted."""
MOST_IN_SENTENCE = 5
EXPLAINED = "docs/indices.md#warnings"
"""The table of conditions, with their publications."""

ASSOCIATION = tuple(entry.key for entry in OVERALL_INDICES.values() if entry.association)
CLASSIFIED = tuple(
    dict.fromkeys(["kappa", "mcc", *(e.key for e in INDICES if e.universe == "classified")])
)
"""Keys of the indices that are computed on the classified items alone."""
PROBABILITIES = (
    "log_loss",
    "brier_score",
    "conditional_log_likelihood",
    "expected_calibration_error",
)
LOGARITHMS = ("log_loss", "conditional_log_likelihood")
WEIGHTED = tuple(key for key in OVERALL_INDICES if key.startswith("weighted_"))


@dataclass(frozen=True, slots=True)
class Warning:  # noqa: A001 (the contract's name)
    """A machine-checked condition under which an index misleads."""

    __pydantic_config__: ClassVar = PUBLISHED

    code: str
    """The condition: a stable name for programs."""
    pointer: str
    """JSON pointer into the report."""
    detail: str
    """The condition and what to do, in a sentence."""
    docs: str
    """A page of the documentation, such as `docs/indices.md#fact-3`: a path of the service and of
    the repository."""
    classes: tuple[str, ...] | None = None
    """The classes that it is about, at most the first 20; absent if it is about everything."""
    more: int | None = None
    """How many more classes it is about."""

    @property
    def document(self) -> dict[str, Any]:
        """The object of the contract, without what does not apply."""
        names = ("code", "detail", "pointer", "classes", "more", "docs")
        members = {name: getattr(self, name) for name in names}
        return {name: value for name, value in members.items() if value is not None}


@dataclass(frozen=True, eq=False)
class WarningInputs:
    """The input of the conditions: the values of a stack of tables and any intervals."""

    values: Values
    intervals: Intervals | None

    @property
    def table(self) -> ConfusionTable:
        """The tables."""
        return self.values.table

    @cached_property
    def omits(self) -> Array:
        """Whether more than 1 % of the items are unclassified, shape (...)."""
        omitted = self.table.unclassified
        if omitted is None:
            return np.zeros(self.table.total.shape, dtype=bool)
        return exceeds(np.add.reduce(omitted, axis=-1) / self.table.total, 0.01)

    @cached_property
    def largest(self) -> Array:
        """Largest m_i."""
        return np.maximum.reduce(self.table.support, axis=-1)

    @cached_property
    def smallest(self) -> Array:
        """Smallest positive m_i; infinite without items."""
        there = self.table.support > 0
        return np.minimum.reduce(np.where(there, self.table.support, np.inf), axis=-1)

    def overall(self, key: str) -> Array:
        """Values of an overall index, shape (...)."""
        return self.values.lookup("overall", key)


@dataclass(frozen=True, slots=True)
class Check:
    """The declaration of a warning.

    Parameters
    ----------
    scope
        Whether it is about the table or about one of its classes.
    holds
        The condition, shape (...) or (..., k).
    text
        The sentence; of classes, what follows their names.
    at
        The place in the report; default: the first index of `about`, else the class.
    about
        Keys of the indices that it explains. A report without any of them has no such warning.
    """

    code: str
    scope: IndexScope
    holds: Callable[[WarningInputs], Any]
    text: str
    docs: str
    at: str
    about: tuple[str, ...]

    def place(self, selection: Selection) -> str | None:
        """Return the place in a report on a selection; None if it has no such warning."""
        overall = selection.overall_place
        of_classes = {entry.key for entry in selection.per_class}
        reported = of_classes if self.scope == "class" else of_classes.union(overall)
        index_key = next((key for key in self.about if key in reported), None)
        if self.at or not self.about:
            return self.at if index_key or not self.about else None
        if self.scope == "class" or index_key is None:
            return index_key and f"/indices/{index_key}"
        return f"/overall/{index_key}" if index_key in overall else "/per_class"


CHECKS: list[Check] = []
SCORE_CHECKS: list[Check] = []
"""Warnings that are checked only if the request has scores."""


def check(
    scope: IndexScope,
    docs: str,
    *,
    at: str = "",
    about: tuple[str, ...] = (),
    among: list[Check] = CHECKS,
) -> Callable[[Callable[[WarningInputs], Any]], Check]:
    """Declare a warning; the function is its condition, its docstring is the text."""

    def declare(holds: Callable[[WarningInputs], Any]) -> Check:
        text = " ".join((holds.__doc__ or "").split())
        if scope == "class":
            text = f"{text[0].lower()}{text[1:]}"
        entry = Check(holds.__name__, scope, holds, text, docs, at, about)
        among.append(entry)
        return entry

    return declare


@check("class", "docs/indices.md#undefined-values")
def class_absent(f: WarningInputs) -> Array:
    """No items, so nothing can be said."""
    return f.values.sampled.support == 0


@check("class", "docs/populations.md")
def class_without_share(f: WarningInputs) -> Array:
    """A share of 0 in the population, so their items count nothing."""
    return (f.table.support == 0) & (f.values.sampled.support > 0)


@check("class", "docs/indices.md#fact-3")
def class_never_predicted(f: WarningInputs) -> Array:
    """Never predicted, so precision is undefined, and R' equals the prevalence, which says nothing
    about quality.
    """
    return (f.table.predicted == 0) & (f.table.support > 0)


@check("overall", "docs/indices.md#fact-4", at="/per_class")
def single_true_class(f: WarningInputs) -> Array:
    """All items have the same true class: R' of that class is 1 for every classifier, and
    chance-corrected indices say nothing.
    """
    return (f.table.support > 0).sum(-1) == 1


@check("class", "docs/indices.md#fact-3", about=("r_prime",))
def r_prime_at_chance(f: WarningInputs) -> Array:
    """The interval of the informedness contains 0, so R' is not clearly different from that of
    predictions that ignore the item.
    """
    if f.intervals is None:
        return np.zeros(f.table.support.shape, dtype=bool)
    place = f.values.selection.place["informedness"]
    low, high = f.intervals.per_class_low[place], f.intervals.per_class_high[place]
    return (low <= 0) & (high >= 0)


@check("class", "docs/indices.md#fact-3", about=("r_prime",))
def r_prime_flooded(f: WarningInputs) -> Array:
    """Predicted at least twice as often as there are items, most of it wrong, yet R' is high: look
    at the precision.
    """
    often = (f.table.support > 0) & reaches(f.table.predicted / f.table.support, 2)
    if not np.count_nonzero(often):
        return often
    precision, r_prime = (f.values.lookup("class", key) for key in ("precision", "r_prime"))
    return often & falls_short(precision, 0.5) & reaches(r_prime, 0.8)


@check("overall", "docs/indices.md#fact-3", at="/per_class", about=("r_prime",))
def r_prime_incomparable(f: WarningInputs) -> Array:
    """The most frequent class has more than ten times the items of the rarest one, so R' of
    different classes cannot be compared; informedness can.
    """
    return exceeds(f.largest / f.smallest, 10)


@check("overall", "docs/indices.md#fact-2", about=("r_prime",))
def omission_inflates_r_prime(f: WarningInputs) -> Array:
    """More than 1 % of the items are unclassified; they count as not wrong in R', so read it
    together with coverage.
    """
    return f.omits


@check("overall", "docs/indices.md#universes", about=CLASSIFIED)
def low_coverage(f: WarningInputs) -> Array:
    """More than 1 % of the items are unclassified. Kappa, MCC and the other indices of classified
    items leave them out, so read these together with coverage.
    """
    return f.omits


@check("class", EXPLAINED)
def few_items(f: WarningInputs) -> Array:
    """Fewer than 30 items, or an interval that rests on too few of them: the values are uncertain,
    read the intervals.
    """
    table = f.values.sampled
    few = (table.class_items < 30) & table.is_numbered
    if f.intervals is not None:
        reported = f.values.selection.reported
        few = few | f.intervals.per_class_few_items[:reported].any(0)
    return np.asarray(few & (table.support > 0))


@check("overall", EXPLAINED, about=("accuracy", "r_prime", *WEIGHTED))
def imbalance(f: WarningInputs) -> Array:
    """The class sizes are very unequal: accuracy, R' and weighted averages mostly describe the
    frequent classes.
    """
    return reaches(f.largest / f.table.total, 0.8) | exceeds(f.largest / f.smallest, 20)


@check("overall", EXPLAINED, about=("accuracy", "no_information_rate"))
def accuracy_not_above_no_information_rate(f: WarningInputs) -> Array:
    """Accuracy is not significantly above that of always predicting the most frequent class
    (exact one-sided p-value above 0.05).
    """
    return np.asarray(not_beating_no_information(f.table, 0.05) & f.values.has_independent_items)


@check("overall", EXPLAINED, about=("kappa",))
def kappa_paradox(f: WarningInputs) -> Array:
    """Accuracy is high and kappa low because chance agreement is large: the prevalence makes
    kappa look worse than the classifier.
    """
    accuracy, kappa = f.overall("accuracy"), f.overall("kappa")
    chance = f.values.moments.chance
    return reaches(accuracy, 0.8) & falls_short(kappa, 0.6) & exceeds(chance, 0.6)


@check("overall", EXPLAINED, about=("kappa",))
def kappa_marginal_bias(f: WarningInputs) -> Array:
    """The proportions of the predicted classes differ from those of the true ones (by more
    than a tenth of the classified items), which raises kappa at equal accuracy.
    """
    table = f.table.classified
    bias = np.add.reduce(np.abs(table.predicted - table.support), axis=-1)
    return exceeds(bias / (2 * table.total), 0.1)


@check("overall", EXPLAINED, about=("macro_f1", "f1_of_macro_averages"))
def two_macro_f1(f: WarningInputs) -> Array:
    """The mean of the classes' F1 and the F1 of macro precision and macro recall differ by more
    than 0.02; both are called macro F1 in the literature.
    """
    return exceeds(np.abs(f.overall("macro_f1") - f.overall("f1_of_macro_averages")), 0.02)


@check("overall", EXPLAINED, about=("cramers_v", *ASSOCIATION))
def association_ignores_labels(f: WarningInputs) -> Array:
    """Association is much stronger than agreement: predictions depend on the truth, but many
    items get another class's name, as when classes are swapped or merged.
    """
    return exceeds(f.overall("cramers_v") - np.maximum(f.overall("kappa"), 0), 0.3)


@check("overall", "docs/indices.md#notation", at="/counts")
def non_integer_counts(f: WarningInputs) -> Array:
    """Counts are not whole numbers, so there are no intervals."""
    return f.values.sampled.fractional & np.logical_not(f.values.sampled.weighted)


@check("overall", "docs/statistics.md#weights", at="/counts")
def weighted_without_intervals(f: WarningInputs) -> Array:
    """Counts are sums of weights, so there are no intervals: these need the items with their
    weights, without `groups` and `cell_weights`.
    """
    if f.intervals is None:
        return np.zeros(f.table.total.shape, dtype=bool)
    of_classes = f.intervals.per_class_reasons[: f.values.selection.reported]
    weighted = (of_classes == CODE["weighted"]).any((0, -1))
    return np.asarray(weighted | (f.intervals.overall_reasons == CODE["weighted"]).any(0))


@check("overall", "docs/indices.md#notation", at="/counts")
def looks_like_shares(f: WarningInputs) -> Array:
    """Counts are fractions, and the rows, the columns or all of them sum to 1 or to 100: they look
    like shares or percentages, which do not tell how many items there are. Send counts.
    """
    table = f.values.sampled
    if table.weighted or not table.fractional.any():
        return np.zeros(f.table.total.shape, dtype=bool)
    sums = (table.support, table.predicted, table.total[..., None])
    return table.fractional & np.logical_or.reduce([_is_share(part) for part in sums])


@check("overall", "docs/indices.md#indices-from-scores", at="/y_score", among=SCORE_CHECKS)
def not_probabilities(f: WarningInputs) -> Array:
    """The scores are not probabilities (non-negative rows that sum to 1), so log loss,
    Brier score and calibration are left out. Ranking measures such as AUC exist. If they are
    probabilities of half precision, send float32, or divide each row by its sum.
    """
    return np.asarray(f.values.scores is not None and not f.values.scores.are_probabilities)


@check("overall", "docs/indices.md#indices-from-scores", about=LOGARITHMS, among=SCORE_CHECKS)
def clipped(f: WarningInputs) -> Array:
    """Some items have a probability below 1e-15 for their true class. It counts as 1e-15, so the
    log loss depends on that limit.
    """
    scores = f.values.scores
    return np.asarray(scores is not None and scores.are_probabilities and scores.clipped > 0)


def _is_share(sums: Array) -> Array:
    """Whether all sums that are not 0 are 1, or all are 100, but for rounding, shape (...)."""
    empty = sums == 0
    near = [(np.abs(sums - whole) <= 0.01 * whole) | empty for whole in (1, 100)]
    return np.logical_or.reduce([part.all(-1) for part in near]) & ~empty.all(-1)


Masks = list[tuple[Check, str, Array]]
"""The checks that hold, their places in the report, and the tables or classes they hold for."""


@lru_cache(maxsize=256)
def _checks(selection: Selection, scored: bool) -> tuple[tuple[Check, str], ...]:  # noqa: FBT001 (a key of the cache)
    """Return the checks of a report on a selection, with their places."""
    checks = [*CHECKS, *SCORE_CHECKS] if scored else CHECKS
    placed = [(entry, entry.place(selection)) for entry in checks]
    return tuple((entry, place) for entry, place in placed if place is not None)


def check_all(inputs: WarningInputs) -> Masks:
    """Check every condition on a stack of tables; return those that hold, with their masks."""
    checks = _checks(inputs.values.selection, inputs.values.scores is not None)
    with np.errstate(all="ignore"):
        masks = [(entry, place, np.asarray(entry.holds(inputs))) for entry, place in checks]
    return [condition for condition in masks if np.count_nonzero(condition[-1])]


def phrase(masks: Masks, labels: tuple[str, ...], position: tuple[int, ...]) -> Iterator[Warning]:
    """Yield the warnings of one table, at () or (i,) in the stack."""
    for entry, place, whole in masks:
        holding = np.flatnonzero(whole[position])
        if not holding.size:
            continue
        if entry.scope == "overall":
            yield Warning(entry.code, place, entry.text, entry.docs)
            continue
        classes = tuple(labels[i] for i in holding[:MOST_NAMED])
        more, at = len(holding) - len(classes), "/per_class"
        if len(holding) == 1:
            token = classes[0].replace("~", "~0").replace("/", "~1")  # of a JSON pointer, RFC 6901
            at = f"/per_class/{token}{place}"
        detail = f"{named_classes(classes, more)}: {entry.text}"
        yield Warning(entry.code, at, detail, entry.docs, classes or None, more or None)


def named_classes(classes: Sequence[str], more: int = 0) -> str:
    """Name the first of some classes, and say how many more there are."""
    others = max(len(classes) - MOST_IN_SENTENCE, 0) + more
    names = ", ".join(f"`{name}`" for name in classes[:MOST_IN_SENTENCE])
    end = f" and {others} more" if others else ""
    return f"{lead(len(classes) + more)} {names}{end}"


def lead(number: int) -> str:
    """Return what stands before the names of so many classes."""
    return "Class" if number == 1 else "Classes"
