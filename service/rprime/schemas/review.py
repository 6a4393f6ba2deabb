"""Models of the answers about comparisons and gates."""

from pydantic import Field

from rprime.schemas.comparison import Comparison
from rprime.schemas.fields import Absent, Answer, optional
from rprime.schemas.gate import Gate
from rprime.schemas.report import Warning  # noqa: A004 (the name in the API)

_OTHERS = "As other test sets of this size, drawn from the table, would say; null as above."
_RATES = "On other test sets of this size, drawn from the table; null for rules about scores."


class CompareReport(Answer):
    """The answer of POST /v1/compare."""

    engine_version: str = Field(description="The version of the formulas.")
    slice: dict[str, str] | None = Field(
        description="The slice that alone is compared, by the value of each of its columns."
    )
    population: str | None = Field(
        description="What the values are about, in words, where it is not the items."
    )
    comparison: Comparison | None = Field(
        description="Null if no such baseline is stored, with a warning."
    )
    gate: Gate | Absent = optional("If the request has `gates`.")
    warnings: list[Warning] = Field(description="Where values mislead; often empty.")


class RuleLint(Answer):
    """How a rule would judge an unchanged model."""

    id: str = Field(description="The id of the rule.")
    class_: str | None = Field(alias="class", description="The class; null for an overall index.")
    slice: dict[str, str] | None = Field(description="Its slice; null: all items.")
    items: int = Field(description="Behind the value.")
    false_fail_rate: float = Field(
        description="Share of runs that fail an unchanged model, 0 to 1."
    )
    inconclusive_rate: float = Field(description="Share of undecided runs, 0 to 1.")
    detectable_drop: float | None = Field(
        description="The drop that the rule detects with 80 % power; null if none."
    )
    detectable_interval: tuple[float | None, float | None] = Field(
        description="The same on 95 % of other test sets of this size, drawn from the table."
    )


class ClassItems(Answer):
    """The items of a class, and how many its rules need."""

    class_: str = Field(alias="class", description="Name of the class.")
    items: int = Field(description="Its items in the table.")
    needed: int | None = Field(
        description="To find the drop in 80 % of runs; null if 1000 times as many do not suffice, "
        "or no rule is about the class."
    )


class SliceItems(Answer):
    """The items of a slice, and how many its rules need."""

    slice: dict[str, str] = Field(description="Column and value, of a crossing several.")
    items: int = Field(description="Its items in the table.")
    needed: int | None = Field(
        description="Until an unchanged model passes its rules in 90 % of runs, and each finds the "
        "drop in 80 %; null if 1000 times as many do not suffice."
    )


class PlanReport(Answer):
    """How many items a gate needs, in the shares of the table's classes."""

    items: int = Field(description="Of the table.")
    for_passing: int | None = Field(
        description="Until an unchanged model passes in 90 % of runs; null if 1000 times as many "
        "as in the table do not suffice."
    )
    for_finding: int | None = Field(
        description="Until every rule finds the drop in 80 % of runs; null as above."
    )
    for_passing_interval: tuple[int | None, int | None] = Field(description=_OTHERS)
    for_finding_interval: tuple[int | None, int | None] = Field(description=_OTHERS)
    classes: list[ClassItems] = Field(description="What the rules need of each class.")
    slices: list[SliceItems] = Field(description="What the rules need of each of their slices.")
    advice: list[str] = Field(description="What to change, in sentences; often empty.")


class LintReport(Answer):
    """How a gate would judge an unchanged model."""

    false_fail_rate: float = Field(
        description="Share of runs that fail an unchanged model, 0 to 1."
    )
    inconclusive_rate: float = Field(description="Share of undecided runs, 0 to 1.")
    false_fail_interval: tuple[float, float] | None = Field(description=_RATES)
    inconclusive_interval: tuple[float, float] | None = Field(description=_RATES)
    rules: list[RuleLint] = Field(description="Each rule, and each of its classes.")
    advice: list[str] = Field(description="What to change, in sentences; often empty.")
