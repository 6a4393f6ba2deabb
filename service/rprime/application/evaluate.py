"""Answers to large requests, complete wherever nothing is to be kept."""

import hashlib
from dataclasses import dataclass

from rprime.application.request import EvaluationRequest, read_request
from rprime.core.evaluate import Evaluation
from rprime.evidence.reader import Kind
from rprime.history.stored_report import subject_of
from rprime.report.formats import Format
from rprime.settings import Limits


@dataclass(frozen=True, eq=False)
class ResponseOptions:
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
class RenderedReport:
    """A report that is not kept, its kind of evidence, and the verdict of its gate, if any."""

    content: bytes
    evidence: Kind
    verdict: str | None


@dataclass(frozen=True, eq=False)
class UnstoredEvaluation:
    """A request that is to be kept, and the digest of its body."""

    evaluation_request: EvaluationRequest
    payload: bytes


def render_report(
    evaluation_request: EvaluationRequest,
    evaluation: Evaluation,
    form: Format | None,
    *,
    with_table: bool,
) -> bytes:
    """Render a report that is not kept; form None: JSON."""
    if form is None:
        return evaluation_request.report(evaluation, with_table=with_table)
    return form.render(subject_of(evaluation_request, evaluation))


def evaluate_and_render(
    evaluation_request: EvaluationRequest, options: ResponseOptions
) -> RenderedReport:
    """Evaluate what is not to be kept."""
    content = render_report(
        evaluation_request,
        evaluation_request.evaluate(),
        options.form,
        with_table=options.with_table,
    )
    return RenderedReport(content, evaluation_request.evidence.kind, evaluation_request.verdict)


def evaluate_json(body: bytes, options: ResponseOptions) -> RenderedReport | UnstoredEvaluation:
    """Answer a large JSON body as far as that is possible without a store.

    Raises
    ------
    Problem
        400 or 422.
    """
    evaluation_request = read_request(body, options.limits, keeping=True)
    if evaluation_request.store_request is None:
        return evaluate_and_render(evaluation_request, options)
    # Both stay with the evidence, so that they are not computed where they would be in the way.
    _ = evaluation_request.evidence.fingerprint, evaluation_request.evidence.input_digest
    return UnstoredEvaluation(evaluation_request, hashlib.sha256(body).digest())
