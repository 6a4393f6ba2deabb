"""The tables of a store, the same for SQLite and PostgreSQL."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)

# Sort by code point on PostgreSQL, too: identifiers by time, names the same everywhere.
Name = Text().with_variant(Text(collation="C"), "postgresql")

metadata = MetaData()


def _table(name: str, *columns: Column[Any], comment: str | None = None) -> Table:
    """Declare a table whose key leads to its row itself.

    Not by a number, as SQLite does by default, that a flipped bit turns into that of another row.
    For large rows this is slow, so those of `evaluations` have a checksum instead.
    """
    return Table(name, metadata, *columns, comment=comment, sqlite_with_rowid=False)


def _key(name: str, kind: Text | type[LargeBinary] = Name) -> Column[Any]:
    return Column(name, kind, primary_key=True)


def _of_evaluation() -> Column[Any]:
    return Column(
        "evaluation", Name, ForeignKey("evaluations.id", ondelete="CASCADE"), primary_key=True
    )


shared = _table(
    "shared",
    _key("key", LargeBinary),
    Column("content", LargeBinary, nullable=False),
    comment="Class names and options, each once: most evaluations of a project have the same.",
)

evaluations = Table(
    "evaluations",
    metadata,
    _key("id"),
    Column("project", Name, nullable=False),
    *(Column(name, Name) for name in ("model", "version", "branch", "commit")),
    Column("tags", Text, nullable=False),
    Column("test_set", Name),
    Column("fingerprint", LargeBinary),
    Column("verdict", Name),
    Column("waived", Boolean, nullable=False),
    Column("keeps_items", Boolean, nullable=False),
    Column("engine_version", Text, nullable=False),
    Column("input_digest", LargeBinary, nullable=False),
    Column("submission", LargeBinary),
    *(Column(name, LargeBinary, nullable=False) for name in ("labels", "options", "cells")),
    *(Column(name, LargeBinary) for name in ("source", "gate", "comparison", "extras")),
    Column("bytes", BigInteger, nullable=False),
    Column("checksum", BigInteger, nullable=False),
    comment="Blobs have checksums of their own; `checksum` covers the other columns that are read.",
)

_of = evaluations.c
Index("evaluations_submission", _of.submission)
Index("evaluations_version", _of.project, _of.version, _of.id)
Index("evaluations_branch", _of.project, _of.branch, _of.id)
# SQLite tests every filter on this index alone, before it touches a row.
Index(
    "evaluations_filters",
    *(_of[name] for name in ("project", "id", "model", "version", "branch")),
    *(_of[name] for name in ("test_set", "verdict", "tags")),
).ddl_if(dialect="sqlite")
# PostgreSQL limits an entry to a third of a page, which long names and tags would exceed.
Index("evaluations_project", _of.project, _of.id).ddl_if(dialect="postgresql")
for _name in ("model", "test_set", "verdict"):
    Index(f"evaluations_{_name}", _of.project, _of[_name], _of.id).ddl_if(dialect="postgresql")

items = _table("items", _of_evaluation(), Column("content", LargeBinary, nullable=False))

scores = _table(
    "scores",
    _of_evaluation(),
    Column("content", LargeBinary, nullable=False),
    comment="What is drawn of scores: thinned curves and bins.",
)

slices = _table(
    "slices",
    _of_evaluation(),
    _key("key", LargeBinary),
    Column("place", Integer, nullable=False),
    Column("name", LargeBinary, nullable=False),
    Column("content", LargeBinary, nullable=False),
    comment="A row for each slice: the history of one slice reads no others.",
)

aliases = _table(
    "aliases",
    _key("project"),
    _key("name"),
    Column("evaluation", Name, ForeignKey(evaluations.c.id), nullable=False, index=True),
    Column("etag", Text, nullable=False),
    Column("updated", BigInteger, nullable=False),
)

alias_changes = _table(
    "alias_changes",
    _key("project"),
    _key("name"),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("evaluation", Name, ForeignKey(evaluations.c.id, ondelete="CASCADE"), index=True),
    Column("changed", BigInteger, nullable=False),
    Column("by", Name),
    comment="What each alias pointed at, from 1; nothing once it was deleted.",
)

looks = _table(
    "looks",
    _key("project"),
    _key("fingerprint", LargeBinary),
    Column("looks", Integer, nullable=False),
)

replays = _table(
    "replays",
    _key("key", LargeBinary),
    Column("payload", LargeBinary, nullable=False),
    Column("status", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("evaluation", Name, nullable=False),
    Column("project", Name, nullable=False),
    Column("expires", BigInteger, nullable=False, index=True),
    comment="What was answered to an Idempotency-Key.",
)

projects = _table(
    "projects",
    _key("name"),
    Column("badge_public", Boolean, nullable=False, default=False),
    Column("keeps_slices", Boolean, nullable=False, default=True),
    comment="Settings of the projects that have some.",
)

project_sizes = _table(
    "project_sizes",
    _key("project"),
    Column("bytes", BigInteger, nullable=False),
    comment="The sum of `bytes` over the evaluations of each project.",
)

revoked_sessions = Table(
    "revoked_sessions",
    metadata,
    _key("id"),
    Column("expires", BigInteger, nullable=False),
    comment="Sessions of browsers that ended before they expired.",
)
