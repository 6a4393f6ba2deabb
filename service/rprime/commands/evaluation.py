"""The answer to a submission, from a service or from the engine here."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from io import BytesIO
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import numpy as np
import orjson
from numpy.typing import NDArray

from rprime import __version__
from rprime.application import EvaluationRequest
from rprime.application.assessment import BaselineSide, side_of
from rprime.client.calls import JSON
from rprime.commands.ci_request import (
    CiRequest,
    ColumnFileRequest,
    JsonRequest,
    comparison_body,
    splice,
    written,
)
from rprime.commands.exit_status import refuse, refuse_here, refuse_problem, say, working
from rprime.commands.history_source import connected
from rprime.commands.mappings import Json
from rprime.commands.options import ServiceOptions, settings
from rprime.core.comparison.alignment import Side
from rprime.core.evaluate import Evaluation
from rprime.core.slices.slices import SliceColumn, Slices
from rprime.core.warnings import Warning  # noqa: A004 (its name)
from rprime.evidence import FORMATS, Evidence
from rprime.evidence.reader import MEMBERS, OF_SCORES
from rprime.problems.problem import Problem
from rprime.report.subject import ReportSubject
from rprime.schemas.provenance import ORIGIN
from rprime.tally.table import slice_tables

if TYPE_CHECKING:
    from rprime.client.clients import Client
    from rprime.client.in_process import InProcess
    from rprime.client.report import Comparison, Report


@dataclass(frozen=True)
class EvaluationOutcome:
    """What came out: the answer, JSON, and the verdict of the gate, if there is one."""

    content: bytes
    verdict: str | None
    judged: bool
    """Whether the verdict rests on numbers."""
    undecided: int
    """The number of results that neither pass nor fail, nor are waived."""
    make_subject: Callable[[], ReportSubject]
    missing: str = ""
    """Why there is no baseline, and the command that sets one."""
    first: str = ""
    """That this is the first evaluation of its model, in words; empty: it is not."""
    notes: tuple[Warning, ...] = ()
    """How the files were read here, which the answer of a service cannot say."""

    @cached_property
    def subject(self) -> ReportSubject:
        """What the renderings are of, which takes an evaluation."""
        return self.make_subject()


def run(
    ci_request: CiRequest,
    service: ServiceOptions | None,
    *,
    compares: bool = False,
    table: bool = False,
    table_only: bool,
) -> EvaluationOutcome:
    """Answer as POST /evaluate or, if it `compares`, as POST /compare: here, or by a service."""
    if service is not None:
        return _run_on_server(
            ci_request, service, compares=compares, table=table, table_only=table_only
        )
    if "baseline" in ci_request.kept_there:
        refuse("a stored baseline needs --server; give a file to compare here")
    if not {"project", "keep_items"}.isdisjoint(ci_request.origin):
        refuse("nothing is kept here: --project and --keep-items need --server")
    evaluation_request = read(ci_request.request)
    _refuse_without_baseline(evaluation_request, ci_request)
    with working("Evaluating ..."):
        evaluation = evaluation_request.evaluate()
        if compares:
            from rprime.application.compare import render_assessment

            assert evaluation_request.assessment is not None  # noqa: S101 (there is a baseline)
            content = render_assessment(evaluation_request.assessment)
        else:
            content = evaluation_request.report(evaluation, include=_WITH_TABLE if table else ())
    return EvaluationOutcome(
        content,
        evaluation_request.verdict,
        evaluation_request.judged,
        evaluation_request.undecided,
        lambda: subject_of(evaluation_request, evaluation, ci_request),
    )


def _run_on_server(
    ci_request: CiRequest, service: ServiceOptions, *, compares: bool, table: bool, table_only: bool
) -> EvaluationOutcome:
    """Ask a service; the values that renderings show are computed here, where one is asked for."""
    evaluation_request = read(ci_request.request, kept_there=True)
    _refuse_without_baseline(evaluation_request, ci_request)
    # A service takes no columns to compare.
    sent = make_payload(ci_request, evaluation_request, table_only=table_only, columns=not compares)
    answer = _answered(service, sent, compares=compares, table=table)
    _say_what_the_service_did(answer)
    assessment = evaluation_request.assessment
    read_so = assessment.notes if assessment else evaluation_request.evidence.warnings
    reported = {(warning.code, warning.detail) for warning in answer.warnings}
    notes = tuple(note for note in read_so if (note.code, note.detail) not in reported)

    def subject() -> ReportSubject:
        tables = read(JsonRequest(sent.content), kept_there=True) if sent.tallied else None
        bare_request = replace(tables or evaluation_request, assessment=None)
        evaluation = (tables or evaluation_request).evaluate()
        alone = subject_of(bare_request, evaluation, ci_request)
        link = (getattr(answer, "links", None) or {}).get("self")
        return replace(
            answered(alone, evaluation, answer, notes),
            id=getattr(answer, "id", None),
            created_at=getattr(answer, "created_at", None),
            link=link and f"{service.url.rstrip('/')}{link}",
        )

    judged, undecided = answer.judged, answer.undecided
    detail_of = partial(details, answer.warnings)
    return EvaluationOutcome(
        answer.content if compares else _as_asked(answer.content, table=table),
        answer.verdict,
        judged,
        undecided,
        subject,
        detail_of("no_baseline"),
        detail_of("first_of_model"),
        notes,
    )


def _answered(
    service: ServiceOptions, sent: "Payload", *, compares: bool, table: bool
) -> "Report | Comparison":
    from rprime.client import calls

    with answering(service) as client:
        if compares:
            return client.ask(calls.comparison(comparison_body(sent.content)))
        call = calls.evaluation(
            sent.content,
            # The renderings show the cells of a comparison.
            include=_WITH_TABLE if table else ("cells",),
            media_type=sent.media_type,
            request=sent.request,
        )
        return client.ask(call)


_WITH_TABLE = ("table", "cells")


def _as_asked(content: bytes, *, table: bool) -> bytes:
    """Return the answer without the cells of its comparison, if only renderings show them."""
    from rprime.report.comparison import without_cells

    report = orjson.loads(content)
    if table or not report.get("comparison"):
        return content
    return orjson.dumps(report | {"comparison": without_cells(report["comparison"])})


def _say_what_the_service_did(answer: "Report | Comparison") -> None:
    """Tell people of another version, of a project that began, and of a repetition."""
    if answer.engine_version != __version__:
        there = answer.engine_version
        say(f"the service computes with version {there}, the renderings with {__version__}")
    for warning in answer.warnings:
        if warning.code == "first_evaluation":
            project = getattr(answer, "project", None)
            say(f"FIRST evaluation of project {project}: there was no such project before")
        elif warning.code == "already_stored":
            say(warning.detail)


def details(warnings: Iterable[Any], code: str) -> str:
    """Return what the warnings with this code say."""
    return " ".join(warning.detail for warning in warnings if warning.code == code)


def read(
    submitted: JsonRequest | ColumnFileRequest, *, kept_there: bool = False
) -> EvaluationRequest:
    """Read a request, or end and say what is wrong with it.

    `kept_there` says that a service will keep what the request wants to be kept.
    """
    try:
        evaluation_request = submitted.read(settings().limits)
    except Problem as problem:
        if isinstance(submitted, ColumnFileRequest):
            names = " and ".join(file.name for file in submitted.files)
            refuse_here(problem, names, submitted.place_of)
        refuse_here(problem)
    if evaluation_request.store_request is not None and not kept_there:
        refuse_here(Problem("no_store"))
    return evaluation_request


def _refuse_without_baseline(evaluation_request: EvaluationRequest, ci_request: CiRequest) -> None:
    """End where rules compare, and nothing says with what: they would never be judged."""
    assessment, kept = evaluation_request.assessment, evaluation_request.store_request
    if assessment is None or assessment.gate is None or assessment.baseline_side is not None:
        return
    stored = kept is not None and kept.reference is not None
    if stored or "baseline" in ci_request.kept_there:
        return
    names = [rule.name for rule in assessment.gate.rules if rule.traits.compares]
    if names:
        which = (
            f"the rule {names[0]} compares" if len(names) == 1 else f"{len(names)} rules compare"
        )
        refuse(
            f"{which} with a baseline, and there is none: name it by --baseline, as "
            "--baseline champion.csv, or --baseline alias=champion in a project"
        )


@contextmanager
def answering(service: ServiceOptions | None) -> "Iterator[Client | InProcess]":
    """Yield the client of a service, or of this process; a refused request ends the command."""
    if service is not None:
        with working(f"Asking {service.url} ..."), connected(service) as client:
            yield client
        return
    from rprime.client.errors import ProblemError
    from rprime.client.in_process import InProcess

    try:
        with working("Simulating ..."):
            yield InProcess(settings().limits)
    except ProblemError as problem:
        refuse_problem(problem)


def subject_of(
    evaluation_request: EvaluationRequest, evaluation: Evaluation, ci_request: CiRequest
) -> ReportSubject:
    """Return what the renderings are of."""
    subject = evaluation_request.subject(evaluation)
    update = {name: value for name, value in ci_request.origin.items() if name in ORIGIN}
    origin, source = subject.origin.model_copy(update=update), ci_request.origin.get("source")
    source = subject.source if source is None else source
    return replace(subject, baseline=ci_request.baseline, origin=origin, source=source)


def answered(
    subject: ReportSubject,
    evaluation: Evaluation,
    answer: "Report | Comparison",
    notes: tuple[Warning, ...] = (),
) -> ReportSubject:
    """Return what the renderings are of, with the comparison and the verdict of a service."""
    from rprime.client.report import Report

    warnings = tuple(answer.warnings)
    if not isinstance(answer, Report):
        # The answer to a comparison has none about the values.
        warnings = evaluation.warnings + warnings
    evaluation = replace(evaluation, warnings=warnings + notes)
    comparison = None if answer.comparison is None else answer.comparison.model
    return replace(subject, evaluation=evaluation, comparison=comparison, gate=answer.gate)


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
    return None if assessment is None else assessment.baseline_side


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
    """Return the members that are neither evidence nor an inline baseline."""
    left_out = MEMBERS.difference(OF_SCORES) | {"baseline", "columns"}
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
    for name, vector in (("unclassified", table.unclassified), ("spurious", table.spurious)):
        if vector is not None:
            content[name] = vector.tolist()
    identity = {"id": side.test_set, "fingerprint": side.fingerprint}
    test_set = {**declared, **{name: value for name, value in identity.items() if value}}
    return content | ({"test_set": test_set} if test_set else {})
