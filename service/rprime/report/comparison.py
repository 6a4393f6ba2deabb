"""The JSON of comparisons and of the verdicts of gates."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict

import numpy as np
import orjson

from rprime.core.arrays import Array
from rprime.core.comparison.attribution import Attribution, CellChanges
from rprime.core.comparison.compare import Comparison
from rprime.core.comparison.difference import METHODS, REASONS, Difference
from rprime.core.comparison.missing_items import MissingItems
from rprime.core.gates.results import GateResult
from rprime.core.published import Json, document, members
from rprime.core.selection import Selection
from rprime.core.slices.comparison import SliceChanges
from rprime.schemas.document import from_json

MOST_RESULTS = 100
"""Of a gate whose answer has all of its results, whether they decide or not."""
CELLS = ("cells", "attribution")
"""The members of a comparison about single cells of the table, which a report has on request."""


def comparison_of_classes(comparison: Json, labels: Collection[str]) -> Json:
    """Keep of a comparison the differences of these classes, and say how many others there are."""
    flips, classes = comparison["flips"], comparison["classes"]
    part = _of_classes(comparison, labels)
    if left_out := len(comparison["per_class"]) - len(part["per_class"]):
        classes = classes | {"left_out": left_out}
    return part | {"flips": flips and _of_classes(flips, labels), "classes": classes}


def comparison_beside_report(
    comparison: Json, labels: Collection[str], selection: Selection
) -> Json:
    """Keep of a comparison the classes that the report shows, and what only it says.

    No difference has the value of the candidate where that is a value of the report.
    """
    part = comparison_of_classes(comparison, labels)
    if _changes_candidate(part):
        return part
    reported = {entry.key for entry in selection.per_class}
    per_class = {
        label: _without_candidate(deltas, reported) for label, deltas in part["per_class"].items()
    }
    overall = _without_candidate(part["overall"], {entry.key for entry in selection.overall})
    return part | {"overall": overall, "per_class": per_class}


def without_cells(comparison: Json) -> Json:
    """Return a comparison as a report has it unasked."""
    return {name: part for name, part in comparison.items() if name not in CELLS}


def _without_candidate(deltas: Json, reported: Collection[str]) -> Json:
    part = deltas.copy()
    for key, delta in deltas.items():
        if key in reported:
            part[key] = rest = delta.copy()
            del rest["candidate"]
    return part


def _of_classes(content: Json, labels: Collection[str]) -> Json:
    per_class = content["per_class"]
    return content | {"per_class": {name: per_class[name] for name in labels if name in per_class}}


def _changes_candidate(comparison: Json) -> bool:
    """Whether the candidate's values may differ from those of all of its items and classes."""
    return comparison["items"] is not None or any(comparison["classes"][name] for name in _CLASSES)


def gate_excerpt(document: bytes) -> bytes:
    """Keep of a verdict on many results those that decide: that fail or else that warn.

    An average decides, too. The others are counted by their effects.
    """
    # Each result names its rule, so that most verdicts need not be parsed.
    if document.count(b'"rule":') <= MOST_RESULTS:
        return document
    content: Json = from_json(document)
    results: list[Json] = content["results"]
    if len(results) <= MOST_RESULTS:
        return document
    decisive = "fail" if content["verdict"] == "fail" else "warn"
    kept = [r for r in results if r["effect"] == decisive or r.get("average_of") is not None]
    others = Counter(result["effect"] for result in results)
    others.subtract(result["effect"] for result in kept)
    content["results"] = kept
    return orjson.dumps(content | {"other_results": +others})


def comparison_document(
    comparison: Comparison,
    baseline: Json,
    changes: SliceChanges | None = None,
    *,
    reported: Collection[str] | None = None,
) -> Json:
    """Return a comparison as the object of the contract, but for its `CELLS`.

    `baseline` is what was asked for and what it came to: `requested`, `resolved`, `why`; `changes`
    are those of slices; `reported` are the keys of the report; None: all that were compared.
    """
    c = comparison
    level = (1 - c.confidence) / 2
    of_classes = c.per_class.flat
    every = deltas(Difference.join([of_classes, c.overall]), level)
    rows, overall = every[: of_classes.value.size], every[of_classes.value.size :]
    count, keys = len(c.classes), [entry.key for entry in c.aligned.selection.per_class]
    columns = (rows[i::count] for i in range(count))

    def shown(deltas: Iterable[tuple[str, Json]]) -> Json:
        return {key: delta for key, delta in deltas if reported is None or key in reported}

    _leave_out_intervals(c, rows, overall)
    method = _lift_method(every)
    return {
        "baseline": baseline,
        "comparability": c.comparability,
        "pairing": c.pairing,
        "items": c.common_items and asdict(c.common_items),
        **_missing(c),
        "confidence": c.confidence,
        "method": method,
        "classes": {name: getattr(c, name) for name in _CLASSES},
        "overall": shown(zip(c.aligned.selection.overall_place, overall, strict=True)),
        "per_class": {
            label: shown(zip(keys, column, strict=True))
            for label, column in zip(c.classes, columns, strict=True)
        },
        **{name: document(getattr(c, name)) for name in ("flips", "moves", "shift")},
        **({} if changes is None else {"slices": slices_document(changes)}),
    }


def cells_document(comparison: Comparison) -> Json:
    """Return the `CELLS` of a comparison."""
    return {
        "cells": comparison.changes and changes_document(comparison.changes),
        "attribution": {
            (a.key if a.label is None else f"{a.key}/{a.label}"): attribution_document(a)
            for a in comparison.attributions
        },
    }


_CLASSES = ("candidate_only", "baseline_only", "without_items")


def _leave_out_intervals(c: Comparison, per_class: list[Json], overall: list[Json]) -> None:
    """Take the interval, which is null, from indices that have none anywhere."""
    of_classes = [entry for entry in c.aligned.selection.per_class for _ in c.classes]
    pairs = ((of_classes, per_class), (c.aligned.selection.overall, overall))
    for entries, deltas in pairs:
        for entry, delta in zip(entries, deltas, strict=True):
            if delta.get("reason") == "no_interval" and entry.interval is None:
                del delta["interval"], delta["reason"]


def _lift_method(deltas: Iterable[Json]) -> str | None:
    """Take the method of most intervals out of the differences, and return it."""
    counted = Counter(delta["method"] for delta in deltas if "method" in delta)
    method, _ = next(iter(counted.most_common(1)), (None, 0))
    for delta in deltas:
        if delta.get("method") == method:
            delta.pop("method", None)
    return method


def since_document(anchor: Comparison, baseline: Json) -> Json:
    """Return the differences from an anchor, a part of the object of a comparison."""
    document = comparison_document(anchor, baseline)
    return {name: document[name] for name in _SINCE if name in document}


_SINCE = (
    "baseline",
    "comparability",
    "missing",
    "pairing",
    "confidence",
    "method",
    "overall",
    "per_class",
)


def _missing(comparison: Comparison) -> Json:
    """Return the member about missing and new items; none where every item is compared."""
    missing = comparison.missing and MissingItems.of(comparison.missing)
    return {} if missing is None else {"missing": document(missing)}


def slices_document(changes: SliceChanges) -> list[Json]:
    """Return the changes of slices as objects of the contract."""
    documents = _deltas(*(part.T for part in changes.numbers))
    p_adjusted = changes.p_adjusted.T.ravel().tolist()
    every = iter(
        [delta | {"p_adjusted": p} for delta, p in zip(documents, p_adjusted, strict=True)]
    )
    keys = [entry.key for entry in changes.entries]
    return [
        {"slice": name, "items": items, "overall": {key: next(every) for key in keys}}
        for name, items in zip(changes.names, changes.items.tolist(), strict=True)
    ]


_METHODS = dict(enumerate(name or None for name in METHODS))


def deltas(difference: Difference, level: float) -> list[Json]:
    """Return every element of a difference as a Delta, in flat order; the level is one-sided."""
    with np.errstate(all="ignore"):
        low, high = difference.limits(level)
    values = difference.candidate, difference.baseline, difference.value
    return _deltas(*values, low, high, difference.methods, difference.reasons)


def _deltas(*parts: Array) -> list[Json]:
    """Return Deltas from the arrays of their members, in flat order."""
    *flat, methods, reasons = (part.ravel().tolist() for part in parts)
    documents: list[Json] = [
        {
            "candidate": candidate,
            "baseline": baseline,
            "value": value,
            **(
                {"interval": (start, end), "method": _METHODS[method]}
                if start == start and end == end  # noqa: PLR0124 (NaN)
                else {"interval": None}
            ),
        }
        for candidate, baseline, value, start, end, method in zip(*flat, methods, strict=True)
    ]
    for i, reason in enumerate(reasons):
        if reason:
            documents[i]["reason"] = REASONS[int(reason)]
    return documents


def _rows(labels: Sequence[str], /, **columns: Array) -> list[Json]:
    """Return an object for each row of arrays; of `labels`, the last is unclassified or spurious.

    Classes, in the columns `true` and `predicted`, are numbers among the labels.
    """
    names = (*labels, None)
    members = {name: column.tolist() for name, column in columns.items()}
    for side in ("true", "predicted") if labels else ():
        members[side] = [names[number] for number in members[side]]
    return [dict(zip(members, row, strict=True)) for row in zip(*members.values(), strict=True)]


def changes_document(changes: CellChanges) -> list[Json]:
    """Return the cells of the table that changed most."""
    columns = {name: part for name, part in vars(changes).items() if name != "labels"}
    return _rows(changes.labels, **columns)


def attribution_document(attribution: Attribution) -> Json:
    """Return which cells the change of an index comes from."""
    a = attribution
    cells = _rows(a.labels, true=a.true, predicted=a.predicted, contribution=a.contributions)
    return {"cells": cells, "rest": a.rest, "residual": a.residual}


_GATE = ("verdict", "judged", "undecided", "message", "alpha", "look", "max_looks")


def render_gate(result: GateResult, more: Mapping[str, Json | None]) -> bytes:
    """Render a verdict as the JSON document of the contract; `more` adds members."""
    verdict: Json = {name: getattr(result, name) for name in _GATE}
    results = [members(rule_result) for rule_result in result.results]
    return orjson.dumps({**verdict, "results": results, **more})
