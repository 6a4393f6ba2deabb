"""The answer to a submission, from a service or from the engine here."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from rprime import __version__
from rprime.commands.ci_request import CiRequest, ColumnFileRequest, JsonRequest, comparison_body
from rprime.commands.exit_status import refuse, refuse_here, say, working
from rprime.commands.history_source import connected
from rprime.commands.options import ServiceOptions, settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from rprime.application import EvaluationRequest
    from rprime.client.calls import Call
    from rprime.client.report import Comparison, Report
    from rprime.commands.payload import Payload
    from rprime.core.evaluate import Evaluation
    from rprime.core.warnings import Warning  # noqa: A004 (its name)
    from rprime.report.subject import ReportSubject

Result = TypeVar("Result")


@dataclass(frozen=True)
class EvaluationOutcome:
    """What came out.

    Parameters
    ----------
    content
        The answer, JSON.
    verdict
        Of the gate; None without one.
    judged
        Whether it rests on numbers.
    make_subject
        Returns what the renderings are of, which takes an evaluation.
    notes
        How the files were read here, which the answer of a service cannot say.
    """

    content: bytes
    verdict: str | None
    judged: bool
    make_subject: "Callable[[], ReportSubject]"
    notes: "tuple[Warning, ...]" = ()

    @cached_property
    def subject(self) -> "ReportSubject":
        """What the renderings are of."""
        return self.make_subject()


@dataclass(frozen=True, kw_only=True)
class Operation:
    """What is asked about a submission: a report, or a comparison.

    Parameters
    ----------
    here
        Answers from what the request was read as, and its evaluation.
    there
        The call by which a service is asked.
    columns
        Whether a service answers it about columns, too.
    """

    here: "Callable[[EvaluationRequest, Evaluation], bytes]"
    there: "Callable[[Payload], Call[Any]]"
    columns: bool


def evaluate_operation(*, table: bool) -> Operation:
    """Ask for a report."""

    def there(payload: "Payload") -> "Call[Report]":
        from rprime.client import calls

        body, kind, members = payload.content, payload.media_type, payload.request
        return calls.evaluation(body, table=table, media_type=kind, request=members)

    return Operation(
        here=lambda evaluation_request, evaluation: evaluation_request.report(
            evaluation, with_table=table
        ),
        there=there,
        columns=True,
    )


def compare_operation() -> Operation:
    """Ask for a comparison."""
    from rprime.application.compare import render_assessment

    def here(evaluation_request: "EvaluationRequest", _: "Evaluation") -> bytes:
        assert evaluation_request.assessment is not None  # noqa: S101 (there is a baseline)
        return render_assessment(evaluation_request.assessment)

    def there(payload: "Payload") -> "Call[Comparison]":
        from rprime.client import calls

        return calls.comparison(comparison_body(payload.content))

    return Operation(here=here, there=there, columns=False)


def run_operation(
    operation: Operation, ci_request: CiRequest, service: ServiceOptions | None, *, table_only: bool
) -> EvaluationOutcome:
    """Answer here, or by a service where there is one."""
    if service is None:
        return run_in_process(operation, ci_request)
    return run_on_server(operation, ci_request, service, table_only=table_only)


def run_in_process(operation: Operation, ci_request: CiRequest) -> EvaluationOutcome:
    """Answer in this process."""
    if "baseline" in ci_request.kept_there:
        refuse("a stored baseline needs --server; give a file to compare here")
    if not {"project", "keep_items"}.isdisjoint(ci_request.origin):
        refuse("nothing is kept here: --project and --keep-items need --server")
    evaluation_request = read(ci_request.request)
    with working("Evaluating ..."):
        evaluation = evaluation_request.evaluate()
        content = operation.here(evaluation_request, evaluation)
    return EvaluationOutcome(
        content,
        evaluation_request.verdict,
        evaluation_request.judged,
        lambda: subject_of(evaluation_request, evaluation, ci_request),
    )


def run_on_server(
    operation: Operation, ci_request: CiRequest, service: ServiceOptions, *, table_only: bool
) -> EvaluationOutcome:
    """Ask a service; the values that renderings show are computed here, where one is asked for."""
    from rprime.commands.payload import make_payload

    evaluation_request = read(ci_request.request, kept_there=True)
    sent = make_payload(
        ci_request, evaluation_request, table_only=table_only, columns=operation.columns
    )
    answer: Report | Comparison = ask(operation.there(sent), service)
    if answer.engine_version != __version__:
        there = answer.engine_version
        say(f"the service computes with version {there}, the renderings with {__version__}")
    if any(warning.code == "first_evaluation" for warning in answer.warnings):
        project = getattr(answer, "project", None)
        say(f"FIRST evaluation of project {project}: there was no such project before")

    assessment = evaluation_request.assessment
    read_so = assessment.notes if assessment else evaluation_request.evidence.warnings
    known = {(warning.code, warning.detail) for warning in answer.warnings}
    notes = tuple(note for note in read_so if (note.code, note.detail) not in known)

    def subject() -> "ReportSubject":
        asked = evaluation_request
        if sent.tallied:
            asked = read(JsonRequest(sent.content), kept_there=True)
        evaluation = asked.evaluate()
        alone = subject_of(replace(asked, assessment=None), evaluation, ci_request)
        link = (getattr(answer, "links", None) or {}).get("self")
        return replace(
            answered(alone, evaluation, answer, notes),
            id=getattr(answer, "id", None),
            created_at=getattr(answer, "created_at", None),
            link=link and f"{service.url.rstrip('/')}{link}",
        )

    return EvaluationOutcome(answer.content, answer.verdict, answer.judged, subject, notes)


def read(
    request: JsonRequest | ColumnFileRequest, *, kept_there: bool = False
) -> "EvaluationRequest":
    """Read a request, or end and say what is wrong with it.

    Parameters
    ----------
    request
        Of the contract, or of files of columns.
    kept_there
        Whether a service will keep what the request wants to be kept.
    """
    from rprime.problems.problem import Problem

    known = settings().limits
    try:
        evaluation_request = request.read(known)
    except Problem as problem:
        files = request.files if isinstance(request, ColumnFileRequest) else []
        refuse_here(problem, " and ".join(file.name for file in files))
    if evaluation_request.store_request is not None and not kept_there:
        refuse_here(Problem("no_store"))
    return evaluation_request


def ask(call: "Call[Result]", service: ServiceOptions) -> Result:
    """Ask a service, or end and say why there is no answer."""
    with working(f"Asking {service.url} ..."), connected(service) as client:
        return client.ask(call)


def subject_of(
    evaluation_request: "EvaluationRequest", evaluation: "Evaluation", ci_request: CiRequest
) -> "ReportSubject":
    """Return what the renderings are of."""
    from rprime.application.request import ORIGIN

    shown = {name: value for name, value in ci_request.origin.items() if name in ORIGIN}
    found = evaluation_request.subject(evaluation)
    return replace(found, baseline=ci_request.baseline, **shown)


def answered(
    subject: "ReportSubject",
    evaluation: "Evaluation",
    answer: "Report | Comparison",
    notes: "tuple[Warning, ...]" = (),
) -> "ReportSubject":
    """Return what the renderings are of, with the comparison and the verdict of a service."""
    from rprime.client.report import Report
    from rprime.core.warnings import Warning  # noqa: A004 (its name)

    warnings = tuple(Warning(**warning.model_dump()) for warning in answer.warnings)
    if not isinstance(answer, Report):
        # The answer to a comparison has none about the values.
        warnings = evaluation.warnings + warnings
    evaluation = replace(evaluation, warnings=warnings + notes)
    comparison = None if answer.comparison is None else answer.comparison.model
    return replace(subject, evaluation=evaluation, comparison=comparison, gate=answer.gate)
