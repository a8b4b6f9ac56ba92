"""Messages of a chat history, read: what each role said, called, got and thought."""

from typing import Any, cast

import msgspec

from reflexarc.wire.dialects.chat.thoughts import thoughts_of
from reflexarc.wire.dialects.shapes import Members, as_list, as_object, fault
from reflexarc.wire.sealed import Sealed
from reflexarc.wire.turns import (
    Call,
    Foreign,
    Media,
    Part,
    Refusal,
    Result,
    Text,
    Turn,
    TurnRole,
)

_AUDIO_TYPES = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_ROLES: dict[str, TurnRole] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
}
OLD_CALL = "function_call:"
"""What ids of calls begin with that came in the older form, which has none."""


def read_message(value: Any, path: str) -> tuple[Turn, ...]:
    message = Members(value, path)
    role = message.text("role")
    if role in ("tool", "function"):
        return (_result(message, old=role == "function"),)
    known = _ROLES.get(role or "")
    if known is None:
        roles = ", ".join([*_ROLES, "tool"])
        raise fault(f"{path}.role", f"must be one of {roles}", role)
    name = message.text("name")
    cache = message.object("cache_control")
    parts = _content(message.take("content"), f"{path}.content", cache)
    if known == "assistant":
        parts = _assistant(message, parts)
    return (Turn(known, tuple(parts), name=name, more=message.rest),)


def _assistant(message: Members, said: list[Part]) -> list[Part]:
    thoughts, seals = thoughts_of(message)
    refusal = message.text("refusal")
    parts: list[Part] = [*thoughts, *said]
    if refusal is not None:
        parts.append(Refusal(refusal))
    calls = message.list("tool_calls") or []
    parts.extend(
        _call(call, f"{message.path}.tool_calls[{at}]", seals) for at, call in enumerate(calls)
    )
    old = message.members("function_call")
    if old is not None:
        name = old.needed_text("name")
        parts.append(Call(f"{OLD_CALL}{name}", name, old.text("arguments") or "{}"))
    audio = message.object("audio")
    if audio is not None:
        parts.append(Foreign("audio", audio))
    return parts


def _call(value: Any, path: str, seals: list[Sealed]) -> Call:
    call = Members(value, path)
    identity = call.text("id") or ""
    kind = call.text("type")
    custom = call.members("custom")
    if custom is not None or kind == "custom":
        if custom is None:
            raise fault(f"{path}.custom", "is missing")
        name, given = custom.needed_text("name"), custom.text("input") or ""
        return Call(identity, name, given, kind="custom", more=call.rest)
    function = call.members("function")
    if function is None:
        raise fault(f"{path}.function", "is missing")
    name = function.needed_text("name")
    arguments = function.take("arguments")
    if isinstance(arguments, dict | list):  # some harnesses record the value instead of its text
        arguments = msgspec.json.encode(cast("Any", arguments)).decode()
    elif arguments is not None and not isinstance(arguments, str):
        raise fault(f"{path}.function.arguments", "must be JSON text", arguments)
    signature, origin = _signature(call), "gemini"
    for sealed in seals:
        if signature is None and identity in sealed.calls:
            signature, origin = sealed.calls[identity], sealed.origin
    return Call(
        identity,
        name,
        arguments if isinstance(arguments, str) and arguments.strip() else "{}",
        signature=signature,
        origin=origin if signature is not None else "",
        more={**call.rest, **({"function": function.rest} if function.rest else {})},
    )


def _signature(call: Members) -> str | None:
    """Gemini's, where its own chat endpoint puts it."""
    extra = call.take("extra_content")
    if extra is None:
        return None
    google = extra.get("google") if isinstance(extra, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - of anything
    if isinstance(google, dict) and list(cast("dict[str, Any]", google)) == ["thought_signature"]:
        signature = cast("dict[str, Any]", google)["thought_signature"]
        if isinstance(signature, str) and len(cast("dict[str, Any]", extra)) == 1:
            return signature
    call.rest["extra_content"] = extra
    return None


def _result(message: Members, *, old: bool) -> Turn:
    name = message.text("name")
    identity = message.text("tool_call_id")
    if old:
        identity = f"{OLD_CALL}{name or ''}"
    if identity is None:
        raise fault(f"{message.path}.tool_call_id", "is missing")
    cache = message.object("cache_control")
    parts = _content(message.take("content"), f"{message.path}.content", None)
    kept = tuple(part for part in parts if isinstance(part, Text | Media | Foreign))
    result = Result(identity, kept, name=name, cache=cache, more=message.rest)
    return Turn("tool", (result,))


def _content(value: Any, path: str, cache: dict[str, Any] | None) -> list[Part]:
    """`cache` is a mark on the message: its last part bears it."""
    if value is None:
        return []
    if isinstance(value, str):
        return [Text(value, cache=cache)] if value or cache else []
    parts = [_part(part, f"{path}[{at}]") for at, part in enumerate(as_list(value, path))]
    if cache is not None and parts and isinstance(last := parts[-1], Text | Media):
        parts[-1] = msgspec.structs.replace(last, cache=cache)
    return parts


def _part(value: Any, path: str) -> Part:
    whole = as_object(value, path)
    part = Members(whole, path)
    kind = part.text("type")
    if kind is None:
        raise fault(f"{path}.type", "must name the kind of part")
    if kind == "text":
        return Text(part.needed_text("text"), part.object("cache_control"), part.rest)
    if kind == "refusal":
        return Refusal(part.needed_text("refusal"))
    media = _media(kind, part)
    return media if media is not None else Foreign(kind, whole)


def _media(kind: str, part: Members) -> Media | None:
    inner = part.members(kind) if kind in ("image_url", "input_audio", "file") else None
    if inner is None:
        return None
    cache = part.object("cache_control")
    if kind == "image_url":
        url = inner.needed_text("url")
        media_type, data = split_data_url(url)
        return Media(
            "image", media_type, data, None if data is not None else url,
            detail=inner.text("detail"), cache=cache, more=part.rest,
        )  # fmt: skip
    if kind == "input_audio":
        form = inner.text("format") or ""
        media_type = _AUDIO_TYPES.get(form, f"audio/{form}")
        return Media("audio", media_type, inner.text("data"), cache=cache, more=part.rest)
    name, identity, given = inner.text("filename"), inner.text("file_id"), inner.text("file_data")
    media_type, data = split_data_url(given or "")
    url = given if given is not None and data is None else None
    return Media(
        "document", media_type, data, url, identity, name=name, cache=cache, more=part.rest
    )


def split_data_url(url: str) -> tuple[str | None, str | None]:
    """Media type and base64 of a `data:` URL; two None where it is no such URL."""
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None, None
    return head[len("data:") : -len(";base64")] or None, data
