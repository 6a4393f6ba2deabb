"""What a figure is drawn of, from a file: evidence, or a report that was written before."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from rprime.commands.exit_status import refuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from rprime.application import EvaluationRequest
    from rprime.report.subject import ReportSubject

Json = dict[str, Any]
_KEPT = ("beta", "undefined", "confidence", "exact", "sampling")
"""Options of a report that shape its intervals and values."""


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
    if "table" not in report:
        refuse(
            f"{file}: the report has no table; `rprime evaluate --json --table` and "
            "`GET /v1/evaluations/{id}?include=table` write one that has"
        )
    return of_report(report)


def _report(file: str) -> Json | None:
    """Return the report in a file; None if the file is no report."""
    path = Path(file)
    if path.suffix.lower() != ".json":
        return None
    try:
        found = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        # Who reads it as evidence says what is wrong.
        return None
    return found if isinstance(found, dict) and "engine_version" in found else None


def _of_evidence(file: str, baseline: str | None) -> Drawn:
    from rprime.commands.ci_request import assemble
    from rprime.commands.evaluation import read, subject_of

    ci_request = assemble(file, baseline=baseline)
    if "baseline" in ci_request.kept_there:
        refuse("a stored baseline needs a stored evaluation: name its id, or give a file")
    evaluation_request = read(ci_request.request, kept_there=True)
    given = evaluation_request.given

    def subject(indices: tuple[str, ...] | None) -> "ReportSubject":
        found = subject_of(
            evaluation_request, _narrowed(evaluation_request, indices).evaluate(), ci_request
        )
        return replace(found, model=given.model or Path(file).stem, version=given.version)

    assessment = evaluation_request.assessment
    return Drawn(assessment is not None and assessment.comparison is not None, subject)


def of_report(report: Json) -> Drawn:
    """Return what is drawn of a report with its table."""
    from rprime.commands.ci_request import JsonRequest
    from rprime.commands.evaluation import read
    from rprime.report.subject import ReportSubject, baseline_name, read_comparison

    body: Json = {"labels": report["labels"], **report["table"]}
    body |= {name: report["options"][name] for name in _KEPT}
    # Of counts that carry weights there were none.
    body |= {"intervals": False} if report["counts"]["weighted"] else {}
    evaluation_request = read(JsonRequest(orjson.dumps(body)))
    comparison = read_comparison(orjson.dumps(report.get("comparison")))

    def subject(indices: tuple[str, ...] | None) -> "ReportSubject":
        return ReportSubject(
            evaluation=_narrowed(evaluation_request, indices).evaluate(),
            engine_version=report["engine_version"],
            comparison=comparison,
            baseline=baseline_name(comparison),
            **{name: report.get(name) for name in ("project", "model", "version", "id")},
        )

    return Drawn(comparison is not None, subject)


def _narrowed(
    evaluation_request: "EvaluationRequest", indices: tuple[str, ...] | None
) -> "EvaluationRequest":
    return replace(evaluation_request, options=replace(evaluation_request.options, indices=indices))
