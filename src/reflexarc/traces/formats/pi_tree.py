"""The tree of a Pi session: each entry hangs on the one before it, branches and compactions too.

What an answer was asked with is the way from it up to the root, or to the last compaction and what
that one kept.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from reflexarc.steps.prompt import Piece, Prompt
from reflexarc.traces.formats.visible import Prompts, message
from reflexarc.traces.loose import Table, moment, table, text
from reflexarc.traces.requests import FileReport, Start

_SENT = {"user": "user", "toolResult": "tool", "assistant": "assistant", "bashExecution": "user"}
_INJECTED = frozenset({"custom", "hookMessage", "branchSummary", "compactionSummary"})
_SILENT = frozenset({"thinking_level_change", "label", "session_info", "custom", "title"})


class Node(msgspec.Struct, eq=False):
    """One message on the way. `keeps`: of a compaction, the first that it kept from before."""

    parent: "Node | None"
    piece: Piece | None
    at_s: float | None
    is_answer: bool = False
    is_compaction: bool = False
    keeps: "Node | None" = None


class Entry(msgspec.Struct, frozen=True):
    """An answer, or a request made on the way (a compaction that tells its usage). `message` has
    its model, usage and content."""

    id: str
    message: Table
    at_s: float | None
    node: Node
    before: Node | None
    model: str
    provider: str
    aside: str = ""


class Session(msgspec.Struct):
    """`results`: when each call's result came, and whether it failed. `compactions`: how many did
    not tell what they cost."""

    path: Path
    id: str
    began_s: float
    entries: list[Entry]
    results: dict[str, tuple[float | None, bool]]
    compactions: int = 0


def session_of(path: Path, values: Iterable[Any], report: FileReport) -> Session:
    """What a file holds, in the order in which it was written."""
    session = Session(path, path.stem, float("inf"), [], {})
    nodes: dict[str, Node | None] = {}
    last = ""
    model, provider = "", ""
    for number, value in enumerate(values):
        fields = table(value)
        kind = text(fields.get("type"))
        if kind == "session":
            began = moment(fields.get("timestamp"))
            session.id = text(fields.get("id")) or session.id
            session.began_s = float("inf") if began is None else began
            continue
        id = text(fields.get("id")) or f"#{number}"
        # before version 2 each entry hung on the one above it
        before = nodes.get(text(fields.get("parentId")) if "parentId" in fields else last)
        last = id
        nodes[id] = before
        if kind == "model_change":
            provider = text(fields.get("provider")) or provider
            model = text(fields.get("modelId")) or text(fields.get("model")) or model
        elif kind in ("message", "custom_message", "branch_summary", "compaction"):
            node = _node(kind, fields, before, nodes, number)
            nodes[id] = node
            told = table(fields.get("message"))
            if kind == "message" and told.get("role") == "toolResult":
                ended_s = moment(told.get("timestamp")) or node.at_s
                session.results[text(told.get("toolCallId"))] = ended_s, bool(told.get("isError"))
            elif node.is_answer:
                model = text(told.get("model")) or model
                provider = text(told.get("provider")) or provider
                entry = Entry(id, told, node.at_s, node, before, model, provider)
                session.entries.append(entry)
            elif table(fields.get("usage")):
                aside = "compaction" if node.is_compaction else "summary"
                entry = Entry(id, fields, node.at_s, node, before, model, provider, aside)
                session.entries.append(entry)
            elif node.is_compaction:
                session.compactions += 1
        elif kind not in _SILENT:
            report.skip(f"lines of type {kind[:40]!r}" if kind else "lines without a type")
    return session


def _node(
    kind: str, fields: Table, before: Node | None, nodes: dict[str, Node | None], place: int
) -> Node:
    at_s = moment(fields.get("timestamp"))
    if kind == "compaction":
        keeps = nodes.get(text(fields.get("firstKeptEntryId")))
        piece = message("user", fields.get("summary"), place)
        return Node(before, piece, at_s, is_compaction=True, keeps=keeps)
    if kind != "message":
        content = fields.get("summary") if kind == "branch_summary" else fields.get("content")
        return Node(before, message("user", content, place), at_s)
    told = table(fields.get("message"))
    role = text(told.get("role"))
    if role == "assistant":
        # what failed is not sent again
        stopped = text(told.get("stopReason")) in ("error", "aborted")
        piece = None if stopped else message("assistant", told.get("content"), place)
        return Node(before, piece, at_s, is_answer=True)
    if told.get("excludeFromContext") is True or role not in {*_SENT, *_INJECTED}:
        return Node(before, None, at_s)
    content: object = told.get("content")
    if role == "toolResult":
        content = {"id": told.get("toolCallId"), "content": content}
    elif role == "bashExecution":
        content = {"command": told.get("command"), "output": told.get("output")}
    return Node(before, message(_SENT.get(role, "user"), content, place), at_s)


class Way(msgspec.Struct, frozen=True):
    """What an answer was asked with, when the last of it was there, and whether with it a new chain
    begins: `last` was the answer before it in this session."""

    prompt: Prompt | None
    asked_s: float | None
    starts: Start


def way_to(before: Node | None, last: Node | None, prompts: Prompts) -> Way:
    """Walks up from the node that an answer hangs on."""
    if prompts.cut:
        return Way(None, None, "")
    kept: list[Piece] = []
    asked_s: float | None = None
    has_last = compacted = answered = False
    summary: Piece | None = None
    until: Node | None = None
    at = before
    walked = 0
    while at is not None:
        walked += 1
        has_last = has_last or at is last
        answered = answered or at.is_answer
        if asked_s is None and not answered:
            asked_s = at.at_s
        if at.is_compaction and summary is None:
            summary, until = at.piece, at.keeps
            compacted = not has_last
            if until is None:
                break
        elif at.piece is not None and not at.is_compaction:
            kept.append(at.piece)
        if until is not None and at is until:
            break
        at = at.parent
    pieces = [*([summary] if summary is not None else []), *reversed(kept)]
    starts: Start = ""
    if last is None:
        starts = "session"
    elif compacted:
        starts = "compaction"
    elif not has_last and summary is None:
        starts = "rewind"
    return Way(prompts.of(pieces, walked=walked), asked_s, starts)
