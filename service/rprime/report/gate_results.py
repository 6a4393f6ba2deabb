"""Ruling: the results of a gate in groups, each drawn against its limit."""

from collections.abc import Iterator
from dataclasses import dataclass

from rprime.report.decimals import decimal, plural, signed
from rprime.report.marks import Axis, Mark
from rprime.report.names import shown
from rprime.report.verdicts import Tone, finding, separate
from rprime.schemas.gate import Gate, Result

MOST_RESULTS = 100
"""Of a group."""
MOST_OPEN = 8
"""Of the results that warn: more are folded."""
SIGNS: dict[str, tuple[str, Tone]] = {
    "fail": ("✗", "bad"),
    "warn": ("?", "open"),
    "pass": ("✓", "good"),
}


@dataclass(frozen=True, slots=True)
class GateRow:
    """One result in words, and where its limits lie from the limit of the rule.

    Parameters
    ----------
    before, named, after
        Its sentence; where `named`, the label stands between its two parts.
    """

    rule: str
    label: str | None
    finding: str
    sign: str
    tone: Tone
    before: str
    named: bool
    after: str
    mark: Mark | None
    axis: tuple[str, str]
    captions: tuple[str, str]


@dataclass(frozen=True, slots=True)
class GateGroup:
    """Results of one effect; what fails the gate has no title and is never folded."""

    title: str
    folded: bool
    results: tuple[GateRow, ...]
    more: str


def gate_groups(gate: Gate | None) -> list[GateGroup]:
    """Group the results of a gate: passes are folded, and warnings where they are many."""
    return [] if gate is None else list(_groups(separate(gate.results)))


def _groups(results: list[Result]) -> Iterator[GateGroup]:
    axes = {rule: _axis(rule, results) for rule in {result.rule for result in results}}
    titles = {"fail": "", "warn": "check{} with a warning", "pass": "check{} passed"}
    for effect, title in titles.items():
        found = [result for result in results if result.effect == effect]
        if not found:
            continue
        heading = title.format("" if len(found) == 1 else "s")
        kept = tuple(_ruled(result, axes[result.rule]) for result in found[:MOST_RESULTS])
        left_out = len(found) - len(kept)
        more = f"{plural(left_out, 'result')} more, all in the JSON report." if left_out else ""
        folded = effect == "pass" or (effect == "warn" and len(found) > MOST_OPEN)
        yield GateGroup(f"{len(found):,} {heading}" if heading else "", folded, kept, more)


def _axis(rule: str, results: list[Result]) -> Axis:
    """Choose one axis for all classes of a rule."""
    own = [result for result in results if result.rule == rule]
    numbers = [n for r in own for n in (_point(r), r.lower_limit, r.upper_limit)]
    return Axis.around([*numbers, *(_threshold(r) for r in own[:1])])


def _compares(result: Result) -> bool:
    return result.kind in {"max_drop", "max_gain", "min_gain"}


def _point(result: Result) -> float | None:
    return result.delta if _compares(result) else result.observed


def _threshold(result: Result) -> float:
    """Return the limit on the axis: that of a drop lies below zero."""
    return -result.limit if result.kind == "max_drop" else result.limit


def _ruled(result: Result, axis: Axis) -> GateRow:
    sign, tone = SIGNS[result.effect]
    before, named, after = result.message.partition(f"`{result.class_}`")
    return GateRow(
        shown(result.rule),
        None if result.class_ is None else shown(result.class_),
        finding(result),
        sign,
        tone,
        shown(before),
        bool(named),
        shown(after),
        _mark(result, axis),
        axis.ends,
        _captions(result),
    )


def _mark(result: Result, axis: Axis) -> Mark | None:
    point = _point(result)
    if point is None:
        return None
    words = ", ".join(_captions(result))
    limits = (result.lower_limit, result.upper_limit)
    return Mark.of(axis, point, limits, _threshold(result), words)


def _captions(result: Result) -> tuple[str, str]:
    """Say the numbers that are drawn."""
    if not _compares(result):
        return f"value {decimal(result.observed)}", f"limit {decimal(result.limit)}"
    moved = f"{decimal(result.baseline)} → {decimal(result.observed)}"
    return moved, f"change {signed(result.delta)}, limit {signed(_threshold(result))}"
