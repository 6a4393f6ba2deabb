"""Models of the origin of an evaluation, its project and its stored baseline."""

from typing import Annotated, Any, Literal, get_args

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from rprime.schemas.fields import NotNull, Request, text

Name = Annotated[
    str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/+-]*$")
]
PathName = Annotated[
    str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")
]
"""A name in a path, so it has no slash."""
BranchName = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]*$")]
Tag = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[^\x00-\x1f\x7f]*$")]

PROJECT = "Stores the evaluation in this project."
Way = Literal["alias", "version", "branch", "evaluation"]
WAYS: tuple[Way, ...] = get_args(Way)
"""The ways to name a stored baseline."""


class TestSet(Request):
    """Names the test set, so that evaluations of the same items can be compared."""

    id: str | None = text(128, "A name of your own.")
    fingerprint: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")


class Provenance(Request):
    """What is stored beside the table; without a `project` nothing is stored."""

    project: Annotated[PathName | None, NotNull] = Field(default=None, description=PROJECT)
    model: Name | None = None
    version: Name | None = None
    branch: BranchName | None = Field(default=None, description="Of the repository.")
    commit: Name | None = Field(default=None, description="Of the repository.")
    tags: Annotated[list[Tag], Field(max_length=64)] | None = None
    source: str | None = text(
        2048, "The address of the run, for people; the service never opens it."
    )
    test_set: TestSet | None = None
    keep_items: bool | None = Field(
        default=None,
        description="Store the classes of the items for later paired comparison; default: yes, if "
        "items come with a project.",
    )


class Reference(Request):
    """A stored baseline of the project, named in one of four ways."""

    alias: PathName | None = None
    version: Name | None = None
    branch: BranchName | None = Field(
        default=None,
        description="The newest evaluation of this branch that neither failed its gate nor was "
        "waived.",
    )
    evaluation: str | None = Field(
        default=None, min_length=1, max_length=64, description="Id of the evaluation."
    )

    @property
    def ways(self) -> list[tuple[Way, str]]:
        """The names that were given."""
        found = ((way, getattr(self, way)) for way in WAYS)
        return [(way, name) for way, name in found if name is not None]

    @model_validator(mode="after")
    def _is_one(self) -> "Reference":
        others = self.model_fields_set - set(WAYS)
        if self.model_fields_set & set(WAYS) and (len(self.ways) != 1 or others):
            raise PydanticCustomError(
                "one_reference",
                "A stored baseline is one of alias, version, branch and evaluation, alone",
            )
        return self


def _one_way(schema: dict[str, Any]) -> None:
    schema["minProperties"] = schema["maxProperties"] = 1


class StoredBaseline(Reference):
    """A stored baseline of the project: exactly one of these."""

    model_config = ConfigDict(json_schema_extra=_one_way)
