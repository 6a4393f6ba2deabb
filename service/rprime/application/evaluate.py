"""Evaluate a request from its bytes to its report, here or in a worker."""

import errno
import hashlib
from collections.abc import Collection
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import IO, cast

from rprime.application.request import EvaluationRequest, read_request
from rprime.application.slice_search import search_document
from rprime.application.work import SLACK, TIMES_JSON
from rprime.core.evaluate import Evaluation, evaluate_stack
from rprime.core.intervals.variance import MOST_BY_DOTS
from rprime.core.options import SCORE_OPTIONS, Options
from rprime.core.table import ConfusionTable
from rprime.evidence import Kind, read_columns
from rprime.evidence.reader import Kind as EvidenceKind
from rprime.problems.problem import Problem
from rprime.report.formats import Format
from rprime.schemas.document import Document
from rprime.server.inflating import Inflated, body_too_large, inflated_bound
from rprime.server.worker_channel import Channel
from rprime.server.worker_limits import WorkerLimits
from rprime.settings import Limits


@dataclass(frozen=True, eq=False)
class ResponseOptions:
    """How to answer a request, and how its body is encoded."""

    limits: Limits
    form: Format | None
    """The rendering of the answer; None means JSON."""
    include: Collection[str]
    kind: Kind | None = None
    """The kind of columns; None means a JSON body."""
    encoding: str = "identity"
    """The content encoding of columns."""
    request: bytes = b""
    """The JSON members that accompany columns."""
    search: bool = False
    """Whether weak slices are searched, in place of a report."""


@dataclass(frozen=True, eq=False)
class RenderedReport:
    """A report that is not stored, its kind of evidence, and the verdict of its gate, if any."""

    content: bytes
    evidence: EvidenceKind
    verdict: str | None


@dataclass(frozen=True)
class Failure:
    """An unexpected error in a worker: types and places of the exceptions, for the log."""

    trace: str
    where: dict[str, str]


Answer = RenderedReport | EvaluationRequest
"""A request whose evaluation must be stored before the answer has a `store_request`."""


def answered(
    evaluation_request: EvaluationRequest, payload: bytes, options: ResponseOptions
) -> Answer:
    """Evaluate and render a request, or leave it to be stored first."""
    if evaluation_request.store_request is not None:
        return replace(
            evaluation_request,
            store_request=replace(evaluation_request.store_request, payload=payload),
        )
    content = evaluation_request.report(
        evaluation_request.evaluate(), options.form, include=options.include
    )
    return RenderedReport(content, evaluation_request.evidence.kind, evaluation_request.verdict)


def evaluate_body(body: bytes, options: ResponseOptions) -> Answer:
    """Answer a JSON body, or return its request if it must be stored first."""
    return answered(read_request(body, options.limits), body, options)


def evaluate_stream(body: Channel, options: ResponseOptions) -> Answer:
    """Answer a large request in a worker, or return it if it must be stored first."""
    try:
        if options.kind is None:
            document, payload, limits = _json(body, options)
        else:
            document, payload, limits = _columns(body, options, kind=options.kind)
        if options.search:
            limits.lift()
            content = search_document(document, options.limits)
            return RenderedReport(content, "labels", None)
        evaluation_request = read_request(document, options.limits)
        limits.lift()
        return answered(evaluation_request, payload or _digests(evaluation_request), options)
    except MemoryError:
        pass
    # Only here the memory of the body has been freed, so that an answer fits.
    raise Problem("body_too_large", _NO_MEMORY)


_NO_MEMORY = (
    "Reading the body takes more memory than one request may have. Write fewer rows in each record "
    "batch, row group or page, or send a confusion matrix or `cells`."
)


def _json(body: Channel, options: ResponseOptions) -> tuple[Document, bytes, WorkerLimits]:
    content = body.read()
    most = options.limits.worker_bytes
    limits = WorkerLimits(SLACK + TIMES_JSON * len(content), most=most)
    from rprime.evidence.json_body import read_json  # noqa: PLC0415 (it imports pyarrow)

    document = read_json(content, options.limits.json_depth)
    stored = "project" in document.names
    return document, hashlib.sha256(content).digest() if stored else b"", limits


def _columns(
    body: Channel, options: ResponseOptions, *, kind: Kind
) -> tuple[Document, bytes, WorkerLimits]:
    most = options.limits.other_body_bytes
    # The read buffer and the retained bytes are each within the limit of a body.
    limits = WorkerLimits(SLACK + most, most=options.limits.worker_bytes)
    left = 2 * most

    def hold(size: int) -> None:
        nonlocal left
        left -= size
        if left < 0:
            raise body_too_large(most)
        limits.extend(size)
        body.keep(size)

    stream = cast("IO[bytes]", body)
    if options.encoding != "identity":
        bound = lambda: inflated_bound(most, body.received)  # noqa: E731 (read in one place)
        stream = cast("IO[bytes]", Inflated(stream, options.encoding, bound))
    try:
        document = read_columns(
            kind, stream, options.request, options.limits, hold, measured=options.search
        )
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise Problem("overloaded", NO_ROOM, headers={"Retry-After": "2"}) from None
    return document, b"", limits


_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
NO_ROOM = "The temporary folder of the service lacks room for the body; send CSV or Arrow, or wait."


def _digests(evaluation_request: EvaluationRequest) -> bytes:
    """Identify the request by its parsed content, since the body is no longer in memory."""
    assessment = evaluation_request.assessment
    baseline_side = None if assessment is None else assessment.baseline_side
    identity = "" if baseline_side is None else baseline_side.identity
    return f"{evaluation_request.evidence.input_digest} {identity}".encode()


MOST_CLASSES = MOST_BY_DOTS
"""A stack saves calls of numpy; in larger tables the arithmetic dominates. Up to this size the
values in a stack equal those of a single table to the last digit."""

Key = tuple[object, ...]


def evaluate_together(evaluation_requests: list[EvaluationRequest]) -> list[Evaluation]:
    """Evaluate requests of one key, several of them as one stack."""
    if len(evaluation_requests) == 1:
        return [evaluation_requests[0].evaluate()]
    evidence = [evaluation_request.evidence for evaluation_request in evaluation_requests]
    tables = ConfusionTable.stack([read.table for read in evidence])
    return evaluate_stack(
        tables, [read.labels for read in evidence], evaluation_requests[0].options
    )


def stack_key(evaluation_request: EvaluationRequest) -> Key | None:
    """Return what the tables of one stack share; None if a request cannot be stacked."""
    evidence, options = evaluation_request.evidence, evaluation_request.options
    table, items = evidence.table, evidence.items
    unequal = items is not None and not (items.groups is items.weights is None)
    alone = unequal or evidence.scores is not None or evidence.slices is not None
    alone |= options.average_over is not None  # its positions are other classes elsewhere
    # Requests rarely share a matrix or a weighting.
    has_matrix = not (options.cost is options.cell_weights is options.kappa_weights is None)
    if alone or table.k > MOST_CLASSES or has_matrix:
        return None
    omissions = (table.unclassified is not None, table.spurious is not None)
    return (table.k, table.weighted, *omissions, _shared_options(options))


_UNSHARED = ("cost", "cell_weights", "kappa_weights", *SCORE_OPTIONS)
_shared_options = attrgetter(*(f for f in Options.__dataclass_fields__ if f not in _UNSHARED))
