"""Sessions of OpenCode as it keeps them: rows for a database, or files in folders."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

SCHEMA = """
CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, time_created INTEGER,
    time_updated INTEGER);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER,
    time_updated INTEGER, data TEXT);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER,
    time_updated INTEGER, data TEXT);
"""
START_MS = 1_780_000_000_000


def tokens(
    read: int = 0, write: int = 0, *, input: int, output: int, **more: Any
) -> dict[str, Any]:
    found = {"input": input, "output": output, "reasoning": 0, **more}
    return {**found, "cache": {"read": read, "write": write}}


def session(id: str = "ses_1", parent: str = "", at: int = 0) -> dict[str, Any]:
    time = {"created": START_MS + at, "updated": START_MS + at}
    return {"id": id, "projectID": "p", "parentID": parent, "title": "t", "time": time}


def user(id: str, said: str, at: int, *more: dict[str, Any], session: str = "ses_1") -> Any:
    info = {"id": id, "sessionID": session, "role": "user", "time": {"created": START_MS + at}}
    return info, [{"type": "text", "text": said}, *more]


def answer(
    id: str, at: int, used: Any, *parts: dict[str, Any], session: str = "ses_1", **more: Any
) -> Any:
    info = {
        "id": id,
        "sessionID": session,
        "role": "assistant",
        "time": {"created": START_MS + at, "completed": START_MS + at + 900},
        "modelID": "claude-sonnet-4-5",
        "providerID": "anthropic",
        "cost": 0,
        "finish": "stop",
        "tokens": used,
        **more,
    }
    return info, list(parts)


def said(text: str, at: int = 100) -> dict[str, Any]:
    time = {"start": START_MS + at, "end": START_MS + at + 200}
    return {"type": "text", "text": text, "time": time}


def tool(id: str, at: int, output: str = "seen", **time: int) -> dict[str, Any]:
    state = {
        "status": "completed",
        "input": {"path": "a.py"},
        "output": output,
        "time": {"start": START_MS + at, "end": START_MS + at + 300, **time},
    }
    return {"type": "tool", "tool": "read", "callID": id, "state": state}


def database(path: Path, sessions: list[Any], messages: list[Any], *, parts: bool = True) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA)
        for one in sessions:
            row = (one["id"], "p", one["parentID"] or None, one["time"]["created"], 0)
            connection.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?)", row)
        for info, made in messages:
            data = {key: one for key, one in info.items() if key not in ("id", "sessionID")}
            at = info["time"]["created"]
            row = (info["id"], info["sessionID"], at, at, json.dumps(data))
            connection.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", row)
            for index, part in enumerate(made if parts else []):
                id = f"prt_{info['id']}_{index:03}"
                row = (id, info["id"], info["sessionID"], at, at, json.dumps(part))
                connection.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", row)
        connection.commit()
    return path


def folders(root: Path, sessions: list[Any], messages: list[Any]) -> Path:
    for one in sessions:
        _write(root / "storage" / "session" / "p" / f"{one['id']}.json", one)
    for info, made in messages:
        _write(root / "storage" / "message" / info["sessionID"] / f"{info['id']}.json", info)
        for index, part in enumerate(made):
            own = {"id": f"prt_{index:03}", "sessionID": info["sessionID"]}
            place = root / "storage" / "part" / info["id"] / f"prt_{index:03}.json"
            _write(place, {**own, "messageID": info["id"], **part})
    return root


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1))
