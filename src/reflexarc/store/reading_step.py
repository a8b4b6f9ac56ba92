"""Takes a step apart for the store: what was asked, what was answered, what it used. Bodies may
be anything; what cannot be read is left out."""

import contextlib
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from reflexarc.steps import Message
from reflexarc.steps.errors import InputError, MalformedError
from reflexarc.store.lineage import Conversation
from reflexarc.store.records import StepEnded
from reflexarc.store.usage import Used, used_of
from reflexarc.wire.answers import Answer, answer_from_body
from reflexarc.wire.converting import TurnMemory
from reflexarc.wire.dialect import Dialect, Head, Where
from reflexarc.wire.dialects import dialect
from reflexarc.wire.encodings import plain_bytes
from reflexarc.wire.growing import Bodies, Grown
from reflexarc.wire.ids import IdMap, IdRule
from reflexarc.wire.json import MAX_DEPTH, decode_strict, encode_json, split_list
from reflexarc.wire.losses import Losses
from reflexarc.wire.sent import BETWEEN, Listed, Pieces, Sent
from reflexarc.wire.turns import Ask, joined

_MAX_NAME = 200


class Read(msgspec.Struct, frozen=True):
    """`answer` is None where there was none to read, or not a whole one; `content` is it as a chat
    message's JSON."""

    conversation: Conversation
    tools: bytes
    model: str
    answer: Message | None
    content: str
    used: Used


class Memory:
    """What is remembered of requests: their bodies, so that of the next only what is new is read,
    and long members of other dialects than chat."""

    def __init__(self, max_bytes: int) -> None:
        self.bodies = Bodies(max_bytes=max_bytes)
        self.values = TurnMemory(max_bytes)


def read_step(step: StepEnded, request: bytes, answer: bytes, memory: Memory) -> Read | None:
    """None where the request is none that a conversation could be read from."""
    try:
        asked = _asked(step, request, memory)
    except InputError:
        return None
    if asked is None:
        return None
    turn: Answer | None = None
    if 200 <= step.status < 300:
        with contextlib.suppress(InputError):
            plain = plain_bytes(answer, step.content_encoding)
            turn = answer_from_body(plain, step.content_type, step.answer_dialect)
    whole = turn if turn is not None and turn.complete and step.complete else None
    return Read(
        conversation=asked.conversation,
        tools=asked.tools,
        model=asked.model[:_MAX_NAME],
        answer=Message("assistant", whole.content, whole.calls) if whole is not None else None,
        content=msgspec.json.encode(whole.as_chat()).decode() if whole is not None else "",
        used=used_of(step, turn, len(request), _generated_bytes(turn)),
    )


class _Asked(msgspec.Struct, frozen=True):
    conversation: Conversation
    tools: bytes
    model: str


def _asked(step: StepEnded, request: bytes, memory: Memory) -> _Asked | None:
    spoken = dialect(step.dialect)
    owner = f"{step.tenant} {step.route} {spoken.name}".encode()
    grown = memory.bodies.read(owner, spoken.conversation, request)
    members = grown.members
    if step.dialect == "chat":
        pieces = _pieces(grown, spoken, b"")
        model: Any = ""
        with contextlib.suppress(msgspec.MsgspecError, KeyError):
            model = msgspec.json.decode(members["model"])
        tools = bytes(members.get("tools", b""))
        model = model if isinstance(model, str) else ""
        return _Asked(_Chat(pieces), tools, model) if len(pieces) else None
    values = {
        name: memory.values.value(name, bytes(raw), MAX_DEPTH)
        for name, raw in members.items()
        if name != spoken.conversation
    }
    head = spoken.read_head(values, Where(step.model))
    # The store speaks chat: what was asked in another dialect is kept as chat would have it, its
    # ids as they were. What chat cannot say System 1 would not read either.
    body = _as_chat(Ask(spoken.name, head.settings, (), head.tools))
    tools = encode_json(body["tools"]) if "tools" in body else b""
    pieces = _pieces(grown, spoken, encode_json(head.turns) if head.turns else b"")
    if not len(pieces):
        return None
    return _Asked(_Other(pieces, spoken, head), tools, head.settings.model)


def _pieces(grown: Grown, spoken: Dialect, first: bytes) -> Pieces:
    if grown.listed:
        return Sent(grown, spoken.name, first)
    raw = grown.members.get(spoken.conversation)
    listed = split_list(raw, spoken.conversation) if grown.crowded and raw is not None else []
    whole = listed or ([raw] if raw is not None else [])
    if spoken.name == "chat" and raw is not None and not grown.crowded:
        raise MalformedError(f"{spoken.conversation} is not a JSON list")
    return Listed([first, *whole] if first else whole, spoken.name.encode())


class _Chat:
    def __init__(self, pieces: Pieces) -> None:
        self.pieces = pieces

    def messages(self, at: int) -> Sequence[bytes]:
        return (self.pieces[at],)


class _Other:
    """Of another dialect: its instructions are the first piece, where they came beside the
    conversation."""

    def __init__(self, pieces: Pieces, spoken: Dialect, head: Head) -> None:
        self.pieces = pieces
        self._spoken = spoken
        self._head = head

    def messages(self, at: int) -> Sequence[bytes]:
        turns = list(self._head.turns)
        if at or not turns:
            path = f"{self._spoken.conversation}[{at}]"
            turns = [
                turn
                for raw in self.pieces[at].split(BETWEEN)
                for turn in self._spoken.read_message(decode_strict(raw, path), path)
            ]
        ask = Ask(self._spoken.name, self._head.settings, joined(turns))
        return [encode_json(message) for message in _as_chat(ask)["messages"]]


def _as_chat(ask: Ask) -> dict[str, Any]:
    return dialect("chat").write_ask(ask, Losses("chat"), IdMap(_ANY_ID))


_ANY_ID = IdRule(re.compile(r".*", re.DOTALL), "", 24)


def _generated_bytes(turn: Answer | None) -> int:
    if turn is None:
        return 0
    return len(turn.content.encode()) + sum(len(c.name) + len(c.raw) for c in turn.calls)
