"""Two stored evaluations, compared for their page."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import orjson

from rprime.application.assessment import Assessment
from rprime.application.request import gate_of
from rprime.application.stored_options import CandidateOrigin
from rprime.core.catalog import find
from rprime.dashboard.tables import entry_of
from rprime.history.stored_report import stored_report
from rprime.history.visible_history import VisibleHistory
from rprime.problems.problem import Problem
from rprime.report.changes import Change, Changes
from rprime.report.decimals import PLACES, count, decimal, signed
from rprime.report.marks import Axis, Mark
from rprime.report.measures import CLASS_HEADLINES
from rprime.report.names import shown
from rprime.report.reasons import explained
from rprime.report.subject import read_comparison, read_gate
from rprime.report.view import term, view_of
from rprime.schemas.comparison import Comparison
from rprime.schemas.gate import Gates
from rprime.schemas.request import MatrixOptions
from rprime.settings import Limits
from rprime.store import BaselineQuery, StoredEvaluation

MOST_CLASSES = 200


def comparison_view(
    candidate: str, baseline: str, limits: Limits, visible_history: VisibleHistory
) -> dict[str, Any]:
    """Compare two stored evaluations as `POST /v1/compare` does, for the template. It reads.

    The rules are those of the gate that the candidate was stored with, if it had one.

    Raises
    ------
    Problem
        404 if one of them is not there, for the caller.
    """
    sides = [visible_history.find(identifier) for identifier in (candidate, baseline)]
    if sides[0] is None or sides[1] is None:
        raise Problem("not_found", "One of the two evaluations is not there.")
    assessment = _compared(sides[0], sides[1], limits, visible_history)
    comparison = read_comparison(assessment.members["comparison"])
    assert comparison is not None  # noqa: S101 (the baseline was found)
    found = stored_report(sides[0], visible_history.open(), limits.top_confusions).subject
    subject = replace(
        found,
        evaluation=replace(found.evaluation, warnings=assessment.warnings),
        comparison=comparison,
        gate=read_gate(assessment.members.get("gate")),
        baseline=sides[1].version or sides[1].id,
    )
    return {
        **view_of(subject),
        "project": sides[0].project,
        "candidate_entry": entry_of(sides[0]),
        "baseline_entry": entry_of(sides[1]),
        "changes": changes_of(comparison),
        "flips": _flips(comparison),
    }


def _compared(
    candidate: StoredEvaluation,
    baseline: StoredEvaluation,
    limits: Limits,
    visible_history: VisibleHistory,
) -> Assessment:
    """Compare with the options that a comparison has by default."""
    rules = orjson.loads(candidate.options).get("gates")
    if rules is not None:
        # Compared with the baseline of the page alone.
        rules.pop("anchor", None)
    options = MatrixOptions().options({}, limits.top_confusions)
    assessment = Assessment(
        candidate=visible_history.side(candidate),
        baseline_side=None,
        options=options,
        gate=gate_of(None if rules is None else Gates.model_validate(rules), options),
    )
    query = BaselineQuery(by="evaluation", name=baseline.id)
    return visible_history.with_side(assessment, CandidateOrigin(baseline.project), query)


def changes_of(comparison: Comparison) -> dict[str, Any]:
    """Put the changes of the classes into words and marks, those that lost most first.

    Returns
    -------
    `columns`, the indices, each with the ends of its axis; `rows`, a name and a change for each
    index; and how many classes are `left_out`.
    """
    compared = next(iter(comparison.per_class.values()), {})
    keys = tuple(key for key in CLASS_HEADLINES if key in compared)
    found = Changes.of(comparison, keys).per_class
    order = _worst_first([found[key] for key in keys], tuple(comparison.per_class))
    kept = order[:MOST_CLASSES]
    axes = {key: _around_zero(found[key][label] for label in kept) for key in keys}
    return {
        "columns": [
            (term(index), axis.ends) for key, axis in axes.items() if (index := find("class", key))
        ],
        "rows": [
            (shown(label), [_shown(found[key][label], axis) for key, axis in axes.items()])
            for label in kept
        ],
        "left_out": len(order) - len(kept),
    }


def _worst_first(found: list[dict[str, Change]], labels: tuple[str, ...]) -> list[str]:
    if not found:
        return []
    return sorted(labels, key=lambda label: found[0][label].value or 0.0)


def _around_zero(changes: Iterator[Change]) -> Axis:
    ends = [number for c in changes for number in (c.value, c.low, c.high) if number is not None]
    widest = max(map(abs, ends), default=0.0)
    axis = Axis.around([-widest, widest])
    return Axis(-axis.high, axis.high) if axis.high > 0 else Axis(-1.0, 1.0)


def _shown(change: Change, axis: Axis) -> dict[str, Any]:
    """Put a change into words, with its mark around no change."""
    if change.value is None:
        judged, interval, mark = explained(change.reason), "", None
    else:
        judged = change.judged
        interval = "" if change.low is None else f"[{signed(change.low)}, {signed(change.high)}]"
        words = f"change {signed(change.value)}" + (f", interval {interval}" if interval else "")
        mark = Mark.of(axis, change.value, (change.low, change.high), None, words)
    return {
        "value": signed(change.value),
        "tone": change.tone,
        "judged": judged,
        "interval": interval,
        "mark": mark,
    }


def _flips(comparison: Comparison) -> list[tuple[str, str]]:
    """Say what changed item by item, as names and numbers; nothing where items are not known."""
    flips = comparison.flips
    if flips is None:
        return []
    facts = [
        ("Predictions that changed", count(flips.moved)),
        ("From right to wrong", count(flips.right_to_wrong)),
        ("From wrong to right", count(flips.wrong_to_right)),
    ]
    tests = [("McNemar test, p (candidate worse)", flips.mid_p)]
    if comparison.shift is not None:
        tests.append(("Bowker, p", comparison.shift.bowker.p_value))
        tests.append(("Stuart and Maxwell, p", comparison.shift.stuart_maxwell.p_value))
    return facts + [(name, _p(p)) for name, p in tests if p is not None]


def _p(value: float) -> str:
    smallest = 10.0**-PLACES
    return f"below {decimal(smallest)}" if value < smallest else decimal(value)
