"""Overview: the newest evaluation of each model, and the line of those before it."""

from collections.abc import Iterable, Sequence
from typing import Any

from rprime.core.catalog import OVERALL_INDICES
from rprime.core.quantities import plural
from rprime.dashboard.listings import cell_of, entry_of, legend_of, measure_of
from rprime.history.series import Measured, Point
from rprime.report.decimals import decimal
from rprime.report.marks import Axis
from rprime.report.view import term
from rprime.store import EvaluationSummary, Filters, Store
from rprime.store.records import Project

RECENT = 60
"""Evaluations of a project that are looked at: a model without one of them did nothing lately."""
MOST_LINES = 50
DRAWN = 20
"""Evaluations of a model in its line."""
INDEX = OVERALL_INDICES["r_prime"]
NARROWEST = 0.05
"""The least range of a line, so that small changes do not look like large ones."""
URGENCY = {"fail": 0, "inconclusive": 1, "no_baseline": 1}
"""Verdicts that somebody has to look at, in this order; the others come after them."""


def overview(store: Store, projects: Iterable[Project]) -> dict[str, Any]:
    """Describe what happened lately in projects. It reads.

    `lines`, the newest evaluation of each model: those that failed first, then the inconclusive
    ones, then the others, each group newest first; how many models are `left_out`; a `summary`;
    the `term` of the value that is drawn, the `legend` of its marks; and `projects`.
    """
    recent = {one.name: store.page(one.name, limit=RECENT).items for one in projects}
    models = [
        newest
        for items in recent.values()
        for newest in {one.model: one for one in reversed(items)}.values()
    ]
    models.sort(key=lambda one: one.id, reverse=True)
    models.sort(key=urgency)
    kept = models[:MOST_LINES]
    points = {name: _points(store, name, recent[name]) for name in {one.project for one in kept}}
    lines = [_line(one, points[one.project].get(one.model, [])) for one in kept]
    return {
        "lines": lines,
        "legend": legend_of(one["measure"] for one in lines if one["measure"] is not None),
        "left_out": len(models) - len(kept),
        "summary": _summary(models),
        "term": term(INDEX),
        "projects": list(projects),
    }


def urgency(summary: EvaluationSummary) -> int:
    """Rank an evaluation; somebody has looked at a failure that was waived."""
    return len(URGENCY) if summary.waived else URGENCY.get(summary.verdict or "", len(URGENCY))


def _summary(models: Sequence[EvaluationSummary]) -> str:
    ranks = [urgency(one) for one in models]
    failed, open_ones = ranks.count(0), ranks.count(1)
    what = [f"{failed} failed"] * (failed > 0) + [f"{open_ones} inconclusive"] * (open_ones > 0)
    found = ", ".join(what) or "none failed"
    return f"{plural(len(models), 'model')}: {found}."


def _points(
    store: Store, project: str, recent: Sequence[EvaluationSummary]
) -> dict[str | None, list[Point]]:
    """Measure the recent evaluations of a project, by model, oldest first."""
    named = Filters(ids=tuple(one.id for one in recent))
    found: dict[str | None, list[Point]] = {}
    for point in Measured(INDEX, None).points(store, project, named, RECENT):
        found.setdefault(point.model, []).append(point)
    return found


def _line(newest: EvaluationSummary, points: list[Point]) -> dict[str, Any]:
    own = next((point for point in points if point.evaluation == newest.id), None)
    measure = None if own is None else measure_of(INDEX, own)
    return {
        "project": newest.project,
        "entry": entry_of(newest),
        "model": newest.model,
        "measure": measure,
        "cell": None if measure is None else cell_of(measure, Axis(0.0, 1.0)),
        "sparkline": sparkline(points[-DRAWN:]),
    }


def sparkline(points: Sequence[Point]) -> dict[str, Any] | None:
    """Place the values of evaluations on a small line; None for fewer than two values.

    `places`, x and y in percent with the tone of the verdict, oldest first; and `words`.
    """
    known = [(point, point.value) for point in points if point.value is not None]
    if len(known) < 2:  # noqa: PLR2004 (a line)
        return None
    values = [value for _, value in known]
    low, high = min(values), max(values)
    middle, half = (low + high) / 2, max(high - low, NARROWEST) / 2
    axis = Axis(middle - half, middle + half)
    failed = sum(point.verdict == "fail" for point, _ in known)
    words = f"{INDEX.name} of {len(known)} evaluations from {decimal(values[0])} "
    words += f"to {decimal(values[-1])}, lowest {decimal(low)}, highest {decimal(high)}"
    return {
        "places": [
            (round(100 * at / (len(known) - 1), 2), 100 - axis.at(value), point.verdict == "fail")
            for at, (point, value) in enumerate(known)
        ],
        "words": f"{words}; {failed} failed" if failed else words,
    }
