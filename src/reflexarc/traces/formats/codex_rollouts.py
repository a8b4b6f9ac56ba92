"""Rollout files of Codex as a thread's events, whatever their version."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from reflexarc.steps.prompt import Piece
from reflexarc.traces.documents import values
from reflexarc.traces.loose import Table, amount, encoded, moment, table, tables, text
from reflexarc.traces.requests import Counts, FileReport, measured

COUNTED = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
    "total_tokens",
)
Vector = tuple[float | None, ...]
_RECORDS = frozenset(
    {
        "session_meta", "response_item", "compacted", "turn_context", "token_usage_record",
        "world_state", "event_msg", "inter_agent_communication",
        "inter_agent_communication_metadata", "retained_context", "security_risk_score",
        "realtime_item",
    }
)  # fmt: skip
_MODELS = frozenset(
    {
        "reasoning", "function_call", "custom_tool_call", "local_shell_call", "web_search_call",
        "tool_search_call", "image_generation_call",
    }
)  # fmt: skip
_CALLS = _MODELS - {"reasoning"}
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})
_WALL = re.compile(r"^Wall time: ([0-9.]+) seconds", re.MULTILINE)


class Item(msgspec.Struct, frozen=True):
    """What was said: by the model or to it. `call`: name and id of a call; `answers`: the id of
    the call that this is the result of, `own_s` its time."""

    at_s: float | None
    piece: Piece
    by_model: bool
    words: str = ""
    call: tuple[str, str] | None = None
    answers: str = ""
    own_s: float | None = None


class Counted(msgspec.Struct, frozen=True):
    """The event `token_count`: what the last request used, and all of them."""

    at_s: float | None
    last: Table
    total: Vector


class Recorded(msgspec.Struct, frozen=True):
    """A `token_usage_record`: one request."""

    at_s: float | None
    thread: str
    response: str
    usage: Table


class Turn(msgspec.Struct, frozen=True):
    at_s: float | None
    id: str
    model: str


class Compacted(msgspec.Struct, frozen=True):
    """The history was replaced by these; None where they are not told."""

    at_s: float | None
    history: tuple[Piece, ...] | None


class RolledBack(msgspec.Struct, frozen=True):
    at_s: float | None


Event = Item | Counted | Recorded | Turn | Compacted | RolledBack


class Thread(msgspec.Struct):
    """A file. `parent` is the thread that it may begin with a copy of, `root` the one whose
    subagent it is ("" for none); `copied` are threads whose beginning lines it repeats."""

    path: Path
    id: str
    parent: str = ""
    root: str = ""
    copied: tuple[str, ...] = ()
    provider: str = ""
    head: tuple[Piece, ...] = ()
    events: list[Event] = []

    @property
    def vectors(self) -> list[Vector]:
        """Of its counts, each that differs from the one before."""
        found: list[Vector] = []
        for event in self.events:
            if isinstance(event, Counted) and (not found or event.total != found[-1]):
                found.append(event.total)
        return found

    @property
    def records(self) -> bool:
        """Whether it tells requests of its own by records."""
        return any(
            isinstance(event, Recorded) and event.thread in ("", self.id) for event in self.events
        )


def counts_of(usage: Table) -> Counts:
    of = {name: measured(amount(usage.get(name))) for name in COUNTED}
    return Counts(
        prompt=of["input_tokens"],
        cache_read=of["cached_input_tokens"],
        cache_write=of["cache_write_input_tokens"],
        output=of["output_tokens"],
        reasoning=of["reasoning_output_tokens"],
    )


def thread_of(path: Path, report: FileReport) -> Thread:
    """Never raises: what cannot be read, the report says."""
    thread = Thread(path, path.name.removesuffix(".zst").removesuffix(".jsonl"))
    is_named = False
    for value in values(path, report):
        fields = table(value)
        kind, payload = text(fields.get("type")), table(fields.get("payload"))
        at_s = moment(fields.get("timestamp"))
        if "payload" not in fields and kind != "session_meta":
            # Before there was an envelope: a line of what the session is, then bare items.
            if not kind and text(fields.get("id")) and not is_named:
                _name(thread, fields)
                is_named = True
                continue
            kind, payload = "response_item", fields
        if kind == "session_meta":
            if not is_named:
                _name(thread, payload)
                is_named = True
            else:  # those of the thread it was forked from, and of that one's
                thread.copied += (text(payload.get("id")),)
            continue
        if kind not in _RECORDS:
            report.skip(f"records of type {kind[:40]!r}" if kind else "records without a type")
            continue
        thread.events.extend(_events(kind, payload, at_s))
    return thread


def _name(thread: Thread, meta: Table) -> None:
    thread.id = text(meta.get("id")) or thread.id
    spawned = table(table(table(meta.get("source")).get("subagent")).get("thread_spawn"))
    parent = text(spawned.get("parent_thread_id")) or text(meta.get("parent_thread_id"))
    thread.parent = text(meta.get("forked_from_id")) or parent
    if parent:
        thread.root = text(meta.get("session_id")) or parent
    thread.provider = text(meta.get("model_provider"))
    instructions = text(table(meta.get("base_instructions")).get("text")) or text(
        meta.get("instructions")
    )
    head = [
        Piece("tool", f"tools[{at}]", encoded(tool))
        for at, tool in enumerate(tables(meta.get("dynamic_tools")))
    ]
    if instructions:
        head.append(Piece("system", "instructions", instructions.encode(), "system", plain=True))
    thread.head = tuple(head)


def _events(kind: str, payload: Table, at_s: float | None) -> Iterator[Event]:
    if kind == "turn_context":
        yield Turn(at_s, text(payload.get("turn_id")), text(payload.get("model")))
    elif kind == "token_usage_record":
        usage = table(payload.get("usage"))
        if usage:
            thread, response = text(payload.get("thread_id")), text(payload.get("response_id"))
            yield Recorded(at_s, thread, response, usage)
    elif kind == "compacted":
        given = payload.get("replacement_history")
        history = tuple(_piece(one) for one in tables(given))
        yield Compacted(at_s, None if given is None else history)
    elif kind == "response_item":
        yield from _item(payload, at_s)
    elif kind == "event_msg":
        yield from _message(payload, at_s)


def _message(payload: Table, at_s: float | None) -> Iterator[Event]:
    kind = text(payload.get("type"))
    if kind == "token_count":
        info = table(payload.get("info"))
        if info:  # else the limits of an account alone were told anew
            total = table(info.get("total_token_usage"))
            vector = tuple(amount(total.get(name)) for name in COUNTED)
            yield Counted(at_s, table(info.get("last_token_usage")), vector)
    elif kind == "task_started":
        yield Turn(at_s, text(payload.get("turn_id")), "")
    elif kind == "thread_rolled_back":
        yield RolledBack(at_s)


def _item(payload: Table, at_s: float | None) -> Iterator[Event]:
    kind = text(payload.get("type"))
    if kind in ("compaction", "context_compaction"):
        yield Compacted(at_s, None)
        return
    piece = _piece(payload)
    by_model = kind in _MODELS or (kind == "message" and piece.role == "assistant")
    words = ""
    if kind == "message" and by_model:
        words = "\n".join(text(part.get("text")) for part in tables(payload.get("content")))
    call = None
    if kind in _CALLS:
        identity = text(payload.get("call_id")) or text(payload.get("id"))
        call = text(payload.get("name")) or kind.removesuffix("_call"), identity
    answers, own_s = "", None
    if kind in _OUTPUTS:
        answers = text(payload.get("call_id"))
        output = payload.get("output")
        shown = output if isinstance(output, str) else text(table(output).get("content"))
        found = _WALL.search(shown[:500])
        own_s = amount(found[1]) if found else None
    yield Item(at_s, piece, by_model, words, call, answers, own_s)


def _piece(payload: Table) -> Piece:
    role = text(payload.get("role"))
    return Piece("message", "input", encoded(payload), role)
