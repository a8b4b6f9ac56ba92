"""Decisions to make several calls at once: whether all of them were right, and how many."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("decisions", sa.Column("answer_right", sa.Boolean))
    for name in ("answer_calls", "calls_made"):
        op.add_column("decisions", sa.Column(name, sa.Integer, nullable=False, server_default="1"))
