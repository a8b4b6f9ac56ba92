"""Where Goose keeps its sessions: `sessions.db`, exports of one session, JSON lines from before."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from reflexarc.steps.errors import InputError
from reflexarc.traces.documents import BAD_JSON, values
from reflexarc.traces.loose import Table, decoded, moment, table, tables, text
from reflexarc.traces.requests import FileReport
from reflexarc.traces.sqlite_files import Database, holds_sqlite, opened

_ROW = (
    "id", "created_timestamp", "model", "input_tokens", "output_tokens", "total_tokens",
    "cache_read_tokens", "cache_write_tokens", "cost", "cost_source", "is_compaction",
)  # fmt: skip
_MESSAGE = ("message_id", "role", "content_json", "created_timestamp", "metadata_json")
_TOKENS = (
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
)
_SESSION = (
    "id", "created_at", "provider_name", "model_config_json", "parent_session_id",
    "accumulated_cost", *(f"accumulated_{name}" for name in _TOKENS), *_TOKENS,
)  # fmt: skip


class Message(msgspec.Struct, frozen=True):
    """`content` is a list of blocks; `about` says to whom it is shown."""

    role: str
    content: list[Table]
    at_s: float | None
    about: Table


class Kept(msgspec.Struct, frozen=True):
    """What a session is made of: its rows of usage, one a request, and its messages."""

    rows: list[Table]
    messages: list[Message]


class Session(msgspec.Struct, frozen=True):
    """`fields` are its columns (an export's members); `size` how much of it is there; `read` gives
    the rest. `trusted`: how far a copy goes before others, the least first."""

    id: str
    path: Path
    created_s: float | None
    parent: str
    fields: Table
    size: int
    trusted: int
    read: Callable[[], Kept]


def sessions_of(
    paths: Sequence[Path], reports: Mapping[Path, FileReport], held: ExitStack
) -> Iterator[Session]:
    """All sessions of these files, copies too. Databases stay open until `held` is closed."""
    for path in paths:
        report = reports[path]
        if not holds_sqlite(path):
            yield from _written(path, report)
            continue
        try:
            yield from _packed(path, held.enter_context(opened(path)), report)
        except InputError as error:
            report.notes.append(str(error))
            report.at_least = True


def _packed(path: Path, database: Database, report: FileReport) -> Iterator[Session]:
    messages = database.grouped("messages", "session_id")
    ledger = database.grouped("usage_ledger", "session_id")

    def reader(id: object) -> Callable[[], Kept]:
        def read() -> Kept:
            rows = list(database.rows("usage_ledger", ledger.get(id, ()), _ROW))
            made = [
                one
                for row in database.rows("messages", messages.get(id, ()), _MESSAGE)
                if (one := _stored(row, report)) is not None
            ]
            report.lines += len(rows) + len(made)
            return Kept(rows, made)

        return read

    for rows in database.grouped("sessions").values():
        for fields in database.rows("sessions", rows, _SESSION):
            id = fields["id"]
            yield Session(
                text(id),
                path,
                moment(fields["created_at"]),
                text(fields["parent_session_id"]),
                {**fields, "model_config": _json(fields["model_config_json"])},
                len(ledger.get(id, ())) + len(messages.get(id, ())),
                0,
                reader(id),
            )
    for reason, times in database.damage.items():
        report.skip(reason, times)
        report.at_least = True


def _stored(row: Table, report: FileReport) -> Message | None:
    content = _json(row["content_json"])
    if content is None:
        report.skip(BAD_JSON)
        report.at_least = True
        return None
    about = table(_json(row["metadata_json"]))
    return Message(text(row["role"]), tables(content), moment(row["created_timestamp"]), about)


def _json(data: object) -> object:
    try:
        return decoded(data) if isinstance(data, str | bytes) else None
    except ValueError:
        return None


def _written(path: Path, report: FileReport) -> Iterator[Session]:
    """An export is one object with its conversation; lines are a header and a message each."""
    head: Table = {}
    lines: list[Message] = []
    for value in values(path, report):
        fields = table(value)
        if "working_dir" in fields or "accumulated_usage" in fields:
            told = fields.get("conversation")
            found = tables(told) or tables(table(told).get("messages"))
            if told is not None or "id" in fields:
                made = [_told(one) for one in found or tables(fields.get("messages"))]
                yield _session(path, fields, text(fields.get("id")) or path.stem, made, 1)
            else:
                head = fields
        elif text(fields.get("role")):
            lines.append(_told(fields))
        else:
            report.skip("neither a session nor a message")
    if head or lines:
        yield _session(path, head, path.stem, lines, 2)


def _session(path: Path, fields: Table, id: str, made: list[Message], trusted: int) -> Session:
    created_s = moment(fields.get("created_at"))
    parent = text(fields.get("parent_session_id"))
    return Session(id, path, created_s, parent, fields, len(made), trusted, lambda: Kept([], made))


def _told(fields: Table) -> Message:
    return Message(
        text(fields.get("role")),
        tables(fields.get("content")),
        moment(fields.get("created")),
        table(fields.get("metadata")),
    )
