"""The tables of a store, the same for SQLite and PostgreSQL."""

from typing import Any

import sqlalchemy as sa

from rprime.store.records import NAMES

# Sort by code point on PostgreSQL, too: identifiers by time, names the same everywhere.
Name = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

metadata = sa.MetaData()


def _table(name: str, *columns: sa.Column[Any], comment: str | None = None) -> sa.Table:
    """Declare a table whose key leads to its row itself.

    Not by a number, as SQLite does by default, that a flipped bit turns into that of another row.
    For large rows this is slow, so those of `evaluations` have a checksum instead.
    """
    return sa.Table(name, metadata, *columns, comment=comment, sqlite_with_rowid=False)


def _key(name: str, kind: sa.Text | type[sa.LargeBinary] = Name) -> sa.Column[Any]:
    return sa.Column(name, kind, primary_key=True)


def _of_evaluation() -> sa.Column[Any]:
    owner = sa.ForeignKey("evaluations.id", ondelete="CASCADE")
    return sa.Column("evaluation", Name, owner, primary_key=True)


shared = _table(
    "shared",
    _key("key", sa.LargeBinary),
    sa.Column("content", sa.LargeBinary, nullable=False),
    comment="Class names and options, each once: most evaluations of a project have the same.",
)

evaluations = sa.Table(
    "evaluations",
    metadata,
    _key("id"),
    sa.Column("project", Name, nullable=False),
    *(sa.Column(name, Name) for name in NAMES),
    sa.Column("tags", sa.Text, nullable=False),
    sa.Column("fingerprint", sa.LargeBinary),
    sa.Column("waived", sa.Boolean, nullable=False),
    sa.Column("keeps_items", sa.Boolean, nullable=False),
    sa.Column("engine_version", sa.Text, nullable=False),
    sa.Column("input_digest", sa.LargeBinary, nullable=False),
    sa.Column("submission", sa.LargeBinary),
    *(sa.Column(name, sa.LargeBinary, nullable=False) for name in ("labels", "options", "cells")),
    *(sa.Column(name, sa.LargeBinary) for name in ("source", "gate", "comparison", "extras")),
    sa.Column("score_values", sa.LargeBinary),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("checksum", sa.BigInteger, nullable=False),
    comment="Blobs have checksums of their own; `checksum` covers the other columns that are read.",
)

_of = evaluations.c
sa.Index("evaluations_submission", _of.submission)
sa.Index("evaluations_evidence", _of.project, _of.fingerprint, _of.input_digest)
sa.Index("evaluations_version", _of.project, _of.version, _of.id)
sa.Index("evaluations_branch", _of.project, _of.branch, _of.id)
# SQLite tests every filter on this index alone, before it touches a row.
sa.Index(
    "evaluations_filters",
    *(_of[name] for name in ("project", "id", "model", "version", "branch")),
    *(_of[name] for name in ("test_set", "verdict", "tags")),
).ddl_if(dialect="sqlite")
# PostgreSQL limits an entry to a third of a page, which long names and tags would exceed.
sa.Index("evaluations_project", _of.project, _of.id).ddl_if(dialect="postgresql")
for _name in ("model", "test_set", "verdict"):
    sa.Index(f"evaluations_{_name}", _of.project, _of[_name], _of.id).ddl_if(dialect="postgresql")

items = _table("items", _of_evaluation(), sa.Column("content", sa.LargeBinary, nullable=False))

scores = _table(
    "scores",
    _of_evaluation(),
    sa.Column("content", sa.LargeBinary, nullable=False),
    comment="What is drawn of scores: thinned curves and bins.",
)

slices = _table(
    "slices",
    _of_evaluation(),
    _key("key", sa.LargeBinary),
    sa.Column("place", sa.Integer, nullable=False),
    sa.Column("name", sa.LargeBinary, nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
    comment="A row for each slice: the history of one slice reads no others.",
)

aliases = _table(
    "aliases",
    _key("project"),
    _key("name"),
    sa.Column("evaluation", Name, sa.ForeignKey(evaluations.c.id), nullable=False, index=True),
    sa.Column("etag", sa.Text, nullable=False),
    sa.Column("updated", sa.BigInteger, nullable=False),
)

alias_changes = _table(
    "alias_changes",
    _key("project"),
    _key("name"),
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("evaluation", Name, sa.ForeignKey(evaluations.c.id, ondelete="CASCADE"), index=True),
    sa.Column("changed", sa.BigInteger, nullable=False),
    sa.Column("by", Name),
    comment="What each alias pointed at, from 1; nothing once it was deleted.",
)

looks = _table(
    "looks",
    _key("project"),
    _key("fingerprint", sa.LargeBinary),
    sa.Column("looks", sa.Integer, nullable=False),
)

replays = _table(
    "replays",
    _key("key", sa.LargeBinary),
    sa.Column("payload", sa.LargeBinary, nullable=False),
    sa.Column("status", sa.Integer, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("evaluation", Name, nullable=False),
    sa.Column("project", Name, nullable=False),
    sa.Column("expires", sa.BigInteger, nullable=False, index=True),
    comment="What was answered to an Idempotency-Key.",
)

projects = _table(
    "projects",
    _key("name"),
    sa.Column("badge_public", sa.Boolean, nullable=False, default=False),
    sa.Column("keeps_slices", sa.Boolean, nullable=False, default=True),
    comment="Settings of the projects that have some.",
)

project_sizes = _table(
    "project_sizes",
    _key("project"),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    comment="The sum of `bytes` over the evaluations of each project.",
)

revoked_sessions = sa.Table(
    "revoked_sessions",
    metadata,
    _key("id"),
    sa.Column("expires", sa.BigInteger, nullable=False),
    comment="Sessions of browsers that ended before they expired.",
)
