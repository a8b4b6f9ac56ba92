"""The tables. Times are Unix seconds, durations milliseconds, hashes hexadecimal.

Where a step is recorded `hashed`, columns that hold values are null and those that hold hashes
(keyed by the state directory's secret) remain. docs/store.md describes each table.
"""

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    false,
)

metadata = MetaData()
_SECONDS: Float[float] = Float()
_NUMBER: Float[float] = Float()

sessions = Table(
    "sessions",
    metadata,
    Column("id", String, primary_key=True),
    Column("tenant", String, nullable=False),
    Column("route", String, nullable=False),
    Column("name", String),  # the client's own, or its hash
    Column("task", String, nullable=False),
    Column("task_from", String, nullable=False),  # header | derived
    Column("model", String, nullable=False),
    Column("began_s", _SECONDS, nullable=False),
    Column("last_s", _SECONDS, nullable=False),
    Column("messages", Integer, nullable=False),
    Column("asked", String, nullable=False),  # the chain before the last answer
    Column("head", String, nullable=False),  # the chain after it
    Column("attempt", Integer, nullable=False),
    Column("tools_hash", String),
    Column("tools", Text),  # full only
    Index("sessions_head", "tenant", "route", "head"),
    Index("sessions_asked", "tenant", "route", "asked"),
    Index("sessions_name", "tenant", "route", "name"),
    Index("sessions_last", "last_s"),
)

messages = Table(
    "messages",
    metadata,
    Column("session", String, ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("at", Integer, primary_key=True),
    Column("role", String, nullable=False),
    Column("digest", String, nullable=False),  # of its meaning
    Column("size", Integer, nullable=False),  # bytes
    Column("calls", Text, nullable=False),  # JSON: name, and a hash per argument
    Column("by_system1", Boolean, nullable=False),
    Column("forced", Boolean, nullable=False, server_default=false()),  # System 1 chose its tool
    Column("content", Text),  # full only: the message as chat JSON
)

steps = Table(
    "steps",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("session", String, ForeignKey("sessions.id", ondelete="CASCADE"), nullable=False),
    Column("gateway", String, nullable=False),
    Column("number", Integer, nullable=False),
    Column("request_id", String, nullable=False),
    Column("at", Integer, nullable=False),  # where its answer stands in the session
    Column("attempt", Integer, nullable=False),
    Column("began_s", _SECONDS, nullable=False),
    Column("route", String, nullable=False),
    Column("mode", String, nullable=False),
    Column("record", String, nullable=False),
    Column("tenant", String, nullable=False),
    Column("task", String, nullable=False),
    Column("model", String, nullable=False),
    Column("decided_by", String, nullable=False),  # system1 | system2 | gateway
    Column("status", Integer, nullable=False),
    Column("complete", Boolean, nullable=False),
    Column("request_bytes", Integer, nullable=False),
    Column("prompt_tokens", Integer, nullable=False),
    Column("cached_tokens", Integer, nullable=False),
    Column("completion_tokens", Integer, nullable=False),
    Column("tokens_estimated", Boolean, nullable=False),
    Column("cost_usd", _NUMBER),  # cost_micro_usd in dollars
    Column("tier", String, nullable=False, server_default=""),  # empty: no tier was chosen
    Column("provider", String, nullable=False, server_default=""),  # empty: the route's upstream
    Column("cache_write_tokens", Integer, nullable=False, server_default="0"),
    Column("cost_micro_usd", Integer),
    Column("partial", Boolean, nullable=False, server_default=false()),
    Column("total_ms", _NUMBER, nullable=False),
    Column("before_upstream_ms", _NUMBER),
    Column("upstream_head_ms", _NUMBER),
    Column("decide_ms", _NUMBER),
    Column("reflex", String),
    Column("action", String, nullable=False),
    Column("reason", String, nullable=False),
    Column("tool", String, nullable=False),
    Column("confidence", _NUMBER, nullable=False),
    Column("max_error", _NUMBER, nullable=False),
    Column("head", String, nullable=False),  # the chain after its answer
    Index("steps_head", "head"),
    Index("steps_number", "gateway", "number"),
    Index("steps_began", "began_s"),
    Index("steps_session", "session"),
)

attempts = Table(
    "attempts",
    metadata,
    Column("step", Integer, ForeignKey("steps.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("provider", String, nullable=False),
    Column("model", String, nullable=False),  # as the provider calls it
    Column("service_tier", String, nullable=False),
    Column("tier", String, nullable=False),  # interactive | standard | batch
    Column("outcome", String, nullable=False),
    Column("status", Integer, nullable=False),
    Column("code", String, nullable=False),
    Column("first_token_ms", _NUMBER),
    Column("total_ms", _NUMBER, nullable=False),
    Column("prompt_tokens", Integer, nullable=False),
    Column("cached_tokens", Integer, nullable=False),
    Column("cache_write_tokens", Integer, nullable=False),
    Column("cache_write_1h_tokens", Integer, nullable=False),
    Column("completion_tokens", Integer, nullable=False),
    Column("reasoning_tokens", Integer, nullable=False),
    Column("micro_usd", Integer),  # null: price not known
    Column("partial", Boolean, nullable=False),
    Column("estimated", Boolean, nullable=False),
)

decisions = Table(
    "decisions",
    metadata,
    Column("step", Integer, ForeignKey("steps.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("recorded_tool", String),
    Column("recorded", Text),  # full only: its arguments
    Column("recorded_hash", String),  # of the call
    Column("proposed_tool", String),
    Column("proposed", Text),  # full only
    Column("proposed_hash", String),
    Column("differing", Text, nullable=False),  # JSON: names of arguments that differ
    Column("effect", String),
    Column("thought", Boolean, nullable=False),
    Column("named", Boolean, nullable=False),
    Column("exact", Boolean, nullable=False),
    Column("among_three", Boolean, nullable=False),
    Column("read_exact", Boolean, nullable=False),
    Column("read_among_three", Boolean, nullable=False),
    Column("confidence", _NUMBER, nullable=False),
    Column("reason", String, nullable=False),
    Column("acted", Text, nullable=False),  # JSON: by error level
    Column("would_act", Boolean, nullable=False),
    Column("cpu_ms", _NUMBER, nullable=False),
    Column("answer_right", Boolean),  # of all calls it would have made together; unknown before
    Column("answer_calls", Integer, nullable=False, server_default="1"),
    Column("calls_made", Integer, nullable=False, server_default="1"),
)

audits = Table(
    "audits",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("step", Integer, ForeignKey("steps.id", ondelete="SET NULL")),
    Column("gateway", String, nullable=False),
    Column("number", Integer, nullable=False),
    Column("route", String, nullable=False),
    Column("tool", String, nullable=False),
    Column("outcome", String, nullable=False),
    Column("at_s", _SECONDS, nullable=False),
)

trail = Table(
    "trail",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("id", String, nullable=False, unique=True),
    Column("at_s", _SECONDS, nullable=False),
    Column("what", String, nullable=False),
    Column("who", String, nullable=False),
    Column("evidence", Text, nullable=False),  # canonical JSON
    Column("previous", String, nullable=False),
    Column("hash", String, nullable=False),
    Index("trail_what", "what"),
)

artifacts = Table(
    "artifacts",
    metadata,
    Column("path", String, primary_key=True),
    Column("digest", String, nullable=False),
    Column("noted_s", _SECONDS, nullable=False),
    Column("options", Text),  # JSON: how it was learned from this store; null where it was not
    Column("sessions", Text),  # JSON: ids of the sessions learned from
)

purges = Table(
    "purges",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("at_s", _SECONDS, nullable=False),
    Column("tenant", String),  # null, here and below: any
    Column("route", String),
    Column("name", String),  # always the keyed hash of the client's name
    Column("before_s", _SECONDS),
    Column("ends", Text),  # JSON: the chain of a purged session before and after its last answer
    Column("heads", Text),  # JSON: its chain after each of its messages
    Index("purges_at", "at_s"),
)
