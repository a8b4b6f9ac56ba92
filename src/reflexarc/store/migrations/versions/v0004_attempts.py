"""Attempts of a step, one a deployment; what a step cost in whole micro-dollars."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# Typed: what kind of number a bare Float gives is not known.
_FLOAT: sa.Float[float] = sa.Float()


def upgrade() -> None:
    op.create_table(
        "attempts",
        sa.Column(
            "step", sa.Integer, sa.ForeignKey("steps.id", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("position", sa.Integer, primary_key=True),
        sa.Column("provider", sa.String, nullable=False),
        sa.Column("model", sa.String, nullable=False),
        sa.Column("service_tier", sa.String, nullable=False),
        sa.Column("tier", sa.String, nullable=False),
        sa.Column("outcome", sa.String, nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("code", sa.String, nullable=False),
        sa.Column("first_token_ms", _FLOAT),
        sa.Column("total_ms", _FLOAT, nullable=False),
        sa.Column("prompt_tokens", sa.Integer, nullable=False),
        sa.Column("cached_tokens", sa.Integer, nullable=False),
        sa.Column("cache_write_tokens", sa.Integer, nullable=False),
        sa.Column("cache_write_1h_tokens", sa.Integer, nullable=False),
        sa.Column("completion_tokens", sa.Integer, nullable=False),
        sa.Column("reasoning_tokens", sa.Integer, nullable=False),
        sa.Column("micro_usd", sa.Integer),
        sa.Column("partial", sa.Boolean, nullable=False),
        sa.Column("estimated", sa.Boolean, nullable=False),
    )
    for name in ("tier", "provider"):
        op.add_column("steps", sa.Column(name, sa.String, nullable=False, server_default=""))
    op.add_column(
        "steps", sa.Column("cache_write_tokens", sa.Integer, nullable=False, server_default="0")
    )
    op.add_column("steps", sa.Column("cost_micro_usd", sa.Integer))
    op.add_column(
        "steps", sa.Column("partial", sa.Boolean, nullable=False, server_default=sa.false())
    )
    op.execute(
        "UPDATE steps SET cost_micro_usd = CAST(ROUND(cost_usd * 1000000) AS INTEGER)"
        " WHERE cost_usd IS NOT NULL"
    )
