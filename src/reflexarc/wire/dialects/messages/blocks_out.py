"""Parts to content blocks of the messages dialect, as a request holds them."""

import base64
import binascii
from typing import Any, cast

from reflexarc.steps.errors import MalformedError
from reflexarc.wire.dialects.messages.words import NAME, theirs
from reflexarc.wire.ids import IdMap
from reflexarc.wire.json import decode_strict
from reflexarc.wire.losses import Losses
from reflexarc.wire.turns import Call, Foreign, Media, Part, Refusal, Result, Text, Thinking

# The first characters of base64 tell what an image is, where nobody said.
_IMAGE_STARTS = {
    "/9j/": "image/jpeg",
    "iVBOR": "image/png",
    "R0lG": "image/gif",
    "UklGR": "image/webp",
}
_PDF_START = "JVBER"
_TEXTUAL = ("application/json", "application/xml", "application/x-yaml", "application/javascript")


class BlockWriter:
    """Writes the blocks of one request. `own`: it came in this very dialect, and what only this
    dialect knows is put back."""

    def __init__(self, dialect: str, losses: Losses, ids: IdMap) -> None:
        self.own = dialect == NAME
        self._dialect = dialect
        self._losses = losses
        self._ids = ids

    def system(self, parts: tuple[Part, ...]) -> list[dict[str, Any]]:
        """Instructions: text only."""
        return [block for part in parts for block in self._said(part, text_only=True)]

    def user(self, parts: tuple[Part, ...]) -> list[dict[str, Any]]:
        return [block for part in parts for block in self._said(part)]

    def results(self, parts: tuple[Part, ...]) -> list[dict[str, Any]]:
        return [self._result(part) for part in parts if isinstance(part, Result)]

    def assistant(self, parts: tuple[Part, ...]) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        for part in parts:
            if isinstance(part, Thinking):
                blocks.extend(self._thinking(part))
            elif isinstance(part, Call):
                blocks.append(self._call(part))
            elif isinstance(part, Refusal):
                blocks.extend(self._refusal(part))
            elif isinstance(part, Media) and not self.own:
                self._losses.lose(f"content.{self._word(part)} (from the assistant)")
            else:
                blocks.extend(self._said(part))
        return blocks if self.own else _calls_last(blocks)

    def _said(self, part: Part, text_only: bool = False) -> list[dict[str, Any]]:
        if isinstance(part, Text):
            return self._text(part)
        if isinstance(part, Refusal):
            return self._refusal(part)
        if isinstance(part, Media):
            if text_only and not self.own:
                self._losses.lose(f"content.{self._word(part)} (in instructions)")
                return []
            return self._media(part, "content")
        if isinstance(part, Foreign):
            return self._foreign(part, "content")
        if isinstance(part, Thinking):
            return self._thinking(part)
        return [self._call(part)] if isinstance(part, Call) else [self._result(part)]

    def _text(self, part: Text) -> list[dict[str, Any]]:
        # Empty text is refused, and so is blank text; our own dialect's client is left its word.
        if not part.text or not (self.own or part.text.strip()):
            return []
        block: dict[str, Any] = {"type": "text", "text": part.text}
        return [self._with_rest(block, part.more, part.cache, "content")]

    def _refusal(self, part: Refusal) -> list[dict[str, Any]]:
        if not part.text.strip():
            return []
        self._losses.lose("content.refusal (as text)")
        return [{"type": "text", "text": part.text}]

    def _thinking(self, part: Thinking) -> list[dict[str, Any]]:
        signed = part.signature is not None
        if part.origin != NAME or not (signed or self.own):
            by = f"signed by {part.origin or 'another'}" if signed else "unsigned"
            self._losses.lose(f"content.thinking ({by})")
            return []
        block: dict[str, Any]
        if part.redacted:
            block = {"type": "redacted_thinking", "data": part.signature}
        else:
            block = {"type": "thinking", "thinking": part.text}
            if signed:
                block["signature"] = part.signature
        # It came from this dialect, whoever brings it back: all of it is this dialect's.
        return [{**block, **part.more}]

    def _call(self, part: Call) -> dict[str, Any]:
        if part.signature is not None:
            self._losses.lose(f"tool_calls.signature (signed by {part.origin})")
        block = {
            "type": "tool_use",
            "id": self._ids.out(part.id),
            "name": part.name,
            "input": input_of(part, self._losses),
        }
        return self._with_rest(block, part.more, part.cache, "tool_calls")

    def _result(self, part: Result) -> dict[str, Any]:
        block: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": self._ids.out(part.call_id),
        }
        inner: list[dict[str, Any]] = []
        for item in part.parts:
            if isinstance(item, Text):
                inner.extend(self._text(item))
            elif isinstance(item, Media):
                inner.extend(self._media(item, "tool_result"))
            else:
                inner.extend(self._foreign(item, "tool_result"))
        if inner:
            block["content"] = shortest(inner)
        if part.is_error:
            block["is_error"] = True
        return self._with_rest(block, part.more, part.cache, "tool_result")

    def _foreign(self, part: Foreign, under: str) -> list[dict[str, Any]]:
        if self.own:
            return [part.value]
        self._losses.lose(f"{under}.{part.what}")
        return []

    def _media(self, part: Media, under: str) -> list[dict[str, Any]]:
        word = f"{under}.{self._word(part)}"
        if part.kind not in ("image", "document"):
            self._losses.lose(word)
            return []
        source = _source(part, self.own)
        if source is None:
            what = "file" if part.file is not None else (part.media_type or "source")
            self._losses.lose(f"{word} ({what})")
            return []
        block: dict[str, Any] = {"type": part.kind, "source": source}
        if part.kind == "document" and part.name is not None:
            block["title"] = part.name
        if part.detail is not None and part.detail != "auto":
            self._losses.lose(f"{word}.detail")
        return [self._with_rest(block, part.more, part.cache, under)]

    def _word(self, part: Media) -> str:
        return theirs(self._dialect, part.kind)

    def _with_rest(
        self,
        block: dict[str, Any],
        more: dict[str, Any],
        cache: dict[str, Any] | None,
        under: str,
    ) -> dict[str, Any]:
        if cache is not None:
            block["cache_control"] = cache
        if self.own:
            block.update(more)
        else:
            lose_rest(self._losses, more, under)
        return block


def lose_rest(losses: Losses, more: dict[str, Any], under: str) -> None:
    """Names what another dialect said beside a part; what is empty says nothing."""
    for name, value in more.items():
        if value not in (None, "", [], {}):
            losses.lose(f"{under}.{name}" if under else name)


def shortest(blocks: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """One plain text is written as a string: the same to the dialect, and taken by more."""
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
        return cast(str, blocks[0]["text"])
    return blocks


def input_of(call: Call, losses: Losses) -> dict[str, Any]:
    """A call's arguments as the object that `input` must be. Other text goes whole under one
    member, and is named."""
    if call.kind == "function":
        if not call.arguments.strip():
            return {}
        try:
            value = decode_strict(call.arguments.encode(), "arguments")
        except (MalformedError, UnicodeEncodeError):
            value = None
        if isinstance(value, dict):
            return cast("dict[str, Any]", value)
    losses.lose("tool_calls.arguments" if call.kind == "function" else "tool_calls.custom")
    return {"arguments_text": call.arguments}


def _calls_last(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Text after a call is refused: the results must come right after. Signed thinking holds a
    turn's order fast, and such a turn came from this dialect."""
    if any(block["type"] in ("thinking", "redacted_thinking") for block in blocks):
        return blocks
    return sorted(blocks, key=lambda block: block["type"] == "tool_use")


def _source(part: Media, own: bool) -> dict[str, Any] | None:
    if part.text is not None:
        kind = part.media_type if own and part.media_type else "text/plain"
        return {"type": "text", "media_type": kind, "data": part.text}
    if part.url is not None:
        fetched = own or part.url.startswith(("https://", "http://"))
        return {"type": "url", "url": part.url} if fetched else None
    if part.file is not None:
        # A file's id means something to the provider that gave it, and to nobody else.
        return {"type": "file", "file_id": part.file} if own else None
    if part.data is None:
        return None
    if part.kind == "image":
        return _base64(part.media_type or _image_type(part.data), part.data)
    return _document_source(part, part.data, own)


def _document_source(part: Media, data: str, own: bool) -> dict[str, Any] | None:
    kind = part.media_type
    if own or kind == "application/pdf" or data.startswith(_PDF_START):
        return _base64(kind or "application/pdf", data)
    if kind is None and part.name is not None and part.name.lower().endswith(".pdf"):
        return _base64("application/pdf", data)
    if kind is None or kind.startswith("text/") or kind.split(";")[0] in _TEXTUAL:
        try:
            text = base64.b64decode(data, validate=True).decode()
        except (binascii.Error, ValueError):
            return None
        return {"type": "text", "media_type": "text/plain", "data": text}
    return None


def _base64(media_type: str, data: str) -> dict[str, Any]:
    return {"type": "base64", "media_type": media_type, "data": data}


def _image_type(data: str) -> str:
    for start, kind in _IMAGE_STARTS.items():
        if data.startswith(start):
            return kind
    return "image/png"
