"""Models of comparisons in answers."""

from pydantic import Field

from rprime.core.comparison.alignment import Comparability
from rprime.schemas.fields import Answer
from rprime.schemas.gate import Delta, Pairing
from rprime.schemas.provenance import ResolvedBaseline


class CommonItems(Answer):
    """How many items two test sets share, by their ids."""

    shared: int = Field(description="Items of both: these are compared.")
    added: int = Field(description="Items that only the candidate has.")
    removed: int = Field(description="Items that only the baseline has.")
    relabelled: int = Field(
        description="Shared items with another true class; the candidate's counts for both."
    )


class OtherClasses(Answer):
    """Classes that are not compared."""

    candidate_only: list[str] = Field(description="Declared by the candidate alone.")
    baseline_only: list[str] = Field(description="Declared by the baseline alone.")
    without_items: list[str] = Field(
        description="Declared by both, without items on at least one side: averages leave them out."
    )


class ClassFlips(Answer):
    """Items that one side got right and the other wrong."""

    right_to_wrong: float
    wrong_to_right: float
    mid_p: float | None = Field(description="One-sided: small if the candidate is worse.")
    p_worse: float | None = Field(description="Probability of being worse; for information.")


class Flips(ClassFlips):
    """The flips of all items, and of the classes that have any."""

    moved: int = Field(description="Items whose prediction changed, right or wrong.")
    per_class: dict[str, ClassFlips]
    reason: str | None = Field(
        default=None,
        description="Why there are no tests: the items are `weighted`, or `grouped`, so that they "
        "are not independent.",
    )


class Move(Answer):
    """Items of one class whose prediction changed in the same way; null is unclassified."""

    true: str
    from_: str | None = Field(alias="from")
    to: str | None
    items: int


class CellChange(Answer):
    """A cell of the table on both sides; null is unclassified or spurious."""

    true: str | None
    predicted: str | None
    baseline: float
    candidate: float
    change: float | None = Field(
        description="Difference of counts; of shares if the totals differ, null if one total is 0."
    )


class ChiSquare(Answer):
    """A chi-square test."""

    statistic: float | None
    df: int
    p_value: float | None


class Shift(Answer):
    """Whether the predictions shifted, right or wrong: information, never a verdict."""

    bowker: ChiSquare
    stuart_maxwell: ChiSquare
    reason: str | None = Field(
        default=None, description="Why there are no p-values: `grouped` items are not independent."
    )


class Contribution(Answer):
    """What one cell contributes to the change of an index."""

    true: str | None
    predicted: str | None
    contribution: float


class Attribution(Answer):
    """The change of an index as a sum over cells."""

    cells: list[Contribution]
    rest: float | None = Field(description="Sum over all other cells.")
    residual: float | None = Field(description="The difference minus the sum over all cells.")


class Comparison(Answer):
    """A candidate against a baseline; every difference is candidate minus baseline."""

    baseline: ResolvedBaseline
    comparability: Comparability
    pairing: Pairing | None
    items: CommonItems | None = Field(description="If only the items of both are compared.")
    confidence: float
    classes: OtherClasses
    overall: dict[str, Delta]
    per_class: dict[str, dict[str, Delta]]
    flips: Flips | None
    moves: list[Move] | None
    cells: list[CellChange] | None
    shift: Shift | None
    attribution: dict[str, Attribution]
