"""The series of one index over the evaluations of a project, their tables as one stack."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, compress
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import orjson

from rprime.application.stored_sides import shaping_text
from rprime.core.arrays import Array
from rprime.core.catalog import find
from rprime.core.estimates import Estimates
from rprime.core.index import REASONS, Index
from rprime.core.index_names import nearest_slices, unknown_index
from rprime.core.intervals.proportions import quantile_of
from rprime.core.options import Options
from rprime.core.scores.kept import MISSING
from rprime.core.selection import Selection, select
from rprime.core.table import ConfusionTable
from rprime.history.stored_values import (
    OneKind,
    estimates_of,
    extras_of,
    kinds_of,
    timed,
    with_item_numbers,
)
from rprime.problems.problem import Problem, refuse
from rprime.schemas.history import Narrowed
from rprime.store import Filters, Stack, Store, ids
from rprime.store.packing import read_score_values

_SHOWN = ("evaluation", "model", "version", "created_at", "value", "interval", "verdict")
_PER_CLASS = "The index is per class: name a `class`, or take its macro average."
_NOT_LISTED = "The index is per class, and a list has overall indices: take its macro average."
GROUPED = "items_in_groups"
"""Reason for a missing interval."""


class Point(NamedTuple):
    """The value of an index for one stored evaluation; None, as its interval, if undefined.

    Parameters
    ----------
    anchor
        Id of the anchor of its gate; None without one.
    reason
        Why the value or the interval is missing; empty if both exist.
    classified_only
        Whether it leaves out unclassified or spurious items that the evaluation has.
    population
        What the value is about; "" for the items.
    options
        What makes it incomparable with those of default options, in words.
    """

    evaluation: str
    model: str | None
    version: str | None
    test_set: str | None
    verdict: str | None
    anchor: str | None
    value: float | None
    interval: tuple[float, float] | None
    reason: str
    classified_only: bool
    population: str = ""
    options: str = ""


LISTED = tuple(entry.key for entry in select(Options(), scored=True, omits=True).overall)
"""Overall indices that a list gives of the evaluations that have them, unless others are chosen."""

TrendColumns = tuple[Sequence[Any], ...]
"""The fields of `Point` as columns of a series, which is faster than many small objects."""
NOTHING: TrendColumns = ((),) * len(Point._fields)


@dataclass(frozen=True)
class StackEstimates:
    """The estimates of a stack, computed once for all indices that are read of it."""

    stack: Stack
    extras: list[dict[str, Any]]
    parts: list[tuple[OneKind, list[tuple[Array, Estimates]]]]

    @classmethod
    def of(
        cls, stack: Stack, selection: Selection, keys: tuple[str, ...], *, uniform: bool = False
    ) -> "StackEstimates":
        """Compute the keys of a selection; uniform: at equal shares of the classes."""
        extras = extras_of(stack)
        table = with_item_numbers(stack, extras)
        kinds = kinds_of(stack, extras, uniform=uniform)
        parts = [(kind, list(estimates_of(table, kind, selection, keys))) for kind in kinds]
        return cls(stack, extras, parts)


@dataclass(frozen=True)
class Measured:
    """An index, of a class or overall; uniform: at equal shares of the classes.

    Else each value is about the population of its evaluation, or about the items.
    """

    index: Index
    label: str | None
    uniform: bool = False

    @classmethod
    def of(cls, key: str, label: str | None, *, uniform: bool = False) -> "Measured":
        """Look up an index; problem 422 if there is none, or none is stored."""
        entry = find("overall" if label is None else "class", key)
        if entry is None:
            other = find("class" if label is None else "overall", key)
            scoped = _PER_CLASS if label is None else "The index is overall: remove `class`."
            raise _refusal(scoped if other else unknown_index(key))
        if entry.scored and label is not None:
            detail = "The index reads scores, of which only overall indices are stored."
            raise _refusal(f"{detail} It has no series of a class.")
        if entry.needs is not None:
            raise _refusal("The index needs an option of the request, so it has no series.")
        return cls(entry, label, uniform)

    def points(self, store: Store, project: str, filters: Filters, newest: int) -> list[Point]:
        """Compute the points, oldest first; skip evaluations without the class. Reads the store."""
        return list(map(Point, *self.columns(store, project, filters, newest)))

    def columns(self, store: Store, project: str, filters: Filters, newest: int) -> TrendColumns:
        """Compute the points as columns, one for each field. Reads the store."""
        stacks = store.tables(project, filters, newest=newest, scored=self.index.scored)
        label = self.label
        key = self.index.key
        parts = [
            self.of_stack(
                StackEstimates.of(s, minimal_selection(key), (key,), uniform=self.uniform)
            )
            for s in timed(stacks)
            if label is None or label in s.labels
        ]
        if len(parts) == 1:
            return parts[0]
        columns = tuple([*chain(*column)] for column in zip(*parts, strict=True))
        # Each stack is in order, but the stacks overlap in time.
        rows = sorted(zip(*columns, strict=True), key=itemgetter(0))
        return tuple(map(list, zip(*rows, strict=True))) or NOTHING

    def refuse_unknown(self, store: Store, project: str, filters: Filters) -> None:
        """Refuse a class or a slice that no matching evaluation has. Reads the store."""
        if store.page(project, filters, limit=1).items:
            if self.label is not None:
                raise Problem("not_found", "No matching evaluation has the class in `class`.")
        elif filters.slice and store.page(project, replace(filters, slice=()), limit=1).items:
            near = nearest_slices(dict(filters.slice), store.slice_names(project, filters))
            raise Problem("not_found", f"No matching evaluation has the slice in `slice`.{near}")

    def of_stack(self, computed: StackEstimates) -> TrendColumns:
        """Read the points of a stack as columns."""
        stack, extras = computed.stack, computed.extras
        column = None if self.label is None else stack.labels.index(self.label)
        columns, about = np.full((4, len(extras)), np.nan), [""] * len(extras)
        reasons, computed_with = [""] * len(extras), [""] * len(extras)
        for kind, parts in computed.parts:
            shaping = shaping_text(kind.asked, self.index)
            for place, row in enumerate(kind.rows.tolist()):
                about[row] = kind.about[place] if kind.about else ""
                reasons[row], computed_with[row] = kind.reason, shaping
            for rows, estimates in parts:
                columns[:, rows] = self._numbers(estimates, column)
            if self.index.scored and not kind.reason:
                columns[:, kind.rows] = self._kept_numbers(stack)[:, kind.rows]
        values, low, high, codes = columns
        numbers = _without(values.tolist(), ~np.isfinite(values))
        ends = list(zip(low.tolist(), high.tolist(), strict=True))
        pairs = _without(ends, ~(np.isfinite(low) & np.isfinite(high)))
        for place in np.flatnonzero(codes > 0).tolist():
            reasons[place] = REASONS[int(codes[place])]
        for place, extra in enumerate(extras):
            if "grouped" in extra and not self.index.scored:
                # The table alone does not have the intervals of grouped items.
                pairs[place] = None
                reasons[place] = GROUPED if numbers[place] is not None else reasons[place]
        anchors = [extra.get("anchor") for extra in extras]
        names = (stack.ids, stack.models, stack.versions, stack.test_sets, stack.verdicts)
        partial = _omits(stack.table) & (self.index.universe == "classified")
        return (*names, anchors, numbers, pairs, reasons, partial.tolist(), about, computed_with)

    def _kept_numbers(self, stack: Stack) -> Array:
        """Return value, limits and reason code of an index of scores of each evaluation, (4, n).

        Of a slice nothing is kept.
        """
        rows = [MISSING] * len(stack.ids)
        quantile = quantile_of(Options().confidence)
        for row, document in enumerate(stack.score_values):
            if document is not None:
                rows[row] = read_score_values(document).at(self.index.key, quantile)
        return np.array([row[:4] for row in rows]).T

    def _numbers(self, estimates: Estimates, column: int | None) -> Array:
        values, intervals = estimates.values, estimates.intervals
        if column is None:
            place: Any = values.selection.overall_place[self.index.key]
            reasons = values.overall_reasons
            parts = (
                values.overall,
                intervals.overall_low,
                intervals.overall_high,
                intervals.overall_reasons,
            )
        else:
            place = (values.selection.place[self.index.key], ..., column)
            reasons, ends = (
                values.class_reasons,
                (intervals.per_class_low, intervals.per_class_high),
            )
            parts = (values.per_class, *ends, intervals.per_class_reasons)
        shown, low, high, codes = (part[place] for part in parts)
        if reasons is not None:
            codes = np.maximum(reasons[place], codes)
        return np.stack((shown, low, high, codes))


def listed_values(
    store: Store, project: str, keys: tuple[str, ...], listed: Collection[str], filters: Filters
) -> dict[str, dict[str, Any]]:
    """Return overall indices of evaluations by id, all of them in one pass. Reads the store.

    Without keys it is the summary, with indices of scores where these were stored, and with
    `coverage` where items have no prediction.
    """
    chosen = keys or LISTED
    if any(find("class", key) and not find("overall", key) for key in chosen):
        raise _refusal(_NOT_LISTED)
    measured = [Measured.of(key, None) for key in chosen]
    selection = select(Options(indices=chosen))
    named = Filters(ids=tuple(listed), slice=filters.slice)
    values: dict[str, dict[str, Any]] = {identifier: {} for identifier in listed}
    scored = any(series.index.scored for series in measured)
    for stack in store.tables(project, named, newest=len(values), scored=scored) if values else ():
        computed = StackEstimates.of(stack, selection, chosen)
        for series in measured:
            has = [True] * len(stack.ids) if keys else _has(stack, series.index)
            for row in compress(zip(*series.of_stack(computed), strict=True), has):
                point = Point(*row)
                values[point.evaluation][series.index.key] = _listed(point)
    return values


def _has(stack: Stack, index: Index) -> list[bool]:
    """Tell which evaluations of a stack have an index of the summary."""
    if index.scored:
        return [document is not None for document in stack.score_values]
    if index.key != "coverage":
        return [True] * len(stack.ids)
    unclassified = stack.table.unclassified
    rows = np.zeros((len(stack.ids), 1)) if unclassified is None else unclassified
    return [bool(row.any()) for row in rows]


def _listed(point: Point) -> dict[str, Any]:
    notes = {"reason": point.reason, "population": point.population, "options": point.options}
    texts = {name: text for name, text in notes.items() if text}
    return {"value": point.value, "interval": point.interval, **texts}


def trend_document(
    store: Store, project: str, measured: Measured, filters: Filters, newest: int
) -> bytes:
    """Return the series as JSON; problem 404 if no evaluation has the class. Reads the store."""
    columns = measured.columns(store, project, filters, newest)
    if not columns[0]:
        measured.refuse_unknown(store, project, filters)
    anchors = Filters(ids=tuple(set(filter(None, columns[5]))), slice=filters.slice)
    # Like all others from their tables, now.
    points = measured.points(store, project, anchors, len(anchors.ids)) if anchors.ids else ()
    document = {
        "index": measured.index.key,
        "class": measured.label,
        "slice": dict(filters.slice) or None,
        "prevalence": "uniform" if measured.uniform else None,
        "items": list(_items(columns, {point.evaluation: point.value for point in points})),
    }
    return orjson.dumps(document, option=orjson.OPT_NAIVE_UTC)


def _items(columns: TrendColumns, anchors: dict[str, float | None]) -> Iterator[dict[str, Any]]:
    evaluations, models, versions, _, verdicts, anchored, values, pairs, *described = columns
    reasons, _, about, options = described
    moments = ids.creation_times(evaluations)
    shown = zip(evaluations, models, versions, moments, values, pairs, verdicts, strict=True)
    beside = zip(reasons, about, options, anchored, strict=True)
    for row, (reason, population, computed_with, anchor) in zip(shown, beside, strict=True):
        item: dict[str, Any] = dict(zip(_SHOWN, row, strict=True))
        texts = {"reason": reason, "population": population, "options": computed_with}
        item |= {name: text for name, text in texts.items() if text}
        if anchor is not None:
            then, value = anchors.get(anchor), item["value"]
            item["since_anchor"] = None if value is None or then is None else value - then
        yield item


def _omits(table: ConfusionTable) -> Array:
    """Tell which tables of a stack have unclassified or spurious items."""
    mask = np.zeros(table.stack_shape, bool)
    for vector in (table.unclassified, table.spurious):
        if vector is not None:
            mask |= vector.any(axis=-1)
    return mask


def _without(values: list[Any], missing: Array) -> list[Any]:
    """Replace missing entries by None."""
    for place in np.flatnonzero(missing).tolist():
        values[place] = None
    return values


def filters_of(query: Narrowed) -> Filters:
    """Return the filters of a query for the store."""
    return Filters(**query.model_dump(include=set(Narrowed.model_fields)))


@lru_cache(maxsize=256)
def minimal_selection(key: str) -> Selection:
    """Select one index without those that only the warnings of a report read."""
    selection = select(Options(indices=(key,)))
    last = len(selection.computed) - 1
    needed = {other for entry in selection.overall for other in entry.of}
    extra = selection.computed[last].key if selection.computed else ""
    if last < selection.reported or extra in needed or extra != "informedness":
        return selection
    functions = tuple(place for place in selection.functions if place != last)
    places = {name: place for name, place in selection.place.items() if place != last}
    computed = selection.computed[:last]
    return replace(selection, computed=computed, functions=functions, place=places)


def _refusal(detail: str) -> Problem:
    return refuse("/query/index", "unknown_index", detail)
