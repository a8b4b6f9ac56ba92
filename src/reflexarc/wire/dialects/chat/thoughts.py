"""Thinking in chat messages, which the API itself has no place for, as its providers carry it:
`reasoning_content`, `reasoning`, `reasoning_details`, `thinking_blocks`.

What is signed for another dialect goes out as one `reasoning.encrypted` item of
`reasoning_details`, sealed, its text within: a client that replays the list brings it back whole.
"""

from typing import Any, cast

import msgspec

from reflexarc.wire.dialects.shapes import Members
from reflexarc.wire.sealed import Sealed, seal, unseal
from reflexarc.wire.turns import Thinking

ORIGIN = "chat"


def thoughts_of(message: Members) -> tuple[list[Thinking], list[Sealed]]:
    """Takes the thinking out of a message of a history. The second list: seals that hold the
    signatures of calls."""
    text = ""
    for name in ("reasoning_content", "reasoning"):
        value = message.take(name)
        if isinstance(value, str):
            text = text or value
    details = message.take("reasoning_details")
    listed = cast("list[Any]", details) if isinstance(details, list) else []
    thoughts: list[Thinking] = []
    seals: list[Sealed] = []
    own: list[Any] = []
    for item in listed:
        sealed = unseal(_data(item))
        if sealed is None:
            own.append(item)
        elif sealed.calls:
            seals.append(sealed)
        else:
            thoughts.append(opened(sealed))
    if own:
        thoughts.append(Thinking(text, signature_of(own), ORIGIN))
    elif text and not thoughts:
        thoughts.append(Thinking(text, None, ORIGIN))
    blocks = message.take("thinking_blocks")
    if isinstance(blocks, list) and not thoughts:
        thoughts.extend(_blocks(cast("list[Any]", blocks)))
    return thoughts, seals


def opened(sealed: Sealed) -> Thinking:
    """The thinking that was sealed, its text within."""
    text = sealed.more.get("text")
    more = {name: value for name, value in sealed.more.items() if name != "text"}
    return Thinking(
        text if isinstance(text, str) else "",
        sealed.signature,
        sealed.origin,
        sealed.redacted,
        sealed.id,
        more,
    )


def sealed_item(thinking: Thinking) -> dict[str, Any]:
    """Thinking of another dialect as an item of `reasoning_details`."""
    return _item(
        Sealed(
            thinking.origin,
            thinking.signature,
            thinking.redacted,
            id=thinking.id,
            more={**thinking.more, "text": thinking.text},
        )
    )


def sealed_calls(origin: str, signatures: dict[str, str]) -> dict[str, Any]:
    """Signatures of calls, by the calls' ids, as such an item."""
    return _item(Sealed(origin, calls=signatures))


def signature_of(details: list[Any]) -> str:
    """A provider's own `reasoning_details` as one text, to come back to it as they are."""
    return msgspec.json.encode(details).decode()


def details_of(signature: str) -> list[Any]:
    """And back."""
    try:
        value = msgspec.json.decode(signature)
    except msgspec.DecodeError:
        return []
    return cast("list[Any]", value) if isinstance(value, list) else []


def _item(sealed: Sealed) -> dict[str, Any]:
    return {"type": "reasoning.encrypted", "format": "reflexarc", "data": seal(sealed)}


def _data(item: Any) -> str | None:
    data = cast("dict[str, Any]", item).get("data") if isinstance(item, dict) else None
    return data if isinstance(data, str) else None


def _blocks(blocks: list[Any]) -> list[Thinking]:
    """Anthropic's blocks, as some gateways hand them to chat clients."""
    found: list[Thinking] = []
    for block in blocks:
        fields = cast("dict[str, Any]", block) if isinstance(block, dict) else {}
        text, signature = fields.get("thinking"), fields.get("signature")
        data = fields.get("data")
        if fields.get("type") == "thinking" and isinstance(text, str):
            signed = signature if isinstance(signature, str) else None
            found.append(Thinking(text, signed, "messages"))
        elif fields.get("type") == "redacted_thinking" and isinstance(data, str):
            found.append(Thinking("", data, "messages", redacted=True))
    return found
