"""The first released tables.

They are written out, not taken from `rprime.store.schema`, which moves on.
"""

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None

_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the tables of version 1."""
    _evaluations()
    _beside_them()
    _indexes(op.get_bind().dialect.name)


def _evaluations() -> None:
    op.create_table(
        "shared",
        sa.Column("key", sa.LargeBinary, primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
        comment="Class names and options, each once: most evaluations of a project have the same.",
    )
    op.create_table(
        "evaluations",
        sa.Column("id", _NAME, primary_key=True),
        sa.Column("project", _NAME, nullable=False),
        *(sa.Column(name, _NAME) for name in ("model", "version", "branch", "commit")),
        sa.Column("tags", sa.Text, nullable=False),
        sa.Column("test_set", _NAME),
        sa.Column("fingerprint", sa.LargeBinary),
        sa.Column("verdict", _NAME),
        *(sa.Column(name, sa.Boolean, nullable=False) for name in ("waived", "keeps_items")),
        sa.Column("engine_version", sa.Text, nullable=False),
        sa.Column("input_digest", sa.LargeBinary, nullable=False),
        sa.Column("submission", sa.LargeBinary),
        *(sa.Column(name, sa.LargeBinary, nullable=False) for name in ("labels", "options")),
        sa.Column("cells", sa.LargeBinary, nullable=False),
        *(sa.Column(n, sa.LargeBinary) for n in ("source", "gate", "comparison", "extras")),
    )


def _beside_them() -> None:
    op.create_table(
        "items",
        sa.Column(
            "evaluation",
            _NAME,
            sa.ForeignKey("evaluations.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "aliases",
        sa.Column("project", _NAME, primary_key=True),
        sa.Column("name", _NAME, primary_key=True),
        sa.Column("evaluation", _NAME, sa.ForeignKey("evaluations.id"), nullable=False),
        sa.Column("etag", sa.Text, nullable=False),
        sa.Column("updated", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "looks",
        sa.Column("project", _NAME, primary_key=True),
        sa.Column("fingerprint", sa.LargeBinary, primary_key=True),
        sa.Column("looks", sa.Integer, nullable=False),
    )
    op.create_table(
        "replays",
        sa.Column("key", sa.LargeBinary, primary_key=True),
        sa.Column("payload", sa.LargeBinary, nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("evaluation", _NAME, nullable=False),
        sa.Column("project", _NAME, nullable=False),
        sa.Column("expires", sa.BigInteger, nullable=False),
        comment="What was answered to an Idempotency-Key.",
    )
    op.create_table(
        "projects",
        sa.Column("name", _NAME, primary_key=True),
        sa.Column("badge_public", sa.Boolean, nullable=False),
        comment="Settings of the projects that have some.",
    )


def _indexes(dialect: str) -> None:
    op.create_index("ix_aliases_evaluation", "aliases", ["evaluation"])
    op.create_index("ix_replays_expires", "replays", ["expires"])
    op.create_index("evaluations_submission", "evaluations", ["submission"])
    op.create_index("evaluations_version", "evaluations", ["project", "version", "id"])
    op.create_index("evaluations_branch", "evaluations", ["project", "branch", "id"])
    if dialect == "sqlite":
        op.create_index(
            "evaluations_filters",
            "evaluations",
            ["project", "id", "model", "version", "branch", "test_set", "verdict", "tags"],
        )
    else:
        op.create_index("evaluations_project", "evaluations", ["project", "id"])
        op.create_index("evaluations_model", "evaluations", ["project", "model", "id"])
        op.create_index("evaluations_test_set", "evaluations", ["project", "test_set", "id"])
        op.create_index("evaluations_verdict", "evaluations", ["project", "verdict", "id"])
