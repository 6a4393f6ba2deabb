"""Models of the search for weak slices."""

from typing import Annotated

from pydantic import BaseModel, Field, create_model

from rprime.schemas.fields import (
    DENSE_CLASSES,
    Absent,
    Answer,
    ClassName,
    Costs,
    IndexKey,
    Request,
    optional,
)
from rprime.schemas.request import ColumnValues, Cuts, EvidenceRest, LabelsEvidence, ScoresEvidence


class _Options(Request):
    index: IndexKey = Field(
        default="accuracy",
        description="A mean over items: `accuracy`, `accuracy_on_answered`, `coverage`, "
        "`error_rate`, `expected_cost` with `cost`; with a `class`, `recall` or `precision`; with "
        "`y_score`, `brier_score`, `log_loss`, `top_k_accuracy` and the like.",
    )
    class_: ClassName | None = optional("The class of `recall` or `precision`.", alias="class")
    top_k: Annotated[int, Field(ge=1, le=DENSE_CLASSES)] | None = optional(
        "How many of the highest scores count in `top_k_accuracy`."
    )
    crossed: int = Field(default=3, ge=1, le=3, description="Most columns of one slice.")
    slice_cuts: Cuts | None = optional(
        "Columns of more than 10 numbers that are not named here are cut into 4."
    )
    min_items: Annotated[int, Field(ge=16)] | None = optional(
        "Least items of a slice; default: 1 % of all, at least 64."
    )
    candidates: int = Field(
        default=20, ge=1, le=100, description="Most slices that the second half tests."
    )
    confidence: Annotated[float, Field(ge=0.5, le=0.9999)] = Field(
        default=0.95,
        description="Of all tests together: 1 - the probability that any slice is called weak that "
        "is no worse than its rest. Of each interval.",
    )
    seed: int = Field(default=0, ge=0, le=2**32 - 1, description="Of the split into halves.")


class SearchRest(EvidenceRest, _Options):
    """A request to search without its arrays."""


class _Search(_Options):
    slices: Annotated[dict[ClassName, ColumnValues], Field(min_length=1, max_length=20)] = Field(
        description="By name, the value of each item; null: none. Columns of numbers are cut."
    )
    cost: Costs | Absent = None


SEARCH_REQUESTS: tuple[type[BaseModel], ...] = tuple(
    create_model(
        f"{kind.__name__.removesuffix('Evidence')}SliceSearchRequest",
        __base__=(_Search, kind),
        __doc__="Items with the columns that weak slices are searched in.",
    )
    for kind in (LabelsEvidence, ScoresEvidence)
)
"""One of these is the JSON body of POST /v1/studies/slices."""


class SearchedColumn(Answer):
    """A column that was searched."""

    name: str = Field(description="As it is in `slices`.")
    values: list[str] = Field(description="Names of its slices.")


class FoundSlice(Answer):
    """A slice that one half of the items proposed, as the other half shows it."""

    slice: dict[str, str] = Field(description="The value of each of its columns.")
    weak: bool = Field(description="Whether it is worse than its rest: `p_adjusted` is small.")
    items: int = Field(description="Its items in the half that tests.")
    value: float | None = Field(description="Of the index, in this half.")
    rest: float | None = Field(description="Of all other items of this half.")
    difference: float | None = Field(description="`value` - `rest`.")
    interval: tuple[float | None, float | None] = Field(description="[low, high] of `difference`.")
    p_adjusted: float | None = Field(
        description="Of being no worse than the rest: one-sided, adjusted by Holm."
    )
    shrunken: float | None = Field(description="The value shrunk towards that of all items.")


class Detectable(Answer):
    """What is found with probability .8."""

    items: int = Field(description="Items of a slice, in both halves together.")
    difference: float = Field(description="How much worse it is than its rest.")


class SliceSearchReport(Answer):
    """The answer of POST /v1/studies/slices."""

    engine_version: str = Field(description="What computed it.")
    input_digest: str = Field(description="Of labels and scores; without the columns.")
    index: str = Field(description="Key of the index.")
    class_: str | Absent = optional("Its class, if any.", alias="class")
    higher_is_better: bool = Field(description="Whether larger values of the index are better.")
    items: int = Field(description="Items that count in the index.")
    value: float = Field(description="Of the index, for all of them.")
    columns: list[SearchedColumn] = Field(description="What was searched.")
    searched: int = Field(description="How many slices were counted; others were ruled out.")
    seed: int = Field(description="Of the split into halves.")
    found_on: int = Field(description="Items of the half that proposes slices.")
    tested_on: int = Field(description="Items of the half that tests them.")
    min_items: int = Field(description="Least items of a slice, about half of them in each half.")
    confidence: float = Field(description="Of all tests together, and of each interval.")
    slices: list[FoundSlice] = Field(
        description="The candidates by their shrunken values, the worst first."
    )
    detectable: list[Detectable] = Field(
        description="By the size of a slice, the smallest difference to its rest that such a "
        "search finds with probability .8."
    )
