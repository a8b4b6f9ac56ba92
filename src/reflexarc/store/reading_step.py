"""Takes a step apart for the store: what was asked, what was answered, what it used. Bodies may
be anything; what cannot be read is left out."""

import contextlib
import re
from typing import Any

import msgspec

from reflexarc.steps import Message
from reflexarc.steps.errors import InputError
from reflexarc.store.records import StepEnded
from reflexarc.store.usage import Used, used_of
from reflexarc.wire.answers import Answer, answer_from_body
from reflexarc.wire.converting import TurnMemory, read_ask
from reflexarc.wire.dialect import Where
from reflexarc.wire.dialects import dialect
from reflexarc.wire.encodings import plain_bytes
from reflexarc.wire.ids import IdMap, IdRule
from reflexarc.wire.json import encode_json, split_list, split_object
from reflexarc.wire.losses import Losses

_MAX_NAME = 200


class Read(msgspec.Struct, frozen=True):
    """`answer` is None where there was none to read, or not a whole one; `content` is it as a chat
    message's JSON."""

    messages: list[msgspec.Raw]
    tools: bytes
    model: str
    answer: Message | None
    content: str
    used: Used


def read_step(step: StepEnded, request: bytes, answer: bytes, memory: TurnMemory) -> Read | None:
    """None where the request is none that a conversation could be read from. `memory` remembers
    what earlier requests of other dialects than chat held."""
    try:
        asked = _chat(request) if step.dialect == "chat" else _other(step, request, memory)
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
        messages=asked.messages,
        tools=asked.tools,
        model=asked.model[:_MAX_NAME],
        answer=Message("assistant", whole.content, whole.calls) if whole is not None else None,
        content=msgspec.json.encode(whole.as_chat()).decode() if whole is not None else "",
        used=used_of(step, turn, len(request), _generated_bytes(turn)),
    )


class _Asked(msgspec.Struct, frozen=True):
    messages: list[msgspec.Raw]
    tools: bytes
    model: str


def _chat(request: bytes) -> _Asked | None:
    members = split_object(request)
    messages = split_list(members.get("messages", msgspec.Raw(b"[]")), "messages")
    model: Any = ""
    with contextlib.suppress(msgspec.MsgspecError, KeyError):
        model = msgspec.json.decode(members["model"])
    if not messages:
        return None
    tools = bytes(members.get("tools", b""))
    return _Asked(messages, tools, model if isinstance(model, str) else "")


def _other(step: StepEnded, request: bytes, memory: TurnMemory) -> _Asked | None:
    """The store speaks chat: what was asked in another dialect is kept as chat would have it, its
    ids as they were. What chat cannot say System 1 would not read either."""
    ask = read_ask(dialect(step.dialect), request, Where(step.model), memory)
    body = dialect("chat").write_ask(ask, Losses("chat"), IdMap(_ANY_ID))
    messages = [msgspec.Raw(encode_json(message)) for message in body["messages"]]
    if not messages:
        return None
    tools = encode_json(body["tools"]) if "tools" in body else b""
    return _Asked(messages, tools, ask.settings.model)


_ANY_ID = IdRule(re.compile(r".*", re.DOTALL), "", 24)


def _generated_bytes(turn: Answer | None) -> int:
    if turn is None:
        return 0
    return len(turn.content.encode()) + sum(len(c.name) + len(c.raw) for c in turn.calls)
