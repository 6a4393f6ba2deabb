"""What a rendering shows of an evaluation: of one just computed, or of a report on one."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson

from rprime.application.request import EvaluationRequest, read_request
from rprime.core.catalog import find
from rprime.core.evaluate import Evaluation
from rprime.core.options import SHAPING
from rprime.report.slices import shown_slice
from rprime.report.subject import ReportSubject, baseline_name
from rprime.schemas.provenance import origin_of
from rprime.schemas.report import Report
from rprime.settings import Limits

_KEPT = {"confidence", *SHAPING} - {"calibration", "cell_weights"}
"""Options of a report that shape its table's intervals and values; the table has the weights."""


def without_items(evaluation_request: EvaluationRequest) -> EvaluationRequest:
    """Return a request without what can be large and changes no value: kept beside its report."""
    evidence = evaluation_request.evidence
    items = evidence.items
    needed = items is not None and (items.groups is not None or items.weights is not None)
    if not needed and evidence.scores is None:
        items = None
    evidence = replace(evidence, items=items, identities=None, slices=None)
    return replace(evaluation_request, evidence=evidence, assessment=None)


def request_of_report(report: Report) -> EvaluationRequest:
    """Return a request for the table of a report.

    Raises
    ------
    ValueError
        If the report has no table, or is about strata of items, which it does not have.
    """
    population = report.population
    if report.table is None:
        raise ValueError("the report has no table: ask for it with table=True")
    if population is not None and population.strata == "own":
        raise ValueError("the report is about strata of its items: it is rendered by the service")
    body: dict[str, Any] = {"labels": report.labels}
    body |= report.table.model_dump(exclude_none=True)
    options = {name: getattr(report.options, name) for name in _KEPT}
    body |= {name: option for name, option in options.items() if option is not None}
    body |= {"indices": _of_table(report)}
    if population is not None:
        mapped: dict[str, Any] = {"strata": "predicted", "shares": population.shares}
        prevalence = {"prevalence": population.shares}
        body["population"] = mapped if population.strata == "predicted" else prevalence
    # Of counts that carry weights there were no intervals.
    body |= {"intervals": False} if report.counts.weight is not None else {}
    return read_request(orjson.dumps(body), Limits())


def _of_table(report: Report) -> list[str] | None:
    """Return the keys of a report that follow from its table alone; None if it has no others."""
    of_classes = next(iter(report.per_class.values()), None)
    keys = dict.fromkeys([*report.overall.root, *(of_classes.indices.root if of_classes else ())])
    entries = [find("overall", key) or find("class", key) for key in keys]
    return [e.key for e in entries if e and not e.scored and e.needs is None] or None


def evaluated(
    evaluation_request: EvaluationRequest, indices: Sequence[str] | None = None
) -> Evaluation:
    """Evaluate a request with other indices; None: with its own."""
    if indices is None:
        return evaluation_request.evaluate()
    options = replace(evaluation_request.options, indices=tuple(indices))
    return replace(evaluation_request, options=options).evaluate()


def subject_of_report(report: Report, evaluation: Evaluation) -> ReportSubject:
    """Return what a rendering shows of a report, whose evaluation was computed again."""
    return ReportSubject(
        evaluation=replace(evaluation, warnings=tuple(report.warnings)),
        engine_version=report.engine_version,
        comparison=report.comparison,
        gate=report.gate,
        baseline=baseline_name(report.comparison),
        slice=shown_slice(report.slice or {}),
        input_digest=report.input_digest,
        origin=origin_of(report),
        **{name: getattr(report, name) for name in ("source", "id", "created_at")},
    )
