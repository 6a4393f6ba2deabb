"""Stored documents name their version: rows stay as they are, and a rprime of before refuses.

Without a version a document is one of version 2, and `rprime.store.documents` reads it. A rprime
that knows only version 2 would take the envelope of a later one for damage.
The new column holds the overall indices of scores, which older evaluations lack. The index finds
evaluations of the same predictions.
"""

import sqlalchemy as sa
from alembic import op

revision = "3"
down_revision = "2"


def upgrade() -> None:
    """Add a column of values and an index; documents stay as they are."""
    op.add_column("evaluations", sa.Column("score_values", sa.LargeBinary))
    columns = ["project", "fingerprint", "input_digest"]
    op.create_index("evaluations_evidence", "evaluations", columns)
