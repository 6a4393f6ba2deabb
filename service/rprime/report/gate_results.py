"""Gate results: those of each rule as a group, each drawn against its limit."""

from collections.abc import Iterator
from typing import Any

from rprime.core.gates.kinds import RULE_KINDS
from rprime.core.gates.results import Result
from rprime.core.quantities import plural
from rprime.report.decimals import decimal, signed
from rprime.report.marks import Axis, Mark
from rprime.report.names import shown, shown_if_any
from rprime.report.slices import named
from rprime.report.verdicts import Tone, averaged, finding, separate
from rprime.schemas.gate import Gate

MOST_RESULTS = 30
"""Of those that fail the gate."""
MOST_FOLDED = 12
"""Of those that nobody has to look at first."""
MOST_OPEN = 8
"""Of the results that warn: where some fail, more are folded; else only these are shown."""
SIGNS: dict[str, tuple[str, Tone]] = {
    "fail": ("✗", "bad"),
    "warn": ("?", "open"),
    "pass": ("✓", "good"),
}


def gate_groups(gate: Gate | None) -> Iterator[dict[str, Any]]:
    """Group the results of a gate by effect: passes are folded, and many warnings beside failures.

    What fails the gate has no title and is never folded.
    """
    results = separate(gate)
    axes = axes_of_rules(results)
    failed = any(result.effect == "fail" for result in results)
    titles = {"fail": "", "warn": " with a warning", "pass": " passed"}
    for effect, title in titles.items():
        group = [result for result in results if result.effect == effect]
        if not group:
            continue
        folded = effect == "pass" or (effect == "warn" and failed and len(group) > MOST_OPEN)
        most = MOST_FOLDED if folded else MOST_RESULTS if effect == "fail" else MOST_OPEN
        left_out = max(len(group) - most, 0)
        yield {
            "title": title and f"{plural(len(group), 'check')}{title}",
            "folded": folded,
            "results": [_ruled(result, axes[result.rule]) for result in group[:most]],
            "more": left_out and f"{plural(left_out, 'result')} more, all in the JSON report.",
        }


def axes_of_rules(results: list[Result]) -> dict[str, Axis]:
    """Choose, for each rule, one axis for all of its classes."""
    numbers: dict[str, list[float | None]] = {}
    for r in results:
        values = numbers.setdefault(r.rule, [threshold(r)])
        values += [_point(r), r.lower_limit, r.upper_limit]
    return {rule: Axis.around(points) for rule, points in numbers.items()}


def compares(result: Result) -> bool:
    """Tell whether a result is about a change."""
    return RULE_KINDS[result.kind].compares


def _point(result: Result) -> float | None:
    return result.delta if compares(result) else result.observed


def threshold(result: Result) -> float:
    """Return the limit on the axis: that of a drop lies below zero."""
    return RULE_KINDS[result.kind].sign * result.limit


def _ruled(result: Result, axis: Axis) -> dict[str, Any]:
    """Put a result into words; the label stands between the two parts of its sentence."""
    sign, tone = SIGNS[result.effect]
    before, label, after = result.message.partition(f"`{result.class_}`")
    sentence = {"before": shown(before), "named": bool(label), "after": shown(after)}
    drawn = {"mark": mark_of_result(result, axis), "axis": axis.ends, "captions": _captions(result)}
    return {
        "rule": shown(result.rule),
        "label": shown_if_any(result.class_),
        "slice": named(result.slice) if result.slice else "",
        "average": averaged(result),
        "finding": finding(result),
        "sign": sign,
        "tone": tone,
        **sentence,
        **drawn,
    }


def mark_of_result(result: Result, axis: Axis) -> Mark | None:
    """Draw a result; None where it has no value."""
    point = _point(result)
    if point is None:
        return None
    words = ", ".join(_captions(result))
    limits = (result.lower_limit, result.upper_limit)
    return Mark.of(axis, point, limits, threshold(result), words)


def _captions(result: Result) -> tuple[str, str]:
    """Say the numbers that are drawn."""
    if not compares(result):
        return f"value {decimal(result.observed)}", f"limit {decimal(result.limit)}"
    moved = f"{decimal(result.baseline)} → {decimal(result.observed)}"
    return moved, f"change {signed(result.delta)}, limit {signed(threshold(result))}"
