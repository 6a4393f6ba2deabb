"""Compare two stored evaluations."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from rprime.client import calls
from rprime.commands.evaluation import EvaluationOutcome

if TYPE_CHECKING:
    from rprime.client.report import Comparison, Report
    from rprime.report.subject import ReportSubject

Json = dict[str, Any]


def compare_stored(
    ask: Callable[["calls.Call[Any]"], Any],
    candidate: Json,
    baseline: Json,
    name: str,
    members: Json | None = None,
) -> EvaluationOutcome:
    """Compare two stored evaluations.

    Parameters
    ----------
    ask
        Asks the service that has both.
    candidate, baseline
        References to them; that of the candidate is its id.
    name
        What the baseline is called.
    members
        The gates, and the options of the comparison.
    """
    from rprime.application.report_subject import request_of_report, subject_of_report
    from rprime.core.warnings import Warning  # noqa: A004 (its name)

    body = {"candidate": candidate, "baseline": baseline, **(members or {})}
    answer: Comparison = ask(calls.comparison(orjson.dumps(body)))

    def subject() -> "ReportSubject":
        report: Report = ask(calls.evaluation_report(candidate["evaluation"], table=True))
        # The warnings of the report are those of its own comparison and gate, too.
        evaluation = request_of_report(report.model).evaluate()
        given = tuple(Warning(**warning.model_dump()) for warning in answer.warnings)
        return replace(
            subject_of_report(report.model, evaluation),
            evaluation=replace(evaluation, warnings=evaluation.warnings + given),
            comparison=answer.comparison,
            gate=answer.gate,
            baseline=name,
        )

    return EvaluationOutcome(answer.content, answer.verdict, answer.judged, subject)
