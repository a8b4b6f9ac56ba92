"""What stands in one item of a conversation that pruning may look at: calls, outputs, images. Reads
the raw item of each dialect; decides nothing and changes nothing."""

from typing import Any, cast

import msgspec
import xxhash

from reflexarc.context.image_size import image_tokens
from reflexarc.steps.errors import InputError
from reflexarc.wire.json import decode_strict, encode_json

BYTES_PER_TOKEN = 4
Path = tuple[str | int, ...]
"""Where a value stands inside an item: names of members, places in lists."""


class CallSaid(msgspec.Struct, frozen=True):
    """A call of the model's. `id` is empty where the dialect tells calls by their name alone;
    `arguments` is None where they are no JSON object."""

    id: str
    name: str
    arguments: dict[str, Any] | None


class Cuttable(msgspec.Struct, frozen=True):
    """A value that a reference can stand in for. `call_id` and `name` are of the call whose output
    it is, or is in (empty for an image that a user sent). `digest` is of its JSON text, which has
    `size` bytes. `failed`: the output tells an error; `shows`: there are images in it. `media` is
    an image's type."""

    path: Path
    digest: bytes
    size: int
    tokens: int
    call_id: str = ""
    name: str = ""
    failed: bool = False
    shows: bool = False
    media: str = ""


class Item(msgspec.Struct, frozen=True):
    """`turn`: the model's own, or a part of its turn. `tokens` is an estimate of the whole."""

    tokens: int
    turn: bool = False
    calls: tuple[CallSaid, ...] = ()
    outputs: tuple[Cuttable, ...] = ()
    images: tuple[Cuttable, ...] = ()


def read_item(dialect: str, raw: bytes) -> Item:
    """Of what does not fit the dialect only the size is known: nothing in it is ever cut."""
    try:
        value = decode_strict(raw, "item")
    except InputError:
        return Item(tokens_of(len(raw)))
    if not isinstance(value, dict):
        return Item(tokens_of(len(raw)))
    found = _Found(cast("dict[str, Any]", value))
    _READERS[dialect](found)
    tokens = _tokens(len(raw), found.images)
    return Item(tokens, found.turn, tuple(found.calls), tuple(found.outputs), tuple(found.images))


def _tokens(size: int, images: list[Cuttable]) -> int:
    shown = sum(image.size for image in images)
    return tokens_of(max(0, size - shown)) + sum(image.tokens for image in images)


def can_prune(dialect: str) -> bool:
    return dialect in _READERS


def tokens_of(size_bytes: int) -> int:
    return -(-size_bytes // BYTES_PER_TOKEN)


class _Found:
    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value
        self.turn = False
        self.calls: list[CallSaid] = []
        self.outputs: list[Cuttable] = []
        self.images: list[Cuttable] = []

    def call(self, identity: Any, name: Any, arguments: Any) -> None:
        if not isinstance(name, str):
            return
        if isinstance(arguments, str):
            try:
                arguments = decode_strict(arguments.encode("utf-8", "surrogatepass"), "arguments")
            except InputError:
                arguments = None
        held = cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else None
        self.calls.append(CallSaid(_text(identity), name, held))

    def output(
        self, path: Path, value: Any, call_id: Any, name: Any = "", *, failed: bool = False
    ) -> None:
        """`value` with all in it is what may go; images in it may go alone, too."""
        if not isinstance(value, str | list | dict):
            return
        whose, named = _text(call_id), _text(name)
        inside: list[Cuttable] = []
        if isinstance(value, list):
            inside = _images(cast("list[Any]", value), path, whose)
        self.images += inside
        raw = encode_json(value)
        if b'"cache_control"' in raw:
            return  # a mark of the client's own caching would go with it
        tokens = _tokens(len(raw), inside)
        digest, shows = xxhash.xxh3_128_digest(raw), bool(inside)
        self.outputs.append(Cuttable(path, digest, len(raw), tokens, whose, named, failed, shows))

    def content(self, value: Any, path: Path) -> None:
        if isinstance(value, list):
            self.images += _images(cast("list[Any]", value), path, "")


def _chat(found: _Found) -> None:
    value = found.value
    role, content = value.get("role"), value.get("content")
    if role == "assistant":
        found.turn = True
        for call in _listed(value.get("tool_calls")):
            function = call.get("function")
            if isinstance(function, dict):
                held = cast("dict[str, Any]", function)
                found.call(call.get("id"), held.get("name"), held.get("arguments"))
    elif role == "tool":
        found.output(("content",), content, value.get("tool_call_id"), value.get("name"))
    elif role == "user":
        found.content(content, ("content",))


def _messages(found: _Found) -> None:
    role, content = found.value.get("role"), found.value.get("content")
    if role == "assistant":
        found.turn = True
        for block in _listed(content):
            if block.get("type") == "tool_use":
                found.call(block.get("id"), block.get("name"), block.get("input"))
    elif role == "user" and isinstance(content, list):
        found.content(cast("list[Any]", content), ("content",))
        for at, block in enumerate(cast("list[Any]", content)):
            if isinstance(block, dict):
                held = cast("dict[str, Any]", block)
                if held.get("type") == "tool_result":
                    failed = held.get("is_error") is True
                    path: Path = ("content", at, "content")
                    found.output(path, held.get("content"), held.get("tool_use_id"), failed=failed)


def _responses(found: _Found) -> None:
    value = found.value
    kind = value.get("type")
    if kind in ("function_call", "custom_tool_call"):
        found.turn = True
        given = value.get("arguments") if kind == "function_call" else value.get("input")
        found.call(value.get("call_id"), value.get("name"), given)
    elif kind in ("function_call_output", "custom_tool_call_output"):
        found.output(("output",), value.get("output"), value.get("call_id"))
    elif value.get("role") == "assistant" or kind in ("reasoning", "compaction"):
        found.turn = True
    elif value.get("role") == "user":
        found.content(value.get("content"), ("content",))


def _gemini(found: _Found) -> None:
    role, parts = found.value.get("role"), found.value.get("parts")
    found.turn = role == "model"
    if not isinstance(parts, list):
        return
    for at, part in enumerate(cast("list[Any]", parts)):
        if not isinstance(part, dict):
            continue
        held = cast("dict[str, Any]", part)
        for name in ("functionCall", "function_call"):
            call = held.get(name)
            if found.turn and isinstance(call, dict):
                said = cast("dict[str, Any]", call)
                found.call(said.get("id"), said.get("name"), said.get("args"))
        for name in ("functionResponse", "function_response"):
            given = held.get(name)
            if isinstance(given, dict):
                said = cast("dict[str, Any]", given)
                path: Path = ("parts", at, name, "response")
                found.output(path, said.get("response"), said.get("id"), said.get("name"))
    if not found.turn:
        found.content(cast("list[Any]", parts), ("parts",))


_READERS = {"chat": _chat, "messages": _messages, "responses": _responses, "gemini": _gemini}


def _images(parts: list[Any], path: Path, call_id: str) -> list[Cuttable]:
    found: list[Cuttable] = []
    for at, part in enumerate(parts):
        if isinstance(part, dict):
            held = cast("dict[str, Any]", part)
            media = _media_of(held)
            if media is not None:
                kind, data = media
                raw, tokens = encode_json(held), image_tokens(data)
                digest = xxhash.xxh3_128_digest(raw)
                found.append(Cuttable((*path, at), digest, len(raw), tokens, call_id, media=kind))
    return found


def _media_of(part: dict[str, Any]) -> tuple[str, str] | None:
    """An image's media type and its base64 text (both empty where it is a link), None for
    anything else."""
    kind = part.get("type")
    if kind in ("image_url", "input_image"):
        url: Any = part.get("image_url")
        if isinstance(url, dict):
            url = cast("dict[str, Any]", url).get("url")
        if url is None and part.get("file_id") is None:
            return None
        return _from_url(_text(url))
    if kind == "image":
        source = part.get("source")
        if not isinstance(source, dict):
            return None
        held = cast("dict[str, Any]", source)
        return _text(held.get("media_type")), _text(held.get("data"))
    for name, typed in (("inlineData", "mimeType"), ("inline_data", "mime_type")):
        inline = part.get(name)
        if isinstance(inline, dict):
            held = cast("dict[str, Any]", inline)
            media_type = _text(held.get(typed))
            return (media_type, _text(held.get("data"))) if media_type[:6] == "image/" else None
    return None


def _from_url(url: str) -> tuple[str, str]:
    if not url.startswith("data:"):
        return "", ""
    head, _, data = url.partition(",")
    return head[5:].split(";")[0], data


def _listed(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        return []
    return [
        cast("dict[str, Any]", one) for one in cast("list[Any]", value) if isinstance(one, dict)
    ]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
