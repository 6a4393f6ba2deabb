"""What a rendering shows of an evaluation that has just been computed."""

from dataclasses import replace

from rprime import __version__
from rprime.application.request import EvaluationRequest
from rprime.core.evaluate import Evaluation
from rprime.report.subject import ReportSubject, baseline_name, read_comparison, read_gate


def report_subject(evaluation_request: EvaluationRequest, evaluation: Evaluation) -> ReportSubject:
    """Return what a rendering shows of an evaluation that is not stored."""
    given, assessment = evaluation_request.given, evaluation_request.assessment
    warnings = evaluation.warnings + evaluation_request.warnings
    members = assessment.members if assessment else {}
    comparison = read_comparison(members.get("comparison"))
    return ReportSubject(
        evaluation=replace(evaluation, warnings=warnings),
        engine_version=__version__,
        comparison=comparison,
        gate=read_gate(members.get("gate")),
        baseline=baseline_name(comparison),
        project=given.project,
        model=given.model,
        version=given.version,
        branch=given.branch,
        commit=given.commit,
        source=given.source,
        input_digest=evaluation_request.evidence.input_digest,
    )
