"""Whole answers of the messages dialect, read and written."""

from typing import Any, cast

from reflexarc.steps.errors import MalformedError, RequestError
from reflexarc.wire.assembling import BrokenOffError
from reflexarc.wire.dialects.messages.blocks_in import part_of
from reflexarc.wire.dialects.messages.blocks_out import input_of, lose_rest
from reflexarc.wire.dialects.messages.faults import fault_in
from reflexarc.wire.dialects.messages.words import NAME, STOP_WORDS, STOPS, TIERS_USED
from reflexarc.wire.dialects.shapes import Members
from reflexarc.wire.losses import Losses
from reflexarc.wire.replies import Reply, ReplyPart, Stop, stop_of
from reflexarc.wire.sealed import Sealed, seal
from reflexarc.wire.turns import Call, Foreign, Media, Refusal, Result, Text, Thinking
from reflexarc.wire.usage import Usage, usage_from_messages, usage_to_messages

_COUNTED = frozenset(
    (
        "input_tokens",
        "output_tokens",
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
        "cache_creation",
        "output_tokens_details",
        "service_tier",
    )
)
_TIER_WORDS = {word: name for name, word in TIERS_USED.items()}


def read_reply(value: dict[str, Any]) -> Reply:
    """Raises `MalformedError`; `BrokenOffError` where the body tells of an error."""
    if value.get("type") == "error" or "error" in value:
        fault = fault_in(value)
        if fault is not None:
            raise BrokenOffError(fault)
    try:
        return _reply(value)
    except RequestError as error:
        raise MalformedError(f"the upstream's answer does not fit: {error}") from error


def _reply(value: dict[str, Any]) -> Reply:
    members = Members(value, "")
    for known in ("type", "role"):
        members.take(known)
    parts: list[ReplyPart] = []
    for at, block in enumerate(members.list("content") or []):
        part = part_of(block, f"content[{at}]")
        # A result is the client's to give: whatever this is, it is kept as it came.
        parts.append(Foreign("tool_result", block) if isinstance(part, Result) else part)
    usage = members.take("usage")
    tier, usage_more = usage_rest(usage)
    word = members.text("stop_reason")
    stop = stop_read(word, parts)
    more: dict[str, Any] = {}
    if word is not None and STOP_WORDS[stop] != word and STOPS.get(word, "end") == stop:
        more["stop_reason"] = word
    if usage_more:
        more["usage"] = usage_more
    return Reply(
        id=members.text("id") or "",
        model=members.text("model") or "",
        parts=tuple(parts),
        stop=stop,
        stop_sequence=members.text("stop_sequence"),
        usage=usage_from_messages(usage),
        service_tier=tier,
        more={**members.rest, **more},
        origin=NAME,
    )


def stop_read(word: str | None, parts: list[ReplyPart]) -> Stop:
    """A word that is not known is a provider's own reason, and an end."""
    return stop_of("truncated" if word is None else STOPS.get(word, "end"), parts)


def usage_rest(usage: Any) -> tuple[str | None, dict[str, Any]]:
    """The tier that usage tells of, and what else it counts that only this dialect knows."""
    if not isinstance(usage, dict):
        return None, {}
    fields = cast("dict[str, Any]", usage)
    tier = fields.get("service_tier")
    rest = {k: v for k, v in fields.items() if k not in _COUNTED and v is not None}
    return (TIERS_USED.get(tier, tier) if isinstance(tier, str) else None), rest


def write_reply(reply: Reply, losses: Losses) -> dict[str, Any]:
    own = reply.origin == NAME
    body: dict[str, Any] = {
        "id": reply.id,
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": _blocks(reply, losses, own),
        "stop_reason": STOP_WORDS[stop_of(reply.stop, reply.parts)],
        "stop_sequence": reply.stop_sequence,
        "usage": usage_written(reply.usage, reply.service_tier),
    }
    more = dict(reply.more)
    if own:
        body["usage"].update(more.pop("usage", {}))
        body.update(more)
    else:
        lose_rest(losses, more, "response")
    return body


def usage_written(usage: Usage | None, tier: str | None) -> dict[str, Any]:
    """The dialect demands numbers: zeros where nothing was told."""
    if usage is None:
        body: dict[str, Any] = {"input_tokens": 0, "output_tokens": 0}
    else:
        body = usage_to_messages(usage)
    if tier in _TIER_WORDS:
        body["service_tier"] = _TIER_WORDS[tier]
    return body


def _blocks(reply: Reply, losses: Losses, own: bool) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    signed = {
        part.id: (part.signature, part.origin) for part in reply.calls if part.signature is not None
    }
    for part in reply.parts:
        if isinstance(part, Call):
            if part.id in signed:
                blocks.extend(sealed_calls(signed))
                signed = {}
            blocks.append(call_block(part, input_of(part, losses), losses, own))
        else:
            blocks.extend(_block(part, losses, own))
    return blocks


def _block(part: ReplyPart, losses: Losses, own: bool) -> list[dict[str, Any]]:
    if isinstance(part, Text | Refusal):
        return [text_block(part, part.text, losses, own)] if part.text else []
    if isinstance(part, Thinking):
        if part.redacted:
            return [redacted_block(part)]
        block: dict[str, Any] = {"type": "thinking", "thinking": part.text}
        signature = signature_out(part, part.signature, part.origin)
        if signature is not None:
            block["signature"] = signature
        return [{**block, **part.more} if part.origin == NAME else block]
    if isinstance(part, Foreign):
        if own:
            return [part.value]
        losses.lose(f"content.{part.what}")
    elif isinstance(part, Media):
        losses.lose(f"content.{part.kind}")
    return []


def text_block(part: Text | Refusal, text: str, losses: Losses, own: bool) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "text", "text": text}
    if isinstance(part, Text):
        if own:
            return {**block, **part.more}
        lose_rest(losses, part.more, "content")
    return block


def call_block(part: Call, arguments: dict[str, Any], losses: Losses, own: bool) -> dict[str, Any]:
    block = {"type": "tool_use", "id": part.id, "name": part.name, "input": arguments}
    if own:
        return {**block, **part.more}
    lose_rest(losses, part.more, "tool_calls")
    return block


def redacted_block(part: Thinking) -> dict[str, Any]:
    data = signature_out(part, part.signature, part.origin)
    block = {"type": "redacted_thinking", "data": data}
    return {**block, **part.more} if part.origin == NAME else block


def signature_out(part: Thinking, signature: str | None, origin: str) -> str | None:
    """What stands where this dialect's signature does. Another's, and thinking that nobody
    signed, come back in an envelope as what they were."""
    if origin == NAME:
        return signature
    return seal(Sealed(origin, signature, part.redacted, id=part.id, more=part.more))


def sealed_calls(signed: dict[str, tuple[str, str]]) -> list[dict[str, Any]]:
    """Blocks that carry calls' signatures, one for each dialect they are for."""
    by_origin: dict[str, dict[str, str]] = {}
    for identity, (signature, origin) in signed.items():
        by_origin.setdefault(origin, {})[identity] = signature
    return [
        {"type": "thinking", "thinking": "", "signature": seal(Sealed(origin, calls=calls))}
        for origin, calls in by_origin.items()
    ]
