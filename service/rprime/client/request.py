"""Convert Python values to the JSON of a request."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypedDict

import numpy as np
import orjson
from pydantic import BaseModel

from rprime.client import columns
from rprime.core.labels import common_order, contradiction
from rprime.core.published import Json


class OptionFields(TypedDict, total=False):
    """The options of an evaluation, named as in the API; None means absent.

    A column is a list, an array of numpy, a series of pandas or polars, or an array of Arrow; a
    matrix is an array of numpy, a data frame, or a list of lists.
    """

    indices: Any
    families: Any
    beta: float | None
    undefined: Literal["null", "zero", "one"] | None
    average_over: Any
    average_except: Any
    intervals: Literal["all"] | bool | None
    confidence: float | None
    exact: bool | None
    sampling: Literal["random", "fixed_rows"] | None
    cost: Any
    cell_weights: Any
    kappa_weights: Any
    top_k: int | None
    calibration: Mapping[str, Any] | None
    slice_adjust: Literal["holm", "benjamini_hochberg"] | None
    custom: Mapping[str, str] | None


class Scored(TypedDict, total=False):
    """Scores of every item for every class, and their options.

    `y_score` is a matrix with a column for each of the `labels`, a data frame, whose columns are
    the `labels`, or for two classes a single column, of the second one.
    """

    y_score: Any
    reject_below: float | None
    curves: bool | None
    reject: Literal["sweep"] | None
    thresholds: Mapping[str, float] | None


class ItemsFields(TypedDict, total=False):
    """What belongs to the items of evidence, besides label columns, scores and slices."""

    labels: Any
    sample_weight: Any
    inclusion_probability: Any
    groups: Any
    item_id: Any
    slice_crossings: Sequence[Sequence[str]] | None
    slice_cuts: Mapping[str, int | Sequence[float]] | None
    aliases: Mapping[str, str] | None
    unknown_labels: Literal["refuse", "unclassified"] | None
    missing_true: Literal["refuse", "spurious"] | None
    ignore_true: Any
    test_set: Mapping[str, str] | None


class EvidenceFields(ItemsFields, total=False):
    """Evidence about a classifier, besides label columns.

    Either `confusion_matrix`, where a data frame includes the `labels`, or `cells` with `labels`.
    """

    confusion_matrix: Any
    cells: Any
    axis: Literal["rows_are_true", "rows_are_predicted"] | None
    unclassified: Any
    spurious: Any
    weighted: bool | None
    class_items: Any
    slices: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None


class ItemFields(TypedDict, total=False):
    """Label columns; NaN or None in `y_pred` is an unclassified item."""

    y_true: Any
    y_pred: Any


class ModelFields(ItemFields, EvidenceFields, total=False):
    """Evidence of any kind, about one model."""

    y_score: Any
    reject_below: float | None


class SideFields(ModelFields, total=False):
    """One side of a comparison: evidence, or a stored evaluation by one of its names.

    A baseline may be only `y_pred` or `y_score`: other predictions for the candidate's items. The
    columns of its `y_score` are named, or in the order of the `labels` of the candidate. Names
    belong to `project`, which for a baseline is that of the candidate where it is left out. Or a
    baseline is `constant`, a classifier that does not look at the items.
    """

    alias: str
    version: str
    branch: str
    latest: Literal[True]
    evaluation: str
    model: str
    project: str
    constant: Literal["majority", "uniform", "prior"]


class OriginFields(TypedDict, total=False):
    """The origin of an evaluation in its project."""

    model: str | None
    version: str | None
    branch: str | None
    commit: str | None


class RequestFields(OptionFields, EvidenceFields, Scored, OriginFields, total=False):
    """Evidence besides label columns, and any options.

    `gates` is a mapping with rules. `project` and the fields after it belong to a stored
    evaluation.
    """

    baseline: SideFields | None
    gates: Mapping[str, Any] | BaseModel | None
    population: Mapping[str, Any] | None
    project: str | None
    tags: Sequence[str] | None
    source: str | None
    keep_items: bool | None
    classes: Mapping[str, Any] | None
    top_confusions: int | None
    changed_items: bool | Mapping[str, int] | None


class SearchFields(ItemsFields, total=False):
    """Evidence besides label columns, and options of a search for weak slices."""

    y_score: Any
    reject_below: float | None
    cost: Any
    top_k: int | None
    crossed: int | None
    min_items: int | None
    candidates: int | None
    confidence: float | None
    seed: int | None


class BatchRequest(RequestFields, ItemFields, total=False):
    """One request of a batch: exactly one kind of evidence, and any options."""


class SliceField(TypedDict, total=False):
    """A slice in place of all items: the value of each of its columns, as `{"region": "EU"}`."""

    slice: Mapping[str, str] | None


class HistoryFilters(OriginFields, SliceField, total=False):
    """What stored evaluations must match, and the slice that values are of; None matches all."""

    test_set: str | None
    verdict: Literal["pass", "fail", "inconclusive", "no_rules", "no_baseline"] | None
    since: str | None
    tag: str | None


def document(arguments: Mapping[str, Any], candidate: Json | None = None) -> Json:
    """Return a request as its JSON object, from arguments by name; None means absent.

    Of a baseline, `candidate` is the document of what it is compared with.

    Raises
    ------
    TypeError, ValueError
        If a value does not fit its name.
    """
    _refuse_other_index(arguments.get("y_true"), arguments.get("y_pred"))
    matrix = columns.with_names(arguments.get("confusion_matrix"))
    arguments = {**arguments, "confusion_matrix": matrix}
    content: Json = {}
    for name, value in arguments.items():
        if value is not None and name != "baseline":
            convert = _CONVERT.get(name)
            content[name] = value if convert is None else convert(value, name)
    true = content.get("y_true", (candidate or {}).get("y_true"))
    brought = {
        "confusion_matrix": columns.frame_labels(
            arguments.get("confusion_matrix"), "confusion_matrix"
        ),
        "y_score": columns.score_labels(arguments.get("y_score"), "y_score", true),
    }
    if brought["y_score"] is not None and true is not None:
        columns.refuse_others(content["y_score"], brought["y_score"], true)
    for name, labels in brought.items():
        if labels is not None and content.setdefault("labels", labels) != labels:
            raise ValueError(f"`labels` are not the columns of `{name}`; remove them")
    _orient(content, arguments.get("confusion_matrix"))
    if arguments.get("baseline") is not None:
        content["baseline"] = _baseline(arguments, content)
    _order(content, arguments)
    return content


def _refuse_other_index(true: object, predicted: object) -> None:
    """Refuse series of the same index in another order: by position, items would be mixed up."""
    indices: list[Any] = [getattr(side, "index", None) for side in (true, predicted)]
    first, second = indices
    if not hasattr(first, "equals") or not hasattr(second, "equals") or first.equals(second):
        return
    if len(first) == len(second) and first.is_unique and not len(first.difference(second)):
        raise ValueError(
            "`y_true` and `y_pred` have the same index in another order, and items are taken by "
            "position: pass `y_pred.reindex(y_true.index)`, or both by `.to_numpy()`"
        )


def _orient(content: Json, matrix: object) -> None:
    """Take what the rows are from the names of the axes of a data frame."""
    axis = columns.frame_axis(matrix)
    if axis is not None and content.setdefault("axis", axis) != axis:
        raise ValueError(contradiction(axis, content["axis"]))


def _order(content: Json, arguments: Mapping[str, Any]) -> None:
    """Take the order of the classes from ordered categories of the labels.

    Columns of scores without names are not in that order: scikit-learn sorts classes.
    """
    if not {"labels", "y_score"}.isdisjoint(content) or "y_true" not in content:
        return
    items = ("y_true", "y_pred")
    orders = {name: columns.categories(arguments.get(name), name) for name in items}
    order = common_order(orders)
    if order is None:
        return
    sides = (content, content.get("baseline", {}))
    occurring = set().union(
        *(columns.distinct(side.get(name, [])) for side in sides for name in items)
    )
    if occurring <= {*order, None}:
        content["labels"] = order


def _baseline(arguments: Mapping[str, Any], content: Json) -> Json:
    """Convert a baseline, whose scores have names of columns if those of the candidate have."""
    candidate = content.get("candidate", content)
    evidence = _evidence(arguments["baseline"], "baseline", candidate)
    named = arguments.get("candidate", arguments).get("labels") is None and "labels" in candidate
    members = {"y_true", "labels"} & evidence.keys()
    if named and not members and "y_score" in candidate and "y_score" in evidence:
        raise TypeError(
            "the columns of `y_score` have names, those of the baseline have none: name the "
            "columns on both sides, or pass `labels`"
        )
    return evidence


_BEYOND = 2**63
_WRITABLE = {"builtins", "numpy", "datetime", "uuid"}
"""Modules of the types that have a JSON form."""


def body(**arguments: object) -> bytes:
    """Return the bytes of a request; its errors are those of `document` and `encode`."""
    return encode(document(arguments))


def encode(content: object) -> bytes:
    """Write JSON; a `TypeError` says which value has no JSON form."""
    options = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
    try:
        # The reader refuses what has no such name, with the nearest one.
        return orjson.dumps(content, default=columns.as_lists, option=options)
    except TypeError:
        for place, fault in _unwritable(content, ""):
            raise ValueError(f"`{place}` {fault}") from None
        raise


MANY = 1 << 16
"""From so many items on, columns are sent as arrays, which cost both sides less than JSON."""
_LONGEST_REST = 4096
"""Bytes of the other members beside columns, which stand in the address."""
_COLUMNS = {
    "y_true": "y_true",
    "y_pred": "y_pred",
    "y_score": "y_score",
    "sample_weight": "sample_weight",
    "groups": "group",
}
"""Columns by their members."""
_JSON_ONLY = {"item_id", "inclusion_probability", "slices", "confusion_matrix", "cells"}


def split(content: Json) -> tuple[dict[str, Any], bytes] | None:
    """Divide a request of many items into its columns and the JSON of its other members.

    None where there are few items, or a column is no array or stands in JSON only.
    """
    sent: Json = {}
    rest: Json = {}
    for name, value in content.items():
        if name in _COLUMNS:
            sent[_COLUMNS[name]] = value
        elif name == "slices" and isinstance(value, dict):
            sent |= {f"slice:{key}": column for key, column in value.items()}
        elif name == "baseline" and value.keys() == {"y_pred"}:
            sent["y_pred_baseline"] = value["y_pred"]
        else:
            rest[name] = value
    evidence = {*rest, *rest.get("baseline", {})} & (_JSON_ONLY | _COLUMNS.keys())
    if evidence or "y_true" not in sent or not {"y_pred", "y_score"} & sent.keys():
        return None
    if any(
        not isinstance(column, np.ndarray) or column.ndim != 1 + (name == "y_score")
        for name, column in sent.items()
    ):
        return None
    sizes = {len(column) for column in sent.values()}
    members = encode(rest)
    fits = len(sizes) == 1 and min(sizes) >= MANY and len(members) <= _LONGEST_REST
    return (sent, members) if fits else None


def _unwritable(content: object, place: str) -> Iterator[tuple[str, str]]:
    """Yield where a value has no JSON form though its type has, and why."""
    if isinstance(content, Mapping):
        for name, value in content.items():
            yield from _unwritable(value, f"{place}.{name}" if place else str(name))
    elif isinstance(content, list | tuple):
        for i, value in enumerate(content):
            yield from _unwritable(value, f"{place}[{i}]")
    elif type(content).__module__ not in _WRITABLE and not columns.is_column(content):
        yield place, f"is {columns.type_with_article(content)}, which JSON cannot hold"
    elif isinstance(content, int) and abs(content) >= _BEYOND:
        yield place, "lies beyond 64 bits; make such labels strings"
    elif isinstance(content, str) and any("\ud800" <= sign <= "\udfff" for sign in content):
        yield place, "has a lone surrogate, which is no Unicode text"


def _plain(value: object, name: str) -> object:
    """Convert a mapping or a model of Pydantic."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    if isinstance(value, Mapping):
        return dict(value)
    hint = _MAPPINGS.get(name, "")
    raise TypeError(f"`{name}` is {columns.type_with_article(value)}; it must be a mapping{hint}")


_MAPPINGS = {
    "baseline": ' such as {"y_pred": ...}',
    "candidate": ' such as {"y_true": ..., "y_pred": ...}',
    "population": ' such as {"prevalence": "uniform"} or {"prevalence": {"cat": 0.9, "dog": 0.1}}',
    "gates": ' such as {"rules": [...]}, or what yaml.safe_load reads from a file',
    "slice": ' such as {"region": "EU"}',
    "test_set": ' such as {"id": ...}',
}


def _evidence(value: object, name: str, candidate: Json | None = None) -> Json:
    if isinstance(value, Mapping):
        return document(value, candidate)
    hint = _MAPPINGS.get(name, "")
    raise TypeError(f"`{name}` is {columns.type_with_article(value)}; it must be a mapping{hint}")


def _or_text(convert: Callable[[object, str], object]) -> Callable[[object, str], object]:
    return lambda value, name: value if isinstance(value, str) else convert(value, name)


def _keys(value: object, name: str) -> object:
    return [value] if isinstance(value, str) else columns.labels(value, name)


def _slices(value: object, name: str) -> object:
    """Convert the columns of slices by name, or the tables of slices."""
    if isinstance(value, Mapping):
        return {key: _slice_values(values, f"{name}/{key}") for key, values in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_evidence(table, f"{name}/{place}") for place, table in enumerate(value)]
    hint = 'such as {"region": ["EU", "US", ...]}'
    raise TypeError(
        f"`{name}` is {columns.type_with_article(value)}; it must be a mapping by name {hint}"
    )


def _slice_values(values: object, name: str) -> object:
    if isinstance(values, Mapping):
        return {value: _evidence(table, name) for value, table in values.items()}
    if (integers := columns.integers(values)) is not None:
        return integers
    items = columns.column(values, name)
    # Numbers are cut, or refused by the reader.
    numbers = set(map(type, items)) <= {int, float, type(None)}
    return items if numbers else columns.labels(items, name)


_CONVERT: Mapping[str, Callable[[Any, str], object]] = {
    **dict.fromkeys(("y_true", "y_pred", "groups", "item_id"), columns.items),
    **dict.fromkeys(("labels", "tags"), columns.labels),
    **dict.fromkeys(("sample_weight", "inclusion_probability"), columns.number_column),
    **dict.fromkeys(("unclassified", "spurious", "class_items"), columns.weights),
    **dict.fromkeys(("confusion_matrix", "cells", "cost", "cell_weights"), columns.rows),
    **dict.fromkeys(("candidate", "options", "population"), _evidence),
    **dict.fromkeys(("gates", "slice", "test_set"), _plain),
    **dict.fromkeys(
        ("indices", "families", "average_over", "average_except", "ignore_true"), _keys
    ),
    "y_score": columns.scores,
    "slices": _slices,
    "strata": _or_text(columns.labels),
    "kappa_weights": _or_text(columns.rows),
}
