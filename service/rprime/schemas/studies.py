"""Models of studies of indices."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from rprime.core.studies import Quartiles
from rprime.schemas.fields import Absent, Answer, ClassName, IndexKey, Request, optional

MOST_INDICES = 200
MOST_CLASSES = 50
MOST_MODELS = 1_000

ClassOfStudy = Annotated[int, Field(ge=1, le=MOST_CLASSES)]


class IndexOfClass(Request):
    """A per-class index, taken for one class."""

    index: IndexKey = Field(description="Key of a per-class index.")
    class_: ClassOfStudy = Field(alias="class", description="Number of the class, from 1.")


def _listed(value: object) -> object:
    return value if isinstance(value, list) else [value]


StudiedIndex = Annotated[
    Annotated[IndexKey, Tag("of the whole")] | Annotated[IndexOfClass, Tag("of a class")],
    Discriminator(lambda entry: "of the whole" if isinstance(entry, str) else "of a class"),
]
ClassCount = Annotated[int, Field(ge=2, le=MOST_CLASSES)]
Imbalance = Annotated[float, Field(ge=0, le=1)]
ClassCounts = Annotated[list[ClassCount], Field(min_length=1, max_length=MOST_CLASSES)]
Imbalances = Annotated[list[Imbalance], Field(min_length=1, max_length=101)]
ValueName = Annotated[str, Field(min_length=1, max_length=128)]
ModelValues = Annotated[
    list[float | None],
    Field(
        min_length=2,
        max_length=MOST_MODELS,
        description="A value for each model, in one order; null if undefined.",
    ),
]


class DiscriminationRequest(Request):
    """A request for discrimination lines."""

    indices: Annotated[list[StudiedIndex], Field(min_length=1, max_length=MOST_INDICES)] = Field(
        description="Keys of overall indices, or per-class ones with a class."
    )
    k: Annotated[
        ClassCounts, BeforeValidator(_listed, json_schema_input_type=ClassCount | ClassCounts)
    ] = Field(default=[3], description="Number of classes, one or several.")
    p: Annotated[
        Imbalances, BeforeValidator(_listed, json_schema_input_type=Imbalance | Imbalances)
    ] = Field(
        default=[0.0],
        description="Imbalance, one or several: 0 makes the classes equally large, 1 halves them "
        "from class to class.",
    )
    resolution: Annotated[int, Field(ge=3, le=501)] = Field(
        default=101,
        description="Grid values of each rate; the points are those where the line crosses it.",
    )


class DiscriminationLine(Answer):
    """Where an index gives both series the same value; above the line it prefers series y.

    An index that is not monotone has several lines, each with an entry of its own.
    """

    index: str = Field(description="Key of the index.")
    class_: int | None = Field(alias="class", description="From 1; null for an overall index.")
    k: int = Field(description="Number of classes.")
    p: float = Field(description="Imbalance of the classes, 0 to 1.")
    points: list[tuple[float, float]] = Field(
        description="[c_x, c_y] along the line; empty if there is no line."
    )
    prefers: Literal["x", "y"] | None = Field(
        description="The series that it always prefers, if there is no line. If no value is best, "
        "the larger one counts as preferred."
    )
    reason: Literal["indifferent", "undefined"] | Absent = optional(
        "Why there is neither a line nor a preference."
    )


class DiscriminationReport(Answer):
    """The answer of POST /v1/studies/discrimination."""

    lines: list[DiscriminationLine] = Field(description="By index, `k` and `p`, as asked.")


class AgreementRequest(Request):
    """The values of several models under several indices."""

    values: dict[ValueName, ModelValues] = Field(
        min_length=2,
        max_length=MOST_INDICES,
        description="By index. A name outside the catalog counts as an index whose larger values "
        "are better.",
    )
    per_class: dict[ClassName, dict[ValueName, ModelValues]] = Field(
        default={}, max_length=1000, description="By class and index, only for the boxes."
    )


class AgreementPair(Answer):
    """How far two indices agree over the models for which both are defined."""

    a: str = Field(description="Name of one index.")
    b: str = Field(description="Name of the other.")
    n: int = Field(description="Models for which both are defined.")
    pearson: float | None = Field(description="Of the values, -1 to 1; null if undefined.")
    spearman: float | None = Field(description="Of the ranks, -1 to 1; null if undefined.")
    kendall: float | None = Field(description="Tau-b.")
    rmse: float | None = Field(description="Root of the mean squared difference.")


class OpposedPair(Answer):
    """Pairs of models of which one index prefers the first and the other the second."""

    a: str = Field(description="Name of one index.")
    b: str = Field(description="Name of the other.")
    count: int = Field(description="Pairs of models that they order in opposite ways.")
    compared: int = Field(description="Pairs in which each of the two indices prefers a model.")
    models: list[tuple[int, int]] = Field(
        description="Some of the pairs, by position in the lists of values, from 0: the model that "
        "`a` prefers, and the one that `b` prefers."
    )


class AgreementReport(Answer):
    """The answer of POST /v1/studies/agreement."""

    pairs: list[AgreementPair] = Field(description="Each pair of indices once.")
    boxes: dict[str, dict[str, Quartiles]] = Field(
        description="`overall`, and the boxes of each class."
    )
    disagreements: list[OpposedPair] = Field(description="The pairs of indices that disagree.")
