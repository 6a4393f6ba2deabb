"""Answer requests to search for weak slices."""

from dataclasses import replace

import numpy as np
import orjson

from rprime import __version__, evidence
from rprime.application.request import read_members
from rprime.core.arrays import Array
from rprime.core.catalog import CLASS_INDICES, OVERALL_INDICES
from rprime.core.index import Index
from rprime.core.items import Items
from rprime.core.scores.scores import Scores
from rprime.core.slices.search import SearchOptions, TooManyCellsError, search_slices
from rprime.core.slices.slices import SliceColumn
from rprime.evidence import Evidence
from rprime.evidence.slices import slice_columns
from rprime.problems.problem import pointer, refuse
from rprime.report.document import NUMPY
from rprime.schemas.document import Body, Document, parse
from rprime.schemas.slice_search import SearchRest
from rprime.settings import Limits

MOST_COLUMNS = 20
Measured = tuple[Index, Array, Array]
"""The index, what it is the mean of, and which items count in it."""
_NO_MEAN = (
    "The search needs an index that is a mean over items: accuracy, accuracy_on_answered, coverage,"
    " error_rate, expected_cost; recall or precision of a `class`; or one of scores, as log_loss."
)


def search_request(body: Body, limits: Limits) -> bytes:
    """Search for the weak slices of a JSON request; see `search_document`."""
    return search_document(parse(body, limits.json_depth), limits)


def search_document(document: Document, limits: Limits) -> bytes:
    """Search for weak slices and return the answer as JSON."""
    search, read = read_members(SearchRest, document, lambda: _evidence(document, limits))
    if read.items is None or document.arrays.get("slices") is None:
        detail = "A search needs labels or scores of items, and the columns to search in."
        raise refuse("/slices", "required", detail)
    size = read.items.true.size + read.left_out
    cuts = search.slice_cuts or {}
    columns = slice_columns(document, size, cuts, measured=True, kept=read.order)
    size -= read.left_out
    for name, column in columns.items():
        place, k = pointer("slices", name), len(column.values)
        counts = np.bincount(column.codes, minlength=k)[:k]
        if counts.max() == size:
            raise refuse(place, "constant", "All items have one value; leave this name out.")
        if k == counts.sum():
            detail = "Each item has a value of its own, as an id: leave this name out."
            raise refuse(place, "all_distinct", detail)
    return _searched(read, _values(read, read.items, search), columns, search)


def _evidence(document: Document, limits: Limits) -> Evidence:
    """Read the evidence without its slices, which are read for the search."""
    slices = document.arrays.get("slices")
    if isinstance(slices, dict) and len(slices) > MOST_COLUMNS:
        detail = f"There are {len(slices)} columns; a search is over at most {MOST_COLUMNS}."
        raise refuse("/slices", "too_many_columns", detail)
    if "slice_crossings" in document.rest:
        detail = "A search crosses all columns; `crossed` says how many at most."
        raise refuse("/slice_crossings", "not_with_search", detail)
    arrays = {name: array for name, array in document.arrays.items() if name != "slices"}
    rest = {name: value for name, value in document.rest.items() if name != "slice_cuts"}
    return evidence.read(replace(document, arrays=arrays, rest=rest), limits)


def _searched(
    read: Evidence, measured: Measured, columns: dict[str, SliceColumn], search: SearchRest
) -> bytes:
    index, values, counted = measured
    values = values[counted].astype(np.float64)
    sign = -1.0 if index.higher_is_better else 1.0
    names = ("crossed", "candidates", "min_items", "confidence", "seed")
    options = SearchOptions(**search.model_dump(include=set(names)))
    if values.size < 2 * options.least(values.size):
        detail = (
            f"{values.size} items count in the index, and a slice has at least "
            f"{options.least(values.size)}: too few to search."
        )
        raise refuse("/y_true", "too_few_items", detail)
    counted_columns = {name: replace(c, codes=c.codes[counted]) for name, c in columns.items()}
    try:
        slices, plan = search_slices(counted_columns, sign * values, options)
    except TooManyCellsError as error:
        detail = f"There are {error}: ask for a larger `min_items` or fewer slices."
        raise refuse("/min_items", "too_many_slices", detail) from None
    difference = sign * (slices.losses - slices.rests)
    limits = np.sort(sign * np.stack((slices.lower, slices.upper), axis=-1), axis=-1)
    weak = slices.p_adjusted <= 1 - search.confidence
    parts = (weak, slices.items.astype(int), sign * slices.losses, sign * slices.rests)
    rows = (*parts, difference, limits, slices.p_adjusted, sign * slices.shrunken)
    members = ("weak", "items", "value", "rest", "difference", "interval", "p_adjusted", "shrunken")
    content = {
        "engine_version": __version__,
        "input_digest": read.input_digest,
        "index": index.key,
        **({} if search.class_ is None else {"class": search.class_}),
        "higher_is_better": index.higher_is_better,
        "items": values.size,
        "value": values.mean(),
        "columns": [{"name": name, "values": c.values} for name, c in columns.items()],
        "searched": plan.searched,
        "seed": search.seed,
        "found_on": plan.halves[0],
        "tested_on": plan.halves[1],
        "min_items": plan.least,
        "confidence": search.confidence,
        "slices": [
            {"slice": name, **dict(zip(members, row, strict=True))}
            for name, *row in zip(slices.names, *rows, strict=True)
        ],
        "detectable": [{"items": n, "difference": sign * d} for n, d in plan.detectable],
    }
    return orjson.dumps(content, option=NUMPY)


def _values(read: Evidence, items: Items, search: SearchRest) -> Measured:
    true, predicted, k = items.true, items.predicted, len(read.labels)
    right, everything = true == predicted, np.ones(true.size, bool)
    if search.class_ is not None:
        if search.class_ not in read.labels:
            raise refuse("/class", "undeclared_label", "It is no class; use a name in `labels`.")
        labels = {"recall": true, "precision": predicted}.get(search.index)
        if labels is None:
            raise refuse("/class", "no_class", "Only recall and precision are of one class.")
        return CLASS_INDICES[search.index], right, labels == read.labels.index(search.class_)
    if search.index in {"recall", "precision"}:
        raise refuse("/index", "needs_class", "The index is per class: name it in `class`.")
    index = OVERALL_INDICES.get(search.index)
    if index is None:
        raise refuse("/index", "no_mean", _NO_MEAN)
    answered = predicted < k
    if index.key == "expected_cost":
        cost = read.matrices.get("cost")
        if cost is None:
            raise refuse("/index", "option_missing", "The index needs the option `cost`.")
        priced = predicted < cost.shape[1]
        return index, cost[true, np.where(priced, predicted, 0)], priced
    if index.of_items is not None and index.scale_invariant:
        arguments = [search.top_k] if index.takes else []
        return index, np.asarray(index.of_items(_scores(read, index), *arguments)), everything
    means = {
        "accuracy": (right, everything),
        "accuracy_on_answered": (right, answered),
        "coverage": (answered, everything),
        "error_rate": (~right, everything),
    }
    if index.key not in means:
        raise refuse("/index", "no_mean", _NO_MEAN)
    return index, *means[index.key]


def _scores(read: Evidence, index: Index) -> Scores:
    """Return the scores, if they fit an index."""
    scores = read.ranked
    if scores is None:
        raise refuse("/index", "no_scores", "The index needs `y_score`.")
    if "not_probabilities" in index.undefined and not scores.are_probabilities:
        raise refuse("/index", "not_probabilities", "The scores of an item must sum to 1.")
    return scores
