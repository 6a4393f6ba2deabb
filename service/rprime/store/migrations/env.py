"""Run by Alembic: takes a connection that is in a transaction and migrates inside it."""

from alembic import context

from rprime.store.schema import metadata
from rprime.store.schema_version import VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    transactional_ddl=True,
)
context.run_migrations()
