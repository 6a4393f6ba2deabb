"""The declaration of an index, and the rule for values that do not exist."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rprime.core.arrays import ROUNDING, Array
from rprime.core.counts import CountRow, Counts, RatioRows
from rprime.core.table import ConfusionTable, Universe

IndexScope = Literal["class", "overall"]
Family = Literal[
    "core",
    "agreement",
    "ordinal",
    "association",
    "information",
    "ranking",
    "calibration",
    "classic",
]
"""Groups of indices: every index belongs to one; a request may name several."""
Families = Literal[Family, "summary", "all"]
"""What a request may name: a group; the indices that are read most; the whole catalog."""
Average = Literal["macro", "weighted", "micro"]
Reads = Literal[
    "ratio", "counts", "moments", "association", "table", "means", "scores", "custom", Average
]
"""The argument of a formula.

ratio: names two rows of `Counts`; counts: `Counts` of the classes; moments: `Moments`;
association: `Association`; table: `ConfusionTable` and the option that it `needs`, if any;
means: macro averages of the indices it is `of`; macro, weighted, micro: an average of the
per-class index it is `of`; scores: `Scores` and the option that it `takes`, if any;
custom: what the expression in the options names.
"""
REASONS = (
    "",
    "no_true_samples",
    "no_predictions",
    "no_samples",
    "single_class",
    "chance_agreement_is_one",
    "infinite",
    "not_identifiable",
    "did_not_converge",
    "non_integer_counts",
    "weighted",
    "no_interval",
    "no_scores",
    "not_probabilities",
    "no_class_defined",
    "not_resampled",
    "no_errors",
    "zero_denominator",
    "no_expression",
)
"""Why a value or interval does not exist; code 0 means that it does."""
CODE = {reason: code for code, reason in enumerate(REASONS)}


@dataclass(frozen=True, eq=False)
class Parts:
    """How an interval is put together from the score intervals of proportions.

    Parameters
    ----------
    ratios
        The proportions, each as numerator and denominator among the `CountRow`s.
    combine
        The index, or what `back` maps to it, as a function of the proportions.
    back
        An increasing map from the combination to the index; None if they are the same.
    """

    ratios: tuple[RatioRows, ...]
    combine: Callable[..., Any]
    back: Callable[[Array], Array] | None = None


UNIT = (0.0, 1.0)
SIGNED = (-1.0, 1.0)
NON_NEGATIVE = (0.0, np.inf)
AT_MOST_ONE = (-np.inf, 1.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Index:
    """One index: its name, meaning and formula.

    Parameters
    ----------
    key
        Name in reports, the function's name; unique within its scope.
    symbol, name, tex, source
        From the literature; TeX in the notation of the catalog (a_i, m_i, s_i, w, n_ij). A
        declaration without a name takes that from the key: `hinge_loss` is "Hinge loss".
    range
        Smallest and largest possible value; infinite ends are excluded.
    best
        The value of a perfect classifier; None if no value is best.
    undefined
        Reasons why a value may not exist, in the order they are tried; the last one applies
        if no other does.
    universe
        Whether it is computed on all items or on the classified ones.
    scale_invariant
        Whether multiplying every count by one factor leaves it unchanged.
    needs
        The request option that it requires, if any.
    of, through
        The per-class keys whose averages it reads, and a transformation before averaging.
    range_note
        A condition on the range, in words.
    cell_gradient
        For a smooth index that reads the cells, its change with one more item in a cell: a function
        of the table, the option, and the rows and columns (c,) of the cells, of shape (..., c).
        Column k stands for unclassified items where the universe has these.
    interval
        Name of its interval method in `intervals/methods.py`; None without one.
    parts
        The proportions that its interval is put together from, if any.
    score_range
        Smallest and largest value for the score interval, as a function of k and the option that
        the index `needs`; None: its range, with -1 for an infinite lower end.
    scored
        Whether it exists only with scores: it, or the index it averages, reads them.
    takes
        The request option that is a further argument of the formula; it has a default.
    of_items
        For a mean over the items, the function of each item; a sum if not `scale_invariant`.
    resampled
        Whether it has a bootstrap interval on request; on the classified items.
    item_influence
        For a smooth per-class index of scores, the influence (n,) of every item on that of a class,
        in the sum of whose squares is its variance.
    averaged
        Whether a per-class index has averages; a mean of counts or of shares of one whole says
        nothing about a classifier.
    family
        Set by the catalog.
    ordered
        Whether it depends on the order of the classes.
    never_predicted
        For an index of precision, its value inside averages where the class has items and is
        never predicted: that of a precision of 0.
    """

    key: str
    scope: IndexScope
    symbol: str
    name: str
    description: str
    tex: str
    source: str
    reads: Reads
    formula: Callable[..., Any]
    range: tuple[float, float] = UNIT
    best: float | None = 1.0
    undefined: tuple[str, ...] = ()
    universe: Universe = "all"
    interval: str | None = None
    parts: Parts | None = None
    score_range: Callable[..., tuple[float, float]] | None = None
    scale_invariant: bool = True
    needs: Literal["cost", "kappa_weights"] | None = None
    of: tuple[str, ...] = ()
    through: Callable[[Array], Array] | None = None
    range_note: str = ""
    cell_gradient: Callable[..., Array] | None = None
    rows: RatioRows = (CountRow.total, CountRow.total)
    band: Callable[[float], str | None] | None = None
    p_value: Callable[[ConfusionTable], Array] | None = None
    scored: bool = False
    takes: Literal["top_k", "calibration"] | None = None
    of_items: Callable[..., Array] | None = None
    resampled: bool = False
    item_influence: Callable[[Any, int], Array] | None = None
    averaged: bool = True
    family: Family = "core"
    ordered: bool = False
    never_predicted: Callable[[Counts], Any] | None = None

    @property
    def higher_is_better(self) -> bool | None:
        """Whether larger values are better; None if no value is best."""
        if self.best is None:
            return None
        return self.best == self.range[1]

    @property
    def interval_name(self) -> str | None:
        """The name of its interval method, which may be the bootstrap; None without one."""
        return "bootstrap" if self.resampled else self.interval

    def influence(
        self, table: ConfusionTable, option: tuple[Any, ...], rows: Array, columns: Array
    ) -> Array:
        """Compute `cell_gradient`, 0 for unclassified items, column k, of a smaller universe."""
        assert self.cell_gradient is not None  # noqa: S101 (callers check it)
        if self.universe == "all":
            return self.cell_gradient(table, *option, rows, columns)
        answered = columns < table.k
        inside = np.where(answered, columns, 0)
        change = self.cell_gradient(table.classified, *option, rows, inside)
        return np.where(answered, change, 0.0)

    @property
    def by_cell(self) -> bool:
        """Whether its gradient is one of cells."""
        return self.cell_gradient is not None or self.reads == "custom"

    @property
    def association(self) -> bool:
        """Whether it measures association, which does not depend on the names of the classes."""
        return self.reads == "association"

    @property
    def micro(self) -> bool:
        """Whether it has a micro average: a ratio of counts that is no share of all items."""
        ratio = self.scope == "class" and self.reads == "ratio"
        return ratio and self.rows[1] != CountRow.total


Declaration = Callable[[Callable[..., Any]], Index]


def per_class(**fields: Any) -> Declaration:  # noqa: ANN401 (the fields of Index)
    """Declare a per-class index by a function of `Counts`; with `parts` its interval uses them.

    One that reads the cells is declared with reads="table".
    """
    defaults = {"interval": "parts"} if "parts" in fields else {}
    return _declare("class", fields.pop("reads", "counts"), defaults | fields)


WITHOUT_DENOMINATOR = {
    CountRow.total: ("no_samples",),
    CountRow.predicted: ("no_predictions",),
    CountRow.negatives: ("no_samples", "single_class"),
    CountRow.predicted_negatives: ("no_samples", "single_class"),
    CountRow.answered: ("no_samples", "no_predictions"),
    CountRow.weighted_union: ("no_true_samples", "no_predictions"),
}
"""Why a ratio does not exist, by its denominator; without items of the class for all others."""


def class_ratio(**fields: Any) -> Declaration:  # noqa: ANN401 (the fields of Index)
    """Declare a per-class index by naming its numerator and denominator among the `CountRow`s."""
    return _declare("class", "ratio", {"interval": "proportion"} | fields)


def overall_ratio(**fields: Any) -> Declaration:  # noqa: ANN401 (the fields of Index)
    """Declare an overall index by a numerator and a denominator among the pooled `CountRow`s."""
    return _declare("overall", "ratio", {"interval": "proportion"} | fields)


def overall(reads: Reads, **fields: Any) -> Declaration:  # noqa: ANN401 (the fields of Index)
    """Declare an overall index by a function of what `reads` names."""
    on_classified = reads in {"moments", "association"}
    defaults = {"universe": "classified"} if on_classified else {}
    return _declare("overall", reads, defaults | fields)


def from_scores(scope: IndexScope, **fields: Any) -> Declaration:  # noqa: ANN401 (the fields of Index)
    """Declare an index by a function of `Scores`."""
    return _declare(scope, "scores", {"scored": True} | fields)


def mean_of_items(**fields: Any) -> Declaration:  # noqa: ANN401 (the fields of Index)
    """Declare an overall index as the mean over the items of a function of `Scores`.

    It is the sum if the index is not `scale_invariant`.
    """
    total = not fields.get("scale_invariant", True)

    def declare(of_items: Callable[..., Array]) -> Index:
        @wraps(of_items)
        def formula(scores: Any, *options: Any) -> Any:  # noqa: ANN401 (the scores and the option)
            values = of_items(scores, *options)
            return scores.sum(values) if total else scores.mean(values)

        defaults = {"interval": "items", "of_items": of_items}
        return from_scores("overall", **defaults | fields)(formula)

    return declare


def _declare(scope: IndexScope, reads: Reads, fields: dict[str, Any]) -> Declaration:
    def declare(formula: Callable[..., Any]) -> Index:
        arguments = dict(fields)
        if reads == "ratio":
            arguments["rows"] = formula(CountRow)
            arguments["undefined"] = WITHOUT_DENOMINATOR.get(
                arguments["rows"][1], ("no_true_samples",)
            )
        key = formula.__name__
        return Index(
            key=key,
            scope=scope,
            reads=reads,
            formula=formula,
            description=" ".join((formula.__doc__ or "").split()),
            **{"name": key.replace("_", " ").capitalize()} | arguments,
        )

    return declare


CLASS_CONDITIONS: dict[str, Callable[[Counts], Any]] = {
    "no_samples": lambda c: c.total == 0,
    "no_true_samples": lambda c: c.support == 0,
    "no_predictions": lambda c: c.predicted == 0,
    "single_class": lambda c: (c.negatives == 0) | (c.predicted_negatives == 0),
    "not_identifiable": lambda c: unidentifiable(c)[..., None],
    "no_errors": lambda c: np.add.reduce(c.fn, axis=-1)[..., None] == 0,
}
OVERALL_CONDITIONS: dict[str, Callable[[ConfusionTable], Any]] = {
    "no_samples": lambda t: t.total == 0,
    "weighted": lambda t: not t.is_numbered,
    "non_integer_counts": lambda t: t.fractional & np.logical_not(t.weighted),
    "single_class": lambda t: np.minimum((t.support > 0).sum(-1), (t.predicted > 0).sum(-1)) < 2,
}


def unidentifiable(counts: Counts) -> Array:
    """Whether quasi-independence of the errors cannot be fitted, shape (...).

    True for fewer than three classes, or if some class takes part in every error.
    """
    classes = counts.fp.shape[-1]
    errors = np.add.reduce(counts.fp, axis=-1)
    elsewhere = errors[..., None] - counts.fn - counts.fp
    everywhere = (elsewhere <= ROUNDING * counts.total).any(-1)
    return np.asarray((classes < 3) | (everywhere & (errors > 0)))


def reason_codes(
    index: Index, values: Array, situation: Counts | ConfusionTable
) -> NDArray[np.uint8]:
    """Explain why values of an index, shape (...) or (..., k), are not finite.

    Parameters
    ----------
    situation
        The counts (scope class) or the table (scope overall) they were computed from.

    Returns
    -------
    Codes into `REASONS`, the shape of `values`, 0 where the value exists.
    """
    conditions: dict[str, Any] = (
        CLASS_CONDITIONS if isinstance(situation, Counts) else OVERALL_CONDITIONS
    )
    conditions = conditions | {"infinite": lambda _: np.isinf(values)}
    codes = np.zeros(np.shape(values), dtype=np.uint8)
    missing = ~np.isfinite(values)
    for reason in reversed(index.undefined):
        holds = conditions[reason](situation) if reason in conditions else True
        codes[missing & (holds | (codes == 0))] = CODE[reason]
    return codes
