"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# Typed: what kind of number a bare Float gives is not known.
_FLOAT: sa.Float[float] = sa.Float()


def upgrade() -> None:
    op.create_table(
        "sessions",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("tenant", sa.String, nullable=False),
        sa.Column("route", sa.String, nullable=False),
        sa.Column("name", sa.String),
        sa.Column("task", sa.String, nullable=False),
        sa.Column("task_from", sa.String, nullable=False),
        sa.Column("model", sa.String, nullable=False),
        sa.Column("began_s", _FLOAT, nullable=False),
        sa.Column("last_s", _FLOAT, nullable=False),
        sa.Column("messages", sa.Integer, nullable=False),
        sa.Column("asked", sa.String, nullable=False),
        sa.Column("head", sa.String, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("tools_hash", sa.String),
        sa.Column("tools", sa.Text),
    )
    op.create_index("sessions_head", "sessions", ["tenant", "route", "head"])
    op.create_index("sessions_asked", "sessions", ["tenant", "route", "asked"])
    op.create_index("sessions_name", "sessions", ["tenant", "route", "name"])
    op.create_index("sessions_last", "sessions", ["last_s"])
    op.create_table(
        "messages",
        sa.Column(
            "session", sa.String, sa.ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("at", sa.Integer, primary_key=True),
        sa.Column("role", sa.String, nullable=False),
        sa.Column("digest", sa.String, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("calls", sa.Text, nullable=False),
        sa.Column("by_system1", sa.Boolean, nullable=False),
        sa.Column("content", sa.Text),
    )
    op.create_table(
        "steps",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column(
            "session", sa.String, sa.ForeignKey("sessions.id", ondelete="CASCADE"), nullable=False
        ),
        sa.Column("gateway", sa.String, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("request_id", sa.String, nullable=False),
        sa.Column("at", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("began_s", _FLOAT, nullable=False),
        sa.Column("route", sa.String, nullable=False),
        sa.Column("mode", sa.String, nullable=False),
        sa.Column("record", sa.String, nullable=False),
        sa.Column("tenant", sa.String, nullable=False),
        sa.Column("task", sa.String, nullable=False),
        sa.Column("model", sa.String, nullable=False),
        sa.Column("decided_by", sa.String, nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("complete", sa.Boolean, nullable=False),
        sa.Column("request_bytes", sa.Integer, nullable=False),
        sa.Column("prompt_tokens", sa.Integer, nullable=False),
        sa.Column("cached_tokens", sa.Integer, nullable=False),
        sa.Column("completion_tokens", sa.Integer, nullable=False),
        sa.Column("tokens_estimated", sa.Boolean, nullable=False),
        sa.Column("cost_usd", _FLOAT),
        sa.Column("total_ms", _FLOAT, nullable=False),
        sa.Column("before_upstream_ms", _FLOAT),
        sa.Column("upstream_head_ms", _FLOAT),
        sa.Column("decide_ms", _FLOAT),
        sa.Column("reflex", sa.String),
        sa.Column("action", sa.String, nullable=False),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("tool", sa.String, nullable=False),
        sa.Column("confidence", _FLOAT, nullable=False),
        sa.Column("max_error", _FLOAT, nullable=False),
        sa.Column("head", sa.String, nullable=False),
    )
    op.create_index("steps_head", "steps", ["head"])
    op.create_index("steps_number", "steps", ["gateway", "number"])
    op.create_index("steps_began", "steps", ["began_s"])
    op.create_index("steps_session", "steps", ["session"])
    op.create_table(
        "decisions",
        sa.Column(
            "step", sa.Integer, sa.ForeignKey("steps.id", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("position", sa.Integer, primary_key=True),
        sa.Column("recorded_tool", sa.String),
        sa.Column("recorded", sa.Text),
        sa.Column("recorded_hash", sa.String),
        sa.Column("proposed_tool", sa.String),
        sa.Column("proposed", sa.Text),
        sa.Column("proposed_hash", sa.String),
        sa.Column("differing", sa.Text, nullable=False),
        sa.Column("effect", sa.String),
        sa.Column("thought", sa.Boolean, nullable=False),
        sa.Column("named", sa.Boolean, nullable=False),
        sa.Column("exact", sa.Boolean, nullable=False),
        sa.Column("among_three", sa.Boolean, nullable=False),
        sa.Column("read_exact", sa.Boolean, nullable=False),
        sa.Column("read_among_three", sa.Boolean, nullable=False),
        sa.Column("confidence", _FLOAT, nullable=False),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("acted", sa.Text, nullable=False),
        sa.Column("would_act", sa.Boolean, nullable=False),
        sa.Column("cpu_ms", _FLOAT, nullable=False),
    )
    op.create_table(
        "audits",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("step", sa.Integer, sa.ForeignKey("steps.id", ondelete="SET NULL")),
        sa.Column("gateway", sa.String, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("route", sa.String, nullable=False),
        sa.Column("tool", sa.String, nullable=False),
        sa.Column("outcome", sa.String, nullable=False),
        sa.Column("at_s", _FLOAT, nullable=False),
    )
    op.create_table(
        "trail",
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("id", sa.String, nullable=False, unique=True),
        sa.Column("at_s", _FLOAT, nullable=False),
        sa.Column("what", sa.String, nullable=False),
        sa.Column("who", sa.String, nullable=False),
        sa.Column("evidence", sa.Text, nullable=False),
        sa.Column("previous", sa.String, nullable=False),
        sa.Column("hash", sa.String, nullable=False),
    )
    op.create_index("trail_what", "trail", ["what"])
    op.create_table(
        "artifacts",
        sa.Column("path", sa.String, primary_key=True),
        sa.Column("digest", sa.String, nullable=False),
        sa.Column("noted_s", _FLOAT, nullable=False),
        sa.Column("options", sa.Text),
        sa.Column("sessions", sa.Text),
    )


def downgrade() -> None:
    for table in (
        "artifacts", "trail", "audits", "decisions", "steps", "messages", "sessions",
    ):  # fmt: skip
        op.drop_table(table)
