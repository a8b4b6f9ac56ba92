"""Takes a step apart for the store: what was asked, what was answered, what it used. Bodies may
be anything; what cannot be read is left out."""

import contextlib
from typing import Any

import msgspec

from reflexarc.steps import Message
from reflexarc.steps.errors import InputError, MalformedError
from reflexarc.store.records import StepEnded
from reflexarc.store.usage import Usage, usage_of
from reflexarc.wire.answers import Answer, answer_from_body
from reflexarc.wire.chat_answer import estimated_tokens
from reflexarc.wire.encodings import plain_bytes
from reflexarc.wire.json import split_list, split_object

_MAX_NAME = 200


class Read(msgspec.Struct, frozen=True):
    """`answer` is None where there was none to read, or not a whole one; `content` is it as a chat
    message's JSON."""

    messages: list[msgspec.Raw]
    tools: bytes
    model: str
    answer: Message | None
    content: str
    usage: Usage


def read_step(step: StepEnded, request: bytes, answer: bytes) -> Read | None:
    """None where the request is none that a conversation could be read from."""
    try:
        members = split_object(request)
        messages = split_list(members.get("messages", msgspec.Raw(b"[]")), "messages")
    except InputError:
        return None
    if not messages:
        return None
    model: Any = ""
    with contextlib.suppress(msgspec.MsgspecError, KeyError):
        model = msgspec.json.decode(members["model"])
    plain = b""
    turn: Answer | None = None
    if 200 <= step.status < 300:
        with contextlib.suppress(MalformedError):
            plain = plain_bytes(answer, step.content_encoding)
            turn = answer_from_body(plain, step.content_type)
    generated = _generated_bytes(turn)
    if step.decided_by == "system1":
        usage = Usage(estimated_tokens(len(request)), 0, 0, True)
    elif 200 <= step.status < 300:
        usage = usage_of(plain, step.content_type, len(request), generated)
    else:
        usage = Usage(0, 0, 0, True)
    whole = turn if turn is not None and turn.complete and step.complete else None
    return Read(
        messages=messages,
        tools=bytes(members.get("tools", b"")),
        model=model[:_MAX_NAME] if isinstance(model, str) else "",
        answer=Message("assistant", whole.content, whole.calls) if whole is not None else None,
        content=msgspec.json.encode(whole.as_chat()).decode() if whole is not None else "",
        usage=usage,
    )


def _generated_bytes(turn: Answer | None) -> int:
    if turn is None:
        return 0
    return len(turn.content.encode()) + sum(len(c.name) + len(c.raw) for c in turn.calls)
