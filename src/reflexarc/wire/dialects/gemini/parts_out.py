"""Parts written as Gemini has them: what requests and answers say alike."""

import base64
import mimetypes
from typing import Any, cast

from reflexarc.steps.errors import MalformedError
from reflexarc.wire.dialects.gemini.parts_in import WRAPPED
from reflexarc.wire.dialects.gemini.shapes import nested
from reflexarc.wire.json import decode_strict
from reflexarc.wire.losses import Losses
from reflexarc.wire.turns import Call, Media, Result, Text

RAW_ARGUMENTS = "arguments_text"
"""Arguments that are not the text of an object stand under this name, as they are."""


def args_of(call: Call, losses: Losses) -> dict[str, Any]:
    """`args` must be an object. Text that is none is kept whole, and named."""
    if call.kind == "function":
        if not call.arguments.strip():
            return {}
        found = object_of(call.arguments)
        if found is not None:
            return found
    losses.lose("tool_calls.arguments")
    return {RAW_ARGUMENTS: call.arguments}


def object_of(text: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        value: Any = decode_strict(text.encode("utf-8", "surrogatepass"), "arguments")
    except MalformedError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def function_call(
    call: Call, identity: str, args: dict[str, Any], signature: str | None, own: bool
) -> dict[str, Any]:
    """A part. `own`: the call came in this dialect, and what it alone knows is put back."""
    inner: dict[str, Any] = {}
    if not (own and "id" in call.more):
        inner["id"] = identity
    inner["name"] = call.name
    inner["args"] = args
    part: dict[str, Any] = {"functionCall": inner}
    if own:
        inner.update(nested(call.more, "functionCall"))
        part.update(beside(call.more))
    if signature is not None:
        part["thoughtSignature"] = signature
    return part


def beside(more: dict[str, Any]) -> dict[str, Any]:
    """The members of a part beside what it holds."""
    return {k: v for k, v in more.items() if v is not None and "." not in k and k != "signs"}


def response_of(result: Result) -> dict[str, Any]:
    """A result's text as the object that `response` must be. Objects go in as they are, but for
    those that would be read as wrapping what they hold; other text is wrapped."""
    text = "\n".join(part.text for part in result.parts if isinstance(part, Text))
    for mark in result.more:
        kind, _, name = mark.partition(":")
        if kind in ("text", "json") and name in WRAPPED:
            return {name: _value_of(text) if kind == "json" else text}
    if result.is_error:
        return {"error": text}
    found = object_of(text)
    if found is None:
        return {"result": text}
    if len(found) == 1 and next(iter(found)) in WRAPPED:
        return {"result": found}
    return found


def _value_of(text: str) -> Any:
    try:
        return decode_strict(text.encode("utf-8", "surrogatepass"), "result")
    except MalformedError:
        return text  # It was cut short since it was read.


def media(part: Media, own: bool, losses: Losses, in_result: bool = False) -> dict[str, Any] | None:
    """A part; None for what cannot be said, which is named."""
    media_type = part.media_type
    if part.text is not None:
        data = base64.b64encode(part.text.encode("utf-8", "surrogatepass")).decode()
        made = {"inlineData": {"mimeType": media_type or "text/plain", "data": data}}
    elif part.data is not None:
        made = {"inlineData": _typed(media_type or _TYPES[part.kind], {"data": part.data})}
    elif part.url is not None:
        found = media_type or mimetypes.guess_type(part.url.partition("?")[0])[0]
        made = {"fileData": _typed(found, {"fileUri": part.url})}
    elif part.file is not None and own:
        made = {"fileData": _typed(media_type, {"fileUri": part.file})}
    else:
        losses.lose(f"content.{part.kind}.file")
        return None
    kind = next(iter(made))
    if part.name is not None:
        # Outside results the API takes no names.
        if own or in_result:
            made[kind]["displayName"] = part.name
        else:
            losses.lose(f"content.{part.kind}.name")
    if part.detail not in (None, "auto"):
        losses.lose(f"content.{part.kind}.detail")
    if part.cache is not None:
        losses.lose("cache_control")
    if own:
        made[kind].update(nested(part.more, kind))
        return {**made, **beside(part.more)}
    losses.lose_all(part.more, f"content.{part.kind}.")
    return made


_TYPES = {
    "image": "image/png",
    "audio": "audio/wav",
    "video": "video/mp4",
    "document": "application/pdf",
}


def _typed(media_type: str | None, held: dict[str, Any]) -> dict[str, Any]:
    return held if media_type is None else {"mimeType": media_type, **held}
