"""The answer to a submission, from a service or from the engine here."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import orjson

from rprime import __version__
from rprime.application import EvaluationRequest
from rprime.commands.ci_request import CiRequest, ColumnFileRequest, JsonRequest, comparison_body
from rprime.commands.exit_status import refuse, refuse_here, refuse_problem, say, working
from rprime.commands.history_source import connect_or_end
from rprime.commands.options import ServiceOptions, settings
from rprime.core.evaluate import Evaluation
from rprime.core.warnings import Warning  # noqa: A004 (its name)
from rprime.problems.problem import Problem
from rprime.report.subject import ReportSubject
from rprime.schemas.provenance import ORIGIN

if TYPE_CHECKING:
    from rprime.client.clients import Client
    from rprime.client.in_process import InProcess
    from rprime.client.report import Comparison, Report
    from rprime.commands.payload import Payload


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
    from rprime.commands.payload import make_payload

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
        with working(f"Asking {service.url} ..."), connect_or_end(service) as client:
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
    baseline = subject.baseline or ci_request.baseline
    return replace(subject, baseline=baseline, origin=origin, source=source)


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
