"""The expression: group by true and predicted label and count, one for every engine."""

import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rprime.tally.errors import TallyError
from rprime.tally.table import Array, Tally, grouped, is_missing

if TYPE_CHECKING:
    import narwhals as nw

TRUE, PREDICTED, BASELINE = "y_true", "y_pred", "y_pred_baseline"
WEIGHT, GROUP = "sample_weight", "group"
SCORE = "score:"
"""What the name of a column of scores starts with; its class follows."""
MOST_GROUPS = 5_000_000
"""Distinct pairs beyond which the columns hold no classes; they are never all collected."""
_COUNT, _PRESENT, _SUM, _LEAST, _LARGEST = "items", "present", "sum", "least", "largest"
_NO_SCORE = -1
"""The position of a top score where a score is no number."""
_SHOWN = 20


class Tallies(NamedTuple):
    """The tally of the predictions and, where there is a second column of them, of the others."""

    candidate: Tally
    baseline: Tally | None


def tally(
    frame: Any,
    *,
    labels: Sequence[str] | None = None,
    reject_below: float | None = None,
    untyped: bool = False,
) -> Tallies:
    """Count the predictions in a frame, where its library computes.

    Parameters
    ----------
    frame
        Of pandas, Polars, Arrow, DuckDB, Dask or Spark, with the columns `y_true` and `y_pred`,
        optionally `y_pred_baseline` and `sample_weight`. Without `y_pred` the highest of the
        columns `score:<label>` is predicted, the first one of equal scores. Other columns are
        not read.
    labels
        The classes in their order; default: those of the scores, else those that occur.
    reject_below
        Items whose highest score is below it are unclassified.
    untyped
        Whether texts may stand for integers, as in a CSV.

    Raises
    ------
    TallyError
        If there are no such columns, or what they hold cannot be counted.
    """
    lazy = _lazy(frame)
    names = lazy.collect_schema().names()
    scores = [] if PREDICTED in names else [name for name in names if name.startswith(SCORE)]
    _check(names, scores, reject_below)
    keys = [TRUE, PREDICTED, *([BASELINE] if BASELINE in names else [])]
    counted = lazy.with_columns(_top(scores, reject_below)) if scores else lazy
    found = _counted(counted, keys, weighted=WEIGHT in names).head(MOST_GROUPS + 1).collect()
    _check_number(len(found))
    columns = {name: found[name].to_list() for name in keys}
    items = np.array(found[_COUNT].to_list(), np.float64)
    _check_truth(columns[TRUE], items)
    if scores:
        classes = [name.removeprefix(SCORE) for name in scores]
        columns[PREDICTED] = _predicted(columns, classes, items)
        labels = classes if labels is None else labels
    weights = _weights(found) if WEIGHT in names else None
    groups = grouped(
        columns,
        items if weights is None else weights,
        weighted=weights is not None,
        labels=labels,
        untyped=untyped,
    )
    return Tallies(
        groups.tally(TRUE, PREDICTED),
        groups.tally(TRUE, BASELINE) if BASELINE in names else None,
    )


def _lazy(frame: Any) -> "nw.LazyFrame[Any]":
    if find_spec("narwhals") is None:
        raise TallyError("frames are counted by narwhals: pip install 'rprime[duckdb]'")
    import narwhals as nw

    try:
        with warnings.catch_warnings():
            # That a later narwhals will need one more package for Dask.
            warnings.filterwarnings("ignore", "Dask support is moving", FutureWarning)
            lazy: nw.LazyFrame[Any] = nw.from_native(frame).lazy()
            return lazy
    except TypeError:
        raise TallyError(
            f"a {type(frame).__name__} is no frame of pandas, Polars, Arrow, DuckDB, Dask or Spark"
        ) from None


def _check(names: Sequence[str], scores: Sequence[str], reject_below: float | None) -> None:
    if not names:
        raise TallyError("there is no such file, or it has no columns")
    there = ", ".join(name[:64] for name in names[:_SHOWN])
    if TRUE not in names:
        raise TallyError(f"there is no column {TRUE}; the columns are: {there}")
    if PREDICTED not in names and not scores:
        raise TallyError(f"there is no column {PREDICTED}; the columns are: {there}")
    if GROUP in names:
        raise TallyError(
            f"the column {GROUP} says that items depend on each other, which a table cannot: "
            "its intervals would be too narrow. Evaluate without an engine, or drop the column"
        )
    if reject_below is not None and not scores:
        raise TallyError(
            f"`reject_below` needs columns {SCORE}<label>, without a column {PREDICTED}"
        )


def _top(scores: Sequence[str], reject_below: float | None) -> "nw.Expr":
    """Give the position of the highest score, the first of equal ones; null where too low."""
    import narwhals as nw

    top = nw.max_horizontal(*scores)
    first = nw.min_horizontal(
        *(nw.when(nw.col(name) == top).then(nw.lit(place)) for place, name in enumerate(scores))
    )
    known = first if reject_below is None else nw.when(top >= reject_below).then(first)
    sound = nw.all_horizontal(*(_is_number(name) for name in scores), ignore_nulls=False)
    return nw.when(sound).then(known).otherwise(nw.lit(_NO_SCORE)).alias(PREDICTED)


def _is_number(name: str) -> "nw.Expr":
    import narwhals as nw

    return ~nw.col(name).is_null() & nw.col(name).is_finite()


def _counted(
    lazy: "nw.LazyFrame[Any]", keys: Sequence[str], *, weighted: bool
) -> "nw.LazyFrame[Any]":
    """Group by the labels and count; what is null is a group, too."""
    import narwhals as nw

    if not weighted:
        return lazy.select(*keys).group_by(*keys).agg(nw.len().alias(_COUNT))
    weight = nw.col(WEIGHT)
    return (
        lazy.select(*keys, weight.cast(nw.Float64))
        .group_by(*keys)
        .agg(
            nw.len().alias(_COUNT),
            weight.count().alias(_PRESENT),
            weight.sum().alias(_SUM),
            weight.min().alias(_LEAST),
            weight.max().alias(_LARGEST),
        )
    )


def _check_number(groups: int) -> None:
    if not groups:
        raise TallyError("there is no item; there is nothing to evaluate")
    if groups > MOST_GROUPS:
        raise TallyError(
            f"there are more than {MOST_GROUPS:,} distinct pairs of labels: "
            "the columns hold something else than classes"
        )


def _check_truth(column: Sequence[Any], items: Array) -> None:
    missing = np.array(list(map(is_missing, column)))
    if missing.any():
        raise TallyError(f"{items[missing].sum():,.0f} items have no {TRUE}; each needs its class")


def _predicted(columns: dict[str, list[Any]], classes: Sequence[str], items: Array) -> list[Any]:
    """Give the classes of the top scores."""
    places = [None if is_missing(place) else int(place) for place in columns[PREDICTED]]
    bad = np.array([place == _NO_SCORE for place in places])
    if bad.any():
        raise TallyError(f"{items[bad].sum():,.0f} items have a score that is no number")
    return [None if place is None else classes[place] for place in places]


def _weights(found: "nw.DataFrame[Any]") -> Array | None:
    """Give the weight of each group; None where every item weighs 1."""
    count, present, total, least, largest = (
        np.array(found[name].to_list(), np.float64)
        for name in (_COUNT, _PRESENT, _SUM, _LEAST, _LARGEST)
    )
    if (present < count).any():
        lacking = (count - present).sum()
        raise TallyError(f"{lacking:,.0f} items have no {WEIGHT}; each needs one, or none has")
    if not isfinite(total.sum()) or (least < 0).any():
        raise TallyError(f"{WEIGHT} holds something else than finite, non-negative numbers")
    return None if (least == 1).all() and (largest == 1).all() else total
