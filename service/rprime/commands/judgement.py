"""The answer to a submission, from a service or from the engine here."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

import typer

from rprime.commands.exits import Status, refuse, refuse_problem, say
from rprime.commands.options import OnServiceError, Service
from rprime.commands.submission import (
    ColumnsRequest,
    JsonRequest,
    Submission,
    comparison_body,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rprime.client.calls import Call
    from rprime.client.report import Comparison, Report
    from rprime.commands.sending import Parcel
    from rprime.core.evaluate import Evaluation
    from rprime.inquiry import Inquiry
    from rprime.problems import Problem
    from rprime.report.subject import Subject
    from rprime.settings import Limits

Result = TypeVar("Result")


class Judgement(NamedTuple):
    """What came out.

    Parameters
    ----------
    content
        The answer, JSON.
    verdict
        Of the gate; None without one.
    subject
        For renderings.
    """

    content: bytes
    verdict: str | None
    subject: "Subject"


@dataclass(frozen=True, kw_only=True)
class Question:
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

    here: "Callable[[Inquiry, Evaluation], bytes]"
    there: "Callable[[Parcel], Call[Any]]"
    columns: bool


def report_question(*, table: bool) -> Question:
    """Ask for a report."""

    def there(parcel: "Parcel") -> "Call[Report]":
        from rprime.client import calls

        if parcel.request is None:
            return calls.evaluation(parcel.content, table=table)
        columns = (parcel.content, parcel.media_type)
        return calls.evaluation_of_columns(*columns, parcel.request, table=table)

    return Question(
        here=lambda inquiry, evaluation: inquiry.report(evaluation, with_table=table),
        there=there,
        columns=True,
    )


def comparison_question() -> Question:
    """Ask for a comparison."""
    from rprime.inquiry.comparison import render_review

    def here(inquiry: "Inquiry", _: "Evaluation") -> bytes:
        assert inquiry.review is not None  # noqa: S101 (there is a baseline)
        return render_review(inquiry.review)

    def there(parcel: "Parcel") -> "Call[Comparison]":
        from rprime.client import calls

        return calls.comparison(comparison_body(parcel.content))

    return Question(here=here, there=there, columns=False)


def judge(
    question: Question, submission: Submission, service: Service | None, *, table_only: bool
) -> Judgement:
    """Answer here, or by a service where there is one."""
    if service is None:
        return judge_here(question, submission)
    return judge_there(question, submission, service, table_only=table_only)


def judge_here(question: Question, submission: Submission) -> Judgement:
    """Answer in this process."""
    if "baseline" in submission.kept_there:
        refuse("a stored baseline needs --server; give a file to compare here")
    if not {"project", "keep_items"}.isdisjoint(submission.kept_there):
        refuse("nothing is kept here: --project and --keep-items need --server")
    inquiry = read(submission.request)
    evaluation = inquiry.evaluate()
    content = question.here(inquiry, evaluation)
    return Judgement(content, inquiry.verdict, subject_of(inquiry, evaluation, submission))


def judge_there(
    question: Question, submission: Submission, service: Service, *, table_only: bool
) -> Judgement:
    """Ask a service; what the renderings show besides its verdict is computed here."""
    from rprime.commands.sending import parcel

    inquiry = read(submission.request, kept_there=True)
    sent = parcel(submission, inquiry, table_only=table_only, columns=question.columns)
    if sent.tallied:
        inquiry = read(JsonRequest(sent.content), kept_there=True)
    answer: Report | Comparison = ask(question.there(sent), service)
    _say_version(answer.engine_version)
    subject = subject_of(inquiry, inquiry.evaluate(), submission)
    return Judgement(answer.content, answer.verdict, answered(subject, answer, service.url))


def read(request: JsonRequest | ColumnsRequest, *, kept_there: bool = False) -> "Inquiry":
    """Read a request, or end and say what is wrong with it.

    Parameters
    ----------
    request
        Of the contract, or of files of columns.
    kept_there
        Whether a service will keep what the request wants to be kept.
    """
    from rprime.problems import Problem

    known = limits()
    try:
        inquiry = request.read(known)
    except Problem as problem:
        if isinstance(request, ColumnsRequest):
            request.explain()
        refuse_here(problem)
    if inquiry.origin is not None and not kept_there:
        refuse_here(Problem("no_store"))
    return inquiry


def refuse_here(problem: "Problem") -> NoReturn:
    """End because of a problem that was found here."""
    from rprime.client.failures import ProblemError

    refuse_problem(ProblemError(problem.document()))


def limits() -> "Limits":
    """Give what a request may cost here, from the environment."""
    from pydantic import ValidationError

    from rprime.settings import Settings

    try:
        return Settings().limits
    except ValidationError as error:
        names = ["_".join(map(str, found["loc"])).upper() for found in error.errors()]
        refuse(f"a variable has no valid value: RPRIME_{names[0].removeprefix('RPRIME_')}")


def ask(call: "Call[Result]", service: Service) -> Result:
    """Ask a service, or end and say why there is no answer."""
    from rprime.client.blocking import Client
    from rprime.client.failures import (
        ProblemError,
        ServiceUnavailableError,
    )

    try:
        client = Client(
            service.url, key=service.key, timeout=service.timeout, retries=service.retries
        )
    except ValueError as error:
        refuse(str(error))
    try:
        with client:
            return client.ask(call)
    except ProblemError as problem:
        if problem.status < _SERVER_ERROR:
            refuse_problem(problem)
        _give_up(f"{problem} (request {problem.request_id})", service.on_error)
    except ServiceUnavailableError as error:
        _give_up(str(error), service.on_error)


_SERVER_ERROR = 500


_SHOWN = ("project", "model", "version", "branch", "commit", "source")


def subject_of(inquiry: "Inquiry", evaluation: "Evaluation", submission: Submission) -> "Subject":
    """Give what the renderings are of."""
    from rprime import __version__
    from rprime.report.subject import Subject

    review = inquiry.review
    return Subject(
        evaluation=evaluation,
        engine_version=__version__,
        comparison=None if review is None else review.comparison,
        gate=None if review is None else review.verdict,
        baseline=submission.baseline,
        input_digest=inquiry.evidence.input_digest,
        **{name: value for name, value in submission.origin.items() if name in _SHOWN},
    )


def answered(subject: "Subject", answer: "Report | Comparison", url: str) -> "Subject":
    """Give what the renderings are of, where a service has the last word on the verdict."""
    import orjson

    from rprime.inquiry.recorded import read_comparison, read_gate

    found = answer.to_dict()
    # What was computed here, too, has its warnings with it.
    alone = subject.comparison is None and found.get("comparison") is not None
    if alone:
        subject = replace(subject, comparison=read_comparison(orjson.dumps(found["comparison"])))
    gate = None if "gate" not in found else read_gate(orjson.dumps(found["gate"]))
    if gate is not None and subject.gate is not None and not alone:
        gate = replace(gate, warnings=subject.gate.warnings)
    link = found.get("links", {}).get("self")
    return replace(
        subject,
        gate=gate,
        id=found.get("id"),
        created_at=getattr(answer, "created_at", None),
        link=link and f"{url.rstrip('/')}{link}",
    )


def _say_version(there: str) -> None:
    from rprime import __version__

    if there != __version__:
        say(f"the service computes with version {there}, the renderings with {__version__}")


def _give_up(why: str, on_error: OnServiceError) -> NoReturn:
    say(f"NO VERDICT, the service gave no answer. {why}")
    if on_error is OnServiceError.WARN:
        say("this ends with 0 because of --on-service-error warn; nothing was evaluated")
        raise typer.Exit(Status.DONE)
    raise typer.Exit(Status.UNREACHABLE)
