"""Sessions as JSON lines (`.jsonl`, `.jsonl.gz`): reading them into the vocabulary, writing them.

One session a line: `{id?, task?, trial?, source?, model?, reward?, family?, began_unix_s?, tools?,
messages}` with OpenAI chat messages and tools; other keys are ignored and survive a `split`. A line
that does not fit is reported with its place and reason and the rest is read. `docs/sessions.md` has
the form.
"""

import gzip
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import xxhash

from reflexarc.steps import Message, Session
from reflexarc.steps.errors import InputError, RequestError, SessionLineError
from reflexarc.traces.lines import MAX_LINE_BYTES, Line, read_lines
from reflexarc.traces.tasks import Clustering, cluster_tasks
from reflexarc.wire.chat import message_from_chat, tool_from_chat

OnBadLine = Callable[[SessionLineError], None]


class Recording(msgspec.Struct, frozen=True):
    """What some files held. `raw[i]` is the line that `sessions[i]` was read from; `clustering`
    says how tasks were told apart where sessions did not name theirs, None where all did."""

    sessions: list[Session]
    raw: list[bytes]
    bad_lines: list[SessionLineError]
    clustering: Clustering | None


def read_recording(
    paths: Iterable[str | Path],
    *,
    on_bad_line: OnBadLine | None = None,
    on_session: Callable[[int], None] | None = None,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Recording:
    """Everything in these files, in order.

    `on_bad_line` is told of each bad line as it is met, `on_session` how many sessions there are
    after each. A line that was there before, byte for
    byte, is a bad line too: counted twice it would make certificates look better than they are.
    A session whose id another had before is told from it by its place in the id.
    Sessions without a task get one by the likeness of their openings (`traces.tasks`).
    Raises `InputError` for a file that cannot be opened.
    """
    sessions: list[Session] = []
    raw: list[bytes] = []
    bad_lines: list[SessionLineError] = []
    seen: dict[int, str] = {}
    names: set[str] = set()
    for path in paths:
        for line in read_lines(path, max_line_bytes=max_line_bytes):
            try:
                session = session_from_line(line)
                digest = xxhash.xxh3_128_intdigest(line.data)
                if digest in seen:
                    raise SessionLineError(
                        line.where, f"the same line as {seen[digest]}; a session counts once"
                    )
            except SessionLineError as error:
                bad_lines.append(error)
                if on_bad_line is not None:
                    on_bad_line(error)
                continue
            seen[digest] = line.where
            if session.id in names:
                session = msgspec.structs.replace(session, id=f"{session.id} ({line.where})")
            names.add(session.id)
            sessions.append(session)
            raw.append(line.data)
            if on_session is not None:
                on_session(len(sessions))
    clustering = None
    if any(not session.task for session in sessions):
        clustering = cluster_tasks(sessions)
        sessions = [
            msgspec.structs.replace(session, task=task)
            for session, task in zip(sessions, clustering.tasks, strict=True)
        ]
    return Recording(sessions, raw, bad_lines, clustering)


def read_sessions(
    paths: Iterable[str | Path], *, on_bad_line: OnBadLine | None = None
) -> list[Session]:
    """The sessions in these files. Without `on_bad_line` the first bad line is raised."""

    def refuse(error: SessionLineError) -> None:
        raise error

    return read_recording(paths, on_bad_line=on_bad_line or refuse).sessions


def write_sessions(path: str | Path, lines: Sequence[bytes]) -> None:
    """Write session lines as JSONL, gzipped where the name ends in `.gz`.

    The same lines give the same bytes (no time, no name in the gzip header); the file appears
    whole or not at all. Raises `InputError` where the place cannot be written.
    """
    target = Path(path)
    data = b"".join(line + b"\n" for line in lines)
    if target.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    temporary: str | None = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(target)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise InputError(f"{target}: cannot be written ({error.strerror})") from error


def session_from_line(line: Line) -> Session:
    """One session; its task is empty where the line names none. Raises `SessionLineError`."""
    if line.why:
        raise SessionLineError(line.where, line.why)
    fields = _decode(line)
    try:
        return _session(fields, default_id=line.where)
    except RequestError as error:
        raise SessionLineError(line.where, str(error)) from error


def _session(fields: dict[str, Any], default_id: str) -> Session:
    messages = fields.get("messages")
    if messages is None:
        raise RequestError("messages is missing")
    listed = _list(messages, "messages")
    tools = _list(fields.get("tools") or [], "tools")
    trial = _scalar(fields, "trial", str, int)
    reward = _scalar(fields, "reward", int, float, bool)
    began = _scalar(fields, "began_unix_s", int, float)
    identity = _scalar(fields, "id", str, int)
    task = _scalar(fields, "task", str, int)
    return Session(
        id=default_id if identity is None else str(identity),
        task="" if task is None else str(task),
        tools=tuple(tool_from_chat(tool, f"tools[{i}]") for i, tool in enumerate(tools)),
        messages=tuple(_message(m, f"messages[{i}]") for i, m in enumerate(listed)),
        model=_text(fields, "model"),
        trial=trial if isinstance(trial, int) else None,
        source=_text(fields, "source"),
        reward=None if reward is None else float(reward),
        family=_text(fields, "family"),
        began_s=None if began is None else float(began),
    )


def _message(obj: Any, path: str) -> Message:
    """One message. `decided_by` (as the store exports it) other than System 2: no example."""
    message = message_from_chat(obj, path)
    if obj.get("decided_by") in _NOT_SYSTEM2:
        return msgspec.structs.replace(message, by_system1=True)
    return message


_NOT_SYSTEM2 = ("system1", "partial")


def _list(value: Any, path: str) -> list[Any]:
    if not isinstance(value, list):
        raise RequestError(f"{path} must be a list, not {type(value).__name__}")
    return cast(list[Any], value)


def _text(fields: dict[str, Any], key: str) -> str | None:
    return cast(str | None, _scalar(fields, key, str))


def _scalar(fields: dict[str, Any], key: str, *kinds: type) -> Any:
    value = fields.get(key)
    if value is None:
        return None
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        names = " or ".join(_JSON_NAMES[kind] for kind in kinds if kind is not bool)
        raise RequestError(f"{key} must be {names}, not {type(value).__name__}", param=key)
    return value


_JSON_NAMES: dict[type, str] = {str: "a string", int: "a number", float: "a number"}


class _DuplicateKeyError(ValueError):
    pass


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = dict(pairs)
    if len(found) != len(pairs):
        counts: set[str] = set()
        for key, _ in pairs:
            if key in counts:
                raise _DuplicateKeyError(repr(key))
            counts.add(key)
    return found


def _decode(line: Line) -> dict[str, Any]:
    """The JSON object of a line, every key once."""
    try:
        # the strict reader first: it refuses NaN, half surrogates and text that is not UTF-8
        value: Any = msgspec.json.decode(line.data)
        json.loads(line.data, object_pairs_hook=_distinct)
    except _DuplicateKeyError as error:
        raise SessionLineError(line.where, f"the key {error} stands twice in one object") from error
    except RecursionError as error:
        raise SessionLineError(line.where, "nested too deeply") from error
    except (msgspec.MsgspecError, ValueError) as error:
        raise SessionLineError(line.where, f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise SessionLineError(line.where, f"must be an object, not {type(value).__name__}")
    return cast(dict[str, Any], value)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
