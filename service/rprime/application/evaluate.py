"""Answers to large requests, complete wherever nothing is to be kept."""

import hashlib
from dataclasses import dataclass, replace

from rprime import __version__
from rprime.application.request import EvaluationRequest, read_request
from rprime.core.evaluate import Evaluation
from rprime.evidence.reader import Kind
from rprime.report.formats import Format
from rprime.report.subject import ReportSubject
from rprime.settings import Limits
from rprime.store import ids


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
    return form.render(report_subject(evaluation_request, evaluation))


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


def report_subject(
    evaluation_request: EvaluationRequest, evaluation: Evaluation, identifier: str | None = None
) -> ReportSubject:
    """Return what a rendering shows of an evaluation.

    Parameters
    ----------
    evaluation_request, evaluation
        The request and its evaluation.
    identifier
        The id of the stored evaluation; None if it is not stored.
    """
    given, assessment = evaluation_request.given, evaluation_request.assessment
    notices = assessment.notices if assessment else ()
    baseline_side = assessment.baseline_side if assessment else None
    stored = baseline_side is not None and baseline_side.resolved is not None
    return ReportSubject(
        evaluation=replace(evaluation, warnings=evaluation.warnings + notices),
        engine_version=__version__,
        comparison=assessment.comparison if assessment else None,
        gate=assessment.verdict if assessment else None,
        baseline=next(iter(baseline_side.requested.values())) if baseline_side and stored else None,
        project=given.project,
        model=given.model,
        version=given.version,
        branch=given.branch,
        commit=given.commit,
        id=identifier,
        created_at=None if identifier is None else ids.created_at(identifier),
        source=given.source,
        input_digest=evaluation_request.evidence.input_digest,
    )
