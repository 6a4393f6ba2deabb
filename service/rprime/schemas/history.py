"""Models of requests and answers of the history routes."""

import re
from datetime import datetime
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from rprime.core.catalog import KEYS
from rprime.core.index import Families, Family
from rprime.schemas.fields import (
    Absent,
    Answer,
    AnyIndexKey,
    IndexKey,
    NeverNull,
    Request,
    optional,
)
from rprime.schemas.population import Prevalence, SliceWanted
from rprime.schemas.provenance import OriginListed, OriginWanted, Wanted

_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def _dated(value: object) -> object:
    """Refuse a number of seconds, which Pydantic accepts as a datetime."""
    if isinstance(value, str) and not _DATE.match(value):
        raise PydanticCustomError("not_a_moment", "Use a date or a datetime of ISO 8601")
    return value


Moment = Annotated[datetime, BeforeValidator(_dated)]
Time = Annotated[
    datetime,
    PlainSerializer(datetime.isoformat, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}, mode="serialization"),
]
"""A time in an answer, as all others with its offset in digits."""
Verdict = Literal["pass", "fail", "inconclusive", "no_rules", "no_baseline"]
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


class Narrowed(Query, OriginWanted):
    """Filters of the evaluations of a project."""

    test_set: Wanted | None = optional("Id or fingerprint of the test set.")
    verdict: Verdict | None = optional("Verdict of the gate.")
    since: Moment | None = optional("Created then or later; without an offset it is UTC.")
    tag: Wanted | None = optional("One of its tags.")
    slice: SliceWanted = ()


class NamesQuery(Query):
    """A page of a list that is sorted by name."""

    limit: int = Field(default=1000, ge=1, le=1000, description="Most entries on a page.")
    cursor: str | None = optional(
        "`next_cursor` of a page: the name after which the next one begins.", max_length=255
    )


class CatalogQuery(Query):
    """What of the catalog is wanted, and its page."""

    scope: Literal["overall", "class"] | None = optional("Only overall or only per-class indices.")
    family: Family | None = optional("Only indices of this family.")
    q: str | None = optional(
        "Indices whose key, name or alias has this text.", min_length=1, max_length=100
    )
    limit: int = Field(default=1000, ge=1, le=1000, description="Most indices on a page.")
    cursor: str | None = optional("`next_cursor` of a page.", max_length=200)


_MOST_LISTED = 20


class ListQuery(Narrowed):
    """The filters, the page and the indices of a list of evaluations."""

    index: Annotated[
        tuple[AnyIndexKey, ...],
        Field(
            max_length=_MOST_LISTED,
            description="Keys of the overall indices in `values`; can be repeated. Default: the "
            "family `summary`.",
        ),
    ] = ()
    limit: int = Field(default=50, ge=1, le=200, description="Most evaluations on a page.")
    cursor: str | None = optional(
        "`next_cursor` of a page: a point in time, valid with any filters.", max_length=100
    )


class SliceQuery(Query):
    """The slice of an evaluation."""

    slice: SliceWanted = ()


class IndicesQuery(SliceQuery):
    """The indices of a report."""

    index: Annotated[
        tuple[IndexKey, ...],
        Field(
            max_length=len(KEYS),
            description="Keys of indices, overall and per class; can be repeated. With `index` or "
            "`family` the report has only these; default: those that the request asked for.",
        ),
    ] = ()
    family: Annotated[
        tuple[Families, ...],
        Field(max_length=8, description="Families of indices; can be repeated."),
    ] = ()


class ReportQuery(IndicesQuery):
    """The parts of a report."""

    include: str = Field(
        default="",
        description="`table` adds the table, `curves` what is stored of the curves of scores. Any "
        "of the other parts, separated by commas, reduces the report to them; `averages` are part "
        "of `overall`.",
        examples=["table", "per_class,averages"],
    )


class TrendQuery(Narrowed):
    """The index, the filters and the length of a series."""

    index: AnyIndexKey = Field(default="r_prime", description="Key of the index.")
    class_: ClassWanted = None
    prevalence: Prevalence = None
    limit: int = Field(
        default=1000, ge=1, le=10_000, description="Most evaluations, from the newest."
    )


class LeaderboardQuery(Query):
    """The index and the filters of a leaderboard."""

    index: IndexKey = Field(default="r_prime", description="Key of the index that ranks.")
    class_: ClassWanted = None
    prevalence: Prevalence = None
    test_set: Wanted | None = optional(
        "Id or fingerprint of the test set; absent: that of the newest evaluation."
    )
    model: Wanted | None = optional("Name of the model; absent: all.")
    branch: Wanted | None = optional("Branch; absent: all.")
    slice: SliceWanted = ()
    limit: int = Field(default=20, ge=1, le=50, description="Most versions, from the best.")


class BadgeQuery(Query):
    """The index on a badge of the newest evaluation; default: its verdict."""

    index: IndexKey | None = optional("Key; absent: the verdict.")
    class_: ClassWanted = None
    model: Wanted | None = optional("Name of the model; absent: any.")
    branch: Wanted | None = optional("Branch; absent: any.")
    slice: SliceWanted = ()


_WIDTH = Field(
    default=800, ge=320, le=1600, description="In CSS pixels: 96 are an inch, 363 are 96 mm."
)
_SCALE = Field(
    default=2.0, ge=0.5, le=4, description="PNG pixels for each CSS pixel; 3.125 means 300 dpi."
)
_MOST_INDICES = 6


class FigureQuery(SliceQuery):
    """A figure of one evaluation."""

    index: Annotated[
        tuple[IndexKey, ...],
        Field(
            max_length=_MOST_INDICES,
            description="Keys of per-class indices, of `radar` and `per_class`, and for `radar` of "
            "overall ones beside them; can be repeated.",
        ),
    ] = ()
    width: int = _WIDTH
    scale: float = _SCALE


class HistoryFigureQuery(Narrowed):
    """A figure of a history."""

    index: Annotated[
        tuple[IndexKey, ...],
        Field(
            min_length=1,
            max_length=_MOST_INDICES,
            description="Keys of overall indices for `trend`, with `class` of per-class ones, too; "
            "of per-class ones for `lines` and `boxes`, and of overall ones beside them; can be "
            "repeated.",
        ),
    ] = ("r_prime",)
    class_: ClassWanted = None
    by: Literal["class", "evaluation"] = Field(
        default="evaluation",
        description="With `class`, `boxes` has a box for each class over the evaluations, and "
        "`lines` a panel for each class with all indices.",
    )
    limit: int = Field(default=100, ge=1, le=1000, description="Most evaluations, from the newest.")
    width: int = _WIDTH
    scale: float = _SCALE


class ExportQuery(Query):
    """The filter of an export."""

    project: Wanted | None = optional("Only this project.")


class ProjectSettings(Request):
    """Settings of a project."""

    badge_public: bool = Field(
        default=False, description="Whether the badge is visible without a key."
    )
    keeps_slices: bool = Field(
        default=True, description="Whether the slices of new evaluations are stored."
    )


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
    newer_than_days: float | None = optional(
        "Keeps the evaluations of so many days, to now.", ge=0, le=36_500
    )
    dry_run: bool = Field(default=False, description="Only count, without deleting.")

    @model_validator(mode="after")
    def _keeps_something(self) -> "PurgeRequest":
        if not {"keep_last", "newer_than_days"} & self.model_fields_set:
            raise PydanticCustomError("keeps_nothing", "Set keep_last or newer_than_days, or both")
        return self


class ListedValue(Answer):
    """The value of an index of a stored evaluation."""

    value: float | None = Field(description="The value of the index; null if undefined.")
    interval: tuple[float, float] | None = Field(description="[low, high], of 95 %; null without.")
    reason: str | Absent = optional(
        "Why the value or the interval is missing; `items_in_groups`: only the report has the "
        "interval; `strata_of_items`: only the report has the value."
    )
    population: str | Absent = optional(
        "What the value is about, in words, where it is not the items: values about "
        "other populations are not comparable."
    )
    options: str | Absent = optional(
        "The stored options that the value depends on, in words, where they are not the default: "
        "`beta`, `cell_weights`, `undefined`. Values with other options are not comparable."
    )


class Summary(OriginListed):
    """A stored evaluation in a list."""

    id: str = Field(description="Id of the evaluation.")
    created_at: datetime = Field(description="When it was stored, in UTC.")
    tags: list[str] = Field(description="The labels that were sent; often empty.")
    test_set: str | None = Field(description="Id of the test set; null if none was sent.")
    fingerprint: str | None = Field(description="SHA-256 of the test set; null if unknown.")
    verdict: Verdict | None = Field(description="Verdict of its gate; null without a gate.")
    waived: bool = Field(description="Whether a waiver covered a failure.")
    keeps_items: bool = Field(description="Whether the classes of its items are stored.")
    values: dict[str, ListedValue] = Field(
        description="Overall indices by their keys, computed now from the stored table; of the "
        "slice, if the list is about one."
    )


class EvaluationPage(Answer):
    """A page of the list, newest first."""

    items: list[Summary] = Field(description="The evaluations on this page.")
    next_cursor: str | None = Field(description="Cursor of the next page; null on the last one.")


class ProjectEntry(Answer):
    """A project in the list."""

    name: str = Field(description="The name in paths.")
    evaluations: int = Field(description="How many evaluations are stored.")
    newest: str | None = Field(description="Id of its newest evaluation.")
    bytes: int = Field(
        description="Size of its evaluations, compressed, each with its items and class names."
    )
    badge_public: bool = Field(description="Whether the badge is visible without a key.")
    keeps_slices: bool = Field(description="Whether the slices of new evaluations are stored.")


class ProjectList(Answer):
    """The projects, sorted by name."""

    items: list[ProjectEntry] = Field(description="The projects that the key may read.")
    next_cursor: str | None = Field(description="Cursor of the next page; null on the last one.")


class AliasEntry(Answer):
    """An alias; its ETag is in the header."""

    project: str = Field(description="The project of both.")
    alias: str = Field(description="The name in paths, as `champion`.")
    evaluation: str = Field(description="Id of the evaluation that it points at.")
    updated_at: Time = Field(description="When it was last moved, in UTC.")


class AliasList(Answer):
    """The aliases of a project, sorted by name."""

    items: list[AliasEntry] = Field(description="The aliases on this page.")
    next_cursor: str | None = Field(description="Cursor of the next page; null on the last one.")


class AliasChange(Answer):
    """What an alias pointed at from a time on."""

    evaluation: str | None = Field(description="Id of it; null: the alias was deleted.")
    model: str | None = Field(description="Name of its model; null if none was sent.")
    version: str | None = Field(description="Version of its model; null if none was sent.")
    changed_at: Time = Field(description="Since when, in UTC.")
    by: str | None = Field(
        description="Name of the key that changed it, or its id; null without keys."
    )


class AliasHistory(Answer):
    """The changes of an alias, newest first."""

    items: list[AliasChange] = Field(
        description="The newest 1,000, without those to evaluations that were deleted."
    )


class EvaluatedVersion(Answer):
    """The evaluation of a version of a model."""

    evaluation: str = Field(description="Id of the evaluation.")
    model: str | None = Field(description="Name of the model; null if none was sent.")
    version: str | None = Field(description="Version of the model; null if none was sent.")


class TrendItem(EvaluatedVersion, ListedValue):
    """One value of a series."""

    created_at: datetime = Field(description="When it was stored, in UTC.")
    verdict: Verdict | None = Field(description="Verdict of its gate; null without a gate.")
    since_anchor: float | None = optional(
        "If its gate had an anchor: the difference of the value from that of the "
        "anchor; null if one of them is missing, or the anchor was deleted."
    )


class IndexOfHistory(Answer):
    """What was computed of each evaluation."""

    index: str = Field(description="Key of the index.")
    class_: str | None = Field(alias="class", description="The class; null for an overall index.")
    slice: dict[str, str] | None = Field(
        description="The value of each column of the slice; null: all items."
    )
    prevalence: Prevalence


class Trend(IndexOfHistory):
    """A series, oldest first, computed from the stored tables now."""

    items: list[TrendItem] = Field(description="One value for each evaluation.")


class RankedVersion(EvaluatedVersion):
    """A version in a tier."""

    value: float = Field(description="The value of the index.")
    interval: tuple[float, float] | None = Field(description="[low, high], of 95 %; null without.")


class Tier(Answer):
    """Versions without a clear difference to the best of them."""

    tier: int = Field(description="Its place, from 1, the best.")
    versions: list[RankedVersion] = Field(description="Its versions, best first.")
    why: str = Field(
        description="The tests that separate it from the next tier. For the first one also that "
        "the best of several observed values is too high on average."
    )


class UnrankedVersion(EvaluatedVersion):
    """A version without a place."""

    reason: str = Field(description="Why: a stable code.")


class Leaderboard(IndexOfHistory):
    """The versions in tiers, best first."""

    test_set: str | None = Field(description="Id or fingerprint; null if it has none.")
    tiers: list[Tier] = Field(description="Best first.")
    unranked: list[UnrankedVersion] = Field(description="Versions that cannot be ranked.")


class PurgeReport(Answer):
    """What a purge deleted and kept, or would in a dry run."""

    deleted: int = Field(description="How many evaluations were deleted.")
    kept: int = Field(description="How many evaluations are left.")
    aliased: int = Field(description="Evaluations kept only because of an alias.")
    dry_run: bool = Field(description="Whether they were only counted.")


class ImportReport(Answer):
    """What an import added, and what existed already."""

    evaluations: int = Field(description="Evaluations that were added.")
    evaluations_present: int = Field(description="Evaluations that existed already.")
    aliases: int = Field(description="Aliases that were added.")
    aliases_present: int = Field(description="Aliases that existed already, and stay.")
    aliases_dangling: int = Field(description="Skipped, since their evaluation is missing.")


class BadgeEndpoint(Answer):
    """A badge in the endpoint format of shields.io."""

    schemaVersion: int = Field(description="1: the version of the format.")  # noqa: N815 (the name in shields.io)
    label: str = Field(description="The text on the left.")
    message: str = Field(description="The text on the right.")
    color: str = Field(description="Colour of the right side.")
    labelColor: str | Absent = optional("Colour of the left side.")  # noqa: N815 (the name in shields.io)
    isError: bool | Absent = optional("Whether there is nothing to show.")  # noqa: N815 (the name in shields.io)


ANSWERS: tuple[type[BaseModel], ...] = (
    EvaluationPage,
    ProjectList,
    AliasList,
    AliasHistory,
    Trend,
    Leaderboard,
    PurgeReport,
    ImportReport,
    BadgeEndpoint,
)
BODIES: tuple[type[BaseModel], ...] = (ProjectSettings, AliasTarget, PurgeRequest)
