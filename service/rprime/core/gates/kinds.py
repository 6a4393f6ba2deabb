"""The kinds of rules, of policies and of verdicts: each is a row of a table."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Effect = Literal["pass", "warn", "fail"]
EFFECTS: tuple[Effect, ...] = ("pass", "warn", "fail")
"""From the mildest to the gravest; codes are positions here."""
End = Literal["low", "high"]
"""The end of the range of an index at which a perfect classifier is."""
PolicyName = Literal["each", "average"]
Against = Literal["baseline", "anchor"]
"""What a difference is from."""


@dataclass(frozen=True, kw_only=True)
class Words:
    """The clauses of a sentence about a result, behind its value or change.

    `{limit}` stands for the limit.

    Parameters
    ----------
    kept, broken
        Where the limit is shown to be kept, and where it is not.
    kept_point
        Where point values are compared and the limit is kept.
    question
        What the items are too few to tell.
    direction
        What the rule forbids: a drop, a rise, or a change in either direction.
    """

    kept: str
    broken: str
    kept_point: str
    question: str
    direction: Literal["drop", "rise", "change"]


@dataclass(frozen=True, kw_only=True)
class RuleKind:
    """A way to bound an index.

    Parameters
    ----------
    name
        The member of a rule that holds the limit.
    description
        The public description of that member.
    compares
        Whether it bounds the difference candidate - baseline, not the value.
    guards_below, guards_above
        Whether it forbids low numbers: a low value, a drop or a missing gain; and high ones. A rule
        that does both bounds the size of a difference.
    sign
        The rule is broken beyond sign × limit; that of a size is the sign of its lower end.
    of_value
        Whether the limit is a value of the index; else it is the size of a difference.
    zero_allowed
        Whether that size may be 0.
    at_zero
        What to use in place of the limit 0; empty where nothing has to be said.
    between_slices
        Whether it bounds the largest difference between the slices of one column.
    suspects
        Whether a result may be suspect: worse than before, but not shown beyond the limit. Such
        rules about classes or slices are decided by their average.
    resampled
        Whether the limits of a resampled interval decide it.
    finds_double
        Whether it has to find twice its limit where a plan names no drop.
    unchanged_passes
        Whether an unchanged model can pass it.
    milder
        What makes it easier to pass.
    turned_into
        By the end of the range that is best: the kind to use there, and the effect of this one.
    words, words_at_zero
        The clauses of its sentences, and those for the limit 0; None where they are the same.
    """

    name: str
    description: str
    compares: bool
    guards_below: bool
    guards_above: bool
    sign: Literal[1, -1]
    of_value: bool
    zero_allowed: bool
    at_zero: str
    between_slices: bool
    suspects: bool
    resampled: bool
    finds_double: bool
    unchanged_passes: bool
    milder: str
    turned_into: Mapping[End, tuple[str, str]]
    words: Words
    words_at_zero: Words | None

    @property
    def two_sided(self) -> bool:
        """Whether it bounds the size of a difference, in both directions."""
        return self.guards_below and self.guards_above

    @property
    def tolerates(self) -> bool:
        """Whether it allows changes up to a size, so that an unchanged model passes."""
        return self.compares and self.unchanged_passes

    def breach(self, number: float) -> float:
        """Return how far a value or difference lies in a direction that is forbidden."""
        if self.two_sided:
            return abs(number)
        return -number if self.guards_below else number


_KINDS = (
    RuleKind(
        name="min_value",
        description="The value must not be below this; it needs no baseline.",
        compares=False,
        guards_below=True,
        guards_above=False,
        sign=1,
        of_value=True,
        zero_allowed=True,
        at_zero="",
        between_slices=False,
        suspects=False,
        resampled=True,
        finds_double=False,
        unchanged_passes=True,
        milder="a lower limit",
        turned_into={"low": ("max_value", "a lower bound fails good models and passes bad ones")},
        words=Words(
            kept=", above the {limit} required",
            broken=", below the {limit} required",
            kept_point=", above the {limit} required",
            question="is above the {limit} required",
            direction="drop",
        ),
        words_at_zero=None,
    ),
    RuleKind(
        name="max_value",
        description="The value must not be above this; it needs no baseline.",
        compares=False,
        guards_below=False,
        guards_above=True,
        sign=1,
        of_value=True,
        zero_allowed=True,
        at_zero="",
        between_slices=False,
        suspects=False,
        resampled=True,
        finds_double=False,
        unchanged_passes=True,
        milder="a higher limit",
        turned_into={"high": ("min_value", "an upper bound fails good models and passes bad ones")},
        words=Words(
            kept=", below the {limit} allowed",
            broken=", above the {limit} allowed",
            kept_point=", below the {limit} allowed",
            question="is below the {limit} allowed",
            direction="rise",
        ),
        words_at_zero=None,
    ),
    RuleKind(
        name="max_drop",
        description="The largest accepted drop of the value against the baseline, above 0.",
        compares=True,
        guards_below=True,
        guards_above=False,
        sign=-1,
        of_value=False,
        zero_allowed=False,
        at_zero="max_drop: 0 passes only a candidate that is proven better than the baseline: "
        "write min_gain: 0 for that, or the largest drop that you accept, for example 0.02.",
        between_slices=False,
        suspects=True,
        resampled=False,
        finds_double=True,
        unchanged_passes=True,
        milder="a larger limit",
        turned_into={"low": ("max_gain", "a drop is an improvement")},
        words=Words(
            kept=": a drop of more than the {limit} allowed is ruled out",
            broken=", more than the {limit} allowed",
            kept_point=", within the {limit} allowed",
            question="dropped by more than the {limit} allowed",
            direction="drop",
        ),
        words_at_zero=None,
    ),
    RuleKind(
        name="max_gain",
        description="The largest accepted rise of the value against the baseline, above 0, for "
        "values that are best when small.",
        compares=True,
        guards_below=False,
        guards_above=True,
        sign=1,
        of_value=False,
        zero_allowed=False,
        at_zero="max_gain: 0 passes only a candidate that is proven lower than the baseline; set "
        "the largest rise that you accept, for example 0.02.",
        between_slices=False,
        suspects=True,
        resampled=False,
        finds_double=True,
        unchanged_passes=True,
        milder="a larger limit",
        turned_into={"high": ("max_drop", "a gain is an improvement")},
        words=Words(
            kept=": a rise of more than the {limit} allowed is ruled out",
            broken=", more than the {limit} allowed",
            kept_point=", within the {limit} allowed",
            question="rose by more than the {limit} allowed",
            direction="rise",
        ),
        words_at_zero=None,
    ),
    RuleKind(
        name="min_gain",
        description="Superiority: the value must be shown to have risen by more than this, 0 or "
        "more.",
        compares=True,
        guards_below=True,
        guards_above=False,
        sign=1,
        of_value=False,
        zero_allowed=True,
        at_zero="",
        between_slices=False,
        suspects=False,
        resampled=False,
        finds_double=False,
        unchanged_passes=False,
        milder="a smaller limit",
        turned_into={"low": ("min_drop", "a gain is a loss")},
        words=Words(
            kept=": a gain of more than {limit} is shown",
            broken=", but a gain of more than {limit} is required",
            kept_point=": a gain of more than {limit} is shown",
            question="rose by more than the {limit} required",
            direction="drop",
        ),
        words_at_zero=Words(
            kept=": a gain is shown",
            broken=", but a gain is required",
            kept_point=": a gain is shown",
            question="rose",
            direction="drop",
        ),
    ),
    RuleKind(
        name="min_drop",
        description="Superiority for values that are best when small: the value must be shown to "
        "have dropped by more than this, 0 or more.",
        compares=True,
        guards_below=False,
        guards_above=True,
        sign=-1,
        of_value=False,
        zero_allowed=True,
        at_zero="",
        between_slices=False,
        suspects=False,
        resampled=False,
        finds_double=False,
        unchanged_passes=False,
        milder="a smaller limit",
        turned_into={"high": ("min_gain", "a drop is a loss")},
        words=Words(
            kept=": a drop of more than {limit} is shown",
            broken=", but a drop of more than {limit} is required",
            kept_point=": a drop of more than {limit} is shown",
            question="dropped by more than the {limit} required",
            direction="rise",
        ),
        words_at_zero=Words(
            kept=": a drop is shown",
            broken=", but a drop is required",
            kept_point=": a drop is shown",
            question="dropped",
            direction="rise",
        ),
    ),
    RuleKind(
        name="max_change",
        description="Equivalence: the value must be shown to lie within this distance of the "
        "baseline, in both directions, above 0.",
        compares=True,
        guards_below=True,
        guards_above=True,
        sign=-1,
        of_value=False,
        zero_allowed=False,
        at_zero="",
        between_slices=False,
        suspects=False,
        resampled=False,
        finds_double=True,
        unchanged_passes=True,
        milder="a larger limit",
        turned_into={},
        words=Words(
            kept=": a change of more than the {limit} allowed is ruled out",
            broken=", more than the {limit} allowed",
            kept_point=", within the {limit} allowed",
            question="changed by more than the {limit} allowed",
            direction="change",
        ),
        words_at_zero=None,
    ),
    RuleKind(
        name="max_gap",
        description="The largest accepted difference of the value between the slices of the "
        "column `slices`, above 0; it needs no baseline.",
        compares=False,
        guards_below=False,
        guards_above=True,
        sign=1,
        of_value=False,
        zero_allowed=False,
        at_zero="",
        between_slices=True,
        suspects=False,
        resampled=False,
        finds_double=True,
        unchanged_passes=True,
        milder="a larger limit",
        turned_into={},
        words=Words(
            kept=", below the {limit} allowed",
            broken=", above the {limit} allowed",
            kept_point=", below the {limit} allowed",
            question="is below the {limit} allowed",
            direction="rise",
        ),
        words_at_zero=None,
    ),
)
RULE_KINDS: Mapping[str, RuleKind] = {kind.name: kind for kind in _KINDS}
"""All kinds by their names. A new kind is a row of `_KINDS`."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What the results of a rule have to show for the gate to pass.

    Parameters
    ----------
    averages
        Whether the mean over the classes or slices has to pass; else each result has to.
    description
        The public description.
    """

    name: PolicyName
    averages: bool
    description: str


POLICIES: Mapping[PolicyName, Policy] = {
    "each": Policy(
        name="each", averages=False, description="the rule passes if every result passes"
    ),
    "average": Policy(
        name="average",
        averages=True,
        description="the rule passes if the mean over the classes, or over the slices of each "
        "column, passes and no result fails or is suspect",
    ),
}
RETIRED_POLICIES: Mapping[str, str] = {
    "all_must_pass": "`each`",
    "suspects_undecided": "`average`, the default of rules about classes or slices",
    "suspects_fail": "`average`, and `effects: {suspect: fail}` in the gate",
    "proven_only": '`average`, or `severity: "warn"` for a rule that must not block',
}
"""Names of policies before version 1, and what does the same now."""

Codes = NDArray[np.uint8]
"""Verdicts, as `VerdictCode`, or effects, as positions in `EFFECTS`."""


class VerdictCode(IntEnum):
    """The verdict on one result, in arrays; `by_test` where the tests still have to decide."""

    passed = 0
    fail = 1
    undecided = 2
    no_baseline = 3
    not_comparable = 4
    undefined = 5
    waived = 6
    by_test = 255


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A verdict on one result.

    Parameters
    ----------
    name
        Its word in reports.
    judged
        Whether it rests on the numbers.
    effect
        What it leads to where the gate says nothing else.
    effects
        What a gate may have it lead to; empty: nothing else.
    word
        How the sentence of a gate names such results.
    reason
        The reason of every such result; empty: it has one of its own.
    description
        The public description of the member of `effects`.
    """

    name: str
    judged: bool
    effect: Effect
    effects: tuple[Effect, ...] = ()
    word: str
    reason: str = ""
    description: str = ""


VERDICTS: Mapping[VerdictCode, Verdict] = {
    VerdictCode.passed: Verdict(
        name="pass", judged=True, effect="pass", word="passed", reason="within_limit"
    ),
    VerdictCode.fail: Verdict(
        name="fail",
        judged=True,
        effect="fail",
        word="failing (warning only)",
        reason="beyond_limit",
    ),
    VerdictCode.undecided: Verdict(
        name="undecided",
        judged=True,
        effect="warn",
        effects=("pass", "warn", "fail"),
        word="undecided",
        description="The items do not tell whether the rule holds.",
    ),
    VerdictCode.no_baseline: Verdict(
        name="no_baseline",
        judged=False,
        effect="warn",
        effects=("warn", "fail"),
        word="without a baseline",
        description="The rule needs a baseline, and there is none.",
    ),
    VerdictCode.not_comparable: Verdict(
        name="not_comparable",
        judged=False,
        effect="fail",
        effects=("warn", "fail"),
        word="not comparable",
        description="The test sets differ, or a named class has no items.",
    ),
    VerdictCode.undefined: Verdict(
        name="undefined",
        judged=False,
        effect="fail",
        effects=("warn", "fail"),
        word="undefined",
        description="The candidate has no value.",
    ),
    VerdictCode.waived: Verdict(
        name="waived", judged=True, effect="warn", word="waived", reason="waived"
    ),
}
if missing := set(VerdictCode) - set(VERDICTS) - {VerdictCode.by_test}:
    message = f"VERDICTS lacks {missing}"
    raise TypeError(message)


@dataclass(frozen=True, kw_only=True)
class EffectChoice:
    """What a kind of result leads to by default, and what a gate may have it lead to."""

    default: Effect
    allowed: tuple[Effect, ...]
    description: str


EFFECT_CHOICES: Mapping[str, EffectChoice] = {
    verdict.name: EffectChoice(
        default=verdict.effect, allowed=verdict.effects, description=verdict.description
    )
    for verdict in VERDICTS.values()
    if verdict.effects
} | {
    "suspect": EffectChoice(
        default="warn",
        allowed=("warn", "fail"),
        description="A result is undecided, but shown to be worse than before, or beyond its "
        "limit if it were tested alone.",
    )
}
"""By the member of `effects`: open verdicts, and suspects, which are undecided in a graver way."""
DEFAULT_EFFECTS: Mapping[str, Effect] = {
    name: choice.default for name, choice in EFFECT_CHOICES.items()
}


def verdict_named(name: str) -> Verdict:
    """Return the verdict of a name; KeyError without one."""
    return _BY_NAME[name]


_BY_NAME = {verdict.name: verdict for verdict in VERDICTS.values()}
