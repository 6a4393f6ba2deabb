"""What a figure is drawn of, from a file: evidence, or a report that was written before."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import orjson
from pydantic import ValidationError

from rprime.application.report_subject import evaluated
from rprime.client.report import Report
from rprime.commands.ci_request import assemble
from rprime.commands.evaluation import read, subject_of
from rprime.commands.exit_status import refuse
from rprime.report.subject import ReportSubject


class Drawn(NamedTuple):
    """Whether there is a baseline, and what is drawn with these indices."""

    compared: bool
    subject: Callable[[tuple[str, ...]], ReportSubject]


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
    return Drawn(report.comparison is not None, report.subject)


def _report(file: str) -> Report | None:
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
    report = Report(orjson.dumps(found))
    try:
        _ = report.model
    except ValidationError as error:
        place = "/".join(map(str, error.errors()[0]["loc"]))
        refuse(f"{file} is no whole report of this version: see /{place}")
    return report


def _of_evidence(file: str, baseline: str | None) -> Drawn:
    ci_request = assemble(file, baseline=baseline)
    if "baseline" in ci_request.kept_there:
        refuse("a stored baseline needs a stored evaluation: name its id, or give a file")
    evaluation_request = read(ci_request.request, kept_there=True)

    def subject(indices: tuple[str, ...]) -> ReportSubject:
        evaluation = evaluated(evaluation_request, indices)
        found = subject_of(evaluation_request, evaluation, ci_request)
        return replace(found, model=found.model or Path(file).stem)

    assessment = evaluation_request.assessment
    return Drawn(assessment is not None and assessment.comparison is not None, subject)
