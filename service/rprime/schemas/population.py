"""What the numbers of a report are about: a population, or a slice of the items."""

from typing import Annotated, Any, Literal
from unicodedata import normalize

import orjson
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from rprime.core.slices.slices import Slice
from rprime.schemas.fields import Absent, Answer, IntegerLabel, Request, optional

MOST_SHARES = 10_000


def _share(share: float) -> float:
    if share > 1:
        detail = "value is not a share from 0 to 1: divide percents by 100"
        raise PydanticCustomError("not_a_share", detail)
    return share


Share = Annotated[float, Field(ge=0, json_schema_extra={"maximum": 1}), AfterValidator(_share)]
Shares = Annotated[dict[str, Share], Field(min_length=1, max_length=MOST_SHARES)]
StratumName = Annotated[str, Field(min_length=1)]
Prevalence = Annotated[
    Literal["uniform"] | None,
    Field(description="`uniform`: at equal shares of the classes that have items."),
]
_MOST_COLUMNS = 3
"""Columns of a crossing."""
_SLICE_RULE = (
    "Name a slice by the value of each of its columns, one to three of them: `region=EU`, or as an "
    'object `{"region": "EU"}`'
)


def read_slice(content: object) -> Slice:
    """Read the name of a slice: the texts of a query, `region=EU` or JSON objects; or an object."""
    pairs: list[tuple[Any, Any]] = []
    try:
        parts: list[Any] = content if isinstance(content, list) else [content]
        for part in parts:
            if isinstance(part, str) and not part.startswith("{"):
                pairs.append(part.partition("=")[::2])
            else:
                pairs += (orjson.loads(part) if isinstance(part, str) else part).items()
        named = {normalize("NFC", c.strip()): normalize("NFC", v.strip()) for c, v in pairs}
    except (AttributeError, orjson.JSONDecodeError):
        raise PydanticCustomError("not_a_slice", _SLICE_RULE) from None
    if len(named) < len(pairs) or len(named) > _MOST_COLUMNS or not all({*named, *named.values()}):
        raise PydanticCustomError("not_a_slice", _SLICE_RULE)
    return tuple(sorted(named.items()))


_READ = BeforeValidator(read_slice)
SliceWanted = Annotated[
    Slice,
    _READ,
    Field(
        description="Only this slice, `region=EU`, of the evaluations that have it; a JSON object "
        "where a name has an equals sign. Repeated: a crossing of columns."
    ),
    WithJsonSchema({"type": "array", "items": {"type": "string"}}),
]
SliceNamed = Annotated[
    Slice,
    _READ,
    Field(description='The value of each of its columns, as `{"region": "EU"}`.'),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": "string"}}),
]


def _prevalence_kind(content: object) -> str:
    """Tell which form is meant, so that a mistake is told of this one alone."""
    named = isinstance(content, dict) and isinstance(content.get("evaluation"), str)
    return "a word" if isinstance(content, str) else "of another" if named else "its shares"


def _strata_kind(content: object) -> str:
    texts = isinstance(content, list) and any(isinstance(text, str) for text in content)
    return "a word" if isinstance(content, str) else "of texts" if texts else "of numbers"


class StoredPrevalence(Request):
    """The prevalence of the classes in a stored evaluation of the project."""

    evaluation: str = Field(min_length=1, max_length=64, description="Id of the evaluation.")


class PopulationAsked(Request):
    """What the numbers are to be about, if not the items that were sent.

    Either `prevalence`, the shares of the true classes in the population, or `strata` with their
    `shares`: the items are then a random sample of each stratum.
    """

    model_config = ConfigDict(
        # Within `allOf`: openapi-generator reads no properties beside a `oneOf`.
        json_schema_extra={
            "allOf": [{"oneOf": [{"required": ["prevalence"]}, {"required": ["strata", "shares"]}]}]
        }
    )

    prevalence: (
        Annotated[
            Annotated[Shares, Tag("its shares")]
            | Annotated[Literal["uniform"], Tag("a word")]
            | Annotated[StoredPrevalence, Tag("of another")],
            Discriminator(_prevalence_kind),
        ]
        | None
    ) = optional(
        "The share of each true class, `uniform`, or that of a stored evaluation of the project."
    )
    strata: (
        Annotated[
            Annotated[Literal["predicted"], Tag("a word")]
            | Annotated[list[StratumName], Field(min_length=1), Tag("of texts")]
            | Annotated[list[IntegerLabel], Field(min_length=1), Tag("of numbers")],
            Discriminator(_strata_kind),
        ]
        | None
    ) = optional("`predicted`: the predicted classes, as on a map. Or the stratum of each item.")
    shares: Shares | None = optional("The share of each stratum in the population.")

    @model_validator(mode="after")
    def _is_one(self) -> "PopulationAsked":
        present = [member is not None for member in (self.prevalence, self.strata, self.shares)]
        if present not in ([True, False, False], [False, True, True]):
            text = "Give either `prevalence`, or `strata` with their `shares`"
            raise PydanticCustomError("one_population", text)
        return self

    @property
    def stored(self) -> str | None:
        """Id of the stored evaluation whose prevalence is meant, if any."""
        named = self.prevalence
        return named.evaluation if isinstance(named, StoredPrevalence) else None


class Population(Answer):
    """The population that the numbers are about, estimated from the items."""

    detail: str = Field(description="The same in one sentence.")
    strata: Literal["true", "predicted", "own"] = Field(
        description="Whether the shares are of true classes, of predicted classes or of strata of "
        "their own."
    )
    shares: dict[str, float] = Field(description="By class or stratum, 0 to 1; together 1.")
    evaluation: str | Absent = optional("The stored evaluation that the shares are of.")
    effective_items: float = Field(
        description="Kish's effective number of items: with so many, drawn from the population at "
        "random, a share would vary as much."
    )
