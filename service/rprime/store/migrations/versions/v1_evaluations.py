"""The first tables.

Nothing is released, so they are those of `rprime.store.schema`. The release writes them out here.
"""

from alembic import op

from rprime.store.schema import metadata

revision = "1"
down_revision = None


def upgrade() -> None:
    """Make the tables of version 1."""
    metadata.create_all(op.get_bind())
