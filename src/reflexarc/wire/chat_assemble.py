"""What System 2 answered, read from a copy of a chat completion or of its stream.

Only for looking on (shadow comparison): the bytes themselves went to the client unchanged. Odd
providers are read as wire practice demands: two calls in one chunk, interleaved calls, a whole
call in one chunk, name and id repeated, `stop` where calls were made, no finish reason at all.
"""

import zlib
from typing import Any, cast

import msgspec

from reflexarc.steps import ToolCall
from reflexarc.steps.errors import MalformedError
from reflexarc.wire.chat import call_from_text
from reflexarc.wire.sse import SseParser
from reflexarc.wire.thinking import carries_thinking

MAX_DECODED_BYTES = 64 * 1024 * 1024


class Answer(msgspec.Struct, frozen=True):
    """One assistant turn. `complete` is false where the answer broke off: no finish reason, cut
    by its token limit, an error inside the stream; such a turn is no evidence of what System 2
    wanted. `thinking`: it carried thinking that the provider may want back."""

    content: str
    calls: tuple[ToolCall, ...]
    finish_reason: str | None
    complete: bool
    thinking: bool = False

    def as_chat(self) -> dict[str, Any]:
        """The turn as a message of a history: its calls as they were written, no thinking."""
        message: dict[str, Any] = {"role": "assistant", "content": self.content or None}
        if self.calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.raw},
                }
                for call in self.calls
            ]
        return message


def plain_bytes(data: bytes, content_encoding: str) -> bytes:
    """The body with its `content-encoding` undone: identity, gzip or deflate.

    Raises `MalformedError` for other encodings, broken data, or more than `MAX_DECODED_BYTES`.
    """
    encoding = content_encoding.strip().lower()
    if encoding in ("", "identity"):
        return data
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise MalformedError(f"content-encoding {encoding!r} cannot be read here")
    try:
        inflater = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
        plain = inflater.decompress(data, MAX_DECODED_BYTES)
    except zlib.error as error:
        raise MalformedError(f"body is not {encoding}: {error}") from error
    if inflater.unconsumed_tail:
        raise MalformedError(f"body is longer than {MAX_DECODED_BYTES} bytes when decoded")
    return plain


def answer_from_body(data: bytes, content_type: str) -> Answer:
    """Reads a completion or, where the content type says so, a stream. Raises `MalformedError`."""
    if content_type.lower().startswith("text/event-stream"):
        return answer_from_stream(data)
    return answer_from_completion(data)


def answer_from_completion(data: bytes) -> Answer:
    """Reads one `chat.completion` object: its first choice."""
    choice = _first_choice(_object(_decode(data)))
    if choice is None:
        raise MalformedError("answer holds no choice")
    message = _object(choice.get("message"))
    calls: list[ToolCall] = []
    for entry in _list(message.get("tool_calls")):
        fields = _object(entry)
        function = _object(fields.get("function"))
        calls.append(
            call_from_text(
                _text(fields.get("id")),
                _text(function.get("name")),
                _text(function.get("arguments")),
            )
        )
    finish = choice.get("finish_reason")
    reason = finish if isinstance(finish, str) else None
    return Answer(
        content=_text(message.get("content")),
        calls=tuple(calls),
        finish_reason=reason,
        complete=reason not in (None, "length", "content_filter"),
        thinking=carries_thinking(message),
    )


def answer_from_stream(data: bytes) -> Answer:
    """Reads a whole stream of `chat.completion.chunk` events."""
    building = _Building()
    for event in SseParser().feed(data):
        if event.data.strip() == b"[DONE]":
            break
        building.add(_object(_decode(event.data)))
    return building.answer()


class _PartCall(msgspec.Struct):
    index: int
    id: str = ""
    name: str = ""
    arguments: list[str] = []


class _Building:
    """One streamed turn as it grows."""

    def __init__(self) -> None:
        self._content: list[str] = []
        self._calls: list[_PartCall] = []
        self._current: dict[int, _PartCall] = {}
        self._finish: str | None = None
        self._failed = False
        self._thinking = False

    def add(self, chunk: dict[str, Any]) -> None:
        if chunk.get("error"):
            self._failed = True
        choice = _first_choice(chunk)
        if choice is None:
            return
        finish = choice.get("finish_reason")
        if isinstance(finish, str):
            self._finish = finish
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return
        fields = cast(dict[str, Any], delta)
        self._thinking = self._thinking or carries_thinking(fields)
        self._content.append(_text(fields.get("content")))
        for position, entry in enumerate(_list(fields.get("tool_calls"))):
            self._add_call(position, _object(entry))

    def _add_call(self, position: int, entry: dict[str, Any]) -> None:
        index = entry.get("index")
        if not isinstance(index, int):
            index = position
        identity = _text(entry.get("id"))
        call = self._current.get(index)
        if call is not None and identity and call.id and identity != call.id:
            # Some providers give every call of a batch the same index, or none.
            known = (c for c in self._calls if (c.index, c.id) == (index, identity))
            call = next(known, None)
        if call is None:
            call = _PartCall(index)
            self._calls.append(call)
        self._current[index] = call
        call.id = call.id or identity
        function = _object(entry.get("function") or {})
        call.name = call.name or _text(function.get("name"))
        call.arguments.append(_text(function.get("arguments")))

    def answer(self) -> Answer:
        calls = tuple(
            call_from_text(call.id, call.name, "".join(call.arguments))
            for call in sorted(self._calls, key=lambda call: call.index)
        )
        return Answer(
            content="".join(self._content),
            calls=calls,
            finish_reason=self._finish,
            complete=not self._failed and self._finish not in (None, "length", "content_filter"),
            thinking=self._thinking,
        )


def _decode(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise MalformedError(f"answer is not JSON: {error}") from error


def _first_choice(body: dict[str, Any]) -> dict[str, Any] | None:
    for choice in _list(body.get("choices")):
        fields = _object(choice)
        if fields.get("index", 0) == 0:
            return fields
    return None


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise MalformedError("answer does not have the form of a chat completion")
    return cast(dict[str, Any], value)


def _list(value: Any) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
