"""The tables of a store, the same for SQLite and PostgreSQL, and the migration to this version."""

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, String, column, inspect, select, table, text

from rprime.store.errors import (
    StoreDamagedError,
    StoreForeignError,
    StoreNewerError,
    StoreOutdatedError,
)
from rprime.store.migrations import DamagedRowError
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


SCHEMA_VERSION = 3
"""The number of the last migration."""

VERSION_TABLE = "rprime_version"
"""Our own name, since another program in the same database may use Alembic, too."""


def upgrade(connection: Connection) -> None:
    """Make or migrate the tables, to `SCHEMA_VERSION`, in the transaction of the connection."""
    if is_current(connection):
        return
    # Importing Alembic takes longer than the rest of opening a store.
    from alembic import command  # noqa: PLC0415 (see above)
    from alembic.config import Config  # noqa: PLC0415 (see above)

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    config.set_main_option("path_separator", "os")
    config.attributes.update(connection=connection, version_table=VERSION_TABLE)
    if _version_of(connection):
        keep_out_writers(connection)
        try:
            command.upgrade(config, "head")
        except DamagedRowError as exc:
            raise StoreDamagedError(code="migration") from exc
    else:
        metadata.create_all(connection)
        command.stamp(config, "head")


def keep_out_writers(connection: Connection) -> None:
    """Wait for writers, which all begin with `check_version`, and block the next ones.

    SQLite has one process.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"LOCK TABLE {VERSION_TABLE} IN ACCESS EXCLUSIVE MODE"))


def check_version(connection: Connection) -> None:
    """Refuse to write if another rprime has changed the version of the tables meanwhile.

    Until the transaction ends, no migration can begin.
    """
    version = _number(connection)
    if version > SCHEMA_VERSION:
        raise StoreNewerError(_NEWER.format(version, SCHEMA_VERSION))
    if version < SCHEMA_VERSION:
        raise StoreOutdatedError(
            f"The store now has version {version} of the tables, as an older backup has: start "
            "rprime again, which migrates them."
        )


def is_current(connection: Connection, *, read_only: bool = False) -> bool:
    """Whether the tables are those of this code; older ones cannot be opened for reading only."""
    current = _version_of(connection) == SCHEMA_VERSION
    if read_only and not current:
        raise StoreOutdatedError("The store has older tables; `rprime serve` migrates them.")
    return current


def _version_of(connection: Connection) -> int:
    """Return the version of the tables, 0 without tables; refuse newer and foreign ones."""
    names = set(inspect(connection).get_table_names())
    if VERSION_TABLE not in names:
        if names & metadata.tables.keys():
            raise StoreForeignError(
                "The database has tables of the same names from another program; "
                "let RPRIME_STORE name a database of its own."
            )
        return 0
    version = _number(connection)
    if version > SCHEMA_VERSION:
        raise StoreNewerError(_NEWER.format(version, SCHEMA_VERSION))
    return version


_NUMBER = select(column("version_num", String())).select_from(table(VERSION_TABLE))
_NEWER = (
    "The store has version {} of the tables, this rprime knows {}; install the newer rprime again."
)


def _number(connection: Connection) -> int:
    number = connection.scalar(_NUMBER)
    if number is None:
        return 0
    if not str(number).isdecimal():
        raise StoreForeignError(
            f"{VERSION_TABLE} holds a version that no rprime writes: restore a backup, or let "
            "RPRIME_STORE name another database."
        )
    return int(number)
