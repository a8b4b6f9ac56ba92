"""Chat completions, read whole: the first choice."""

import secrets
from typing import Any, cast

from reflexarc.steps.errors import MalformedError, RequestError
from reflexarc.wire.assembling import BrokenOffError
from reflexarc.wire.dialects.chat.messages_in import read_message
from reflexarc.wire.dialects.chat.words import stop_from
from reflexarc.wire.dialects.openai_faults import fault_of
from reflexarc.wire.replies import Reply, ReplyPart, stop_of
from reflexarc.wire.turns import Call, Result
from reflexarc.wire.usage import usage_from_chat


def read_reply(value: dict[str, Any]) -> Reply:
    if value.get("error") is not None:
        raise BrokenOffError(fault_of(value))
    choice = first_choice(value)
    if choice is None or not isinstance(choice.get("message"), dict):
        raise MalformedError("the answer holds no choice with a message")
    message = {**cast("dict[str, Any]", choice["message"]), "role": "assistant"}
    try:
        (turn,) = read_message(message, "choices[0].message")
    except RequestError as error:
        raise MalformedError(f"the answer is not a chat completion: {error}") from error
    identity = text_of(value.get("id"))
    parts: list[ReplyPart] = []
    for part in turn.parts:
        if isinstance(part, Call) and not part.id:
            part = Call(made_id(identity, len(parts)), part.name, part.arguments, part.kind)
        if not isinstance(part, Result):
            parts.append(part)
    return Reply(
        id=identity,
        model=text_of(value.get("model")),
        parts=tuple(parts),
        stop=stop_of(stop_from(text_of(choice.get("finish_reason"))), parts),
        usage=usage_in(value),
        created_s=seconds(value.get("created")),
        service_tier=text_of(value.get("service_tier")) or None,
        more=turn.more,
        origin="chat",
    )


def first_choice(body: dict[str, Any]) -> dict[str, Any] | None:
    """None where there is none: frames of filters and of usage have no choices."""
    choices = body.get("choices")
    for choice in cast("list[Any]", choices) if isinstance(choices, list) else ():
        if isinstance(choice, dict):
            fields = cast("dict[str, Any]", choice)
            if fields.get("index", 0) in (0, None):
                return fields
    return None


def usage_in(body: dict[str, Any]) -> Any:
    usage = usage_from_chat(body.get("usage"))
    if usage is None and isinstance(groq := body.get("x_groq"), dict):
        usage = usage_from_chat(cast("dict[str, Any]", groq).get("usage"))
    return usage


def made_id(reply: str, at: int) -> str:
    """For a call whose provider gave it no id. The same reply gets the same; one that has no id
    either gets what no other turn of its conversation will have."""
    seed = "".join(c for c in reply if c.isascii() and c.isalnum())[-20:] or secrets.token_hex(8)
    return f"call_{seed}_{at}"


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else ""


def seconds(value: Any) -> int:
    """Unix time as given, 0 where it is none."""
    fits = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**53
    return int(value) if fits else 0
