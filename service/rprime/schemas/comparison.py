"""Models of comparisons in answers."""

from typing import Annotated

from pydantic import Field

from rprime.core.comparison.alignment import Comparability
from rprime.core.comparison.compare import Pairing
from rprime.core.comparison.flips import Flips, ItemChange, Move, Shift
from rprime.core.comparison.missing_items import CommonItems, MissingItems
from rprime.schemas.fields import Absent, Answer, OfCore, optional
from rprime.schemas.gate import Delta
from rprime.schemas.provenance import ResolvedSide


class OtherClasses(Answer):
    """Classes that are not compared."""

    candidate_only: list[str] = Field(description="Declared only by the candidate.")
    baseline_only: list[str] = Field(description="Declared only by the baseline.")
    without_items: list[str] = Field(
        description="Declared by both, without items on at least one side: averages leave them out."
    )
    left_out: int | Absent = optional(
        "How many compared classes `per_class` does not show: the request pages them by `classes`."
    )


class ChangedItem(Answer):
    """An item whose prediction changed; null is unclassified."""

    id: str = Field(description="Its `item_id`, an integer as its digits.")
    true: str = Field(description="The true class.")
    was: str | None = Field(description="What the baseline predicted.")
    is_: str | None = Field(alias="is", description="What the candidate predicted.")
    change: ItemChange = Field(description="Whether it got worse, got better, or stayed wrong.")


class ChangedItems(Answer):
    """Items whose prediction changed: first the worse, then the better ones, then the others."""

    total: int = Field(description="How many items changed.")
    left_out: int = Field(description="How many of them this page does not show.")
    limit: int = Field(description="Most items on this page.")
    offset: int = Field(description="How many items come before this page.")
    right_to_wrong: int = Field(description="Items that got worse.")
    wrong_to_right: int = Field(description="Items that got better.")
    wrong_to_wrong: int = Field(description="Items that are wrong in another way.")
    items: list[ChangedItem] = Field(description="The items of this page.")


class _Cell(Answer):
    true: str | None = Field(description="The true class; null for spurious items.")
    predicted: str | None = Field(description="The predicted class; null for unclassified items.")


class CellChange(_Cell):
    """A cell of the table on both sides; null is unclassified or spurious."""

    baseline: float = Field(description="Items of the baseline.")
    candidate: float = Field(description="Items of the candidate.")
    change: float | None = Field(
        description="Difference of counts; of shares if the totals differ, null if one total is 0."
    )


class Contribution(_Cell):
    """What one confusion contributes to the change of an index."""

    contribution: float = Field(description="In the unit of the index; below 0 lowers it.")


class Attribution(Answer):
    """The change of an index as a sum over confusions."""

    cells: list[Contribution] = Field(description="The confusions that contribute most.")
    rest: float | None = Field(
        description="Sum over all other confusions, and what classes contribute by other numbers "
        "of items."
    )
    residual: float | None = Field(description="The difference minus the sum of all these.")


class SliceDelta(Delta):
    """The difference of an index on a slice."""

    p_adjusted: float | None = Field(
        description="Of no difference, adjusted over all slices and indices; null without a test."
    )


class SliceChange(Answer):
    """How a part of the items changed."""

    slice: dict[str, str] = Field(description="The value of each column that it is of.")
    items: float = Field(description="How many the candidate has in the slice.")
    overall: dict[str, SliceDelta] = Field(description="The differences of overall indices.")


class Comparison(Answer):
    """A candidate against a baseline; every difference is candidate minus baseline."""

    baseline: ResolvedSide = Field(description="What was asked for and found.")
    comparability: Comparability = Field(description="How far both sides can be compared.")
    pairing: Pairing | None = Field(description="Whether items were compared one by one.")
    items: CommonItems | None = Field(description="If only the items of both are compared.")
    missing: Annotated[MissingItems, OfCore()] | Absent = optional(
        "If items of the baseline are missing, or the candidate has new ones, by `item_id`."
    )
    confidence: float = Field(description="Confidence level of the intervals, as 0.95.")
    method: str | Absent | None = optional(
        "The method of every interval that names no other one; null if there is none."
    )
    classes: OtherClasses = Field(description="What is left out of the comparison.")
    overall: dict[str, Delta] = Field(description="The differences of overall indices.")
    per_class: dict[str, dict[str, Delta]] = Field(description="By class and index.")
    slices: list[SliceChange] | Absent = optional(
        "If both sides have slices: those that got worst first, by their shrunken changes."
    )
    flips: Annotated[Flips, OfCore()] | None = Field(
        description="Null if items were not compared one by one."
    )
    moves: list[Annotated[Move, OfCore()]] | None = Field(
        description="The largest first; null if not paired."
    )
    cells: list[CellChange] | None = optional(
        "With `include=cells`: what changed most; null if not comparable."
    )
    shift: Annotated[Shift, OfCore()] | None = Field(
        description="Null if items were not compared one by one."
    )
    attribution: dict[str, Attribution] | Absent = optional(
        "With `include=cells`: by key of an index, or `key/class`."
    )
