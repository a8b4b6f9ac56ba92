"""Parts of a content, as requests and answers have them, read. Knows no roles."""

from typing import Any, cast

from reflexarc.wire.dialects.gemini.shapes import (
    NAME,
    compact,
    flag_of,
    flat,
    listed,
    members,
    text_of,
)
from reflexarc.wire.dialects.gemini.signatures import (
    is_skipped,
    signed_thinking,
    signing,
    unsealed_signature,
)
from reflexarc.wire.dialects.shapes import fault
from reflexarc.wire.turns import Call, Foreign, Media, MediaKind, Part, Result, Text

BESIDE = frozenset(
    {
        "thought",
        "thoughtSignature",
        "videoMetadata",
        "mediaResolution",
        "partMetadata",
        "mediaProcessing",
        "audioTranscription",
        "speechMetadata",
        "documentMetadata",
        "spreadsheetMetadata",
        "audioMetadata",
    }
)
"""Members that say something of a part beside what it holds."""


def read_part(value: Any, path: str) -> tuple[Part, ...]:
    """A part, and what signs it. A call or a result that has no id gets an empty one. Raises
    `RequestError`."""
    given = members(value, path)
    kinds = [name for name in given if name not in BESIDE]
    if len(kinds) > 1:
        raise fault(path, f"must hold one of {' and '.join(kinds)}, not all")
    kind = kinds[0] if kinds else ""
    thought = flag_of(given.get("thought", False), f"{path}.thought")
    if kind not in _READERS or (thought and kind != "text"):
        if not kind and "thoughtSignature" not in given:
            raise fault(path, "is empty: it must hold text, inlineData, functionCall or another")
        if kind:
            return (Foreign(f"thought.{kind}" if thought else kind, given),)
    given.pop("thought", None)
    signature = given.pop("thoughtSignature", None)
    if signature is not None:
        signature = text_of(signature, f"{path}.thoughtSignature")
    held = given.pop(kind, None)
    if kind == "functionCall":
        return (_call(held, f"{path}.functionCall", signature, given),)
    if not kind:
        return (signing(cast(str, signature), "bare", given),)
    if kind == "text":
        text = text_of(held, f"{path}.text")
        if thought:
            return (signed_thinking(text, signature, given),)
        if signature is not None and not text:
            return (signing(signature, "text", given),)
        part: Part = Text(text, more=given)
    elif kind == "functionResponse":
        part = _result(held, f"{path}.functionResponse", given)
    else:
        part = read_media(kind, held, f"{path}.{kind}", given)
    return (part,) if signature is None else (part, signing(signature, "part", {}))


_READERS = ("text", "functionCall", "functionResponse", "inlineData", "fileData")


def _call(value: Any, path: str, signature: str | None, beside: dict[str, Any]) -> Call:
    given = members(value, path)
    name = text_of(given.pop("name", None), f"{path}.name")
    args = given.pop("args", {})
    if not isinstance(args, dict):
        raise fault(f"{path}.args", "must be an object")
    arguments = compact(args)
    identity = given.pop("id", None)
    more = {**beside, **flat(given, "functionCall")}
    if identity is None or identity == "":
        more["id"] = None
        identity = ""
    if signature is not None and is_skipped(signature):
        signature = None
    sealed = unsealed_signature(signature) if signature is not None else None
    origin = "" if signature is None else NAME
    if sealed is not None:
        signature, origin = sealed.signature, sealed.origin
    return Call(
        text_of(identity, f"{path}.id"),
        name,
        arguments,
        signature=signature,
        origin=origin,
        more=more,
    )


def _result(value: Any, path: str, beside: dict[str, Any]) -> Result:
    given = members(value, path)
    identity = given.pop("id", None)
    name = given.pop("name", None)
    if name is None and identity is None:
        raise fault(f"{path}.name", "is missing")
    response = given.pop("response", {})
    if not isinstance(response, dict):
        raise fault(f"{path}.response", "must be an object")
    inner = given.pop("parts", [])
    text, is_error, marks = read_response(cast("dict[str, Any]", response))
    parts: list[Text | Media | Foreign] = [Text(text)]
    for at, one in enumerate(listed(inner, f"{path}.parts")):
        for part in read_part(one, f"{path}.parts[{at}]"):
            if isinstance(part, Text | Media | Foreign):
                parts.append(part)
            else:
                raise fault(f"{path}.parts[{at}]", "must hold inlineData or fileData")
    more = {**beside, **flat(given, "functionResponse"), **marks}
    if identity is None or identity == "":
        more["id"] = None
    return Result(
        "" if identity is None else text_of(identity, f"{path}.id"),
        tuple(parts),
        is_error=is_error,
        name=None if name is None else text_of(name, f"{path}.name"),
        more=more,
    )


WRAPPED = ("result", "output", "error")
"""Members that alone in a response hold what the call gave."""


def read_response(response: dict[str, Any]) -> tuple[str, bool, dict[str, Any]]:
    """What a call gave as text, whether it is an error, and a mark (a member that is null, and so
    means nothing elsewhere) of how it was wrapped: `text:output` or `json:output`."""
    if len(response) == 1:
        name, value = next(iter(response.items()))
        if name in WRAPPED:
            text = value if isinstance(value, str) else compact(value)
            mark = f"{'text' if isinstance(value, str) else 'json'}:{name}"
            return text, name == "error", {mark: None}
    return compact(response), False, {}


def read_media(kind: str, value: Any, path: str, beside: dict[str, Any]) -> Media:
    """`inlineData` or `fileData`."""
    given = members(value, path)
    media_type = given.pop("mimeType", None)
    if media_type is not None:
        media_type = text_of(media_type, f"{path}.mimeType")
    name = given.pop("displayName", None)
    data = url = file = None
    if kind == "inlineData":
        data = _standard(text_of(given.pop("data", ""), f"{path}.data"))
    else:
        uri = text_of(given.pop("fileUri", None), f"{path}.fileUri")
        url, file = (None, uri) if is_own_file(uri) else (uri, None)
    return Media(
        _kind(media_type),
        media_type,
        data=data,
        url=url,
        file=file,
        name=None if name is None else text_of(name, f"{path}.displayName"),
        more={**beside, **flat(given, kind)},
    )


def _standard(data: str) -> str:
    """Base64 in the alphabet that every dialect takes. Google's clients write the other."""
    if "-" in data or "_" in data:
        data = data.translate(_ALPHABET)
        data += "=" * (-len(data) % 4)
    return data


_ALPHABET = str.maketrans("-_", "+/")


def is_own_file(uri: str) -> bool:
    """A file at Google, which nobody else can fetch; anything else is an address."""
    return not uri.startswith(("http://", "https://")) or "googleapis.com/" in uri[:60]


def _kind(media_type: str | None) -> MediaKind:
    family = (media_type or "").partition("/")[0].lower()
    if family == "image":
        return "image"
    if family == "audio":
        return "audio"
    return "video" if family == "video" else "document"
