"""What travels to a service: a request as it is, the codes of its items, or its table alone."""

from collections.abc import Mapping
from io import BytesIO
from operator import attrgetter
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
import orjson
from numpy.typing import NDArray

from rprime.application import EvaluationRequest
from rprime.application.assessment import BaselineSide, side_of
from rprime.client.calls import JSON
from rprime.commands.ci_request import CiRequest, JsonRequest, splice, written
from rprime.commands.exit_status import refuse, say
from rprime.core.comparison.alignment import Side
from rprime.core.published import Json
from rprime.core.slices.slices import SliceColumn, Slices
from rprime.evidence import FORMATS, Evidence
from rprime.evidence.reader import MEMBERS, OF_SCORES
from rprime.tally.table import slice_tables

MOST_ITEMS = 10_000_000
"""Up to here the items go along, so that comparisons are paired."""


_BY_ITEM = attrgetter("true", "weights", "groups")


_SMALL = 1024 * 1024
"""Bytes up to which JSON goes as it is."""


_MOST_JSON = 32 * 1024 * 1024
"""Bytes of a JSON body that a service takes unless it was told otherwise."""


_MOST_QUERY = 6 * 1024
"""Bytes of what stands in the address: proxies take 8 KiB of it."""


class Payload(NamedTuple):
    """The body of a request; beside columns stands the rest of the request, JSON."""

    content: bytes
    media_type: str = JSON
    request: bytes | None = None
    tallied: bool = False
    """Whether tables stand in place of items."""


def make_payload(
    ci_request: CiRequest, evaluation_request: EvaluationRequest, *, table_only: bool, columns: bool
) -> Payload:
    """Return the payload of a request and what it was read as, with many items as codes.

    `columns` says whether the service takes columns for an answer to this.
    """
    submitted, items = ci_request.request, evaluation_request.evidence.items
    if isinstance(submitted, JsonRequest) and (
        items is None or (len(submitted.body) <= _SMALL and not table_only)
    ):
        return Payload(splice(submitted.body, ci_request.kept_there))
    if not table_only and items is not None and items.true.size <= MOST_ITEMS:
        packed = _packed(ci_request, evaluation_request) if columns else None
        payload = packed or _spelled(ci_request, evaluation_request)
        if payload:
            return payload
    if not table_only and items is not None:
        say("too many items to send: only the table goes, and a comparison is unpaired")
    tables = _tabled(ci_request, evaluation_request)
    return Payload(splice(tables, ci_request.kept_there), tallied=True)


def _tabled(ci_request: CiRequest, evaluation_request: EvaluationRequest) -> bytes:
    """Return a request with tables in place of its items."""
    if evaluation_request.evidence.scores is not None:
        refuse("a table has no scores; send the items, or evaluate here, without --server")
    members = ci_request.request.members
    assessment = evaluation_request.assessment
    candidate = assessment.candidate if assessment else side_of(evaluation_request.evidence, None)
    content = _rest(members) | _table(candidate, members)
    if baseline := baseline_of(evaluation_request):
        content["baseline"] = _table(baseline, members.get("baseline"))
    return orjson.dumps(content)


def _packed(ci_request: CiRequest, evaluation_request: EvaluationRequest) -> Payload | None:
    """Return the codes of the items as columns; None if the other members are too long."""
    evidence, members = evaluation_request.evidence, ci_request.request.members
    items, k = evidence.items, len(evidence.labels)
    assert items is not None  # noqa: S101 (see `make_payload`)
    arrays = {"y_true": items.true, "y_pred": _positions(items.predicted, k)}
    others = {"sample_weight": items.weights, "group": items.groups}
    arrays |= {name: array for name, array in others.items() if array is not None}
    content = _rest(members) | {"labels": evidence.labels, "codes": True}
    content |= _slicing(evidence.slices)
    baseline = baseline_of(evaluation_request)
    if baseline is not None and baseline.items is None:
        content["baseline"] = members["baseline"]
    elif baseline is not None and baseline.items is not None:
        if not same_items(evidence, baseline):
            return None
        arrays["y_pred_baseline"] = _positions(baseline.items.predicted, k)
    request = splice(written(content), ci_request.kept_there)
    if len(quote(request, safe="")) > _MOST_QUERY:
        return None
    return Payload(_streamed(arrays, evidence), FORMATS["arrow"].media_type, request)


def baseline_of(evaluation_request: EvaluationRequest) -> Side | None:
    """Return the baseline whose evidence is in a request."""
    baseline = _baseline_side(evaluation_request)
    return None if baseline is None else baseline.side


def _baseline_side(evaluation_request: EvaluationRequest) -> BaselineSide | None:
    assessment = evaluation_request.assessment
    baseline = None if assessment is None else assessment.baseline_side
    return None if baseline is None or baseline.evidence is None else baseline


def _positions(predicted: NDArray[Any], k: int) -> NDArray[Any]:
    """Return the codes of predicted classes; -1 is unclassified."""
    signed = predicted.astype(np.min_scalar_type(-k - 1), copy=False)
    return np.where(predicted == k, signed.dtype.type(-1), signed)


def same_items(evidence: Evidence, baseline: Side) -> bool:
    """Whether a baseline is nothing but other predictions for the candidate's items."""
    mine, theirs = evidence.items, baseline.items
    if mine is None or theirs is None or baseline.scores is not None or baseline.test_set:
        return False
    return (
        baseline.labels == evidence.labels
        and all(map(np.array_equal, _BY_ITEM(mine), _BY_ITEM(theirs)))
        and baseline.fingerprint == evidence.fingerprint
    )


def _streamed(arrays: Mapping[str, NDArray[Any]], evidence: Evidence) -> bytes:
    """Return columns with the scores, ids and slices of their items, as an Arrow stream."""
    import pyarrow as pa

    columns = {name: pa.array(array) for name, array in arrays.items()}
    if evidence.scores is not None:
        for name, scores in zip(evidence.labels, evidence.scores.T, strict=True):
            columns[f"score:{name}"] = pa.array(scores)
    if evidence.identities is not None:
        columns["item_id"] = evidence.identities.column
    for name, column in _columns(evidence.slices).items():
        texts, codes = _representatives(column)
        if column.edges:
            columns[f"slice:{name}"] = pa.array(np.array(texts, np.float64)[codes])
        else:
            places = pa.array(codes.astype(np.int32), mask=codes == len(column.values))
            columns[f"slice:{name}"] = pa.DictionaryArray.from_arrays(places, texts[:-1])
    batch = pa.table(columns)
    stream = BytesIO()
    # Codes have little to compress, but much of it.
    packed = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(stream, batch.schema, options=packed) as sink:
        sink.write_table(batch)
    return stream.getvalue()


def _columns(slices: Slices | None) -> Mapping[str, SliceColumn]:
    return {} if slices is None else slices.columns


def _representatives(column: SliceColumn) -> tuple[list[Any], NDArray[Any]]:
    """Return a value of each slice of a column, None for no slice, and the positions of the items.

    Of a column of numbers, they are numbers that lie in its slices.
    """
    values: list[Any] = list(column.values)
    if column.edges:
        values = [float(np.nextafter(column.edges[0], -np.inf)), *column.edges]
    return [*values, None], np.minimum(column.codes, len(values))


def _slicing(slices: Slices | None) -> Json:
    """Return how the slices of items are made, as members of a request."""
    cuts = {name: column.edges for name, column in _columns(slices).items() if column.edges}
    members = {"slice_cuts": cuts, "slice_crossings": slices and slices.crossings}
    return {name: value for name, value in members.items() if value}


def _spelled(ci_request: CiRequest, evaluation_request: EvaluationRequest) -> Payload | None:
    """Return the items as JSON; None if there are too many."""
    submitted, evidence = ci_request.request, evaluation_request.evidence
    if isinstance(submitted, JsonRequest):
        body = submitted.body
    else:
        baseline = _baseline_side(evaluation_request)
        content = _rest(submitted.members) | spelled_side(side_of(evidence, None)) | _ids(evidence)
        if "test_set" in submitted.members:
            content["test_set"] = submitted.members["test_set"]
        if baseline is not None:
            spelled = spelled_side(baseline.side) | _ids(baseline.evidence)
            content["baseline"] = submitted.members.get("baseline") or spelled
        body = orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)
    return Payload(splice(body, ci_request.kept_there)) if len(body) <= _MOST_JSON else None


def _ids(evidence: Evidence | None) -> Json:
    """Return the ids of items, in the order in which they were read."""
    if evidence is None or evidence.identities is None:
        return {}
    return {"item_id": evidence.identities.column.to_pylist()}


def spelled_side(side: Side) -> Json:
    """Return the items of a side by the names of their classes."""
    items = side.items
    assert items is not None  # noqa: S101 (columns have items)
    names = np.array([*side.labels, None], dtype=object)
    content: Json = {"labels": side.labels, "y_true": names[items.true].tolist()}
    content |= _slicing(side.slices)
    for name, column in _columns(side.slices).items():
        values, codes = _representatives(column)
        content.setdefault("slices", {})[name] = np.array(values, dtype=object)[codes].tolist()
    content["y_pred"] = names[items.predicted].tolist()
    if side.scores is not None:
        content["y_score"] = np.ascontiguousarray(side.scores.values)
    others = {"sample_weight": items.weights, "groups": items.groups}
    return content | {name: array.tolist() for name, array in others.items() if array is not None}


def _rest(members: Mapping[str, Any]) -> Json:
    """Return the members that are neither evidence nor a baseline with evidence."""
    left_out = MEMBERS.difference(OF_SCORES) | {"columns"}
    baseline = members.get("baseline")  # of a file, it is JSON already
    if not isinstance(baseline, dict) or "constant" not in baseline:
        left_out |= {"baseline"}
    return {name: value for name, value in members.items() if name not in left_out}


def _table(side: Side, members: object) -> Json:
    """Return a side as the table of its items; `members` may declare its test set."""
    table = side.table
    declared = (members.get("test_set") or {}) if isinstance(members, dict) else {}
    if side.items is not None and side.items.groups is not None:
        refuse(
            "a table cannot carry groups, without which intervals and tests would be wrong; "
            "send the items, or evaluate here, without --server"
        )
    rows, columns, counts = (part.tolist() for part in table.cells.coordinates())
    content: Json = {"labels": side.labels, "cells": list(zip(rows, columns, counts, strict=True))}
    if side.slices is not None:
        content["slices"] = slice_tables(side.slices)
    if table.weighted:
        content["weighted"] = True
    vectors = {
        "unclassified": table.unclassified,
        "spurious": table.spurious,
        "class_items": table.items,
    }
    content |= {name: vector.tolist() for name, vector in vectors.items() if vector is not None}
    identity = {"id": side.test_set, "fingerprint": side.fingerprint}
    test_set = {**declared, **{name: value for name, value in identity.items() if value}}
    return content | ({"test_set": test_set} if test_set else {})
