"""Models of reports, for the OpenAPI document and for clients, not for the hot path."""

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import ConfigDict, Field, RootModel, model_validator

from rprime.core.catalog import CLASS_INDICES, INDICES, OVERALL_INDICES
from rprime.core.index import REASONS, Family, Index
from rprime.core.index_names import names_of
from rprime.core.intervals.methods import INTERVALS
from rprime.core.options import OptionsUsed
from rprime.core.studies import Properties, properties_of
from rprime.core.warnings import Warning  # noqa: A004 (its name)
from rprime.schemas.comparison import ChangedItems, Comparison
from rprime.schemas.fields import Absent, Answer, OfCore, optional
from rprime.schemas.gate import Gate
from rprime.schemas.population import Population
from rprime.schemas.provenance import OriginShown, ResolvedSide

IntervalName = Annotated[str, Field(json_schema_extra={"enum": list(INTERVALS)})]


class Excluded(Answer):
    """A class that an average leaves out."""

    class_: str = Field(alias="class", description="Name of the class.")
    reason: str = Field(description="Why: `no_items`, or why its value is undefined.")


class Value(Answer):
    """The value of an index. An undefined value is null, with a reason."""

    value: float | None = Field(description="In the range of the index; null if undefined.")
    interval: tuple[float | None, float | None] | Absent | None = optional(
        "[low, high]; null if undefined. An infinite end is null. Absent without `intervals`, and "
        "where the index has none."
    )
    reason: str | Absent = optional(
        "Why the value, or else its interval, is undefined.",
        json_schema_extra={"enum": list(REASONS[1:])},
    )
    counted_as_zero: list[str] | Absent = optional(
        "Classes that have items and are never predicted: the average counts their precision as 0."
    )
    excluded: list[Excluded] | Absent = optional(
        "Classes that an average leaves out, because they have no items or their "
        "value is undefined."
    )
    excluded_elsewhere: int | Absent = optional(
        "How many more it leaves out, beyond the page of `classes`."
    )
    method: str | Absent = optional("The method of the interval.")
    reliability: Literal["low"] | Absent = optional(
        "The interval rests on fewer than 10 items or groups or on fewer than 5 errors "
        "or 5 rights, or is of an area or average precision with fewer than 20 items in the class "
        "or outside of it."
    )
    effective_items: float | Absent = optional(
        "Where items have weights or groups, or stand for a population: the number of "
        "independent items of which a share has the variance of this value."
    )
    standard_error: float | Absent = optional("With `population`: that of the value.")
    band: str | Absent = optional("Landis and Koch 1977, a convention.")
    p_value: Annotated[float, Field(ge=0, le=1)] | Absent | None = optional(
        "Null where the items are grouped, which the test ignores."
    )
    clipped: int | Absent = optional("How many probabilities were clipped.")
    if_calibrated: float | Absent = optional(
        "About what this calibration error would be on average, with as many items in these "
        "bins, if every probability were true: its bias."
    )
    bins: list[dict[str, float]] | Absent = optional("The bins of a reliability diagram.")


def _list(schema: dict[str, Any], entries: Iterable[Index]) -> None:
    """Describe each index of today; further ones may come."""
    value: dict[str, Any] = schema.pop("additionalProperties")
    for entry in entries:
        low, high = entry.range
        bounds = {"minimum": low, "maximum": high}
        finite = {name: bound for name, bound in bounds.items() if np.isfinite(bound)}
        described = finite | {"description": f"In [{low:g}, {high:g}]; null if undefined."}
        schema.setdefault("properties", {})[entry.key] = {
            "allOf": [value],
            "title": entry.name,
            "description": entry.description,
            "properties": {"value": described},
        }
    schema["additionalProperties"] = value


def _list_overall(schema: dict[str, Any]) -> None:
    _list(schema, OVERALL_INDICES.values())


def _list_per_class(schema: dict[str, Any]) -> None:
    _list(schema, CLASS_INDICES.values())
    schema["properties"]["estimated_prevalence"] = {
        "allOf": [schema["additionalProperties"]],
        "description": "Instead of `prevalence` where the strata of a population have shares.",
    }


class Overall(RootModel[dict[str, Value]]):
    """The overall indices by key, including averages."""

    model_config = ConfigDict(json_schema_extra=_list_overall)


class ClassIndices(RootModel[dict[str, Value]]):
    """The indices of one class by key."""

    model_config = ConfigDict(json_schema_extra=_list_per_class)


class ClassReport(Answer):
    """The counts and the indices of one class."""

    support: float = Field(ge=0, description="Items of the class, or the sum of their weights.")
    predicted: float = Field(ge=0, description="Predictions of the class, counted likewise.")
    correct: float = Field(ge=0, description="Items of it that were predicted correctly, likewise.")
    indices: ClassIndices


class Counts(Answer):
    """How many items there were; where these have weights, also what they weigh."""

    items: float | None = Field(
        ge=0,
        description="The number of real items, not the sum of their weights; null where "
        "only that is known.",
    )
    classified: float | Absent = optional("Real items with a prediction; without weights.", ge=0)
    unclassified: float | Absent = optional("Real items without one; without weights.", ge=0)
    spurious: float | Absent = optional(
        "Predictions on items without a true class; without weights.", ge=0
    )
    weight: float | Absent = optional("Sum of the weights of the real items.", ge=0)
    classified_weight: float | Absent = optional("That of those with a prediction.", ge=0)
    unclassified_weight: float | Absent = optional("That of those without a prediction.", ge=0)
    spurious_weight: float | Absent = optional(
        "That of predictions on items without a true class.", ge=0
    )
    effective_items: float | Absent = optional(
        "Kish's effective number of items, where the items have weights."
    )


class Curve(Answer):
    """A curve as columns of equal length; null if undefined at a point."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, list[float | None]] = Field(init=False)


class Curves(Answer):
    """The curves of scores, at most 1000 points each, from the highest threshold."""

    roc: dict[str, Curve] = Field(
        description="By class: `false_positive_rate`, `recall`, `threshold`."
    )
    precision_recall: dict[str, Curve] = Field(
        description="By class: `recall`, `precision`, `threshold`."
    )
    reliability: list[dict[str, float]] | Absent = optional(
        "The bins of the top score, if the scores are probabilities."
    )
    risk_coverage: Curve = Field(description="`coverage`, `risk`, `threshold`.")


class ThresholdView(Answer):
    """A class against the rest at a threshold of its score."""

    threshold: float = Field(description="The lowest score that counts as the class.")
    table: tuple[tuple[int, int], tuple[int, int]] = Field(description="[[TP, FN], [FP, TN]].")
    values: dict[str, float | None] = Field(description="Indices of the class at this threshold.")


class Confusion(Answer):
    """One of the largest off-diagonal cells."""

    true: str = Field(description="The true class of the items.")
    predicted: str = Field(description="The class that was predicted instead.")
    items: float | Absent = optional("How many items; without weights.", gt=0)
    weight: float | Absent = optional("The sum of their weights, if they have any.", gt=0)
    share_of_true: float = Field(description="Share of the items of the true class.", gt=0, le=1)


class Note(Answer):
    """Information that some values need to be read correctly."""

    code: str = Field(description="The kind of note: a stable name for programs.")
    indices: list[str] = Field(description="Keys of the indices that it is about.")
    detail: str = Field(description="The note in a sentence.")


class Table(Answer):
    """The table itself, on request."""

    cells: list[tuple[int, int, float]] = Field(description="[true, predicted, count], non-empty.")
    unclassified: list[float] | Absent = optional("Items of each true class without a prediction.")
    spurious: list[float] | Absent = optional(
        "Predictions of each class on items without a true class."
    )


class KeptTestSet(Answer):
    """The test set of a stored evaluation."""

    id: str | Absent = optional("The name that was sent for it.")
    fingerprint: str | Absent = optional("SHA-256 of its items.")


class ClassesShown(Answer):
    """The page of classes in `per_class`."""

    total: int = Field(description="How many classes there are.")
    left_out: int = Field(description="How many of them this page does not show.")
    limit: int = Field(description="Most classes on this page.")
    offset: int = Field(description="How many classes come before this page.")
    order_by: str = Field(description="`labels`, `support`, `predicted` or the key of an index.")


class SliceDifference(Answer):
    """The value of a slice minus that of the items outside of it."""

    value: float | None = Field(description="The slice minus the rest; null: undefined.")
    interval: tuple[float | None, float | None] | None = Field(
        description="Two-sided limits of the difference."
    )
    p_adjusted: Annotated[float, Field(ge=0, le=1)] | None = Field(
        description="Of no difference, adjusted over all slices and indices; null where there are "
        "too few items for a test."
    )
    detectable: float | None = Field(
        description="The smallest difference that is found in 80 % of such samples."
    )


class Slice(Answer):
    """The evaluation of a part of the items."""

    slice: dict[str, str] = Field(description="The value of each column that it is of.")
    items: float = Field(description="How many there are in the slice.")
    overall: Overall
    per_class: dict[str, ClassReport] | None = Field(
        description="Null where the slices have more than 20 000 values of classes together."
    )
    difference_to_rest: dict[str, SliceDifference] = Field(description="By overall index.")
    shrunken: float | None = Field(
        description="The value of `weakest_by`, shrunk towards that of all items."
    )


class Report(OriginShown):
    """An evaluation: every index overall and for each class, with warnings."""

    report_version: Literal[1] = Field(description="The version of this form of the answer.")
    gate: Gate | Absent = optional("If the request has `gates`.")
    counts: Counts = Field(description="How many items there were, by kind.")
    overall: Overall = Field(description="The overall indices by key.")
    per_class: dict[str, ClassReport] = Field(
        description="By class, in the order of `labels`, or of `classes` if present."
    )
    top_confusions: list[Confusion] = Field(description="The largest errors, largest first.")
    comparison: Comparison | None = optional(
        "If the request has a `baseline`; null if no such evaluation is stored, with a warning."
    )
    warnings: list[Warning] = Field(description="Where values mislead; often empty.")
    engine_version: str = Field(description="The version of the formulas.")
    input_digest: str = Field(
        pattern="^sha256:[0-9a-f]{64}$",
        description="Identifies the evidence: class names, table and items.",
    )
    labels: list[str] = Field(description="The classes in their order.")
    population: Population | Absent = optional(
        "With `population`: what all numbers but counts are about."
    )
    options: Annotated[OptionsUsed, OfCore()] = Field(description="The options that were in force.")
    classes: ClassesShown | Absent = optional(
        "If the request selects a page of the classes, or there are many."
    )
    changed_items: ChangedItems | None = optional(
        "If the request has `changed_items`; null with a warning where items are not compared one "
        "by one."
    )
    slices: list[Slice] | Absent = optional("If the request has `slices`.")
    weakest: list[int] | Absent = optional(
        "Positions in `slices`, worst first, by the shrunken values."
    )
    weakest_by: str | Absent | None = optional("The overall index that orders them.")
    slice: dict[str, str] | Absent = optional(
        "The slice of a stored evaluation that all numbers are about."
    )
    id: str | Absent = optional("Id of a stored evaluation.")
    created_at: datetime | Absent = optional("When it was stored, in UTC.")
    links: dict[str, str] | Absent = optional("Paths of the resources of a stored evaluation.")
    tags: list[str] | Absent = optional("Labels for filters, as sent.")
    test_set: KeptTestSet | Absent = optional("Its name and fingerprint, as sent.")
    source: str | Absent = optional("The address of the run, as sent.")
    notes: list[Note] = Field(description="How to read some values; often empty.")
    table: Table | Absent = optional("With `include=table`.")
    curves: Curves | Absent = optional("With `curves`.")
    rejection: Curve | Absent = optional(
        "With `reject`: `threshold`, `coverage`, `accuracy`, `accuracy_on_answered`, "
        "`r_prime`. Items with a top score below the threshold are unclassified; R' does not "
        "count these as wrong."
    )
    thresholds: dict[str, ThresholdView] | Absent = optional("With `thresholds`, by class.")

    @model_validator(mode="after")
    def _repeat_candidate(self) -> "Report":
        """Copy the values of the candidate, which the report has, into its differences."""
        if self.comparison is None:
            return self
        of_classes = self.comparison.per_class.items()
        pairs = [
            (self.comparison.overall, self.overall.root),
            *((deltas, self.per_class[label].indices.root) for label, deltas in of_classes),
        ]
        for deltas, values in pairs:
            for key, delta in deltas.items():
                if "candidate" not in delta.model_fields_set and key in values:
                    delta.candidate = values[key].value
        return self


class CompareReport(Answer):
    """The answer of POST /v1/compare."""

    report_version: Literal[1] = Field(description="The version of this form of the answer.")
    engine_version: str = Field(description="The version of the formulas.")
    candidate: ResolvedSide | Absent = optional("If the candidate is a stored evaluation.")
    slice: dict[str, str] | None = Field(
        description="The only slice that is compared, by the value of each of its columns."
    )
    population: str | None = Field(
        description="What the values are about, in words, where it is not the items."
    )
    comparison: Comparison = Field(description="The differences.")
    gate: Gate | Absent = optional("If the request has `gates`.")
    changed_items: ChangedItems | None = optional(
        "If the request has `changed_items`; null with a warning where items are not compared one "
        "by one."
    )
    warnings: list[Warning] = Field(description="Where values mislead; often empty.")


class BatchResult(Answer):
    """The answer to one request of a batch."""

    status: int = Field(description="The HTTP status that the request would have by itself.")
    report: Report | Absent = optional("If the request succeeded.")
    problem: dict[str, Any] | Absent = optional(
        "Instead of the report.",
        json_schema_extra={"allOf": [{"$ref": "#/components/schemas/Problem"}]},
    )


class BatchReport(Answer):
    """The answers in the order of the requests."""

    results: list[BatchResult] = Field(description="One for each request.")


class IndexEntry(Answer):
    """An entry of the catalog."""

    key: str = Field(description="Its name in requests and reports.")
    aliases: list[str] = Field(
        description="Names of other libraries, which requests may use; reports have the key."
    )
    scope: Literal["class", "overall"] = Field(description="`class`: a value for each class.")
    family: Family = Field(description="Reports have those of `core`, others on request.")
    symbol: str = Field(description="Its usual symbol, for tables.")
    name: str = Field(description="Its name, for people.")
    description: str = Field(description="What it measures, in a sentence or two.")
    tex: str = Field(description="The formula, in the notation a_i, m_i, s_i, w, n_ij.")
    range: tuple[float | None, float | None] = Field(description="[low, high]; null: no bound.")
    range_note: str = Field(description="A remark on the range; often empty.")
    best: float | None = Field(
        description="The value of a perfect classifier; null if no value is best, or if the best "
        "value is infinite: see `higher_is_better`."
    )
    higher_is_better: bool | None = Field(description="Null if it is no measure of quality.")
    undefined_when: list[str] = Field(description="Reasons for which it may be undefined.")
    universe: Literal["all", "classified"] = Field(
        description="Whether it counts unclassified and spurious items."
    )
    association: bool = Field(
        description="Whether it ignores which predicted label belongs to which true one."
    )
    scale_invariant: bool = Field(description="Whether equally larger counts change nothing.")
    interval: IntervalName | None = Field(description="The kind of its interval.")
    needs: str | None = Field(description="The option that it requires.")
    scores: bool = Field(description="Whether it needs `y_score`.")
    average_of: list[str] = Field(description="Keys of the averaged indices; often empty.")
    source: str = Field(description="The literature that defines it.")
    properties: Properties | None = Field(
        description="Computed on tables; null for an index that reads scores."
    )


class Catalog(Answer):
    """Every index of the service."""

    items: list[IndexEntry] = Field(description="One entry for each key and scope.")
    next_cursor: str | None = Field(description="Cursor of the next page; null on the last one.")


def catalog() -> Catalog:
    """Describe every index, in the order of the catalog."""
    return Catalog(items=[index_entry(entry) for entry in INDICES], next_cursor=None)


def index_entry(index: Index) -> IndexEntry:
    """Describe an index for people and programs."""
    low, high = index.range
    same = {name: getattr(index, name, None) for name in IndexEntry.model_fields}
    others = {
        "aliases": names_of(index.key),
        "range": (_finite(low), _finite(high)),
        "best": _finite(index.best),
        "undefined_when": index.undefined,
        "interval": index.interval_name,
        "scores": index.scored,
        "average_of": index.of,
        "properties": None if index.scored else asdict(properties_of(index)),
    }
    return IndexEntry.model_validate(same | others)


def _finite(number: float | None) -> float | None:
    return number if number is not None and np.isfinite(number) else None
