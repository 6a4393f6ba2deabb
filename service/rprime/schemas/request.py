"""Models of requests: options and evidence of POST /evaluate."""

from collections.abc import Collection
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from rprime.core.catalog import CLASS_INDICES, KEYS, find
from rprime.core.comparison.constant import ConstantKind
from rprime.core.custom import MOST_CUSTOM
from rprime.core.index import Families, Family
from rprime.core.labels import Axis
from rprime.core.options import SliceAdjust
from rprime.core.scores.calibration import BINS, Binning
from rprime.schemas.fields import (
    DENSE_CLASSES,
    MOST,
    SPARSE_CLASSES,
    Absent,
    AnyIndexKey,
    AnyLabel,
    Cell,
    ClassName,
    Costs,
    Count,
    CustomName,
    ExpressionText,
    IntegerLabel,
    Labels,
    Matrix,
    Request,
    Weight,
    Weights,
    optional,
)
from rprime.schemas.gate import Gates
from rprime.schemas.population import PopulationAsked, Prevalence, SliceNamed
from rprime.schemas.provenance import PROJECT, PathName, Provenance, Reference, StoredSide, TestSet

_SILENT = "k counts: items of each true class without a prediction."
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


ChosenClasses = Annotated[list[AnyLabel], Field(min_length=1, max_length=SPARSE_CLASSES)]


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
    ignore_true: ChosenClasses | None = optional(
        "Items with these true labels, such as a padding, are left out, as by `ignore_index` of "
        "TorchMetrics. Of a baseline with only `y_pred` or `y_score`, those of the candidate are."
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
    class_items: list[Count] | None = optional(
        "k numbers of items, which weights do not tell: those of each true class whose weight is "
        "above 0. Only with `weighted`."
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
    "`labels`; or, of two classes, the scores of only the second one. Measures of probability "
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


class ConstantBaseline(Request):
    """A classifier that predicts the candidate's items without looking at them."""

    constant: ConstantKind = Field(
        description="What it predicts for every item. `majority`: the class with the most items, "
        "of equal ones the first. `uniform`: each of the k classes with probability 1/k. `prior`: "
        "each class with its share of the items, or of the `population`. The last two have the "
        "expected table, and at most 1000 classes."
    )


def _as_one_of(schema: dict[str, Any]) -> None:
    schema["oneOf"] = schema.pop("anyOf")


# openapi-generator merges the members of an `anyOf` into one type that demands them all.
_EXCLUSIVE = Field(json_schema_extra=_as_one_of)
_Whole = MatrixEvidence | CellsEvidence | LabelsEvidence | ScoresEvidence
_Other = PredictionsEvidence | PredictedScoresEvidence | ConstantBaseline
AnyBaseline = Annotated[_Whole | _Other | StoredSide, _EXCLUSIVE]
AnySide = Annotated[_Whole | StoredSide, _EXCLUSIVE]


MOST_CHANGED_ITEMS = 1_000
"""Changed items in one answer."""
OrderBy = Literal["labels", "support", "predicted", *CLASS_INDICES]  # type: ignore[valid-type] # known at import


_SOME_KEYS = Field(min_length=1, max_length=len(KEYS))


class BinsWanted(Request):
    """The bins of calibration errors and of the reliability diagram."""

    bins: int = Field(default=BINS, ge=1, le=1000, description="How many bins there are.")
    binning: Literal["equal_width", "equal_mass"] = Field(
        default="equal_width",
        description="`equal_mass`: about as many items in each bin, or as much weight. Equal "
        "probabilities stay together, so there may be fewer bins.",
    )


class EvaluateOptions(Request):
    """The options without arrays, for every kind of evidence."""

    indices: Annotated[list[AnyIndexKey], _SOME_KEYS] | None = optional(
        "Keys of the indices to report, overall and per class; default: those of `families`."
    )
    families: list[Families] = Field(
        default=[],
        max_length=len(get_args(Family)) + 2,
        description="Families of indices to report, with those of `indices`; default without "
        "`indices`: `summary`. `all`: every index.",
    )
    beta: float = Field(
        default=1.0,
        ge=0,
        description="Weight of recall against precision in `f_beta`: 0 gives precision.",
    )
    undefined: Literal["null", "zero", "one"] = Field(
        default="null", description="The replacement of undefined per-class values in averages."
    )
    average_over: ChosenClasses | None = optional(
        "The classes that averages are over: macro, weighted and micro ones, and functions of "
        "these; default: all. As `labels` of scikit-learn."
    )
    average_except: ChosenClasses | None = optional(
        "The classes that averages leave out, such as a background, in place of `average_over`."
    )
    intervals: Literal["all"] | bool | None = optional(
        "Whether to compute intervals; default: up to 300 classes. At 1000 classes "
        "they add about 25 ms. `all`: also bootstrap intervals, of 1000 draws, where there is no "
        "other rule, up to 50 classes."
    )
    confidence: float = Field(
        default=0.95, ge=0.5, le=0.9999, description="Two-sided confidence level."
    )
    exact: bool = Field(
        default=False, description="Clopper-Pearson instead of Wilson for plain proportions."
    )
    sampling: Literal["random", "fixed_rows"] = Field(
        default="random",
        description="`fixed_rows`: the number of items of each class was fixed by design.",
    )
    top_k: Annotated[int, Field(ge=1, le=DENSE_CLASSES)] | None = optional(
        "How many of the highest scores count in `top_k_accuracy`; default: 5, at "
        "most all but one of the classes."
    )
    calibration: (
        Annotated[BinsWanted, AfterValidator(lambda wanted: wanted.into(Binning))] | None
    ) = optional(
        "The bins of calibration errors. Any, also `{}`, adds the family `calibration` to the "
        "summary; the default is 15 bins of equal width."
    )
    slice_adjust: SliceAdjust = Field(
        default="holm",
        description="How p-values are adjusted over all slices and indices: for the probability of "
        "any false alarm, or for the share of false ones.",
    )
    custom: dict[CustomName, ExpressionText] | None = optional(
        "Adds an index of one's own by name: an expression of numbers, indices, "
        "`items`, counts and `cells`, with + - * / and parentheses, as "
        "`(5 * cells['fraud', 'ok'] + cells['ok', 'fraud']) / items`. Its key is `custom.` and "
        "the name.",
        max_length=MOST_CUSTOM,
    )


class ScoreOptions(Request):
    """The options that need `y_score`."""

    reject_below: RejectBelow = None
    curves: bool = Field(
        default=False,
        description="Adds the curves: ROC and precision-recall of every class, reliability, "
        "risk-coverage; each of at most 1000 points, which keep its convex hull.",
    )
    reject: Literal["sweep"] | None = optional(
        "`sweep`: adds accuracy, R' and coverage at every threshold of the top score "
        "below which items are left unclassified."
    )
    thresholds: dict[str, Score] | None = optional(
        "Adds, for each class named here, its table against the rest, with items of "
        "at least this score predicted as the class.",
        max_length=DENSE_CLASSES,
    )


class ClassesWanted(Request):
    """The page of classes in a report."""

    limit: int = Field(default=100, ge=1, le=SPARSE_CLASSES, description="Most classes.")
    offset: int = Field(default=0, ge=0, le=SPARSE_CLASSES, description="How many classes to skip.")
    order_by: OrderBy = Field(
        default="support",
        description="`labels`: their order. `support`, `predicted`: largest first. The key of a "
        "per-class index: worst first, or largest first if it has no best value.",
    )


class ChangedItemsWanted(Request):
    """The page of changed items in a report."""

    limit: int = Field(
        default=MOST_CHANGED_ITEMS, ge=1, le=MOST_CHANGED_ITEMS, description="Most items."
    )
    offset: int = Field(default=0, ge=0, le=MOST, description="How many items to skip.")


ChangedItemsOption = Annotated[
    Annotated[bool, Tag("whether")] | Annotated[ChangedItemsWanted, Tag("page")],
    Discriminator(lambda option: "page" if isinstance(option, dict | BaseModel) else "whether"),
    Field(
        description="`true`, or a page: names the items whose prediction differs from that of the "
        "baseline, at most 1000 at a time. Both sides need `item_id`."
    ),
]


class ListOptions(Request):
    """The lengths of the lists in a report."""

    classes: Annotated[
        ClassesWanted | None,
        Field(
            description="The page of `per_class`. Default: all classes, up to 100 000 values, "
            "those with the most items. The member `classes` of the report shows what is left out."
        ),
    ] = None
    top_confusions: Annotated[
        int | None,
        Field(ge=1, le=1000, description="Most confusions in the report; default: `/version`."),
    ] = None
    changed_items: ChangedItemsOption = False


class EvidenceRest(LabelOptions):
    """Evidence without its arrays."""

    axis: Axis | None = None
    weighted: bool = False
    test_set: TestSet | None = None
    reject_below: RejectBelow = None
    slice_crossings: Crossings | None = None
    slice_cuts: Cuts | None = None


class SideRest(EvidenceRest, Reference):
    """One side of a comparison without its arrays: options, or a reference."""


class BaselineRest(SideRest):
    """A baseline without its arrays: options, a reference, or a constant classifier."""

    constant: ConstantKind | None = None

    @model_validator(mode="after")
    def _is_alone(self) -> "BaselineRest":
        if self.constant is not None and self.model_fields_set != {"constant"}:
            text = (
                "A constant classifier predicts the items of the candidate: send `constant` alone"
            )
            raise PydanticCustomError("constant_alone", text)
        return self


class MatrixOptions(EvaluateOptions):
    """The options of a comparison without their matrices."""

    kappa_weights: Literal["linear", "quadratic"] | None = None

    def lacking(self, matrices: Collection[str]) -> list[tuple[int, str]]:
        """Return the positions in `indices` of those that need a missing option, and its name.

        Given are the names of the matrix options in the request.
        """
        there = {*matrices, *(["kappa_weights"] if self.kappa_weights else [])}
        entries = [find("overall", key) or find("class", key) for key in self.indices or ()]
        return [
            (i, entry.needs)
            for i, entry in enumerate(entries)
            if entry and entry.needs and entry.needs not in there
        ]


class RequestOptions(MatrixOptions, ScoreOptions, ListOptions, LabelOptions, Provenance):
    """A request without its arrays."""

    axis: Axis | None = None
    weighted: bool = False
    baseline: BaselineRest | None = None
    gates: Gates | None = None
    population: PopulationAsked | None = None
    slice_crossings: Crossings | None = None
    slice_cuts: Cuts | None = None


class ComparisonRest(Request):
    """A request to compare without its arrays."""

    candidate: SideRest
    baseline: BaselineRest
    options: MatrixOptions = MatrixOptions()
    gates: Gates | None = None
    slice: SliceNamed = ()
    prevalence: Prevalence = None
    changed_items: ChangedItemsOption = False


class PublishedOptions(EvaluateOptions):
    """The options with their matrices, for the OpenAPI document."""

    cost: Costs | None = optional("Adds `expected_cost` and `normalized_expected_cost`.")
    cell_weights: Weights | None = optional(
        "Multiplies the cells of the table before the evaluation."
    )
    kappa_weights: Literal["linear", "quadratic"] | Weights | None = optional(
        "Adds `weighted_kappa`. A matrix holds disagreements: its diagonal is 0."
    )


class _Demands(PublishedOptions, ListOptions, Provenance):
    project: PathName | Absent = optional(PROJECT)
    baseline: AnyBaseline | Absent = optional(
        "The baseline of the comparison in the report and of `gates`."
    )
    gates: Gates | Absent = optional("The rules of the gate; the verdict is in the report.")
    population: PopulationAsked | Absent = optional(
        "The population that all numbers are to be about."
    )


class MatrixRequest(MatrixEvidence, _Demands):
    """A confusion matrix, and any options."""


class CellsRequest(CellsEvidence, _Demands):
    """The non-empty cells of a confusion matrix, and any options."""


class LabelsRequest(LabelsEvidence, _Demands):
    """The true and the predicted label of every item, and any options."""


class ScoresRequest(ScoreOptions, ScoresEvidence, _Demands):
    """The true label and the scores of every item, and any options."""


class CompareRequest(Request):
    """A candidate and a baseline."""

    candidate: AnySide = Field(description="What is judged: evidence, or a stored evaluation.")
    baseline: AnyBaseline = Field(description="What it is compared with.")
    options: PublishedOptions | Absent = None
    gates: Gates | Absent = None
    slice: SliceNamed = Field(default_factory=tuple)
    prevalence: Prevalence = None
    changed_items: ChangedItemsOption = False


EVALUATE_REQUESTS = (MatrixRequest, CellsRequest, LabelsRequest, ScoresRequest)
"""One of these is the body of POST /evaluate."""
