"""Stored documents name their version: rows stay as they are, and a rprime of before refuses.

Without a version a document is one of version 2, and `rprime.store.documents` reads it. A rprime
that knows only version 2 would take the envelope of a later one for damage.
"""

revision = "3"
down_revision = "2"


def upgrade() -> None:
    """Do nothing."""
