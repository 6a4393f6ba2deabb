"""Models of requests and answers of the history routes."""

import re
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from rprime.schemas.fields import Absent, Answer, IndexKey, NeverNull, Request

_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def _dated(value: object) -> object:
    """Refuse a number of seconds, which Pydantic accepts as a datetime."""
    if isinstance(value, str) and not _DATE.match(value):
        raise PydanticCustomError("not_a_moment", "Use a date or a datetime of ISO 8601")
    return value


Moment = Annotated[datetime, BeforeValidator(_dated)]
Verdict = Literal["pass", "fail", "inconclusive", "no_rules"]
Wanted = Annotated[str, Field(min_length=1, max_length=255)]
ClassWanted = Annotated[
    str | None,
    Field(
        alias="class",
        max_length=128,
        description="Per-class index of this class; absent: the overall index.",
    ),
]


class Query(NeverNull):
    """Base class of query parameters: unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class Narrowed(Query):
    """Filters of the evaluations of a project."""

    model: Wanted | None = None
    version: Wanted | None = None
    branch: Wanted | None = None
    commit: Wanted | None = Field(default=None, description="As it was given, in full.")
    test_set: Wanted | None = Field(default=None, description="Id of the test set.")
    verdict: Verdict | None = None
    since: Moment | None = Field(
        default=None, description="Created then or later; without an offset it is UTC."
    )
    tag: Wanted | None = Field(default=None, description="One of its tags.")


class ListQuery(Narrowed):
    """The filters and the page of a list of evaluations."""

    limit: int = Field(default=50, ge=1, le=200)
    cursor: str | None = Field(
        default=None, max_length=100, description="`next_cursor` of the previous page."
    )


class TrendQuery(Narrowed):
    """The index, the filters and the length of a series."""

    index: IndexKey
    class_: ClassWanted = None
    limit: int = Field(
        default=1000, ge=1, le=10_000, description="Most evaluations, from the newest."
    )


class LeaderboardQuery(Query):
    """The index and the filters of a leaderboard."""

    index: IndexKey
    class_: ClassWanted = None
    test_set: Wanted | None = Field(
        default=None,
        description="Id or fingerprint of the test set; absent: that of the newest evaluation.",
    )
    model: Wanted | None = None
    branch: Wanted | None = None
    limit: int = Field(default=20, ge=1, le=50, description="Most versions, from the best.")


class BadgeQuery(Query):
    """The index on a badge of the newest evaluation; default: its verdict."""

    index: IndexKey | None = None
    class_: ClassWanted = None
    model: Wanted | None = None
    branch: Wanted | None = None


class ExportQuery(Query):
    """The filter of an export."""

    project: Wanted | None = Field(default=None, description="Only this project.")


class ProjectSettings(Request):
    """The settings of a project."""

    badge_public: bool = Field(description="Whether the badge is visible without a key.")


class AliasTarget(Request):
    """The target of an alias."""

    evaluation: str = Field(min_length=1, max_length=64, description="Id of the evaluation.")


class PurgeRequest(Request):
    """What to keep: evaluations that match any of these, or have an alias."""

    model_config = ConfigDict(
        # Within `allOf`: openapi-generator reads no properties beside an `anyOf`.
        json_schema_extra={
            "allOf": [{"anyOf": [{"required": ["keep_last"]}, {"required": ["newer_than_days"]}]}]
        }
    )
    keep_last: int = Field(
        default=0, ge=0, le=2**31, description="Most evaluations of each model, from the newest."
    )
    newer_than_days: float | None = Field(default=None, ge=0, le=36_500)
    dry_run: bool = Field(default=False, description="Only count, without deleting.")

    @model_validator(mode="after")
    def _keeps_something(self) -> "PurgeRequest":
        if not {"keep_last", "newer_than_days"} & self.model_fields_set:
            raise PydanticCustomError("keeps_nothing", "Set keep_last or newer_than_days, or both")
        return self


class Summary(Answer):
    """A stored evaluation in a list."""

    id: str
    created_at: datetime
    project: str
    model: str | None
    version: str | None
    branch: str | None
    commit: str | None
    tags: list[str]
    test_set: str | None
    fingerprint: str | None
    verdict: Verdict | None
    waived: bool
    keeps_items: bool


class EvaluationPage(Answer):
    """A page of the list, newest first."""

    items: list[Summary]
    next_cursor: str | None = Field(description="Cursor of the next page; null on the last one.")


class ProjectEntry(Answer):
    """A project in the list."""

    name: str
    evaluations: int
    newest: str | None = Field(description="Id of its newest evaluation.")
    bytes: int = Field(
        description="Size of its evaluations, compressed, each with its items and class names."
    )
    badge_public: bool


class ProjectList(Answer):
    """The projects, sorted by name."""

    items: list[ProjectEntry]


class AliasEntry(Answer):
    """An alias; its ETag is in the header."""

    project: str
    alias: str
    evaluation: str
    updated_at: datetime


class AliasList(Answer):
    """The aliases of a project, sorted by name."""

    items: list[AliasEntry]


class EvaluatedVersion(Answer):
    """The evaluation of a version of a model."""

    evaluation: str
    model: str | None
    version: str | None


class TrendItem(EvaluatedVersion):
    """One value of a series."""

    created_at: datetime
    value: float | None
    interval: tuple[float, float] | None
    verdict: Verdict | None
    reason: str | Absent = Field(
        default=None,
        description="Why the value is missing; or `items_in_groups`: then only the report has the "
        "interval.",
    )
    since_anchor: float | None = Field(
        default=None,
        description="If its gate had an anchor: the difference of the value from that of the "
        "anchor; null if one of them is missing, or the anchor was deleted.",
    )


class Trend(Answer):
    """A series, oldest first, computed from the stored tables now."""

    index: str
    class_: str | None = Field(alias="class")
    items: list[TrendItem]


class RankedVersion(EvaluatedVersion):
    """A version in a tier."""

    value: float
    interval: tuple[float, float] | None


class Tier(Answer):
    """Versions without a clear difference to the best of them."""

    tier: int
    versions: list[RankedVersion]
    why: str


class UnrankedVersion(EvaluatedVersion):
    """A version without a place."""

    reason: str


class Leaderboard(Answer):
    """The versions in tiers, best first."""

    index: str
    class_: str | None = Field(alias="class")
    test_set: str | None
    tiers: list[Tier]
    unranked: list[UnrankedVersion]


class PurgeReport(Answer):
    """What a purge deleted and kept, or would in a dry run."""

    deleted: int
    kept: int
    aliased: int = Field(description="Evaluations kept only because of an alias.")
    dry_run: bool


class ImportReport(Answer):
    """What an import added, and what existed already."""

    evaluations: int
    evaluations_present: int
    aliases: int
    aliases_present: int
    aliases_dangling: int = Field(description="Skipped, since their evaluation is missing.")


class BadgeEndpoint(Answer):
    """A badge in the endpoint format of shields.io."""

    schemaVersion: int  # noqa: N815 (the name in shields.io)
    label: str
    message: str
    color: str
    labelColor: str | Absent = None  # noqa: N815 (the name in shields.io)
    isError: bool | Absent = None  # noqa: N815 (the name in shields.io)


ANSWERS: tuple[type[BaseModel], ...] = (
    EvaluationPage,
    ProjectList,
    AliasList,
    Trend,
    Leaderboard,
    PurgeReport,
    ImportReport,
    BadgeEndpoint,
)
BODIES: tuple[type[BaseModel], ...] = (ProjectSettings, AliasTarget, PurgeRequest)
