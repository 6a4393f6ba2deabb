"""Models of studies of indices."""

from typing import Annotated

from pydantic import BeforeValidator, Discriminator, Field, Tag

from rprime.core.studies import AgreementPair, DiscriminationLine, OpposedPair, Quartiles
from rprime.schemas.fields import Answer, ClassName, IndexKey, Request

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


class AgreementReport(Answer):
    """The answer of POST /v1/studies/agreement."""

    pairs: list[AgreementPair] = Field(description="Each pair of indices once.")
    boxes: dict[str, dict[str, Quartiles]] = Field(
        description="`overall`, and the boxes of each class."
    )
    disagreements: list[OpposedPair] = Field(description="The pairs of indices that disagree.")
