"""Models of the origin of an evaluation, its project and its stored baseline."""

from typing import Annotated, Any, Literal, get_args

from pydantic import ConfigDict, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from rprime.schemas.fields import Absent, Answer, NeverNull, Request, optional

Name = Annotated[
    str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/+-]*$")
]
PathName = Annotated[
    str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")
]
"""A name in a path, so it has no slash."""
BranchName = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]*$")]
Tag = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[^\x00-\x1f\x7f]*$")]

Wanted = Annotated[str, Field(min_length=1, max_length=255)]
"""A name in a query, whatever its form."""

PROJECT = "Stores the evaluation in this project."
Way = Literal["alias", "version", "branch", "latest", "evaluation"]
WAYS: tuple[Way, ...] = get_args(Way)
"""The ways to name a stored baseline."""
_OF_ONE_MODEL = {"version", "branch", "latest"}
_BESIDE = {"model", "project"}


class TestSet(Request):
    """Names the test set, so that evaluations of the same items can be compared."""

    id: str | None = optional("A name of your own.", min_length=1, max_length=128)
    fingerprint: str | None = optional(
        "SHA-256 of the items, in hexadecimal.", pattern="^[0-9a-f]{64}$"
    )


class Provenance(Request):
    """What is stored beside the table; without a `project` nothing is stored."""

    project: PathName | None = optional(PROJECT)
    model: Name | None = optional("Name of the model.")
    version: Name | None = optional("Version of the model.")
    branch: BranchName | None = optional("Of the repository.")
    commit: Name | None = optional("Of the repository.")
    tags: list[Tag] | None = optional("Labels for filters.", max_length=64)
    source: Annotated[str, Field(min_length=1, max_length=2048)] | None = optional(
        "The address of the run, for people; the service never opens it."
    )
    test_set: TestSet | None = None
    keep_items: bool | None = optional(
        "Store the classes of the items for later paired comparison; default: yes, if "
        "items come with a project."
    )


class OriginShown(Answer):
    """The origin of an evaluation in its report; what was not sent is absent."""

    project: str | Absent = optional("The project that it is stored in.")
    model: str | Absent = optional("The name of the model, as sent.")
    version: str | Absent = optional("The version of the model, as sent.")
    branch: str | Absent = optional("The branch of the repository, as sent.")
    commit: str | Absent = optional("The commit of the repository, as sent.")


ORIGIN = tuple(OriginShown.model_fields)
"""Members of a request that are stored, listed and shown as they were sent."""


def origin_of(named: object) -> OriginShown:
    """Return the origin that a request, a stored evaluation or a report names."""
    return OriginShown(**{name: getattr(named, name) for name in ORIGIN})


class OriginListed(Answer):
    """The origin of an evaluation in a list."""

    project: str = Field(description="The project that it is stored in.")
    model: str | None = Field(description="Name of the model; null if none was sent.")
    version: str | None = Field(description="Version of the model; null if none was sent.")
    branch: str | None = Field(description="Branch of the repository; null if none was sent.")
    commit: str | None = Field(description="Commit of the repository; null if none was sent.")


class OriginWanted(NeverNull):
    """The origin of the evaluations that a query wants."""

    model: Wanted | None = optional("Name of the model.")
    version: Wanted | None = optional("Version of the model.")
    branch: Wanted | None = optional("Branch of the repository.")
    commit: Wanted | None = optional("In full, or at least its first 7 hexadecimal digits.")


class Reference(Request):
    """A stored evaluation, named in one of five ways.

    A baseline that does not exist and resembles one that does is 404 `baseline_not_found`, and
    nothing is stored; so is an `evaluation` that does not exist. Anything else is no baseline yet:
    the evaluation is stored, and its gate says `no_baseline`. A comparison needs both sides.
    """

    alias: PathName | None = optional("The evaluation that the alias points at, of any model.")
    version: Name | None = optional("The newest evaluation of this version of the model.")
    branch: BranchName | None = optional(
        "The newest evaluation of the model on this branch; as a baseline without those whose gate "
        "failed, was waived or could not compare."
    )
    latest: Annotated[
        Literal[True] | None, WithJsonSchema({"type": "boolean", "not": {"const": False}})
    ] = optional("The newest evaluation on any branch, or without one.")
    evaluation: str | None = optional("Id of the evaluation.", min_length=1, max_length=64)
    model: Name | None = optional(
        "Model of `version`, `branch` or `latest`. Default of a baseline: that of the candidate, "
        "or none if it has none; of a candidate: the one that has such evaluations."
    )
    project: PathName | None = optional(
        "The project that it is stored in; default of a baseline: that of the candidate."
    )

    @property
    def ways(self) -> list[tuple[Way, str]]:
        """The names that were given; `latest` has none."""
        pairs = ((way, getattr(self, way)) for way in WAYS)
        return [(way, "" if name is True else name) for way, name in pairs if name is not None]

    @model_validator(mode="after")
    def _is_one(self) -> "Reference":
        named = self.model_fields_set & {*WAYS, *_BESIDE}
        others = self.model_fields_set - named
        if not named:
            return self
        if len(self.ways) != 1 or len(named - _BESIDE) != 1 or others:
            text = (
                "A stored evaluation is one of alias, version, branch, latest and evaluation, alone"
            )
            raise PydanticCustomError("one_reference", text)
        if "model" in named and not named & _OF_ONE_MODEL:
            text = "Only version, branch and latest can name a model"
            raise PydanticCustomError("model_without_use", text)
        return self


class StoredSide(Reference):
    """A stored evaluation: exactly one of these, and perhaps its model and its project."""

    model_config = ConfigDict(
        json_schema_extra={
            # Within `allOf`: openapi-generator reads no properties beside a `oneOf`.
            "allOf": [{"oneOf": [{"required": [way]} for way in WAYS]}],
            "dependentSchemas": {
                "model": {"anyOf": [{"required": [way]} for way in sorted(_OF_ONE_MODEL)]}
            },
        }
    )

    @model_validator(mode="after")
    def _names_one(self) -> "StoredSide":
        if not self.ways:
            raise PydanticCustomError("no_reference", "Name a stored evaluation")
        return self


class ResolvedSide(Answer):
    """The requested and the resolved evaluation, with the reason."""

    requested: dict[str, Any] = Field(
        description="The reference, the constant classifier, or the kind of evidence."
    )
    resolved: str | None = Field(description="Id of the stored evaluation; null for any other.")
    why: str = Field(description="Why it is this one.")
