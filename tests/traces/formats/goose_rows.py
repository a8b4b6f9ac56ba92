"""Sessions of Goose as it keeps them: rows for its database, and an export."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

START_S = 1_785_578_400
SCHEMA = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, working_dir TEXT, created_at TIMESTAMP,
    provider_name TEXT, model_config_json TEXT, parent_session_id TEXT, accumulated_cost REAL,
    total_tokens INTEGER, input_tokens INTEGER, output_tokens INTEGER,
    cache_read_tokens INTEGER, cache_write_tokens INTEGER,
    accumulated_total_tokens INTEGER, accumulated_input_tokens INTEGER,
    accumulated_output_tokens INTEGER, accumulated_cache_read_tokens INTEGER,
    accumulated_cache_write_tokens INTEGER);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT,
    role TEXT, content_json TEXT, created_timestamp INTEGER, timestamp TIMESTAMP, tokens INTEGER,
    metadata_json TEXT);
"""
LEDGER = """
CREATE TABLE usage_ledger (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT,
    created_timestamp INTEGER, model TEXT, input_tokens INTEGER, output_tokens INTEGER,
    total_tokens INTEGER, cache_read_tokens INTEGER, cache_write_tokens INTEGER, cost REAL,
    cost_source TEXT, is_compaction INTEGER DEFAULT 0);
"""


def session(id: str = "20260801_1", parent: str = "", at: int = 0, **sums: Any) -> dict[str, Any]:
    hour, minute = 10 + at // 3600, at // 60 % 60
    found = {
        "id": id,
        "working_dir": "/x",
        "created_at": f"2026-08-01 {hour:02}:{minute:02}:00",
        "provider_name": "anthropic",
        "model_config_json": json.dumps({"model_name": "claude-sonnet-4-5"}),
        "parent_session_id": parent or None,
    }
    return {**found, **{f"accumulated_{name}": one for name, one in sums.items()}}


def row(at: int, prompt: int, output: int, read: int = 0, write: int = 0, **more: Any) -> Any:
    return {
        "session_id": "20260801_1",
        "created_timestamp": START_S + at,
        "model": "claude-sonnet-4-5",
        "input_tokens": prompt,
        "output_tokens": output,
        "total_tokens": prompt + output,
        "cache_read_tokens": read,
        "cache_write_tokens": write,
        **more,
    }


def said(role: str, at: int, *blocks: Any, session: str = "20260801_1", **about: bool) -> Any:
    content = [one if isinstance(one, dict) else {"type": "text", "text": one} for one in blocks]
    return {
        "session_id": session,
        "role": role,
        "content_json": json.dumps(content),
        "created_timestamp": START_S + at,
        "metadata_json": json.dumps({"userVisible": True, "agentVisible": True, **about}),
    }


def call(id: str) -> dict[str, Any]:
    value = {"name": "developer__shell", "arguments": {"command": "ls"}}
    return {"type": "toolRequest", "id": id, "toolCall": {"status": "success", "value": value}}


def result(id: str, status: str = "success") -> dict[str, Any]:
    value = {"content": [{"type": "text", "text": "a.py"}]}
    return {"type": "toolResponse", "id": id, "toolResult": {"status": status, "value": value}}


def database(
    path: Path, sessions: list[Any], messages: list[Any], ledger: list[Any] | None = None
) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA + (LEDGER if ledger is not None else ""))
        for table, rows in (
            ("sessions", sessions),
            ("messages", messages),
            ("usage_ledger", ledger or []),
        ):
            for one in rows:
                places = ", ".join("?" * len(one))
                columns = ", ".join(one)
                connection.execute(
                    f"INSERT INTO {table} ({columns}) VALUES ({places})", tuple(one.values())
                )
        connection.commit()
    return path


def export(messages: list[Any], **more: Any) -> dict[str, Any]:
    return {
        "id": "20260801_1",
        "working_dir": "/x",
        "created_at": "2026-08-01T10:00:00Z",
        "extension_data": {},
        "provider_name": "anthropic",
        "model_config": {"model_name": "claude-sonnet-4-5"},
        "conversation": [
            {
                "id": f"m{index}",
                "role": one["role"],
                "created": one["created_timestamp"],
                "content": json.loads(one["content_json"]),
                "metadata": json.loads(one["metadata_json"]),
            }
            for index, one in enumerate(messages)
        ],
        **more,
    }
