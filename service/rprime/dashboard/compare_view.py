"""Juxtaposition: two stored evaluations, one against the other, as their page shows them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import orjson

from rprime.application.compare import compare_request
from rprime.core.catalog import find
from rprime.core.comparison.compare import Comparison
from rprime.core.warnings import Warning  # noqa: A004 (its name)
from rprime.dashboard.tables import EvaluationEntry
from rprime.history.stored_documents import read_comparison, read_gate
from rprime.history.stored_report import stored_report
from rprime.history.visible_history import VisibleHistory
from rprime.problems.problem import Problem
from rprime.report.changes import Change, Changes
from rprime.report.decimals import PLACES, count, decimal, signed
from rprime.report.marks import Axis, Mark
from rprime.report.measures import CLASS_HEADLINES
from rprime.report.names import shown
from rprime.report.reasons import explained
from rprime.report.view import Term, view_of
from rprime.settings import Limits
from rprime.store import StoredEvaluation

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
    document, _ = compare_request(_question(sides[0], sides[1]), limits, visible_history)
    answer = orjson.loads(document)
    comparison = read_comparison(orjson.dumps(answer["comparison"]))
    gate = answer.get("gate")
    found = stored_report(sides[0], visible_history.open(), limits.top_confusions).subject
    subject = replace(
        found,
        evaluation=replace(
            found.evaluation, warnings=tuple(Warning(**one) for one in answer["warnings"])
        ),
        comparison=comparison,
        gate=None if gate is None else read_gate(orjson.dumps(gate)),
        baseline=sides[1].version or sides[1].id,
    )
    return {
        **view_of(subject),
        "project": sides[0].project,
        "candidate_entry": EvaluationEntry.of(sides[0]),
        "baseline_entry": EvaluationEntry.of(sides[1]),
        "changes": changes_of(comparison),
        "flips": _flips(comparison),
    }


def _question(candidate: StoredEvaluation, baseline: StoredEvaluation) -> bytes:
    rules = orjson.loads(candidate.options).get("gates")
    question = {
        "candidate": {"evaluation": candidate.id},
        "baseline": {"evaluation": baseline.id},
        **({} if rules is None else {"gates": rules}),
    }
    return orjson.dumps(question)


@dataclass(frozen=True, slots=True)
class ShownChange:
    """A change in words, with its mark around no change."""

    value: str
    tone: str
    judged: str
    interval: str
    mark: Mark | None


@dataclass(frozen=True, slots=True)
class ChangeTable:
    """The changes of the classes, those that lost most first.

    Parameters
    ----------
    columns
        The indices, each with the ends of its axis.
    rows
        A name and a change for each index.
    left_out
        How many classes there are beside these.
    """

    columns: tuple[tuple[Term, tuple[str, str]], ...]
    rows: tuple[tuple[str, tuple[ShownChange, ...]], ...]
    left_out: int


def changes_of(comparison: Comparison) -> ChangeTable:
    """Put the changes of the classes into words and marks."""
    keys = tuple(key for key in CLASS_HEADLINES if key in comparison.per_class_keys)
    found = Changes.of(comparison, keys).per_class
    order = _worst_first([found[key] for key in keys], comparison.classes)
    stored = order[:MOST_CLASSES]
    columns = [(key, _around_zero(found[key][label] for label in stored)) for key in keys]
    return ChangeTable(
        tuple(
            (Term.of(index), axis.ends) for key, axis in columns if (index := find("class", key))
        ),
        tuple(
            (shown(label), tuple(_shown(found[key][label], axis) for key, axis in columns))
            for label in stored
        ),
        len(order) - len(stored),
    )


def _worst_first(found: list[dict[str, Change]], labels: tuple[str, ...]) -> list[str]:
    if not found:
        return []
    return sorted(labels, key=lambda label: found[0][label].value or 0.0)


def _around_zero(changes: Iterator[Change]) -> Axis:
    ends = [number for c in changes for number in (c.value, c.low, c.high) if number is not None]
    widest = max(map(abs, ends), default=0.0)
    axis = Axis.around([-widest, widest])
    return Axis(-axis.high, axis.high) if axis.high > 0 else Axis(-1.0, 1.0)


def _shown(change: Change, axis: Axis) -> ShownChange:
    if change.value is None:
        return ShownChange(decimal(None), "open", explained(change.reason), "", None)
    interval = "" if change.low is None else f"[{signed(change.low)}, {signed(change.high)}]"
    words = f"change {signed(change.value)}" + (f", interval {interval}" if interval else "")
    mark = Mark.of(axis, change.value, (change.low, change.high), None, words)
    tone = change.judged if change.demonstrated else "open"
    return ShownChange(signed(change.value), tone, change.judged, interval, mark)


def _flips(comparison: Comparison) -> list[tuple[str, str]]:
    """Say what changed item by item, as names and numbers; nothing where items are not known."""
    flips = comparison.flips
    if flips is None:
        return []
    lost, won = flips.right_to_wrong[-1], flips.wrong_to_right[-1]
    facts = [
        ("Items predicted otherwise", count(flips.moved)),
        ("From right to wrong", count(lost)),
        ("From wrong to right", count(won)),
    ]
    if np.isfinite(flips.mid_p[-1]):
        facts.append(("Mid-p of McNemar, candidate worse", _p(float(flips.mid_p[-1]))))
    shift = comparison.shift
    if shift is not None:
        facts += [
            (name, _p(float(test.p_value)))
            for name, test in (
                ("Bowker, p", shift.bowker),
                ("Stuart and Maxwell, p", shift.stuart_maxwell),
            )
            if np.isfinite(test.p_value)
        ]
    return facts


def _p(value: float) -> str:
    smallest = 10.0**-PLACES
    return f"below {decimal(smallest)}" if value < smallest else decimal(value)
