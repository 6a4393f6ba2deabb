"""The schema version of a store, and the migration to the current one."""

from pathlib import Path

from sqlalchemy import Connection, column, inspect, select, table

from rprime.store.errors import StoreForeignError, StoreNewerError, StoreOutdatedError
from rprime.store.schema import metadata

SCHEMA_VERSION = 2
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
    config.attributes["connection"] = connection
    if _version_of(connection):
        command.upgrade(config, "head")
    else:
        metadata.create_all(connection)
        command.stamp(config, "head")


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
    found = connection.scalar(select(column("version_num")).select_from(table(VERSION_TABLE)))
    version = int(found or 0)
    if version > SCHEMA_VERSION:
        raise StoreNewerError(
            f"The store has version {version} of the tables, this rprime knows {SCHEMA_VERSION}; "
            "install the newer rprime again."
        )
    return version
