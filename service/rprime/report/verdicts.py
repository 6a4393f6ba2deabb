"""Verdicts in words: what a gate concluded, and on how many checks that rests."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, Literal

from rprime.core.catalog import find
from rprime.core.gates.kinds import RULE_KINDS, VERDICTS, Effect
from rprime.core.gates.results import GateVerdict, Result
from rprime.core.gates.sentences import CAUSES, PASSED
from rprime.core.quantities import condition, plural
from rprime.report.marks import Axis, Mark
from rprime.report.slices import shown_slice
from rprime.report.text import decimal, isolated, percent, shown, shown_if_any, signed
from rprime.schemas.comparison import Comparison
from rprime.schemas.gate import Gate, SinceAnchor

Tone = Literal["good", "bad", "open", "none"]


@dataclass(frozen=True, slots=True)
class Headline:
    """A verdict to open with; sign and colour never say what the words do not."""

    sign: str
    words: str
    word: str
    tone: Tone


NO_SIGN = "\u2013"
HEADLINES: dict[GateVerdict | None, Headline] = {
    "pass": Headline("✓", "Gate passed", "passed", "good"),
    "fail": Headline("✗", "Gate failed", "failed", "bad"),
    "inconclusive": Headline("?", "Gate inconclusive", "inconclusive", "open"),
    "no_baseline": Headline("?", "Gate not judged: no baseline", "no baseline", "open"),
    "no_rules": Headline(NO_SIGN, "Gate without rules: nothing was judged", "no rules", "none"),
    None: Headline(NO_SIGN, "No gate was set", "no gate", "none"),
}
EFFECT_ORDER: tuple[Effect, ...] = ("fail", "warn", "pass")
UNJUDGED = {
    "fail": Headline("✗", "Gate failed, but could not be judged", "failed", "bad"),
    "inconclusive": Headline("?", "Gate inconclusive, nothing was judged", "inconclusive", "open"),
}
NOT_JUDGED = Headline(NO_SIGN, "The gate judged the items as stored", "not judged", "none")
"""For a slice or another population of what a gate judged."""
UNJUDGED_VERDICTS = frozenset(verdict.name for verdict in VERDICTS.values() if not verdict.judged)
"""Of results that do not rest on numbers."""
COMMON_CAUSES = frozenset(CAUSES)
"""Reasons that the message of the gate gives once for all results."""


def headline(gate: Gate | None) -> Headline:
    """Return the words for the verdict of a gate; None means no gate."""
    if gate is None:
        return HEADLINES[None]
    heading = HEADLINES[gate.verdict]
    heading = heading if gate.judged else UNJUDGED.get(gate.verdict, heading)
    if not gate.undecided:
        return heading
    return replace(heading, words=f"{heading.words}, {plural(gate.undecided, 'result')} undecided")


def summary(gate: Gate) -> str:
    """Count the results, after the sentence of the gate where no list of results says the same."""
    listed = gate.verdict == "fail" and len(separate(gate)) == len(gate.results)
    plain = listed or gate.verdict == "no_rules" or gate.message == PASSED
    counted = tally(gate) if plain else f"{shown(gate.message)} {tally(gate)}"
    return f"{counted}{_drift(gate.since_anchor)}"


def _drift(since: SinceAnchor | None) -> str:
    """Say how far the values moved since the anchor: overall, and of the class that lost most."""
    if since is None:
        return ""
    moved = [*since.overall.items()]
    for key in dict.fromkeys(key for deltas in since.per_class.values() for key in deltas):
        index = find("class", key)
        sign = -1 if index is not None and index.higher_is_better is False else 1
        changes = [
            (sign * delta.value, label, delta)
            for label, deltas in since.per_class.items()
            if (delta := deltas.get(key)) is not None and delta.value is not None
        ]
        worst = sorted(changes, key=itemgetter(0))[:1]
        moved += [(f"{key} of `{shown(label)}`", delta) for _, label, delta in worst]
    parts = []
    for name, delta in moved:
        low, high = delta.interval or (None, None)
        interval = "" if low is None else f" [{signed(low)}, {signed(high)}]"
        parts.append(f"{name} {signed(delta.value)}{interval}")
    return f" Since the anchor: {', '.join(parts)}." if parts else ""


def tally(gate: Gate) -> str:
    """Count the results by their effects."""
    if gate.verdict == "no_rules":
        return "The gate has no rules."
    effects = Counter(result.effect for result in gate.results)
    effects.update(gate.other_results or {})
    words = zip(EFFECT_ORDER, ("failed", "gave a warning", "passed"), strict=True)
    first, *others = ((effects[effect], word) for effect, word in words if effects[effect])
    parts = [f"{first[0]:,} of {plural(effects.total(), 'check')} {first[1]}"]
    parts += [f"{number:,} {word}" for number, word in others]
    look, planned = "", f" of {gate.max_looks} planned" if gate.max_looks else ""
    if gate.look is None and gate.max_looks:
        look = f" {plural(gate.max_looks, 'evaluation')} may use the test set."
    elif gate.look is not None and (planned or gate.look > 1):
        warning = ": after many looks, results get lucky" if gate.look > 1 else ""
        look = f" Evaluation {gate.look}{planned} on these test items{warning}."
    return f"{', '.join(parts)}. One-sided tests at {percent(gate.alpha)}.{look}"


def separate(gate: Gate | None) -> list[Result]:
    """Return the results that the message of a gate does not explain all at once, in order.

    First are those that fail the gate, then warnings. Of each, what is only undecided comes last
    and an overall index before classes and slices, so that a cut list has what decides.
    """
    results = () if gate is None else gate.results
    return sorted(
        (result for result in results if result.reason not in COMMON_CAUSES), key=_importance
    )


def _importance(result: Result) -> tuple[int, bool, bool]:
    decided = {"pass", "fail", *UNJUDGED_VERDICTS}
    undecided = result.verdict not in decided and not result.suspect
    partial = result.class_ is not None or result.slice is not None
    return EFFECT_ORDER.index(result.effect), undecided, partial


def compared(comparison: Comparison | None) -> tuple[str, str]:
    """Say what stands before and after the name of a baseline: how it was compared."""
    pairing = None if comparison is None else comparison.pairing
    if pairing is None:
        return "Not compared with", ": the test sets differ"
    how = "on the same items" if pairing == "paired" else "as two tables"
    return "Compared with", f", {how}"


def finding(result: Result) -> str:
    """Say what was found and, where that does not say it, what it leads to."""
    verdict = result.verdict
    phrase = {"pass": "passes", "fail": "fails"}.get(verdict, verdict.replace("_", " "))
    phrase = "suspect" if result.suspect else phrase
    leads = {"fail": ", fails the gate", "warn": ", warns only", "pass": ""}
    return phrase if verdict == result.effect else f"{phrase}{leads[result.effect]}"


def judged(result: Result) -> str:
    """Name the class and the slice, or the average, of a result; empty for an overall index."""
    if result.average_of is not None:
        return averaged(result)
    parts = [] if result.class_ is None else [shown(result.class_)]
    parts += [shown(condition(*part)) for part in (result.slice or {}).items()]
    return ", ".join(parts)


def averaged(result: Result) -> str:
    """Name what a result is the average of; empty for a single result."""
    if result.average_of is None:
        return ""
    if result.columns:
        return f"average over {' and '.join(map(shown, result.columns))}"
    return f"average of {plural(result.average_of, 'class')}"


def said(result: Result) -> str:
    """Return the sentence of a result, with the direction of the class name isolated."""
    message = shown(result.message)
    if result.class_ is None:
        return message
    name = shown(result.class_)
    return message.replace(f"`{name}`", f"`{isolated(name)}`", 1)


MOST_RESULTS = 30
"""Of those that fail the gate."""
MOST_FOLDED = 12
"""Of those that nobody has to look at first."""
MOST_OPEN = 8
"""Of the results that warn where none fails."""
SIGNS: dict[str, tuple[str, Tone]] = {
    "fail": ("✗", "bad"),
    "warn": ("?", "open"),
    "pass": ("✓", "good"),
}


def gate_groups(gate: Gate | None) -> Iterator[dict[str, Any]]:
    """Group the results of a gate by effect; passes are folded, and warnings beside failures.

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
        folded = effect == "pass" or (effect == "warn" and failed)
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
    """Return the limit on the axis: below zero that of a drop, and of a change that is one."""
    kind = RULE_KINDS[result.kind]
    rises = kind.two_sided and (result.delta or 0.0) > 0
    return result.limit if rises else kind.sign * result.limit


def _ruled(result: Result, axis: Axis) -> dict[str, Any]:
    """Put a result into words; the label stands between the two parts of its sentence."""
    sign, tone = SIGNS[result.effect]
    before, label, after = result.message.partition(f"`{result.class_}`")
    sentence = {"before": shown(before), "named": bool(label), "after": shown(after)}
    drawn = {"mark": mark_of_result(result, axis), "axis": axis.ends, "captions": _captions(result)}
    return {
        "rule": shown(result.rule),
        "label": shown_if_any(result.class_),
        "slice": shown_slice(result.slice) if result.slice else "",
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
    limit = signed(threshold(result))
    if RULE_KINDS[result.kind].two_sided:
        limit = f"±{decimal(result.limit)}"
    return moved, f"change {signed(result.delta)}, limit {limit}"
