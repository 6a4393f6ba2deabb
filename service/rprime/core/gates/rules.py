"""The rules of a gate, and the check of a gate against the catalog."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import IntEnum
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rprime.core.gates.targets import Mistake, Target, target_of
from rprime.core.options import Options

RuleKind = Literal["min_value", "max_value", "max_drop", "max_gain", "min_gain", "max_gap"]
Policy = Literal["all_must_pass", "suspects_undecided", "suspects_fail", "proven_only"]
Effect = Literal["pass", "warn", "fail"]
OpenVerdict = Literal["inconclusive", "no_baseline", "not_comparable", "undefined"]
"""Verdicts that are neither a pass nor a fail; `on` sets their effects."""

KINDS: tuple[RuleKind, ...] = get_args(RuleKind)
POLICIES: tuple[Policy, ...] = get_args(Policy)
DEFAULT_EFFECTS: Mapping[OpenVerdict, Effect] = {
    "inconclusive": "warn",
    "no_baseline": "warn",
    "not_comparable": "fail",
    "undefined": "fail",
}


EFFECTS: tuple[Effect, ...] = ("pass", "warn", "fail")
Codes = NDArray[np.uint8]
Against = Literal["baseline", "anchor"]
"""What a difference is from."""


class VerdictCode(IntEnum):
    """The verdict on one result; the names are those of the contract.

    `undecided` is not in the contract: the tests still have to decide.
    """

    passed = 0
    fail = 1
    inconclusive = 2
    no_baseline = 3
    not_comparable = 4
    undefined = 5
    waived = 6
    undecided = 255


JUDGED = (VerdictCode.passed, VerdictCode.fail, VerdictCode.inconclusive, VerdictCode.waived)
"""Verdicts that rest on the numbers."""


class RuleError(ValueError):
    """An invalid gate; `place` is where, as tokens of a JSON pointer: ("rules", 2, "max_drop")."""

    def __init__(self, place: tuple[str | int, ...], code: str, message: str) -> None:
        super().__init__(message)
        self.place = place
        self.code = code


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One bound on one target: an index, an index of classes, or a cell of the table.

    Parameters
    ----------
    kind, limit
        The bounded quantity and its limit: of the value, of the difference from the baseline,
        which is then the size of a change, or of the largest difference between slices.
    id
        Unique in its gate; empty for the default, `<index>.<kind>`.
    index
        Key in the catalog; empty for a cell.
    classes
        None: the overall index; "all" or labels: the per-class one.
    confusion
        True and predicted class of a cell: the rule bounds its share of the true class.
    test
        "auto" fails on evidence only; "none" compares point values.
    policy
        What undecided results lead to; None for the default. all_must_pass: each result must pass
        for the gate to pass; suspects_undecided: a suspect makes the gate inconclusive, other
        undecided results do not; suspects_fail: a suspect fails; proven_only: only what is shown
        to violate the rule counts.
    severity
        "warn" limits every effect of the rule to a warning.
    min_items
        Classes with fewer items take no part in the rule, nor in the average that it bounds.
    slices
        None: all items; "all", the name of a column or several: the rule holds in each slice.
    """

    kind: RuleKind
    limit: float
    id: str = ""
    index: str = ""
    classes: Literal["all"] | tuple[str, ...] | None = None
    confusion: tuple[str, str] | None = None
    test: Literal["auto", "none"] = "auto"
    policy: Policy | None = None
    severity: Literal["error", "warn"] = "error"
    min_items: float = 0
    slices: str | tuple[str, ...] | None = None

    @cached_property
    def target(self) -> Target:
        """What it bounds."""
        return target_of(self.index, self.classes, self.confusion)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names that `slices` gives; none for all items."""
        return (self.slices,) if isinstance(self.slices, str) else self.slices or ()

    @cached_property
    def name(self) -> str:
        """The id, or the default one."""
        return self.id or ".".join((self.target.name, self.kind, *self.columns))

    @property
    def decides_by(self) -> Policy:
        """The policy, or the default one."""
        several = self.knows_suspects and (self.classes is not None or self.slices is not None)
        return self.policy or ("suspects_undecided" if several else "all_must_pass")

    @property
    def mandatory(self) -> bool:
        """Whether its results must pass for the gate to pass."""
        return self.decides_by == "all_must_pass"

    @cached_property
    def knows_suspects(self) -> bool:
        """Whether a result may be suspect: worse than before, but not shown beyond the limit."""
        return self.kind in ("max_drop", "max_gain")

    @cached_property
    def compares(self) -> bool:
        """Whether the rule bounds the difference from a baseline."""
        return self.kind in ("max_drop", "max_gain", "min_gain")

    @cached_property
    def guards_below(self) -> bool:
        """Whether the rule forbids low numbers: a lower bound, a drop or a missing gain."""
        return self.kind in ("min_value", "max_drop", "min_gain")

    @property
    def threshold(self) -> float:
        """The rule fails beyond this value, or difference candidate - baseline."""
        return -self.limit if self.kind == "max_drop" else self.limit


@dataclass(frozen=True, kw_only=True)
class Waiver:
    """A known failure that a person accepts, up to a ceiling and an expiry date.

    Parameters
    ----------
    rule, class_
        Id of the rule, and the class it is for; None for every result of the rule.
    ceiling
        The worst value still waived, in the unit of the rule's limit: the largest drop or
        gain, the smallest gain under a `min_gain`, the lowest value under a `min_value`, the
        highest under a `max_value`.
    expires
        Last day on which the waiver applies.
    """

    rule: str
    ceiling: float
    reason: str
    by: str
    expires: date
    class_: str | None = None

    def concerns(self, rule: Rule, label: str | None) -> bool:
        """Whether the waiver names this result."""
        return self.rule == rule.name and self.class_ in (None, label)

    def covers(self, rule: Rule, point: float) -> bool:
        """Whether a value or difference is within the ceiling; an undefined one never is."""
        ceiling = -self.ceiling if rule.kind == "max_drop" else self.ceiling
        return point >= ceiling if rule.guards_below else point <= ceiling


@dataclass(frozen=True, kw_only=True)
class Gate:
    """Rules, and the effects of their verdicts.

    Parameters
    ----------
    alpha
        One-sided level of every limit, in (0, .5).
    on
        Effects of the open verdicts; the others have `DEFAULT_EFFECTS`.
    looks
        The number of looks at one test set that share alpha; None: looks are not counted against
        the gate.
    anchor_requested
        Whether the rules about differences hold against a second, pinned baseline, too.
    """

    rules: tuple[Rule, ...] = ()
    alpha: float = 0.05
    on: Mapping[OpenVerdict, Effect] = field(default_factory=dict)
    looks: int | None = None
    waivers: tuple[Waiver, ...] = ()
    anchor_requested: bool = False

    @property
    def effects(self) -> dict[OpenVerdict, Effect]:
        """Effect of each open verdict."""
        return {**DEFAULT_EFFECTS, **self.on}

    @property
    def indices(self) -> tuple[str, ...]:
        """Keys of the indices that the gate needs."""
        return tuple(dict.fromkeys(key for rule in self.rules for key in rule.target.keys))

    @property
    def scored(self) -> bool:
        """Whether a rule reads scores."""
        return any(rule.target.entry.scored for rule in self.rules)

    @property
    def level(self) -> float:
        """The level of one look at the test set: an equal part of alpha (Bonferroni)."""
        return self.alpha if self.looks is None else self.alpha / self.looks


def check_gate(gate: Gate, options: Options | None = None) -> None:
    """Raise the first of the `mistakes` of a gate, so that a typo never switches a rule off."""
    if error := next(mistakes(gate, options), None):
        raise error


def mistakes(gate: Gate, options: Options | None = None) -> Iterator[RuleError]:
    """Yield every mistake of a gate, in the order of its members; some indices need an option."""
    if not 0 < gate.alpha < 0.5:  # from .5 on the two limits are swapped
        yield RuleError(("alpha",), "out_of_range", "alpha must be above 0 and below 0.5.")
    if gate.looks is not None and gate.looks < 1:
        yield RuleError(("looks", "budget"), "out_of_range", "A budget is at least one look.")
    yield from _effect_mistakes(gate)
    for number, rule in enumerate(gate.rules):
        for field_name, code, message in _rule_mistakes(rule, options):
            yield RuleError(("rules", number, field_name), code, message)
    names = [rule.name for rule in gate.rules]
    for number, name in enumerate(names):
        if name in names[:number]:
            message = "An earlier rule has the same id: change one of them."
            yield RuleError(("rules", number, "id"), "duplicate_id", message)
    for number, waiver in enumerate(gate.waivers):
        for field_name, code, message in _waiver_mistakes(waiver, gate):
            yield RuleError(("waivers", number, field_name), code, message)


def _effect_mistakes(gate: Gate) -> Iterator[RuleError]:
    for verdict, effect in gate.on.items():
        allowed = ("pass", "warn", "fail") if verdict == "inconclusive" else ("warn", "fail")
        if verdict not in DEFAULT_EFFECTS:
            every = ", ".join(DEFAULT_EFFECTS)
            message = f"{verdict} is no open verdict; the open verdicts are {every}."
            yield RuleError(("on", verdict), "unknown_verdict", message)
        elif effect not in allowed:
            message = f"The effect of {verdict} must be {' or '.join(allowed)}, not {effect}."
            yield RuleError(("on", verdict), "invalid_effect", message)


def _rule_mistakes(rule: Rule, options: Options | None) -> Iterator[Mistake]:
    if rule.kind not in KINDS:
        yield "kind", "unknown_kind", f"A rule needs one of {', '.join(KINDS)}."
        return
    found = tuple(rule.target.mistakes(options))
    yield from found
    if any(code == "unknown_index" for _, code, _ in found):
        return  # nothing else about the rule can be checked
    yield from _member_mistakes(rule)
    yield from _limit_mistakes(rule)
    yield from _test_mistakes(rule, options)
    if not (np.isfinite(rule.min_items) and rule.min_items >= 0):
        yield "min_items", "out_of_range", "min_items is a number of items: 0 or more."
    elif rule.min_items and not rule.target.leaves_out:
        text = f"{rule.target.name} is no average over classes, so min_items leaves nothing out."
        yield "min_items", "no_classes", text


def _test_mistakes(rule: Rule, options: Options | None) -> Iterator[Mistake]:
    """Yield what is wrong with a test that no evidence decides, because there is no interval."""
    entry = rule.target.entry
    if rule.test == "none" or entry.interval is not None:
        return
    ways = "write `test: none` to compare point values, or take another index."
    if entry.resampled and rule.kind in ("min_value", "max_value"):
        if options is None or options.intervals == "all":
            return
        ways = f'send `"intervals": "all"`, {ways}'
    text = f"{rule.target.name} has no interval, so no number of items decides this rule: {ways}"
    yield "index", "no_interval", text


def _member_mistakes(rule: Rule) -> Iterator[Mistake]:
    """Yield what is wrong with the policy and the slices."""
    if rule.policy not in (None, *POLICIES):
        yield "policy", "unknown_policy", f"A policy is one of {', '.join(POLICIES)}."
    elif rule.policy is not None and not (rule.mandatory or rule.knows_suspects):
        text = (
            f"{rule.kind} has no suspects: its policy is all_must_pass. "
            'Use `severity: "warn"` for a rule that must not block.'
        )
        yield "policy", "no_suspects", text
    if rule.slices is not None and not rule.slices:
        yield "slices", "empty", "A rule without slices checks nothing: name columns, or write all."
    elif rule.kind == "max_gap" and (rule.slices == "all" or len(rule.columns) != 1):
        text = "max_gap is the largest difference between the slices of one column: name it."
        yield "slices", "one_column", text
    elif rule.kind == "max_gap" and rule.confusion is not None:
        yield "confusion", "no_gap", "max_gap bounds an index: name one in place of confusion."


def _limit_mistakes(rule: Rule) -> Iterator[Mistake]:
    target = rule.target
    name, (low, high) = target.name, target.entry.range
    ends: dict[float | None, str] = {low: "low", high: "high"}
    turned = TURNED.get((rule.kind, ends.get(target.best)))
    if turned is not None:
        other, effect = turned
        text = f"{name} is best at {target.best:g}, so {effect}: use {other}."
        yield rule.kind, f"use_{other}", text
    elif not np.isfinite(rule.limit):
        yield rule.kind, "not_finite", "The limit must be a finite number."
    elif rule.kind == "max_gap":
        if not 0 < rule.limit < high - low:
            text = f"max_gap of {name} must be above 0 and below {high - low:g}."
            yield rule.kind, "out_of_range", text
    elif not rule.compares and not low <= rule.limit <= high:
        yield rule.kind, "out_of_range", f"{name} lies between {low:g} and {high:g}."
    elif rule.knows_suspects and rule.limit == 0:
        yield rule.kind, "needs_superiority", NEEDS_SUPERIORITY[rule.kind]
    elif rule.compares and rule.limit < 0:
        smallest = "at least 0" if rule.kind == "min_gain" else "above 0"
        text = f"{rule.kind} is the size of a change: it must be {smallest}."
        yield rule.kind, "out_of_range", text
    elif rule.compares and rule.limit >= high - low:
        text = f"{rule.kind} of {name} must be below {high - low:g}: no change is larger."
        yield rule.kind, "out_of_range", text


TURNED: Mapping[tuple[RuleKind, str | None], tuple[RuleKind, str]] = {
    ("min_value", "low"): ("max_value", "a lower bound fails good models and passes bad ones"),
    ("max_value", "high"): ("min_value", "an upper bound fails good models and passes bad ones"),
    ("max_drop", "low"): ("max_gain", "a drop is an improvement"),
    ("min_gain", "low"): ("max_drop", "a gain is a loss"),
    ("max_gain", "high"): ("max_drop", "a gain is an improvement"),
}
"""By a kind and the end of the range that is best: the kind to use, and the effect of this one."""
NEEDS_SUPERIORITY = {
    "max_drop": "max_drop: 0 passes only a candidate that is proven better than the baseline: "
    "write min_gain: 0 for that, or the largest drop that you accept, for example 0.02.",
    "max_gain": "max_gain: 0 passes only a candidate that is proven lower than the baseline; set "
    "the largest rise that you accept, for example 0.02.",
}


def _waiver_mistakes(waiver: Waiver, gate: Gate) -> Iterator[Mistake]:
    rule = next((rule for rule in gate.rules if rule.name == waiver.rule), None)
    known = rule is not None and not any(rule.target.mistakes(None))
    low, high = rule.target.entry.range if rule is not None and known else (-np.inf, np.inf)
    change = rule is not None and rule.kind not in ("min_value", "max_value")
    if rule is None:
        yield "rule", "unknown_rule", "No rule of the gate has this id."
    elif waiver.class_ is not None and rule.classes is None:
        yield "class", "unknown_class", "The waived rule bounds an overall index, not classes."
    elif rule.classes != "all" and waiver.class_ not in (None, *(rule.classes or ())):
        yield "class", "unknown_class", "The waived rule does not name this class."
    if not np.isfinite(waiver.ceiling):
        yield "ceiling", "not_finite", "The ceiling must be a finite number."
    elif change and not 0 <= waiver.ceiling < high - low:
        text = f"The ceiling is the size of a change: at least 0, and below {high - low:g}."
        yield "ceiling", "out_of_range", text
    elif not change and not low <= waiver.ceiling <= high:
        yield "ceiling", "out_of_range", f"The value lies between {low:g} and {high:g}."
