"""What a figure is drawn of, from a file: evidence, or a report that was written before."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from rprime.commands.exit_status import refuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from rprime.report.subject import ReportSubject
    from rprime.schemas.report import Report


@dataclass(frozen=True)
class Drawn:
    """What was read.

    Parameters
    ----------
    compared
        Whether there is a baseline.
    subject
        Gives it with these indices; None: with those that it has by default.
    """

    compared: bool
    subject: "Callable[[tuple[str, ...] | None], ReportSubject]"


def read_drawn(file: str, baseline: str | None) -> Drawn:
    """Read a file, or end and say what is wrong with it."""
    report = _report(file)
    if report is None:
        return _of_evidence(file, baseline)
    if baseline is not None:
        refuse("a report has the baseline that it was made with; leave --baseline out")
    if report.table is None:
        refuse(
            f"{file}: the report has no table; `rprime evaluate --json --table` and "
            "`GET /v1/evaluations/{id}?include=table` write one that has"
        )
    return of_report(report)


def _report(file: str) -> "Report | None":
    """Return the report in a file; None if the file is no report."""
    path = Path(file)
    if path.suffix.lower() != ".json":
        return None
    try:
        found = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        # Who reads it as evidence says what is wrong.
        return None
    if not isinstance(found, dict) or "engine_version" not in found:
        return None
    from pydantic import ValidationError

    from rprime.schemas.report import Report

    try:
        return Report.model_validate(found)
    except ValidationError as error:
        place = "/".join(map(str, error.errors()[0]["loc"]))
        refuse(f"{file} is no whole report of this version: see /{place}")


def _of_evidence(file: str, baseline: str | None) -> Drawn:
    from rprime.application.report_subject import evaluated
    from rprime.commands.ci_request import assemble
    from rprime.commands.evaluation import read, subject_of

    ci_request = assemble(file, baseline=baseline)
    if "baseline" in ci_request.kept_there:
        refuse("a stored baseline needs a stored evaluation: name its id, or give a file")
    evaluation_request = read(ci_request.request, kept_there=True)
    given = evaluation_request.given

    def subject(indices: tuple[str, ...] | None) -> "ReportSubject":
        evaluation = evaluated(evaluation_request, indices)
        found = subject_of(evaluation_request, evaluation, ci_request)
        return replace(found, model=given.model or Path(file).stem, version=given.version)

    assessment = evaluation_request.assessment
    return Drawn(assessment is not None and assessment.comparison is not None, subject)


def of_report(report: "Report") -> Drawn:
    """Return what is drawn of a report with its table."""
    from rprime.application.report_subject import evaluated, request_of_report, subject_of_report

    evaluation_request = request_of_report(report)
    return Drawn(
        report.comparison is not None,
        lambda indices: subject_of_report(report, evaluated(evaluation_request, indices)),
    )
