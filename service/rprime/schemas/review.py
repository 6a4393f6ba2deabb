"""Models of the answers about comparisons and gates."""

from pydantic import Field

from rprime.schemas.comparison import Comparison
from rprime.schemas.fields import Absent, Answer
from rprime.schemas.gate import Gate
from rprime.schemas.report import Warning  # noqa: A004 (the name in the API)


class CompareReport(Answer):
    """The answer of POST /v1/compare."""

    engine_version: str
    comparison: Comparison | None = Field(
        description="Null if no such baseline is stored, with a warning."
    )
    gate: Gate | Absent = Field(default=None, description="If the request has `gates`.")
    warnings: list[Warning]


class RuleLint(Answer):
    """How a rule would judge an unchanged model."""

    id: str
    class_: str | None = Field(alias="class")
    false_fail_rate: float
    inconclusive_rate: float
    detectable_drop: float | None = Field(
        description="The drop that the rule detects with 80 % power; null if none."
    )


class LintReport(Answer):
    """How a gate would judge an unchanged model."""

    false_fail_rate: float
    inconclusive_rate: float
    rules: list[RuleLint]
    advice: list[str]
