"""Answers to large requests, complete wherever nothing is to be kept."""

import hashlib
from dataclasses import dataclass

from rprime.core.evaluate import Evaluation
from rprime.evidence.reader import Kind
from rprime.inquiry.reading import Inquiry, inquire
from rprime.inquiry.recollection import subject_of
from rprime.report.formats import Format
from rprime.settings import Limits


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
    """

    limits: Limits
    form: Format | None
    with_table: bool


@dataclass(frozen=True, eq=False)
class Report:
    """A report that is not kept, its kind of evidence, and the verdict of its gate, if any."""

    content: bytes
    evidence: Kind
    verdict: str | None


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


def answer_large(body: bytes, question: Question) -> Report | Unkept:
    """Answer a large JSON body as far as that is possible without a store.

    Raises
    ------
    Problem
        400 or 422.
    """
    inquiry = inquire(body, question.limits, keeping=True)
    if inquiry.origin is None:
        return report_of(inquiry, question)
    # Both stay with the evidence, so that they are not computed where they would be in the way.
    _ = inquiry.evidence.fingerprint, inquiry.evidence.input_digest
    return Unkept(inquiry, hashlib.sha256(body).digest())
