"""The tables of a store, the same for SQLite and PostgreSQL."""

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

# `sqlite_with_rowid=False`: a key leads to its row itself, not by a number that a flipped bit turns
# into that of another row. For large rows this is slow, so those of `evaluations` have a checksum.

shared = Table(
    "shared",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    Column("content", LargeBinary, nullable=False),
    comment="Class names and options, each once: most evaluations of a project have the same.",
    sqlite_with_rowid=False,
)

evaluations = Table(
    "evaluations",
    metadata,
    Column("id", Name, primary_key=True),
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
Index("evaluations_model", _of.project, _of.model, _of.id).ddl_if(dialect="postgresql")
Index("evaluations_test_set", _of.project, _of.test_set, _of.id).ddl_if(dialect="postgresql")
Index("evaluations_verdict", _of.project, _of.verdict, _of.id).ddl_if(dialect="postgresql")

items = Table(
    "items",
    metadata,
    Column("evaluation", Name, ForeignKey(evaluations.c.id, ondelete="CASCADE"), primary_key=True),
    Column("content", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

scores = Table(
    "scores",
    metadata,
    Column("evaluation", Name, ForeignKey(evaluations.c.id, ondelete="CASCADE"), primary_key=True),
    Column("content", LargeBinary, nullable=False),
    comment="What is drawn of scores: thinned curves and bins.",
    sqlite_with_rowid=False,
)

slices = Table(
    "slices",
    metadata,
    Column("evaluation", Name, ForeignKey(evaluations.c.id, ondelete="CASCADE"), primary_key=True),
    Column("key", LargeBinary, primary_key=True),
    Column("place", Integer, nullable=False),
    Column("name", LargeBinary, nullable=False),
    Column("content", LargeBinary, nullable=False),
    comment="A row for each slice: the history of one slice reads no others.",
    sqlite_with_rowid=False,
)

aliases = Table(
    "aliases",
    metadata,
    Column("project", Name, primary_key=True),
    Column("name", Name, primary_key=True),
    Column("evaluation", Name, ForeignKey(evaluations.c.id), nullable=False, index=True),
    Column("etag", Text, nullable=False),
    Column("updated", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

alias_changes = Table(
    "alias_changes",
    metadata,
    Column("project", Name, primary_key=True),
    Column("name", Name, primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("evaluation", Name, ForeignKey(evaluations.c.id, ondelete="CASCADE"), index=True),
    Column("changed", BigInteger, nullable=False),
    Column("by", Name),
    comment="What each alias pointed at, from 1; nothing once it was deleted.",
    sqlite_with_rowid=False,
)

looks = Table(
    "looks",
    metadata,
    Column("project", Name, primary_key=True),
    Column("fingerprint", LargeBinary, primary_key=True),
    Column("looks", Integer, nullable=False),
    sqlite_with_rowid=False,
)

replays = Table(
    "replays",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    Column("payload", LargeBinary, nullable=False),
    Column("status", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("evaluation", Name, nullable=False),
    Column("project", Name, nullable=False),
    Column("expires", BigInteger, nullable=False, index=True),
    comment="What was answered to an Idempotency-Key.",
    sqlite_with_rowid=False,
)

projects = Table(
    "projects",
    metadata,
    Column("name", Name, primary_key=True),
    Column("badge_public", Boolean, nullable=False, default=False),
    Column("keeps_slices", Boolean, nullable=False, default=True),
    comment="Settings of the projects that have some.",
    sqlite_with_rowid=False,
)

project_sizes = Table(
    "project_sizes",
    metadata,
    Column("project", Name, primary_key=True),
    Column("bytes", BigInteger, nullable=False),
    comment="The sum of `bytes` over the evaluations of each project.",
    sqlite_with_rowid=False,
)

revoked_sessions = Table(
    "revoked_sessions",
    metadata,
    Column("id", Name, primary_key=True),
    Column("expires", BigInteger, nullable=False),
    comment="Sessions of browsers that ended before they expired.",
)
