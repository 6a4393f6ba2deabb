"""The version of the tables of a store, and how it gets to the one that this code knows."""

from pathlib import Path

from sqlalchemy import Connection, column, inspect, select, table

from rprime.store.errors import StoreForeignError, StoreNewerError
from rprime.store.schema import metadata

SCHEMA_VERSION = 1
"""The last of the migrations."""

VERSION_TABLE = "rprime_version"
"""Of our own name: a database may hold the tables of another program that uses Alembic."""


def upgrade(connection: Connection) -> None:
    """Bring the tables to `SCHEMA_VERSION`, in the transaction that the connection is in.

    Raises
    ------
    StoreNewerError
        If the tables are newer than this code.
    StoreForeignError
        If tables of these names belong to another program.
    """
    if version_of(connection) == SCHEMA_VERSION:
        return
    # It takes longer than all else that opening does.
    from alembic import command  # noqa: PLC0415 (see above)
    from alembic.config import Config  # noqa: PLC0415 (see above)

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def version_of(connection: Connection) -> int:
    """Give the version of the tables, 0 where there are none.

    Raises
    ------
    StoreNewerError
        If the tables are newer than this code.
    StoreForeignError
        If tables of these names belong to another program.
    """
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
        raise newer(version)
    return version


def newer(version: int) -> StoreNewerError:
    """Say that a store is newer than this code."""
    return StoreNewerError(
        f"The store has version {version} of the tables, this rprime knows {SCHEMA_VERSION}; "
        "install the newer rprime again."
    )
