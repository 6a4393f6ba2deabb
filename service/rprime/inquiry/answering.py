"""Answers to large requests, complete wherever nothing is to be kept."""

import hashlib
from dataclasses import dataclass
from typing import IO, Protocol, cast

from rprime.core.evaluate import Evaluation
from rprime.evidence import Kind
from rprime.evidence.reader import Kind as EvidenceKind
from rprime.inflating import Inflated, inflated_bound, too_large
from rprime.inquiry.columnar import inquire_columns, question_of
from rprime.inquiry.reading import Inquiry, inquire
from rprime.inquiry.recollection import subject_of
from rprime.problems import Problem
from rprime.report.formats import Format
from rprime.settings import Limits
from rprime.worker_limits import WorkerLimits

_SLACK = 64 << 20
"""Bytes of memory for what has nothing to do with the size of a body."""
_TIMES_JSON = 24
"""How many times its size parsed JSON may take: a short string has 60 bytes in Python."""


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked of a large body.

    Parameters
    ----------
    limits
        What a request may cost.
    form
        Of the answer; None: JSON.
    with_table
        Whether the report has the table itself.
    kind
        Of columns; None: the body is JSON.
    encoding
        In which columns are sent.
    request
        The members of the request that stand beside columns, JSON.
    """

    limits: Limits
    form: Format | None
    with_table: bool
    kind: Kind | None = None
    encoding: str = "identity"
    request: bytes = b""


class Received(Protocol):
    """A body as it comes in."""

    received: int

    def read(self, size: int = -1, /) -> bytes:
        """Return so many bytes, fewer only at the end."""

    def keep(self, size: int) -> None:
        """Tell the service of bytes that are kept in memory until the answer."""


@dataclass(frozen=True, eq=False)
class Report:
    """A report that is not kept, its kind of evidence, and the verdict of its gate, if any."""

    content: bytes
    evidence: EvidenceKind
    verdict: str | None


@dataclass(frozen=True)
class Failure:
    """A defect in a worker: the types and places of the exceptions, for the log."""

    trace: str


@dataclass(frozen=True, eq=False)
class Unkept:
    """A request that is to be kept, and the digest of its body."""

    inquiry: Inquiry
    payload: bytes


def report_on(
    inquiry: Inquiry, evaluation: Evaluation, form: Format | None, *, with_table: bool
) -> bytes:
    """Render a report that is not kept; form None: JSON."""
    if form is None:
        return inquiry.report(evaluation, with_table=with_table)
    return form.render(subject_of(inquiry, evaluation))


def report_of(inquiry: Inquiry, question: Question) -> Report:
    """Evaluate what is not to be kept."""
    content = report_on(inquiry, inquiry.evaluate(), question.form, with_table=question.with_table)
    return Report(content, inquiry.evidence.kind, inquiry.verdict)


def answer_large(body: Received, question: Question) -> Report | Unkept:
    """Answer a large request as far as that is possible without a store.

    Raises
    ------
    Problem
        400, 413 or 422; 503 if there is no room to put the body aside.
    """
    try:
        return _answered(body, question)
    except MemoryError:
        pass
    # Only here what was read has been given back, so that there is memory for an answer.
    raise Problem("body_too_large", _NO_MEMORY)


_NO_MEMORY = (
    "Reading the body takes more memory than one request may have. Write fewer rows in each record "
    "batch, row group or page, or send a confusion matrix or `cells`."
)


def _answered(body: Received, question: Question) -> Report | Unkept:
    inquiry, payload = (_columns if question.kind else _json)(body, question)
    if inquiry.origin is None:
        return report_of(inquiry, question)
    return Unkept(inquiry, payload or _digests(inquiry))


def _json(body: Received, question: Question) -> tuple[Inquiry, bytes]:
    content = body.read()
    limits = WorkerLimits(_SLACK + _TIMES_JSON * len(content))
    inquiry = inquire(content, question.limits, keeping=True)
    limits.lift()
    return inquiry, hashlib.sha256(content).digest()


def _columns(body: Received, question: Question) -> tuple[Inquiry, bytes]:
    assert question.kind is not None  # noqa: S101 (else it is JSON)
    most = question.limits.other_body_bytes
    # What is read at once and what is kept of it are each within the limit of a body.
    limits = WorkerLimits(_SLACK + most)
    left = 2 * most

    def hold(size: int) -> None:
        nonlocal left
        left -= size
        if left < 0:
            raise too_large(most)
        limits.extend(size)
        body.keep(size)

    stream = cast("IO[bytes]", body)
    if question.encoding != "identity":
        bound = lambda: inflated_bound(most, body.received)  # noqa: E731 (read in one place)
        stream = cast("IO[bytes]", Inflated(stream, question.encoding, bound))
    asked = question_of(question.request, question.limits)
    inquiry = inquire_columns(question.kind, stream, asked, question.limits, hold)
    limits.lift()
    return inquiry, b""


def _digests(inquiry: Inquiry) -> bytes:
    """Identify what was sent by what was read, since nobody has the body any more."""
    opponent = inquiry.review.opponent if inquiry.review is not None else None
    identity = opponent.identity if opponent is not None else ""
    return f"{inquiry.evidence.input_digest} {identity}".encode()
