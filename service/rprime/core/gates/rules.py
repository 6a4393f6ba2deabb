"""The rules of a gate, and the check of a gate against the catalog."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Literal

import numpy as np

from rprime.core.gates.kinds import (
    DEFAULT_EFFECTS,
    EFFECT_CHOICES,
    POLICIES,
    RETIRED_POLICIES,
    RULE_KINDS,
    Effect,
    End,
    Policy,
    PolicyName,
    RuleKind,
    Words,
)
from rprime.core.gates.targets import Mistake, Target, target_of
from rprime.core.options import Options


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
        A name in `POLICIES`; None for the default: the average of classes or slices where a result
        may be suspect and the index has an average, else each result.
    severity
        "warn" limits every effect of the rule to a warning.
    min_items
        Classes with fewer items take no part in the rule, nor in the average that it bounds.
    slices
        None: all items; "all", the name of a column or several: the rule holds in each slice.
    """

    kind: str
    limit: float
    id: str = ""
    index: str = ""
    classes: Literal["all"] | tuple[str, ...] | None = None
    confusion: tuple[str, str] | None = None
    test: Literal["auto", "none"] = "auto"
    policy: PolicyName | None = None
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

    @cached_property
    def traits(self) -> RuleKind:
        """What its kind decides."""
        return RULE_KINDS[self.kind]

    @property
    def words(self) -> Words:
        """The clauses of its sentences."""
        at_zero = self.traits.words_at_zero
        return self.traits.words if self.limit or at_zero is None else at_zero

    @cached_property
    def decides_by(self) -> Policy:
        """The policy, or the default one."""
        averages = self.traits.suspects and self.has_average
        return POLICIES[self.policy or ("average" if averages else "each")]

    @cached_property
    def has_average(self) -> bool:
        """Whether it is about classes or slices whose mean has a test."""
        several = self.classes is not None or self.slices is not None
        return several and self.target.average is not None

    @property
    def threshold(self) -> float:
        """The rule fails beyond this value, or difference candidate - baseline."""
        return self.traits.sign * self.limit


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
        breach = rule.traits.breach
        return breach(point) <= breach(rule.traits.sign * self.ceiling)


@dataclass(frozen=True, kw_only=True)
class Gate:
    """Rules, and the effects of their verdicts.

    Parameters
    ----------
    alpha
        One-sided level of every limit, in (0, .5).
    effects
        What open verdicts and suspects lead to; what it does not name has `DEFAULT_EFFECTS`.
    max_looks
        The number of looks at one test set that share alpha in equal parts; None: looks are not
        counted against the gate.
    spend
        Whether later looks have smaller and smaller parts of alpha.
    anchor_requested
        Whether the rules about differences hold against a second, pinned baseline, too.
    accept_removed, accept_relabelled
        Whether items of a baseline that the candidate lacks do not count, and whether both sides
        are judged on new true classes.
    """

    rules: tuple[Rule, ...] = ()
    alpha: float = 0.05
    effects: Mapping[str, Effect] = field(default_factory=dict)
    max_looks: int | None = None
    spend: bool = False
    waivers: tuple[Waiver, ...] = ()
    anchor_requested: bool = False
    accept_removed: bool = False
    accept_relabelled: bool = False

    @property
    def all_effects(self) -> Mapping[str, Effect]:
        """The effect of each open verdict, and of suspects."""
        return {**DEFAULT_EFFECTS, **self.effects}

    @property
    def indices(self) -> tuple[str, ...]:
        """Keys of the indices that the gate needs."""
        return tuple(dict.fromkeys(key for rule in self.rules for key in rule.target.keys))

    @property
    def averages(self) -> tuple[str, ...]:
        """Keys of the means over classes that decide rules."""
        keys = (r.target.average for r in self.rules if r.classes and r.decides_by.averages)
        return tuple(dict.fromkeys(key for key in keys if key is not None))

    def pass_level(self, look: int | None = None) -> float:
        """Return the level at which a look at the test set passes; the first if nobody counted.

        An equal part of alpha (Bonferroni), or with `spend` alpha / (j (j + 1)) for look j, which
        sums up to alpha over all looks.
        """
        if self.spend:
            number = look or 1
            return self.alpha / (number * (number + 1))
        return self.alpha if self.max_looks is None else self.alpha / self.max_looks


def check_gate(gate: Gate, options: Options | None = None) -> None:
    """Raise the first of the `mistakes` of a gate, so that a typo never switches a rule off."""
    if error := next(mistakes(gate, options), None):
        raise error


def mistakes(gate: Gate, options: Options | None = None) -> Iterator[RuleError]:
    """Yield every mistake of a gate, in the order of its members; some indices need an option."""
    if not 0 < gate.alpha < 0.5:  # from .5 on the two limits are swapped
        yield RuleError(("alpha",), "out_of_range", "alpha must be above 0 and below 0.5.")
    if gate.max_looks is not None and gate.max_looks < 1:
        yield RuleError(("max_looks",), "out_of_range", "max_looks is at least one look.")
    if gate.max_looks is not None and gate.spend:
        text = "spend needs no number of looks: leave max_looks out."
        yield RuleError(("max_looks",), "conflicting_options", text)
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
    for name, effect in gate.effects.items():
        choice = EFFECT_CHOICES.get(name)
        if choice is None:
            message = f"{name} has no effect to choose; these have: {', '.join(EFFECT_CHOICES)}."
            yield RuleError(("effects", name), "unknown_verdict", message)
        elif effect not in choice.allowed:
            message = f"The effect of {name} must be {' or '.join(choice.allowed)}, not {effect}."
            yield RuleError(("effects", name), "invalid_effect", message)


def _rule_mistakes(rule: Rule, options: Options | None) -> Iterator[Mistake]:
    if rule.kind not in RULE_KINDS:
        yield "kind", "unknown_kind", f"A rule needs one of {', '.join(RULE_KINDS)}."
        return
    of_target = tuple(rule.target.mistakes(options))
    yield from of_target
    if any(code == "unknown_index" for _, code, _ in of_target):
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
    grows = rule.target.grows(options)
    if rule.test == "none" or (entry.interval is not None and not grows):
        return
    if grows:
        text = f"{rule.target.name} grows with the number of items: divide it by `items`, as in"
        yield "index", "no_interval", f"{text} `cells['a', 'b'] / items`, or write `test: none`."
        return
    ways = "write `test: none` to compare point values, or take another index."
    if entry.resampled and rule.traits.resampled:
        if options is None or options.intervals == "all":
            return
        ways = f'send `"intervals": "all"`, {ways}'
    text = f"{rule.target.name} has no interval, so no number of items decides this rule: {ways}"
    yield "index", "no_interval", text


def _member_mistakes(rule: Rule) -> Iterator[Mistake]:
    """Yield what is wrong with the policy and the slices."""
    yield from _policy_mistakes(rule)
    if rule.slices is not None and not rule.slices:
        yield "slices", "empty", "A rule without slices checks nothing: name columns, or write all."
    elif rule.traits.between_slices and (rule.slices == "all" or len(rule.columns) != 1):
        text = f"{rule.kind} is the largest difference between the slices of one column: name it."
        yield "slices", "one_column", text
    elif rule.traits.between_slices and rule.confusion is not None:
        yield "confusion", "no_gap", f"{rule.kind} bounds an index: name one, not a confusion."


def _policy_mistakes(rule: Rule) -> Iterator[Mistake]:
    if rule.policy is None:
        return
    if rule.policy in RETIRED_POLICIES:
        text = f"There is no policy {rule.policy} any more: use {RETIRED_POLICIES[rule.policy]}."
        yield "policy", "retired_policy", text
    elif rule.policy not in POLICIES:
        yield "policy", "unknown_policy", f"A policy is one of {', '.join(POLICIES)}."
    elif rule.decides_by.averages and not rule.traits.suspects:
        kinds = " and ".join(kind.name for kind in RULE_KINDS.values() if kind.suspects)
        text = f"Only {kinds} can be decided by an average: the policy of {rule.kind} is each."
        yield "policy", "no_average", text
    elif rule.decides_by.averages and rule.classes is None and rule.slices is None:
        text = "One overall value has no average: leave the policy out."
        yield "policy", "no_average", text
    elif rule.decides_by.averages and not rule.has_average:
        text = f"The average of {rule.target.name} has no test: use the policy each."
        yield "policy", "no_average", text


def _limit_mistakes(rule: Rule) -> Iterator[Mistake]:
    target, traits, kind = rule.target, rule.traits, rule.kind
    name, (low, high) = target.name, target.entry.range
    ends: dict[float | None, End] = {low: "low", high: "high"}
    end = ends.get(target.best)
    if end is not None and end in traits.turned_into:
        other, effect = traits.turned_into[end]
        yield kind, f"use_{other}", f"{name} is best at {target.best:g}, so {effect}: use {other}."
    elif not np.isfinite(rule.limit):
        yield kind, "not_finite", "The limit must be a finite number."
    elif traits.of_value:
        if not low <= rule.limit <= high:
            yield kind, "out_of_range", f"{name} lies between {low:g} and {high:g}."
    elif rule.limit == 0 and traits.at_zero:
        yield kind, "needs_superiority", traits.at_zero
    elif rule.limit < 0 or (rule.limit == 0 and not traits.zero_allowed):
        smallest = "at least 0" if traits.zero_allowed else "above 0"
        text = f"{kind} is the size of a difference: it must be {smallest}."
        yield kind, "out_of_range", text
    elif rule.limit >= high - low:
        text = f"{kind} of {name} must be below {high - low:g}: no difference is larger."
        yield kind, "out_of_range", text


def _waiver_mistakes(waiver: Waiver, gate: Gate) -> Iterator[Mistake]:
    rule = next((rule for rule in gate.rules if rule.name == waiver.rule), None)
    valid = rule is not None and not any(rule.target.mistakes(None))
    low, high = rule.target.entry.range if rule is not None and valid else (-np.inf, np.inf)
    change = rule is not None and not rule.traits.of_value
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
