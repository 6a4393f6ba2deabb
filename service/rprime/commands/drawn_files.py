"""What a figure is drawn of, from a file: evidence, or a report that was written before."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import orjson
from pydantic import ValidationError

from rprime.application.report_subject import evaluated
from rprime.client.report import Report
from rprime.commands.ci_request import assemble
from rprime.commands.evaluation import read, subject_of
from rprime.commands.exit_status import refuse, refusing
from rprime.report.charts.evaluation import draw_figure
from rprime.report.charts.sheet import Canvas
from rprime.report.subject import ReportSubject


def drawn_file(
    file: str, baseline: str | None, figure: str, indices: tuple[str, ...]
) -> Callable[[Canvas], bytes]:
    """Return how a figure of a file is drawn, or end and say what is wrong with it."""
    report = _report(file)
    if report is None:
        subject, compared = _of_evidence(file, baseline)
    elif baseline is not None:
        refuse("a report has the baseline that it was made with; leave --baseline out")
    elif report.table is None:
        refuse(
            f"{file}: the report has no table; `rprime evaluate --json --table` and "
            "`GET /v1/evaluations/{id}?include=table` write one that has"
        )
    else:
        subject, compared = report.subject, report.comparison is not None
    with refusing(ValueError):
        return draw_figure(figure, subject, indices, compared=compared)


def _report(file: str) -> Report | None:
    """Return the report in a file; None if the file is no report."""
    path = Path(file)
    if path.suffix.lower() != ".json":
        return None
    try:
        document = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        # Who reads it as evidence says what is wrong.
        return None
    if not isinstance(document, dict) or "engine_version" not in document:
        return None
    report = Report(orjson.dumps(document))
    try:
        _ = report.model
    except ValidationError as error:
        place = "/".join(map(str, error.errors()[0]["loc"]))
        refuse(f"{file} is no whole report of this version: see /{place}")
    return report


def _of_evidence(
    file: str, baseline: str | None
) -> tuple[Callable[[tuple[str, ...]], ReportSubject], bool]:
    """Return what is drawn with given indices, and whether there is a baseline."""
    ci_request = assemble(file, baseline=baseline)
    if "baseline" in ci_request.kept_there:
        refuse("a stored baseline needs a stored evaluation: name its id, or give a file")
    evaluation_request = read(ci_request.request, kept_there=True)

    def subject(indices: tuple[str, ...]) -> ReportSubject:
        report_subject = subject_of(
            evaluation_request, evaluated(evaluation_request, indices), ci_request
        )
        model = report_subject.origin.model or Path(file).stem
        return replace(
            report_subject, origin=report_subject.origin.model_copy(update={"model": model})
        )

    assessment = evaluation_request.assessment
    return subject, assessment is not None and assessment.comparison is not None
