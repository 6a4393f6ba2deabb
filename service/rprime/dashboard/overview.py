"""Overview: the newest evaluation of each model, and the line of those before it."""

from collections.abc import Iterable, Sequence
from typing import Any

from rprime.core.catalog import OVERALL_INDICES
from rprime.core.quantities import plural
from rprime.dashboard.listings import cell_of, legend_of, listing_entry, measure_of
from rprime.history.series import Measured, Point
from rprime.report.marks import Axis
from rprime.report.subject import read_gate
from rprime.report.text import decimal, shortened, shown
from rprime.report.view import term
from rprime.schemas.history import ProjectEntry
from rprime.store import EvaluationMissingError, EvaluationSummary, Filters, Store

RECENT = 60
"""Evaluations of a project that are looked at: a model without one of them did nothing lately."""
MOST_LINES = 50
MOST_REASONS = 12
"""Models whose newest gate says why it did not pass."""
LONGEST_REASON = 100
"""Characters."""
DRAWN = 20
"""Evaluations of a model in its line."""
INDEX = OVERALL_INDICES["r_prime"]
NARROWEST = 0.05
"""The least range of a line, so that small changes do not look like large ones."""
URGENCY = {"fail": 0, "inconclusive": 1, "no_baseline": 1}
"""Verdicts that somebody has to look at, in this order; the others come after them."""


def overview(store: Store, projects: Iterable[ProjectEntry]) -> dict[str, Any]:
    """Describe what happened lately in projects. It reads.

    `lines`, the newest evaluation of each model: those that failed first, then the inconclusive
    ones, then the others, each group newest first; how many models are `left_out`; a `summary`;
    the `term` of the value that is drawn, the `legend` of its marks; and `projects`.
    """
    recent = {project.name: store.page(project.name, limit=RECENT).items for project in projects}
    models = [
        newest
        for items in recent.values()
        for newest in {summary.model: summary for summary in reversed(items)}.values()
    ]
    models.sort(key=lambda summary: summary.id, reverse=True)
    models.sort(key=urgency)
    kept = models[:MOST_LINES]
    points = {
        name: _points(store, name, recent[name]) for name in {summary.project for summary in kept}
    }
    lines = [_line(summary, points[summary.project].get(summary.model, [])) for summary in kept]
    for line, summary in zip(lines[:MOST_REASONS], kept, strict=False):
        if urgency(summary) < len(URGENCY):
            line["reason"] = _reason(store, summary.id)
    return {
        "lines": lines,
        "legend": legend_of(line["measure"] for line in lines if line["measure"] is not None),
        "left_out": len(models) - len(kept),
        "summary": _summary(models),
        "term": term(INDEX),
        "projects": list(projects),
    }


def urgency(summary: EvaluationSummary) -> int:
    """Rank an evaluation; somebody has looked at a failure that was waived."""
    return len(URGENCY) if summary.waived else URGENCY.get(summary.verdict or "", len(URGENCY))


def _summary(models: Sequence[EvaluationSummary]) -> str:
    ranks = [urgency(summary) for summary in models]
    failed, open_ones = ranks.count(0), ranks.count(1)
    what = [f"{failed} failed"] * (failed > 0) + [f"{open_ones} inconclusive"] * (open_ones > 0)
    outcome = ", ".join(what) or "none failed"
    return f"{plural(len(models), 'model')}: {outcome}."


def _reason(store: Store, identifier: str) -> str:
    """Name the results for which a gate did not pass; empty of one that is gone."""
    try:
        gate = read_gate(store.get(identifier).gate)
    except EvaluationMissingError:
        return ""
    _, _, results = ("" if gate is None else gate.message).partition(": ")
    return shortened(shown(results).removesuffix("."), LONGEST_REASON)


def _points(
    store: Store, project: str, recent: Sequence[EvaluationSummary]
) -> dict[str | None, list[Point]]:
    """Measure the recent evaluations of a project, by model, oldest first."""
    named = Filters(ids=tuple(summary.id for summary in recent))
    points: dict[str | None, list[Point]] = {}
    for point in Measured(INDEX, None).points(store, project, named, RECENT):
        points.setdefault(point.model, []).append(point)
    return points


def _line(newest: EvaluationSummary, points: list[Point]) -> dict[str, Any]:
    last = next((point for point in points if point.evaluation == newest.id), None)
    measure = None if last is None else measure_of(INDEX, last)
    return {
        "project": newest.project,
        "entry": listing_entry(newest),
        "model": newest.model,
        "reason": "",
        "measure": measure,
        "cell": None if measure is None else cell_of(measure, Axis(0.0, 1.0)),
        "sparkline": sparkline(points[-DRAWN:]),
    }


def sparkline(points: Sequence[Point]) -> dict[str, Any] | None:
    """Place the values of evaluations on a small line; None for fewer than two values.

    `places`, x and y in percent with the tone of the verdict, oldest first; and `words`.
    """
    pairs = [(point, point.value) for point in points if point.value is not None]
    if len(pairs) < 2:  # noqa: PLR2004 (a line)
        return None
    values = [value for _, value in pairs]
    low, high = min(values), max(values)
    middle, half = (low + high) / 2, max(high - low, NARROWEST) / 2
    axis = Axis(middle - half, middle + half)
    failed = sum(point.verdict == "fail" for point, _ in pairs)
    words = f"{INDEX.name} of {len(pairs)} evaluations from {decimal(values[0])} "
    words += f"to {decimal(values[-1])}, lowest {decimal(low)}, highest {decimal(high)}"
    return {
        "places": [
            (round(100 * at / (len(pairs) - 1), 2), 100 - axis.at(value), point.verdict == "fail")
            for at, (point, value) in enumerate(pairs)
        ],
        "words": f"{words}; {failed} failed" if failed else words,
    }
