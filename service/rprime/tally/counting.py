"""Group by true and predicted label and count, by one expression for every engine."""

import warnings
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from itertools import chain, pairwise
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rprime.core.arrays import Array
from rprime.core.labels import common_order, long_form, ordered_categories
from rprime.core.quantities import plural
from rprime.core.slices.slices import SliceColumn
from rprime.tally.table import Tally, TallyError, is_missing, slice_column, tables, typed

if TYPE_CHECKING:
    import narwhals as nw

TRUE, PREDICTED, BASELINE = "y_true", "y_pred", "y_pred_baseline"
LABELS = (TRUE, PREDICTED, BASELINE)
WEIGHT, GROUP = "sample_weight", "group"
SLICE = "slice:"
"""Prefix of a column of slices, before their name."""
SCORE = "score:"
"""Prefix of a column of scores, before the name of the class."""
MOST_GROUPS = 5_000_000
"""Most distinct pairs of labels; columns with more do not hold classes."""
_COUNT, _PRESENT, _SUM, _LEAST, _LARGEST = "items", "present", "sum", "least", "largest"
_WEIGHING = "weighing"
"""Items whose weight is above 0."""
_NO_SCORE = -1
"""The position of the top score if a score is not a number."""
_PREFIXES = (SLICE, SCORE)
_SHOWN = 20
_ITEMS_OR_PAIRS = (
    "a pair of classes stands there twice, or a count is no integer: if {0} counts items, name it "
    "as the column of counts (`count`, --count); if each row is an item, drop the column"
)


class Tallies(NamedTuple):
    """The tally of the predictions and of the baseline's predictions, if there are any."""

    candidate: Tally
    baseline: Tally | None
    without_order: bool
    """Whether the classes were neither declared nor ordered: their order is that of the names."""


def tally(
    frame: Any,
    *,
    labels: Sequence[str] | None = None,
    reject_below: float | None = None,
    untyped: bool = False,
    slices: Mapping[str, str] | None = None,
    cuts: Mapping[str, Sequence[float]] | None = None,
    crossings: Sequence[Sequence[str]] = (),
    count: str | None = None,
    orders: Mapping[str, Sequence[Any]] | None = None,
) -> Tallies:
    """Count the predictions in a frame with the engine of its library; all slices in one pass.

    Its columns and most parameters are those of `rprime.tallied`. An `untyped` format writes
    integers as texts, as CSV does; `slices` names further columns of slices, `count` is the column
    of numbers of items of a table in long form, and `orders` are ordered categories that the frame
    does not have. A `TallyError` says which column is missing,
    or has values that cannot be counted.
    """
    lazy = _lazy(frame)
    lazy, count, is_stated = _of_long_form(lazy, count)
    names = lazy.collect_schema().names()
    scores = [] if PREDICTED in names else [name for name in names if name.startswith(SCORE)]
    _check(names, scores, reject_below)
    keys = [TRUE, PREDICTED, *([BASELINE] if BASELINE in names else [])]
    counted = _with_columns(lazy, _top(scores, reject_below)) if scores else lazy
    prefixed = {name: name.removeprefix(SLICE) for name in names if name.startswith(SLICE)}
    sources = {slice_name: name for name, slice_name in prefixed.items()} | dict(slices or {})
    cuts = cuts or {}
    _check_slices(names, sources, cuts, crossings)
    parts = [_part(name, source, cuts.get(name)) for name, source in sources.items()]
    counted = _with_columns(counted, *parts) if parts else counted
    keys += [f"{SLICE}{name}" for name in sources]
    groups = _counted(counted, keys, weighted=WEIGHT in names, count=count)
    columns = {name: groups[name].to_list() for name in keys}
    divided = {name: columns.pop(f"{SLICE}{name}") for name in sources}
    if untyped:
        _refuse_header(columns)
        columns = typed(columns, labels)
    items = _numbers_of_items(groups, count, is_stated=is_stated)
    missing = np.array(list(map(is_missing, columns[TRUE])))
    if missing.any():
        without = plural(items[missing].sum(), "item", "have")
        raise TallyError(f"{without} no {TRUE}; each needs a class")
    if scores:
        classes = [name.removeprefix(SCORE) for name in scores]
        columns[PREDICTED] = _predicted(columns, classes, items)
        labels = classes if labels is None else labels
    if labels is None:
        labels = _ordered(columns, _orders(frame, lazy, keys) | dict(orders or {}))
    weights = _weights(groups) if WEIGHT in names else None
    if weights is not None:
        items = np.array(groups[_WEIGHING].to_list(), np.float64)
    sliced = {n: _sliced(v, n, cuts.get(n), untyped=untyped) for n, v in divided.items()}
    crossed = list(map(tuple, crossings))
    candidate, *baseline = tables(
        columns, items, weights=weights, labels=labels, slices=sliced, crossings=crossed
    )
    return Tallies(candidate, baseline[0] if baseline else None, labels is None)


def _refuse_header(columns: Mapping[str, list[Any]]) -> None:
    """Refuse a header line among the items, as files that were joined have it."""
    if PREDICTED in columns and (TRUE, PREDICTED) in zip(
        columns[TRUE], columns[PREDICTED], strict=True
    ):
        raise TallyError(
            f"a row repeats the header, {TRUE} and {PREDICTED}, as in joined files: leave it out"
        )


def _orders(
    frame: Any, lazy: "nw.LazyFrame[Any]", names: Sequence[str]
) -> dict[str, Sequence[Any]]:
    """Return the ordered categories of columns of labels."""
    import narwhals as nw

    schema, orders = lazy.collect_schema(), dict[str, Sequence[Any]]()
    for name in (name for name in names if name in LABELS and name in schema):
        kind = schema[name]
        # Narwhals does not say whether a dictionary of Arrow is ordered.
        of_arrow = ordered_categories(frame[name]) if kind == nw.Categorical else None
        if of_arrow is not None:
            orders[name] = of_arrow.to_pylist()
        elif isinstance(kind, nw.Enum):
            orders[name] = list(kind.categories)
    return orders


def _ordered(columns: Mapping[str, list[Any]], orders: Mapping[str, Any]) -> list[str] | None:
    """Return the order of the classes, if the ordered categories are all that occur."""
    try:
        order = common_order({name: list(map(str, values)) for name, values in orders.items()})
    except ValueError as error:
        raise TallyError(str(error)) from None
    labels = chain.from_iterable(columns[name] for name in LABELS if name in columns)
    occurring = {str(label) for label in labels if not is_missing(label)}
    return order if order is not None and occurring <= set(order) else None


def _lazy(frame: Any) -> "nw.LazyFrame[Any]":
    if find_spec("narwhals") is None:
        raise TallyError("narwhals is needed to count frames: pip install 'rprime[duckdb]'")
    import narwhals as nw

    try:
        with warnings.catch_warnings():
            # The warning says that a later narwhals will need another package for Dask.
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
    for name in (TRUE,) if scores else (TRUE, PREDICTED):
        _check_column(name, names)
    if GROUP in names:
        raise TallyError(
            f"the column {GROUP} means that items depend on each other, but counts lose this: "
            "intervals would be too narrow. Evaluate without an engine, or drop the column"
        )
    if reject_below is not None and not scores:
        raise TallyError(
            f"`reject_below` needs columns {SCORE}<label>, without a column {PREDICTED}"
        )


def _check_column(name: str, names: Sequence[str]) -> None:
    if name not in names:
        there = ", ".join(column[:64] for column in names[:_SHOWN])
        raise TallyError(f"there is no column {name}; the columns are: {there}")


def _check_slices(
    names: Sequence[str],
    sources: Mapping[str, str],
    cuts: Mapping[str, Sequence[float]],
    crossings: Sequence[Sequence[str]],
) -> None:
    for source in sources.values():
        _check_column(source, names)
    if sources and WEIGHT in names:
        raise TallyError(f"slices cannot be combined with the column {WEIGHT}")
    for name in (*cuts, *(name for crossing in crossings for name in crossing)):
        if name not in sources:
            raise TallyError(f"there are no slices {name}; slices are: {', '.join(sources)}")
    for name, edges in cuts.items():
        if isinstance(edges, int | float) or not edges:  # a request may have a number of parts
            raise TallyError(f"give the numbers at which {name} is cut, such as [30, 50]")
        if any(low >= high for low, high in pairwise(edges)):
            raise TallyError(f"the numbers at which {name} is cut ascend")


def _with_columns(lazy: "nw.LazyFrame[Any]", *columns: "nw.Expr") -> "nw.LazyFrame[Any]":
    """Add columns; in Dask to each partition, because it combines few expressions across them."""
    import narwhals as nw

    if lazy.implementation is not nw.Implementation.DASK:
        return lazy.with_columns(*columns)

    def added(part: Any) -> Any:
        return nw.from_native(part).with_columns(*columns).to_native()

    return _lazy(lazy.to_native().map_partitions(added))


def _part(name: str, source: str, edges: Sequence[float] | None) -> "nw.Expr":
    """Return the value of a column of slices, or how many edges a number reaches."""
    import narwhals as nw

    column, name = nw.col(source), f"{SLICE}{name}"
    if edges is None:
        return column.alias(name)
    number = column.cast(nw.Float64)
    reached = nw.sum_horizontal(*((number >= edge).cast(nw.Int64) for edge in edges))
    return nw.when(~number.is_null() & number.is_finite()).then(reached).alias(name)


def _sliced(
    values: list[Any], name: str, edges: Sequence[float] | None, *, untyped: bool
) -> SliceColumn:
    """Return the slices of groups."""
    if edges is not None:
        beyond = len(edges) + 1
        codes = [beyond if is_missing(value) else int(value) for value in values]
        return SliceColumn.cut([float(edge) for edge in edges], np.array(codes))
    return slice_column(typed({name: values}, None)[name] if untyped else values, name)


def _top(scores: Sequence[str], reject_below: float | None) -> "nw.Expr":
    """Return the position of the highest score, the first of equal ones; null if too low."""
    import narwhals as nw

    columns = [nw.col(name) for name in scores]
    top = nw.max_horizontal(*columns)
    first = nw.min_horizontal(
        *(nw.when(column == top).then(nw.lit(place)) for place, column in enumerate(columns))
    )
    accepted = first if reject_below is None else nw.when(top >= reject_below).then(first)
    numbers = (~column.is_null() & column.is_finite() for column in columns)
    valid = nw.all_horizontal(*numbers, ignore_nulls=False)
    return nw.when(valid).then(accepted).otherwise(nw.lit(_NO_SCORE)).alias(PREDICTED)


def _of_long_form(
    lazy: "nw.LazyFrame[Any]", count: str | None
) -> tuple["nw.LazyFrame[Any]", str | None, bool]:
    """Name the labels of a table in long form; return its column of counts, if it is one.

    The last value says that the `count` was stated, not derived from the names of the columns.
    """
    import narwhals as nw

    names = lazy.collect_schema().names()
    if count is not None:
        _check_column(count, names)
        beside = [name for name in names if name in {WEIGHT, GROUP} or name.startswith(_PREFIXES)]
        if beside:
            raise TallyError(f"beside a column of counts there is no {beside[0]}: leave it out")
        if {TRUE, PREDICTED} <= set(names):
            return lazy, count, True
    columns = long_form(names, count)
    if not columns:
        return lazy, None, True
    named = [nw.col(columns[name]).alias(name) for name in (TRUE, PREDICTED)]
    return lazy.select(*named, nw.col(columns["count"])), columns["count"], count is not None


def _counted(
    lazy: "nw.LazyFrame[Any]", keys: Sequence[str], *, weighted: bool, count: str | None = None
) -> "nw.DataFrame[Any]":
    """Group by the labels and count, or add up a column of counts; null forms a group, too."""
    import narwhals as nw

    read, counts = [*keys], [nw.len().alias(_COUNT)]
    number = WEIGHT if weighted else count
    if number is not None:
        column = nw.col(number)
        lazy = lazy.with_columns(column.cast(nw.Float64))
        read.append(number)
        counts += [
            column.count().alias(_PRESENT),
            column.sum().alias(_SUM),
            column.min().alias(_LEAST),
            column.max().alias(_LARGEST),
        ]
    if weighted:
        lazy = lazy.with_columns((nw.col(WEIGHT) > 0).cast(nw.Int64).alias(_WEIGHING))
        read.append(_WEIGHING)
        counts.append(nw.col(_WEIGHING).sum())
    groups = lazy.select(*read).group_by(*keys).agg(*counts).head(MOST_GROUPS + 1).collect()
    if not len(groups):
        raise TallyError("there are no items, so there is nothing to evaluate")
    if len(groups) > MOST_GROUPS:
        raise TallyError(
            f"there are more than {MOST_GROUPS:,} distinct combinations of labels and slices: "
            "the columns do not hold classes, or slices have too many values"
        )
    return groups


def _predicted(columns: dict[str, list[Any]], classes: Sequence[str], items: Array) -> list[Any]:
    """Return the classes of the top scores."""
    places = [None if is_missing(place) else int(place) for place in columns[PREDICTED]]
    bad = np.array([place == _NO_SCORE for place in places])
    if bad.any():
        raise TallyError(f"{plural(items[bad].sum(), 'item', 'have')} a score that is not a number")
    return [None if place is None else classes[place] for place in places]


def _numbers_of_items(groups: "nw.DataFrame[Any]", count: str | None, *, is_stated: bool) -> Array:
    """Return the items of each group: its rows, or the sum of a column of counts."""
    rows = np.array(groups[_COUNT].to_list(), np.float64)
    if count is None:
        return rows
    total, _, _ = _sums(groups, count, "pair")
    if not is_stated and ((rows > 1).any() or (total % 1 != 0).any()):
        raise TallyError(_ITEMS_OR_PAIRS.format(count))
    return total


def _weights(groups: "nw.DataFrame[Any]") -> Array | None:
    """Return the weight of each group; None if every item weighs 1."""
    total, least, largest = _sums(groups, WEIGHT, "item")
    return None if (least == 1).all() and (largest == 1).all() else total


def _sums(groups: "nw.DataFrame[Any]", name: str, unit: str) -> tuple[Array, Array, Array]:
    """Return the sum, the smallest and the largest number of each group in a column of numbers."""
    count, present, total, least, largest = (
        np.array(groups[column].to_list(), np.float64)
        for column in (_COUNT, _PRESENT, _SUM, _LEAST, _LARGEST)
    )
    if (present < count).any():
        without = plural((count - present).sum(), unit, "have")
        raise TallyError(f"{without} no {name}; each needs one, or none has")
    if not isfinite(total.sum()) or (least < 0).any():
        raise TallyError(f"{name} must hold finite, non-negative numbers")
    return total, least, largest
