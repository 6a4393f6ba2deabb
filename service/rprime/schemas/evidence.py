"""Models of evidence, for the OpenAPI document."""

from typing import Annotated, Any, Literal

from pydantic import Field

from rprime.schemas.fields import (
    MOST,
    SPARSE_CLASSES,
    Absent,
    Cell,
    ClassName,
    Count,
    IntegerLabel,
    Labels,
    Matrix,
    Request,
    Weight,
    optional,
)
from rprime.schemas.provenance import StoredSide, TestSet

_SILENT = "k counts: items of each true class without a prediction."
Axis = Literal["rows_are_true", "rows_are_predicted"]
Score = Annotated[float, Field(ge=-MOST, le=MOST)]
RejectBelow = Annotated[
    Score | None, Field(description="Items whose highest score is below it become unclassified.")
]
Probability = Annotated[float, Field(ge=1e-9, le=1)]
GroupName = Annotated[str, Field(min_length=1)]
Crossings = Annotated[
    list[Annotated[list[ClassName], Field(min_length=2, max_length=3)]],
    Field(
        max_length=100,
        description='Names in `slices` whose values are combined: `[["region", "device"]]` adds '
        "a slice for each pair of values.",
    ),
]
_Parts = Annotated[int, Field(ge=2, le=20)]
_Edges = Annotated[list[Score], Field(min_length=1, max_length=20)]
Cuts = Annotated[
    dict[ClassName, _Parts | _Edges],
    Field(
        max_length=20,
        description="How columns of numbers in `slices` are cut: the numbers at which slices "
        "begin, ascending, or how many slices of about equal size there are.",
    ),
]
ColumnValues = (
    list[ClassName | None] | list[IntegerLabel | None] | list[float | None] | list[bool | None]
)


class LabelOptions(Request):
    """The options about labels that are not classes, of items alone."""

    aliases: dict[str, ClassName] | None = optional(
        "The class that each other text in `y_true` and `y_pred` means, as "
        '`{"Cat.": "cat"}`. White space around the texts does not count.',
        max_length=SPARSE_CLASSES,
    )
    unknown_labels: Literal["refuse", "unclassified"] = Field(
        default="refuse",
        description="What predictions are that are no class of `labels`: refused, or unclassified. "
        "The warning `unknown_labels` counts them. A true label is always a class.",
    )
    missing_true: Literal["refuse", "spurious"] = Field(
        default="refuse",
        description="What null in `y_true` is: refused, or a prediction of nothing that is there, "
        "as a false detection. Such items are counted in `spurious`, as a table.",
    )


class _Evidence(Request):
    labels: Labels | None = None
    test_set: TestSet | None = None


class _ItemsEvidence(_Evidence):
    item_id: list[str] | list[int] | None = optional(
        "The id of each item, each another. A baseline with `y_true` and ids of its own is matched "
        "by these, in any order."
    )
    slices: dict[ClassName, ColumnValues] | Absent = optional(
        "By name, the value of each item, such as its region; null: none. The report "
        "tells how the items of each value differ from the rest. Columns of numbers are cut as "
        "`slice_cuts` says."
    )
    slice_crossings: Crossings | Absent = None
    slice_cuts: Cuts | Absent = None


class SliceMatrix(Request):
    """The confusion matrix of a slice, with the classes and the axis of the whole table."""

    confusion_matrix: Matrix
    unclassified: list[Count] | None = optional(_SILENT)


class SliceCells(Request):
    """The non-empty cells of a slice."""

    cells: list[Cell] = Field(min_length=1, description="In any order; what is not here is 0.")
    unclassified: list[Count] | None = optional(_SILENT)


class _NamedSlice(Request):
    slice: Annotated[dict[ClassName, ClassName], Field(min_length=1, max_length=3)] = Field(
        description='The value of each column: `{"region": "EU", "device": "ios"}`.'
    )


class NamedSliceMatrix(SliceMatrix, _NamedSlice):
    """The confusion matrix of a slice, and its name."""


class NamedSliceCells(SliceCells, _NamedSlice):
    """The non-empty cells of a slice, and its name."""


class _Table(_Evidence):
    axis: Axis | None = optional("The meaning of the rows; default: `rows_are_true`.")
    unclassified: list[Count] | None = optional(_SILENT)
    spurious: list[Count] | None = optional(
        "k counts: predictions of each class on items without a class."
    )
    weighted: bool = Field(
        default=False,
        description="Whether the counts are sums of weights: then there are no intervals.",
    )
    slices: (
        Annotated[list[NamedSliceMatrix | NamedSliceCells], Field(min_length=1)]
        | Annotated[dict[ClassName, dict[ClassName, SliceMatrix | SliceCells]], Field(min_length=1)]
        | Absent
    ) = optional(
        "The table of the items of each slice: by column and value, or listed, where "
        "a slice may be one of a crossing."
    )


class MatrixEvidence(_Table):
    """A confusion matrix; `labels` default to "0", "1", ..."""

    confusion_matrix: Matrix


class CellsEvidence(_Table):
    """The non-empty cells of a confusion matrix, for many classes."""

    cells: list[Cell] = Field(min_length=1, description="In any order; what is not here is 0.")
    labels: Labels


_SOME = Field(min_length=1)
_Truth = Annotated[
    Annotated[list[ClassName | None], _SOME]
    | Annotated[list[IntegerLabel | None], _SOME]
    | Annotated[list[bool | None], _SOME],
    Field(description="The true label of each item: all of one kind; null: see `missing_true`."),
]
_Predictions = Annotated[
    Annotated[list[ClassName | None], _SOME]
    | Annotated[list[IntegerLabel | None], _SOME]
    | Annotated[list[bool | None], _SOME],
    Field(description="The predicted label of each item; null: unclassified."),
]


class LabelsEvidence(_ItemsEvidence, LabelOptions):
    """The true and the predicted label of every item: all strings, or all integers.

    null in `y_pred` is an unclassified item. Without `labels` the classes are those that occur,
    strings by code point and integers by value.
    """

    y_true: _Truth
    y_pred: _Predictions
    sample_weight: list[Weight] | None = optional(
        "A weight for each item. Intervals rest on the effective number of items."
    )
    inclusion_probability: list[Probability] | None = optional(
        "The probability with which each item was drawn; its inverse is the weight."
    )
    groups: list[GroupName] | list[IntegerLabel] | None = optional(
        "The group of each item, such as a patient or a video: items of one group "
        "are not independent, and intervals and tests take that into account."
    )


_ScoreRows = Annotated[list[Annotated[list[Score], _SOME]], _SOME] | Annotated[list[Score], _SOME]
_SCORES = Field(
    description="A row of scores for each item, a column for each class in the order of "
    "`labels`; or, of two classes, the scores of the second one alone. Measures of probability "
    "need rows that sum to 1."
)


class ScoresEvidence(_ItemsEvidence, LabelOptions):
    """The true label of every item and its scores for every class.

    Without `labels` the classes are those that occur; without `y_pred` the class of the highest
    score is predicted, the first one of equal scores.
    """

    y_true: _Truth
    y_score: Annotated[_ScoreRows, _SCORES]
    y_pred: _Predictions | Absent = None
    sample_weight: list[Weight] | None = optional(
        "A weight for each item, for indices of the table and of the scores."
    )
    inclusion_probability: list[Probability] | None = optional(
        "The probability with which each item was drawn; its inverse is the weight."
    )
    groups: list[GroupName] | list[IntegerLabel] | None = optional(
        "The group of each item: items of one are not independent."
    )
    reject_below: RejectBelow = None


class PredictionsEvidence(LabelOptions):
    """Other predictions for the candidate's own items: compared item by item."""

    y_pred: _Predictions
    labels: Labels | None = None


class PredictedScoresEvidence(LabelOptions):
    """Other scores for the candidate's own items: compared item by item.

    Without `labels` the columns are in the order of the candidate's.
    """

    y_score: Annotated[_ScoreRows, _SCORES]
    y_pred: _Predictions | Absent = None
    labels: Labels | None = None
    reject_below: RejectBelow = None


def _as_one_of(schema: dict[str, Any]) -> None:
    schema["oneOf"] = schema.pop("anyOf")


# openapi-generator merges the members of an `anyOf` into one type that demands them all.
_EXCLUSIVE = Field(json_schema_extra=_as_one_of)
_Whole = MatrixEvidence | CellsEvidence | LabelsEvidence | ScoresEvidence
_Other = PredictionsEvidence | PredictedScoresEvidence
AnyBaseline = Annotated[_Whole | _Other | StoredSide, _EXCLUSIVE]
AnySide = Annotated[_Whole | StoredSide, _EXCLUSIVE]
