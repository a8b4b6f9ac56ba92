"""What was purged and may still be on its way; answers whose tool System 1 chose."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# Typed: what kind of number a bare Float gives is not known.
_FLOAT: sa.Float[float] = sa.Float()


def upgrade() -> None:
    op.create_table(
        "purges",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("at_s", _FLOAT, nullable=False),
        sa.Column("tenant", sa.String),
        sa.Column("route", sa.String),
        sa.Column("name", sa.String),
        sa.Column("before_s", _FLOAT),
        sa.Column("ends", sa.Text),
        sa.Column("heads", sa.Text),
    )
    op.create_index("purges_at", "purges", ["at_s"])
    op.add_column(
        "messages", sa.Column("forced", sa.Boolean, nullable=False, server_default=sa.false())
    )
