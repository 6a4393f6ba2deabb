"""The tables of 0.1.0: only its own code made them, a new store has those of the last version."""

revision = "1"
down_revision = None


def upgrade() -> None:
    """Do nothing."""
