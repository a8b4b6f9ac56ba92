"""Content blocks of the messages dialect to parts: of requests and of answers."""

from collections.abc import Callable
from typing import Any

import msgspec

from reflexarc.wire.dialects.messages.words import NAME
from reflexarc.wire.dialects.shapes import Members, as_list, as_object, fault
from reflexarc.wire.json import encode_json
from reflexarc.wire.sealed import unseal
from reflexarc.wire.turns import Call, Foreign, Media, Part, Result, Text, Thinking


def parts_of(content: Any, path: str) -> list[Part]:
    """A message's content: a string, or a list of blocks. Raises `RequestError`."""
    if content is None:
        return []
    if isinstance(content, str):
        return [Text(content)]
    return [part_of(block, f"{path}[{at}]") for at, block in enumerate(as_list(content, path))]


def part_of(value: Any, path: str) -> Part:
    """One block. A type that no other dialect knows is kept whole. Raises `RequestError`."""
    block = as_object(value, path)
    kind = block.get("type")
    if not isinstance(kind, str):
        raise fault(f"{path}.type", "must be a string", kind)
    read = _READERS.get(kind)
    return Foreign(kind, block) if read is None else read(block, path)


def with_signed_calls(parts: list[Part]) -> list[Part]:
    """The parts of an assistant's turn with signatures opened that other dialects sealed in its
    thinking. Those of calls go to the calls, and the block that brought them is none."""
    kept: list[Part] = []
    signed: dict[str, tuple[str, str]] = {}
    for part in parts:
        if not isinstance(part, Thinking):
            kept.append(part)
            continue
        sealed = unseal(part.signature)
        if sealed is None:
            kept.append(part)
        elif sealed.calls:
            signed.update((call, (text, sealed.origin)) for call, text in sealed.calls.items())
        else:
            kept.append(
                Thinking(
                    part.text,
                    sealed.signature,
                    sealed.origin,
                    redacted=sealed.redacted,
                    id=sealed.id,
                    more={**part.more, **sealed.more},
                )
            )
    if not signed:
        return kept
    return [
        msgspec.structs.replace(part, signature=signed[part.id][0], origin=signed[part.id][1])
        if isinstance(part, Call) and part.id in signed
        else part
        for part in kept
    ]


def arguments_of(given: Any) -> str:
    """A call's `input` as text, members in their order. A string is taken for that text."""
    if given is None:
        return "{}"
    if isinstance(given, str):
        return given if given.strip() else "{}"
    return encode_json(given).decode()


def _text(block: dict[str, Any], path: str) -> Part:
    members = _members(block, path)
    return Text(members.needed_text("text"), members.object("cache_control"), members.rest)


def _thinking(block: dict[str, Any], path: str) -> Part:
    members = _members(block, path)
    return Thinking(
        members.text("thinking") or "",
        members.text("signature"),
        NAME,
        more=members.rest,
    )


def _redacted(block: dict[str, Any], path: str) -> Part:
    members = _members(block, path)
    return Thinking("", members.needed_text("data"), NAME, redacted=True, more=members.rest)


def _call(block: dict[str, Any], path: str) -> Part:
    members = _members(block, path)
    return Call(
        members.needed_text("id"),
        members.needed_text("name"),
        arguments_of(members.take("input")),
        cache=members.object("cache_control"),
        more=members.rest,
    )


def _result(block: dict[str, Any], path: str) -> Part:
    members = _members(block, path)
    parts: list[Text | Media | Foreign] = []
    for part in parts_of(members.take("content"), f"{path}.content"):
        if not isinstance(part, Text | Media | Foreign):
            raise fault(f"{path}.content", "may hold text, images and documents only")
        parts.append(part)
    return Result(
        members.needed_text("tool_use_id"),
        tuple(parts),
        is_error=members.flag("is_error") or False,
        cache=members.object("cache_control"),
        more=members.rest,
    )


def _image(block: dict[str, Any], path: str) -> Part:
    members = _members(block, path)
    source = members.members("source")
    found = None if source is None else _source(source)
    if found is None:
        return Foreign("image", block)
    cache = members.object("cache_control")
    return Media("image", **found, cache=cache, more=members.rest)


def _document(block: dict[str, Any], path: str) -> Part:
    members = _members(block, path)
    source = members.members("source")
    found = None if source is None else _source(source)
    if found is None:
        return Foreign("document", block)
    cache = members.object("cache_control")
    return Media("document", **found, name=members.text("title"), cache=cache, more=members.rest)


def _source(source: Members) -> dict[str, str | None] | None:
    """What a source says, in the words of `Media`; None for a source of a kind, or with members,
    that these words do not cover."""
    kind = source.text("type")
    found: dict[str, str | None]
    if kind == "base64":
        found = {"media_type": source.text("media_type"), "data": source.text("data")}
    elif kind == "text":
        found = {"media_type": source.text("media_type"), "text": source.text("data")}
    elif kind == "url":
        found = {"url": source.text("url")}
    elif kind == "file":
        found = {"file": source.text("file_id")}
    else:
        return None
    said = any(value is not None for name, value in found.items() if name != "media_type")
    return found if said and not source.rest else None


def _members(block: dict[str, Any], path: str) -> Members:
    members = Members(block, path)
    members.take("type")
    return members


_READERS: dict[str, Callable[[dict[str, Any], str], Part]] = {
    "text": _text,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
    "tool_use": _call,
    "tool_result": _result,
    "image": _image,
    "document": _document,
}
