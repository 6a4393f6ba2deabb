"""What the routes about comparisons and gates answer."""

from pydantic import Field

from rprime.schemas.comparison import Comparison
from rprime.schemas.fields import Absent, Answer
from rprime.schemas.gate import Gate
from rprime.schemas.report import Warning  # noqa: A004 (its name)


class CompareReport(Answer):
    """The answer of POST /v1/compare."""

    engine_version: str
    comparison: Comparison | None = Field(
        description="Null where the history has no such baseline, and a warning says why."
    )
    gate: Gate | Absent = Field(default=None, description="Where `gates` were given.")
    warnings: list[Warning]


class RuleLint(Answer):
    """What a rule would do to an unchanged model."""

    id: str
    class_: str | None = Field(alias="class")
    false_fail_rate: float
    inconclusive_rate: float
    detectable_drop: float | None = Field(
        description="The drop that the rule finds in 8 of 10 cases; null where none is."
    )


class LintReport(Answer):
    """What a gate would do to a model that has not changed."""

    false_fail_rate: float
    inconclusive_rate: float
    rules: list[RuleLint]
    advice: list[str]
