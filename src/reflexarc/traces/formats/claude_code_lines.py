"""Lines of Claude Code transcripts, as far as requests are told by them. Every field is optional:
the format is not published, and changes between versions."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from reflexarc.steps.prompt import Piece
from reflexarc.traces.documents import values
from reflexarc.traces.loose import Table, amount, encoded, moment, table, tables, text
from reflexarc.traces.requests import FileReport

_BOOKKEEPING = frozenset(
    {
        "summary", "ai-title", "custom-title", "agent-name", "agent-setting", "last-prompt", "mode",
        "permission-mode", "file-history-snapshot", "queue-operation", "progress",
    }
)  # fmt: skip
_CHAINED = frozenset({"user", "assistant", "system", "attachment"})
SYNTHETIC = "<synthetic>"


class Result(msgspec.Struct, frozen=True):
    """That a tool answered: when, its own time, whether it failed."""

    at_s: float | None
    own_s: float | None
    failed: bool


class Line(msgspec.Struct):
    """A line of the chain. `order` counts through all files, the oldest first. `parent` is the
    line before it, "" at a root. `group` is the response that an assistant's line is a part of.
    `answers` are the calls that a user's line brings results of."""

    file: str
    order: int
    kind: str
    uuid: str
    parent: str
    at_s: float | None
    session: str
    agent: str
    sidechain: bool
    copied: bool
    piece: Piece | None = None
    group: str = ""
    model: str = ""
    usage: Table = {}
    stopped: bool = False
    blocks: list[Table] = []
    failed: bool = False
    cost_usd: float | None = None
    answers: dict[str, Result] = {}
    is_boundary: bool = False


def lines_of(path: Path, report: FileReport) -> Iterator[Line]:
    """In the order in which they stand; their `order` is still to be given."""
    for value in values(path, report):
        fields = table(value)
        kind = text(fields.get("type"))
        if kind == "progress":
            fields, kind = _embedded(fields), "assistant"
            if not fields:
                continue
        if kind in _CHAINED:
            yield _line(path, kind, fields)
        elif kind not in _BOOKKEEPING:
            report.skip(f"lines of type {kind[:40]!r}" if kind else "lines without a type")


def _embedded(progress: Table) -> Table:
    """An assistant's line that a progress line brings a copy of; none where it does not."""
    data = table(progress.get("data"))
    inner = table(data.get("message"))
    if not table(table(inner.get("message")).get("usage")):
        return {}
    return {
        "sessionId": progress.get("sessionId"),
        "agentId": data.get("agentId"),
        "timestamp": progress.get("timestamp"),
        **inner,
        "isSidechain": True,
    }


def _line(path: Path, kind: str, fields: Table) -> Line:
    message = table(fields.get("message"))
    agent = text(fields.get("agentId"))
    if not agent and path.stem.startswith("agent-"):
        agent = path.stem.removeprefix("agent-")
    if not agent and fields.get("isSidechain") is True:
        agent = "sidechain"
    line = Line(
        file=str(path),
        order=0,
        kind=kind,
        uuid=text(fields.get("uuid")),
        parent=text(fields.get("parentUuid")),
        at_s=moment(fields.get("timestamp")),
        session=text(fields.get("sessionId")) or path.stem,
        agent=agent,
        sidechain=fields.get("isSidechain") is True,
        copied=fields.get("sessionKind") == "bg" or bool(fields.get("forkedFrom")),
        is_boundary=kind == "system" and fields.get("subtype") == "compact_boundary",
    )
    if message:
        role = text(message.get("role")) or kind
        sent = {"role": role, "content": message.get("content")}
        line.piece = Piece("message", "messages", encoded(sent), role)
    if kind == "assistant":
        _answer(line, fields, message)
    elif kind == "user":
        _results(line, fields, message)
    return line


def _answer(line: Line, fields: Table, message: Table) -> None:
    line.model = text(message.get("model"))
    line.usage = table(message.get("usage"))
    line.stopped = message.get("stop_reason") is not None
    line.blocks = tables(message.get("content"))
    line.failed = line.model == SYNTHETIC or fields.get("isApiErrorMessage") is True
    line.cost_usd = amount(fields.get("costUSD"))
    line.group = (
        text(message.get("id"))
        or text(fields.get("requestId"))
        or line.uuid
        or f"{line.file}:{line.at_s}:{text(fields.get('parentUuid'))}"
    )


def _results(line: Line, fields: Table, message: Table) -> None:
    told = table(fields.get("toolUseResult"))
    own_s: float | None = None
    for name, unit in (("durationMs", 1e3), ("durationSeconds", 1), ("totalDurationMs", 1e3)):
        found = amount(told.get(name))
        if own_s is None and found is not None:
            own_s = found / unit
    for block in tables(message.get("content")):
        called = text(block.get("tool_use_id"))
        if called:
            failed = block.get("is_error") is True
            line.answers[called] = Result(line.at_s, own_s, failed)
