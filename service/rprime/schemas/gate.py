"""Models of gates: the rules of a request, and their results."""

from datetime import date
from typing import Annotated, Literal

from pydantic import AliasChoices, BeforeValidator, ConfigDict, Field, create_model, model_validator
from pydantic_core import PydanticCustomError

from rprime.core.comparison.alignment import Comparability
from rprime.core.comparison.compare import Pairing
from rprime.core.comparison.missing_items import MissingItems
from rprime.core.gates import rules as core_rules
from rprime.core.gates.kinds import (
    DEFAULT_EFFECTS,
    EFFECT_CHOICES,
    POLICIES,
    RETIRED_POLICIES,
    RULE_KINDS,
    VERDICTS,
    Effect,
    PolicyName,
)
from rprime.core.gates.results import Result
from rprime.schemas.fields import (
    Absent,
    Answer,
    AnyIndexKey,
    AnyLabel,
    ClassName,
    OfCore,
    Request,
    optional,
)
from rprime.schemas.provenance import ResolvedSide, StoredSide

Identifier = Annotated[str, Field(min_length=1, max_length=128)]
_SOME, _TWO = Field(min_length=1), Field(min_length=2, max_length=2)
_Names = Annotated[list[AnyLabel], _SOME]
_KINDS = ", ".join(list(RULE_KINDS)[:-1]) + f" and {list(RULE_KINDS)[-1]}"
_RESULT = OfCore(kind=list(RULE_KINDS), verdict=[verdict.name for verdict in VERDICTS.values()])


def _class_names(value: object) -> object:
    """Read integers and booleans as the names of classes, and explain what is no list of these."""
    if value is None or value == "all":
        return value
    if not isinstance(value, list):
        text = "Write `all`, or a list of class names in brackets"
        raise PydanticCustomError("class_names", text)
    if not all(isinstance(name, str | int) for name in value):
        raise PydanticCustomError("class_names", "A class name is a string or an integer")
    return [_class_name(name) for name in value]


def _class_name(value: object) -> object:
    return str(value) if isinstance(value, int) else value


def _policy(value: object) -> object:
    """Name what replaces a policy of earlier versions, and refuse other names."""
    if isinstance(value, str) and value in RETIRED_POLICIES:
        text = "There is no policy {old} any more: use {new}"
        names = {"old": value, "new": RETIRED_POLICIES[value]}
        raise PydanticCustomError("retired_policy", text, names)
    return value


_POLICY = (
    "What decides the rule. "
    + "; ".join(f"`{policy.name}`: {policy.description}" for policy in POLICIES.values())
    + ". Default: `average` for "
    + " and ".join(f"`{kind.name}`" for kind in RULE_KINDS.values() if kind.suspects)
    + " of classes or slices whose average has a test, else `each`."
)
# One member for each kind of rule: a field with the type of a limit.
_Limits = create_model(
    "_Limits",
    __base__=Request,
    **{  # type: ignore[call-overload] # names and fields from a table
        kind.name: (float | None, optional(f"{kind.description} Exactly one limit in each rule."))
        for kind in RULE_KINDS.values()
    },
)


class Rule(_Limits):
    """One demand on one target, with exactly one limit.

    The target is an overall index; with `classes`, a per-class index of each of these classes;
    or, with `confusion` in place of `index`, a cell of the table.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                {"oneOf": [{"required": [name]} for name in ("index", "confusion")]},
                {"oneOf": [{"required": [kind]} for kind in RULE_KINDS]},
            ]
        }
    )

    id: Identifier | None = optional(
        "The name of the rule in results and waivers, unique in its gate. Default: "
        "`<index>.<limit>`, as `recall.max_drop`, and the columns of `slices` behind it."
    )
    index: AnyIndexKey | None = optional("What it bounds: the key of an index.")
    classes: Annotated[
        Literal["all"] | Annotated[list[ClassName], _SOME] | None,
        BeforeValidator(_class_names, json_schema_input_type=Literal["all"] | _Names),
    ] = optional(
        "Bounds the per-class index of each of these classes; `all`: of every class "
        "that has items on both sides. Without it: the overall index."
    )
    confusion: Annotated[
        Annotated[list[ClassName], _TWO] | None,
        BeforeValidator(_class_names, json_schema_input_type=Annotated[list[AnyLabel], _TWO]),
    ] = optional(
        "In place of `index`: [true, predicted]. Bounds the share of the items of the "
        "true class that are predicted as the other one."
    )
    test: Literal["auto", "none"] = Field(
        default="auto", description="`auto` decides by evidence, `none` compares the point values."
    )
    policy: Annotated[PolicyName | None, BeforeValidator(_policy)] = optional(_POLICY)
    severity: Literal["error", "warn"] = Field(
        default="error", description="`warn`: the rule never fails the gate."
    )
    min_items: int = Field(
        default=0,
        ge=0,
        description="Leaves classes with fewer items, on either side, out of the rule and of the "
        "average that it bounds.",
    )

    slices: str | Annotated[list[str], Field(json_schema_extra={"minItems": 1})] | None = optional(
        "The rule holds in each slice of the test set: `all`, or the names of columns "
        "of slices. One that a side lacks is not comparable. Without it: all items together."
    )

    @model_validator(mode="after")
    def _has_one_target_and_limit(self) -> "Rule":
        if sum(getattr(self, kind) is not None for kind in RULE_KINDS) != 1:
            raise PydanticCustomError("one_limit", f"A rule has exactly one of {_KINDS}")
        if (self.index is None) == (self.confusion is None):
            raise PydanticCustomError("one_target", "A rule has either index or confusion")
        if self.confusion is not None and self.classes is not None:
            text = "A rule about a cell names its classes in confusion alone"
            raise PydanticCustomError("one_target", text)
        return self

    def core(self) -> core_rules.Rule:
        """Return the rule of the core."""
        kind = next(kind for kind in RULE_KINDS if getattr(self, kind) is not None)
        return self.into(core_rules.Rule, kind=kind, limit=getattr(self, kind))


class Waiver(Request):
    """A known failure that is accepted up to a ceiling and a day."""

    rule: Identifier = Field(description="The id of the rule.")
    class_: Annotated[
        ClassName | None, BeforeValidator(_class_name, json_schema_input_type=AnyLabel)
    ] = optional("The class it is for. Without it: every result of the rule.", alias="class")
    ceiling: float = Field(description="The worst waived value, in the unit of the limit.")
    reason: str = Field(
        min_length=1, max_length=1000, description="Why the failure is accepted, for people."
    )
    by: str = Field(min_length=1, max_length=200, description="The person who accepts it.")
    expires: date = Field(strict=False, description="The last day on which it holds.")


# One member for each kind of result that may lead to several things.
Effects = create_model(
    "Effects",
    __base__=Request,
    __doc__="What results lead to that are neither pass nor fail.",
    **{  # type: ignore[call-overload] # names and fields from a table
        name: (
            Literal[choice.allowed],
            Field(default=choice.default, description=choice.description),
        )
        for name, choice in EFFECT_CHOICES.items()
    },
)


OTHER_NAMES = {"on": "effects", "true": "effects"}
"""Names that are read for members; loaders of YAML 1.1 make the boolean of `on`."""


class Gates(Request):
    """The rules that decide. Without any, the verdict is `no_rules`, never `pass`."""

    alpha: Annotated[float, Field(gt=0, lt=0.5)] = Field(
        default=0.05,
        description="One-sided level: the probability of a false fail, over all rules together, "
        "and of a false pass, for each rule.",
    )
    rules: list[Rule] = Field(max_length=200, description="What is demanded, in any order.")
    effects: Effects = Field(
        default=Effects(),
        validation_alias=AliasChoices("effects", *OTHER_NAMES),
        description="What results lead to that are neither pass nor fail.",
    )
    max_looks: int | None = optional(
        "The number of looks at one test set that share `alpha`: a look passes at `alpha` divided "
        "by it. Without it every look passes at `alpha`; the report says which look it is.",
        ge=1,
        le=1_000_000,
    )
    spend: bool = Field(
        default=False,
        description="Look j passes at `alpha` / (j (j + 1)), so that any number of looks together "
        "have the level `alpha`. Not with `max_looks`.",
    )
    accept_removed: bool = Field(
        default=False,
        description="With `item_id`: items of a baseline that the candidate lacks do not count, "
        "not as wrong either.",
    )
    accept_relabelled: bool = Field(
        default=False, description="With `item_id`: both sides are judged on the new true classes."
    )
    anchor: StoredSide | None = optional(
        "A second, pinned baseline: rules about differences hold against it, too."
    )
    waivers: list[Waiver] = Field(
        default=[], max_length=200, description="Known failures that are accepted for a while."
    )
    results: Literal["all"] | None = optional(
        "`all`: the answer has every result, however many there are; without it, of more than 100 "
        "those that decide."
    )

    def core(self) -> core_rules.Gate:
        """Return the gate of the core; `core.gates.rules.mistakes` checks its meaning."""
        return self.into(
            core_rules.Gate,
            rules=tuple(rule.core() for rule in self.rules),
            effects={**DEFAULT_EFFECTS, **dict[str, Effect](self.effects)},
            waivers=tuple(waiver.into(core_rules.Waiver) for waiver in self.waivers),
            anchor_requested=self.anchor is not None,
        )


class Delta(Answer):
    """An index of the candidate, of the baseline, and their difference."""

    candidate: float | Absent | None = optional(
        "Its value there; null if undefined. Absent where it is the value of the report."
    )
    baseline: float | None = Field(description="Its value there; null if undefined.")
    value: float | None = Field(description="Candidate minus baseline.")
    interval: tuple[float, float] | Absent | None = optional(
        "The interval of the difference, at the confidence of the comparison; null if undefined, "
        "absent where the index has none."
    )
    method: str | Absent | None = optional(
        "The method of the interval, where it is not the `method` of the comparison."
    )
    reason: str | Absent = optional("Why the difference or its interval is missing.")


class SinceAnchor(Answer):
    """The differences from the anchor of the gate, in the indices of its rules."""

    baseline: ResolvedSide = Field(description="The anchor that was found.")
    missing: Annotated[MissingItems, OfCore()] | Absent = optional(
        "If items of the anchor are missing, or the candidate has new ones, by `item_id`."
    )
    comparability: Comparability = Field(description="How far both sides can be compared.")
    pairing: Pairing | None = Field(description="Whether items were compared one by one.")
    confidence: float = Field(description="The confidence of the intervals.")
    method: str | Absent | None = optional(
        "The method of every interval that names no other one; null if there is none."
    )
    overall: dict[str, Delta] = Field(description="The differences of overall indices.")
    per_class: dict[str, dict[str, Delta]] = Field(
        description="The differences of each class, by index."
    )


class Gate(Answer):
    """The verdict. It is data: a failed gate answers 200 or 201."""

    verdict: Literal["pass", "fail", "inconclusive", "no_rules", "no_baseline"] = Field(
        description="`fail` if a result has the effect `fail`; `pass` if every rule is kept as its "
        "policy demands; otherwise `inconclusive`, or `no_baseline` where a rule lacks what "
        "it compares with. `no_rules` if there are none."
    )
    judged: bool = Field(
        description="Whether the verdict rests on numbers. False where the gate fails only because "
        "results are `not_comparable`, `undefined` or without a baseline (the command then ends "
        "with 5, not with 1), and where no result could be judged."
    )
    undecided: int = Field(
        default=0, description="The number of results that neither pass nor fail, nor are waived."
    )
    message: str = Field(
        description="The verdict in a sentence, which names suspects and undecided classes."
    )
    alpha: float = Field(description="The one-sided level of this look.")
    look: int | None = Field(
        description="Which look at the test set this was, from 1; null if nobody counted."
    )
    max_looks: int | None = Field(
        description="The number of looks that share the level of the gate; null if looks are "
        "ignored."
    )
    results: list[Annotated[Result, _RESULT]] = Field(
        description="In the order of the rules, of baseline and anchor, and of the classes. Of "
        "more than 100 those that decide, unless the gate has `results: all`."
    )
    other_results: dict[Effect, int] | Absent = optional(
        "How many further results there are, by their effect."
    )
    since_anchor: SinceAnchor | None = optional(
        "If the gate has an anchor; null if it does not exist yet, with a warning."
    )
