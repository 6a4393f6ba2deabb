"""The rules of a gate, and the check of a gate against the catalog."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

import numpy as np

from rprime.core.catalog import find
from rprime.core.gates.multiplicity import spent_alpha
from rprime.core.index import Index, IndexScope
from rprime.core.options import Options

RuleKind = Literal["min_value", "max_value", "max_drop", "max_gain"]
Effect = Literal["pass", "warn", "fail"]
OpenVerdict = Literal["inconclusive", "no_baseline", "not_comparable", "undefined"]
"""Verdicts that are neither a pass nor a fail; `on` sets their effects."""

KINDS: tuple[RuleKind, ...] = ("min_value", "max_value", "max_drop", "max_gain")
DEFAULT_EFFECTS: Mapping[OpenVerdict, Effect] = {
    "inconclusive": "warn",
    "no_baseline": "warn",
    "not_comparable": "fail",
    "undefined": "fail",
}


class RuleError(ValueError):
    """An invalid gate.

    Parameters
    ----------
    place
        Where in the gate, as the tokens of a JSON pointer: ("rules", 2, "max_drop").
    code
        Stable name of the mistake.
    message
        The mistake, and how to correct it.
    """

    def __init__(self, place: tuple[str | int, ...], code: str, message: str) -> None:
        super().__init__(message)
        self.place = place
        self.code = code


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One bound on one index.

    Parameters
    ----------
    id
        Unique in its gate; empty for the default, `<index>.<kind>`.
    index
        Key in the catalog.
    classes
        None: the overall index; "all" or labels: the per-class one.
    kind, limit
        The bounded quantity and its limit: of the value, or of the difference from the baseline,
        then positive.
    test
        "auto" fails on evidence only; "none" compares point values.
    policy
        "pass": each result must pass for the gate to pass; "not_fail": only a demonstrated
        failure blocks. None for the default: "pass" overall, "not_fail" for classes.
    severity
        "warn" limits every effect of the rule to a warning.
    """

    index: str
    kind: RuleKind
    limit: float
    id: str = ""
    classes: Literal["all"] | tuple[str, ...] | None = None
    test: Literal["auto", "none"] = "auto"
    policy: Literal["pass", "not_fail"] | None = None
    severity: Literal["error", "warn"] = "error"

    @property
    def name(self) -> str:
        """The id, or the default one."""
        return self.id or f"{self.index}.{self.kind}"

    @property
    def scope(self) -> IndexScope:
        """The scope of the index: overall or per class."""
        return "overall" if self.classes is None else "class"

    @property
    def mandatory(self) -> bool:
        """Whether its results must pass for the gate to pass."""
        return (self.policy or ("not_fail" if self.scope == "class" else "pass")) == "pass"

    @property
    def compares(self) -> bool:
        """Whether the rule bounds the difference from a baseline."""
        return self.kind in ("max_drop", "max_gain")

    @property
    def guards_below(self) -> bool:
        """Whether the rule forbids low numbers: a lower bound or a drop."""
        return self.kind in ("min_value", "max_drop")

    @property
    def threshold(self) -> float:
        """The rule fails beyond this value, or difference candidate - baseline."""
        return -self.limit if self.kind == "max_drop" else self.limit

    @property
    def entry(self) -> Index:
        """The index in the catalog; every checked rule has one."""
        found = find(self.scope, self.index)
        if found is None:
            raise RuleError((), "unknown_index", f"There is no {self.scope} index {self.index}.")
        return found


@dataclass(frozen=True, kw_only=True)
class Waiver:
    """A known failure that a person accepts, up to a ceiling and an expiry date.

    Parameters
    ----------
    rule
        Id of the rule.
    class_
        The class it is for; None for every result of the rule.
    ceiling
        The worst value still waived, in the unit of the rule's limit: the largest drop or
        gain, the lowest value under a `min_value`, the highest under a `max_value`.
    reason, by
        The reason, and the person who accepts the failure.
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
        "spend" divides alpha over repeated looks at the same test set.
    """

    rules: tuple[Rule, ...] = ()
    alpha: float = 0.05
    on: Mapping[OpenVerdict, Effect] = field(default_factory=dict)
    looks: Literal["ignore", "spend"] = "ignore"
    waivers: tuple[Waiver, ...] = ()

    @property
    def effects(self) -> dict[OpenVerdict, Effect]:
        """Effect of each open verdict."""
        return {**DEFAULT_EFFECTS, **self.on}

    @property
    def indices(self) -> tuple[str, ...]:
        """Keys of the indices that the gate needs."""
        return tuple(dict.fromkeys(rule.index for rule in self.rules))

    def level(self, look: int = 1) -> float:
        """Return the level of one look at the test set, counted from 1.

        Raises
        ------
        ValueError
            For a look before the first.
        """
        if look < 1:
            message = "looks are counted from 1"
            raise ValueError(message)
        return float(spent_alpha(self.alpha, look)) if self.looks == "spend" else self.alpha


def check_gate(gate: Gate, options: Options | None = None) -> None:
    """Refuse an invalid gate, so that a typo never switches a rule off.

    Parameters
    ----------
    gate
        A gate with valid field types.
    options
        Of the evaluation; some indices need an option.

    Raises
    ------
    RuleError
        With the first mistake and its place.
    """
    if error := next(mistakes(gate, options), None):
        raise error


def mistakes(gate: Gate, options: Options | None = None) -> Iterator[RuleError]:
    """Yield every mistake of a gate, in the order of its members."""
    if not 0 < gate.alpha < 0.5:  # from .5 on the two limits are swapped
        yield RuleError(("alpha",), "out_of_range", "alpha must be above 0 and below 0.5.")
    yield from _effect_mistakes(gate)
    for number, rule in enumerate(gate.rules):
        for field_name, code, message in _rule_mistakes(rule, options):
            yield RuleError(("rules", number, field_name), code, message)
    yield from _duplicate_ids(gate)
    for number, waiver in enumerate(gate.waivers):
        for field_name, code, message in _waiver_mistakes(waiver, gate):
            yield RuleError(("waivers", number, field_name), code, message)


def _effect_mistakes(gate: Gate) -> Iterator[RuleError]:
    for verdict, effect in gate.on.items():
        allowed = ("pass", "warn", "fail") if verdict == "inconclusive" else ("warn", "fail")
        if verdict not in DEFAULT_EFFECTS:
            message = (
                f"{verdict} is no open verdict; the open verdicts are {', '.join(DEFAULT_EFFECTS)}."
            )
            yield RuleError(("on", verdict), "unknown_verdict", message)
        elif effect not in allowed:
            message = f"The effect of {verdict} must be {' or '.join(allowed)}, not {effect}."
            yield RuleError(("on", verdict), "invalid_effect", message)


Mistake = tuple[str, str, str]


def _rule_mistakes(rule: Rule, options: Options | None) -> Iterator[Mistake]:
    if rule.kind not in KINDS:
        yield "kind", "unknown_kind", f"A rule needs one of {', '.join(KINDS)}."
        return
    entry = find(rule.scope, rule.index)
    if entry is None:
        yield "index", "unknown_index", _missing_index(rule)
        return
    if entry.needs and getattr(options, entry.needs, None) is None:
        yield "index", "option_missing", f"{rule.index} needs the option {entry.needs}."
    if rule.classes is not None and rule.classes != "all":
        yield from _class_mistakes(rule.classes)
    yield from _limit_mistakes(rule, entry)


def _missing_index(rule: Rule) -> str:
    other: IndexScope = "class" if rule.scope == "overall" else "overall"
    if find(other, rule.index) is None:
        return f"The catalog has no index {rule.index}."
    if other == "overall":
        return f"{rule.index} has no per-class values: remove classes."
    return f"{rule.index} is a per-class index: add classes, or use macro_{rule.index}."


def _class_mistakes(classes: tuple[str, ...]) -> Iterator[Mistake]:
    if not classes:
        yield (
            "classes",
            "empty",
            "A rule without classes checks nothing: name classes, or write all.",
        )
    if len(set(classes)) < len(classes):
        yield "classes", "duplicate", "A class appears twice."


def _limit_mistakes(rule: Rule, entry: Index) -> Iterator[Mistake]:
    low, high = entry.range
    if rule.kind == "max_drop" and entry.best == 0 and not entry.higher_is_better:
        text = f"{rule.index} is best at 0, so a drop is an improvement: use max_gain."
        yield rule.kind, "use_max_gain", text
    elif not np.isfinite(rule.limit):
        yield rule.kind, "not_finite", "The limit must be a finite number."
    elif not rule.compares and not low <= rule.limit <= high:
        yield rule.kind, "out_of_range", f"{rule.index} lies between {low:g} and {high:g}."
    elif rule.compares and rule.limit == 0:
        yield rule.kind, "needs_superiority", _needs_superiority(rule.kind)
    elif rule.compares and rule.limit < 0:
        yield rule.kind, "out_of_range", f"{rule.kind} is the size of a change: it must be above 0."
    elif rule.compares and rule.limit >= high - low:
        text = (
            f"{rule.index} spans {high - low:g}: it can never change by more than {rule.limit:g}."
        )
        yield rule.kind, "out_of_range", text


def _needs_superiority(kind: RuleKind) -> str:
    worse = "drop" if kind == "max_drop" else "rise"
    return (
        f"{kind}: 0 passes only a candidate that is proven better than the baseline (superiority); "
        f"set the largest {worse} that you accept, for example 0.02."
    )


def _duplicate_ids(gate: Gate) -> Iterator[RuleError]:
    seen: set[str] = set()
    for number, rule in enumerate(gate.rules):
        if rule.name in seen:
            message = "An earlier rule has the same id: change one of them."
            yield RuleError(("rules", number, "id"), "duplicate_id", message)
        seen.add(rule.name)


def _waiver_mistakes(waiver: Waiver, gate: Gate) -> Iterator[Mistake]:
    rule = next((rule for rule in gate.rules if rule.name == waiver.rule), None)
    if rule is None:
        yield "rule", "unknown_rule", "No rule of the gate has this id."
    elif waiver.class_ is not None and rule.classes is None:
        yield "class", "unknown_class", "The waived rule bounds an overall index, not classes."
    elif (
        waiver.class_ is not None
        and waiver.class_ not in (rule.classes or ())
        and (rule.classes != "all")
    ):
        yield "class", "unknown_class", "The waived rule does not name this class."
    if not np.isfinite(waiver.ceiling):
        yield "ceiling", "not_finite", "The ceiling must be a finite number."
