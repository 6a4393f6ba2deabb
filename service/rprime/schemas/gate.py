"""Models of gates: the rules of a request, and their results."""

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from rprime.core.gates import rules as demands
from rprime.schemas.fields import Absent, Answer, ClassName, IndexKey, Request

Effect = Literal["pass", "warn", "fail"]
Pairing = Literal["paired", "unpaired"]
Identifier = Annotated[str, Field(min_length=1, max_length=128)]
Limit = Annotated[float, Field(description="Exactly one of the four limits.")]


def _one_limit(schema: dict[str, Any]) -> None:
    schema["oneOf"] = [{"required": [kind]} for kind in demands.KINDS]
    for kind in demands.KINDS:
        schema["properties"][kind] = {"type": "number"}


class Rule(Request):
    """One demand on one index, with exactly one limit.

    With `classes` it applies to the per-class index, otherwise to the overall index.
    """

    model_config = ConfigDict(json_schema_extra=_one_limit)

    id: Identifier | None = Field(default=None, description="Default: `<index>.<limit>`.")
    index: IndexKey
    classes: Literal["all"] | Annotated[list[ClassName], Field(min_length=1)] | None = None
    min_value: Limit | None = None
    max_value: Limit | None = None
    max_drop: Limit | None = None
    max_gain: Limit | None = None
    test: Literal["auto", "none"] = Field(
        default="auto",
        description="`auto` fails on evidence only, `none` compares point values.",
    )
    policy: Literal["pass", "not_fail"] | None = Field(
        default=None,
        description="`pass`: must be shown to hold; `not_fail`: blocks only when shown to fail. "
        "Default: `pass` overall, `not_fail` for classes.",
    )
    severity: Literal["error", "warn"] = "error"

    @model_validator(mode="after")
    def _has_one_limit(self) -> "Rule":
        if sum(getattr(self, kind) is not None for kind in demands.KINDS) != 1:
            raise PydanticCustomError(
                "one_limit", "A rule has exactly one of min_value, max_value, max_drop and max_gain"
            )
        return self

    def core(self) -> demands.Rule:
        """Return the rule of the core."""
        kind = next(kind for kind in demands.KINDS if getattr(self, kind) is not None)
        return demands.Rule(
            id=self.id or "",
            index=self.index,
            classes=tuple(self.classes) if isinstance(self.classes, list) else self.classes,
            kind=kind,
            limit=getattr(self, kind),
            test=self.test,
            policy=self.policy,
            severity=self.severity,
        )


class Waiver(Request):
    """A known failure that is accepted up to a ceiling and a day."""

    rule: Identifier = Field(description="The id of the rule.")
    class_: ClassName | None = Field(default=None, alias="class")
    ceiling: float = Field(description="The worst waived value, in the unit of the limit.")
    reason: str = Field(min_length=1, max_length=1000)
    by: str = Field(min_length=1, max_length=200)
    expires: date = Field(strict=False, description="The last day on which it holds.")

    def core(self) -> demands.Waiver:
        """Return the waiver of the core."""
        return demands.Waiver(
            rule=self.rule,
            class_=self.class_,
            ceiling=self.ceiling,
            reason=self.reason,
            by=self.by,
            expires=self.expires,
        )


class Effects(Request):
    """The effects of results that are neither pass nor fail."""

    inconclusive: Effect = "warn"
    no_baseline: Literal["warn", "fail"] = "warn"
    not_comparable: Literal["warn", "fail"] = "fail"
    undefined: Literal["warn", "fail"] = "fail"


class Gates(Request):
    """The rules that decide. Without any, the verdict is `no_rules`, never `pass`."""

    alpha: float = Field(default=0.05, gt=0, lt=0.5, description="One-sided level.")
    rules: list[Rule] = Field(max_length=200)
    on: Effects = Effects()
    looks: Literal["ignore", "spend"] = Field(
        default="ignore", description="`spend` divides alpha over repeated looks at a test set."
    )
    waivers: list[Waiver] = Field(default=[], max_length=200)

    def core(self) -> demands.Gate:
        """Return the gate of the core; `core.gates.rules.mistakes` checks its meaning."""
        return demands.Gate(
            rules=tuple(rule.core() for rule in self.rules),
            alpha=self.alpha,
            on={
                "inconclusive": self.on.inconclusive,
                "no_baseline": self.on.no_baseline,
                "not_comparable": self.on.not_comparable,
                "undefined": self.on.undefined,
            },
            looks=self.looks,
            waivers=tuple(waiver.core() for waiver in self.waivers),
        )


class Result(Answer):
    """The result of a rule, overall or for one class."""

    rule: str
    index: str
    class_: str | None = Field(alias="class")
    verdict: Literal[
        "pass", "fail", "inconclusive", "no_baseline", "not_comparable", "undefined", "waived"
    ] = Field(description="The finding.")
    effect: Effect = Field(description="The effect on the verdict.")
    observed: float | None
    baseline: float | None
    delta: float | None
    kind: demands.RuleKind = Field(description="What the rule bounds: the value, or its change.")
    limit: float
    interval: tuple[float | None, float | None] | None = Field(
        description="Interval of the delta or the value, at level alpha at each end."
    )
    p_value: float | None
    p_adjusted: float | None
    method: str | None
    pairing: Pairing | None
    n: float | None
    min_detectable_drop: float | None = Field(
        description="The drop that the test detects with 80 % power."
    )
    reason: str | None
    message: str


class Gate(Answer):
    """The verdict. It is data: a failed gate answers 200 or 201."""

    verdict: Literal["pass", "fail", "inconclusive", "no_rules"]
    alpha: float
    look: int | None = Field(
        description="Which look at the test set this was, from 1; null if looks are ignored."
    )
    results: list[Result]


class Delta(Answer):
    """An index of the candidate, of the baseline, and their difference."""

    candidate: float | None
    baseline: float | None
    value: float | None
    interval: tuple[float, float] | None
    method: str | None
    reason: str | Absent = Field(default=None)
