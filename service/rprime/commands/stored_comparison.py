"""Compare two stored evaluations, by a service."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from rprime.commands.ci_request import reference_of
from rprime.commands.drawn_files import of_report
from rprime.commands.evaluation import EvaluationOutcome, ask
from rprime.commands.exit_status import refuse
from rprime.commands.mappings import read_mapping
from rprime.commands.options import ServiceOptions

if TYPE_CHECKING:
    from rprime.report.subject import ReportSubject

Json = dict[str, Any]


def compare_stored(
    candidate: Json,
    baseline: str,
    service: ServiceOptions | None,
    *,
    gates: Path | None = None,
    request: Path | None = None,
) -> EvaluationOutcome:
    """Ask a service to compare two stored evaluations.

    Parameters
    ----------
    candidate
        The reference to the candidate, which must be its id.
    baseline
        The reference to the baseline, as `evaluation=ID` or `version=7`.
    service
        Has both; None ends the command.
    gates, request
        Files with rules, and with the options of the comparison.
    """
    import orjson

    from rprime.client import calls
    from rprime.core.warnings import Warning  # noqa: A004 (its name)

    if service is None:
        refuse("a stored evaluation needs --server; give files to compare here")
    reference = reference_of(baseline)
    if "evaluation" not in candidate or reference is None:
        refuse("two stored evaluations are compared as evaluation=ID evaluation=ID")
    body: Json = {"candidate": candidate, "baseline": reference}
    body |= {"gates": read_mapping(gates, "gates")} if gates else {}
    body |= {"options": read_mapping(request, "members of a request")} if request else {}
    answer = ask(calls.comparison(orjson.dumps(body)), service)

    def subject() -> "ReportSubject":
        path = f"/v1/evaluations/{quote(candidate['evaluation'], safe='')}?include=table"
        found = of_report(ask(calls.document(path), service)).subject(None)
        given = tuple(Warning(**warning.model_dump()) for warning in answer.warnings)
        evaluation = replace(found.evaluation, warnings=found.evaluation.warnings + given)
        return replace(
            found,
            evaluation=evaluation,
            comparison=answer.comparison,
            gate=answer.gate,
            baseline=baseline,
        )

    return EvaluationOutcome(answer.content, answer.verdict, answer.judged, subject)
