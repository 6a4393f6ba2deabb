"""The schema version of a store, and the migration to the current one."""

from pathlib import Path

from sqlalchemy import Connection, String, column, inspect, select, table, text

from rprime.store.errors import (
    StoreDamagedError,
    StoreForeignError,
    StoreNewerError,
    StoreOutdatedError,
)
from rprime.store.migrations import DamagedRowError
from rprime.store.schema import metadata

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
