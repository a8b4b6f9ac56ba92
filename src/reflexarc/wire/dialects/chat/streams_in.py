"""Streams of chat completion chunks, read: the first choice, whatever its provider makes of it."""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from reflexarc.wire.dialects.chat.replies_in import (
    first_choice,
    made_id,
    seconds,
    text_of,
    usage_in,
)
from reflexarc.wire.dialects.chat.thoughts import ORIGIN, opened, signature_of
from reflexarc.wire.dialects.chat.words import stop_from
from reflexarc.wire.dialects.openai_faults import fault_of
from reflexarc.wire.faults import Fault
from reflexarc.wire.replies import (
    Began,
    Ended,
    Event,
    Failed,
    PartBegan,
    PartEnded,
    PartGrew,
    PartSigned,
)
from reflexarc.wire.sealed import Sealed, unseal
from reflexarc.wire.sse import SseEvent
from reflexarc.wire.turns import Call, Foreign, Refusal, Text, Thinking
from reflexarc.wire.usage import Usage, merged

_OLD_CALL = -1
"""The index of a call in the older form, `function_call`."""
_KINDS: dict[str, type[Text | Thinking | Refusal]] = {
    "text": Text,
    "thinking": Thinking,
    "refusal": Refusal,
}


class _Growing(msgspec.Struct):
    """A call as far as it has come. It begins for others once it has a name."""

    at: int
    id: str
    name: str = ""
    begun: bool = False
    custom: bool = False
    signed: bool = False
    pieces: list[str] = []
    size: int = 0

    def write(self, text: str) -> None:
        self.pieces.append(text)
        self.size += len(text)

    @property
    def written(self) -> str:
        """All of its arguments so far. Put together only where somebody asks."""
        if len(self.pieces) > 1:
            self.pieces[:] = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""

    @property
    def is_whole(self) -> bool:
        """Whether its arguments are a whole object: nothing can follow them."""
        last = self.pieces[-1] if self.pieces else ""
        return last.rstrip().endswith("}") and _is_object(self.written)


class ChatStreamReader:
    def __init__(self) -> None:
        self._id = ""
        self._began = False
        self._over = False
        self._finish: str | None = None
        self._usage: Usage | None = None
        self._tier: str | None = None
        self._parts = 0
        self._open: tuple[int, str] | None = None
        self._calls: list[_Growing] = []
        self._by_index: dict[int, _Growing] = {}
        self._details: list[Any] = []
        self._heard_audio = False
        self._refused = False

    def read(self, event: SseEvent) -> list[Event]:
        if self._over:
            return []
        data = event.data.strip()
        if not data:
            return []
        if data == b"[DONE]":
            return list(self._end())
        try:
            chunk: Any = msgspec.json.decode(data)
        except (msgspec.MsgspecError, RecursionError):
            return self._fail("upstream_malformed", "the upstream sent an event that is not JSON")
        if not isinstance(chunk, dict):
            return self._fail(
                "upstream_malformed", "the upstream sent an event that is not a JSON object"
            )
        return list(self._chunk(cast("dict[str, Any]", chunk)))

    def close(self) -> list[Event]:
        if self._over:
            return []
        if self._finish is not None:
            return list(self._end())
        return self._fail("upstream_truncated", "the upstream's stream broke off before its end")

    def _chunk(self, chunk: dict[str, Any]) -> Iterator[Event]:
        error = chunk.get("error")
        if error is not None:
            self._over = True
            yield Failed(fault_of(chunk))
            return
        if not self._began:
            self._began = True
            self._id = text_of(chunk.get("id"))
            yield Began(
                self._id,
                text_of(chunk.get("model")),
                seconds(chunk.get("created")),
                origin=ORIGIN,
            )
        if "usage" in chunk or "x_groq" in chunk:
            self._usage = merged(self._usage, usage_in(chunk))
        self._tier = text_of(chunk.get("service_tier")) or self._tier
        choice = first_choice(chunk)
        if choice is None:
            return
        delta = choice.get("delta")
        if isinstance(delta, dict):
            yield from self._delta(cast("dict[str, Any]", delta))
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and finish:
            self._finish = finish

    def _delta(self, delta: dict[str, Any]) -> Iterator[Event]:
        if len(delta) == 1 and isinstance(text := delta.get("content"), str):
            yield from self._say("text", text)  # the most of a stream
            return
        thought = text_of(delta.get("reasoning_content")) or text_of(delta.get("reasoning"))
        if thought:
            yield from self._say("thinking", thought)
        details = delta.get("reasoning_details")
        if isinstance(details, list):
            yield from self._detail(cast("list[Any]", details), shown=bool(thought))
        content = delta.get("content")
        if isinstance(content, str):
            if content:
                yield from self._say("text", content)
        elif isinstance(content, list):
            for part in cast("list[Any]", content):
                yield from self._listed(part)
        refusal = text_of(delta.get("refusal"))
        if refusal:
            self._refused = True
            yield from self._say("refusal", refusal)
        calls = delta.get("tool_calls")
        if isinstance(calls, list):
            for place, entry in enumerate(cast("list[Any]", calls)):
                if isinstance(entry, dict):
                    yield from self._call(place, cast("dict[str, Any]", entry))
        old = delta.get("function_call")
        if isinstance(old, dict):
            yield from self._call(_OLD_CALL, {"index": _OLD_CALL, "function": old})
        audio = delta.get("audio")
        if isinstance(audio, dict) and audio and not self._heard_audio:
            self._heard_audio = True
            yield from self._whole(Foreign("audio", cast("dict[str, Any]", audio)))

    def _listed(self, part: Any) -> Iterator[Event]:
        """Content in parts, as some providers stream it."""
        fields = cast("dict[str, Any]", part) if isinstance(part, dict) else {}
        kind = fields.get("type")
        if kind == "text":
            yield from self._say("text", text_of(fields.get("text")))
        elif kind == "thinking":
            inner = fields.get("thinking")
            for piece in cast("list[Any]", inner) if isinstance(inner, list) else [inner]:
                within = (
                    cast("dict[str, Any]", piece) if isinstance(piece, dict) else {"text": piece}
                )
                yield from self._say("thinking", text_of(within.get("text")))
        elif isinstance(kind, str):
            yield from self._whole(Foreign(kind, fields))

    def _say(self, kind: str, text: str) -> Iterator[Event]:
        if not text:
            return
        if self._open is None or self._open[1] != kind:
            yield from self._close_open()
            at = self._parts
            self._parts += 1
            self._open = (at, kind)
            made = _KINDS[kind]
            part = Thinking("", origin=ORIGIN) if made is Thinking else made("")
            yield PartBegan(at, part)
        yield PartGrew(self._open[0], text)

    def _detail(self, details: list[Any], *, shown: bool) -> Iterator[Event]:
        """What was sealed for another dialect comes whole; a provider's own pieces are put together
        by their index, and go with the thinking when it ends."""
        for item in details:
            if not isinstance(item, dict):
                continue
            fields = cast("dict[str, Any]", item)
            data = fields.get("data")
            sealed = unseal(data) if isinstance(data, str) else None
            if sealed is not None:
                yield from self._unsealed(sealed)
                continue
            _gather(self._details, fields)
            text = text_of(fields.get("text")) or text_of(fields.get("summary"))
            if text and not shown:
                yield from self._say("thinking", text)

    def _unsealed(self, sealed: Sealed) -> Iterator[Event]:
        if not sealed.calls:
            yield from self._whole(opened(sealed))
            return
        for call in self._calls:
            signature = sealed.calls.get(call.id)
            if signature is not None and not call.signed:
                call.signed = True
                yield PartSigned(call.at, signature, sealed.origin)

    def _whole(self, part: Foreign | Thinking) -> Iterator[Event]:
        yield from self._close_open()
        at = self._parts
        self._parts += 1
        yield PartBegan(at, part)
        yield PartEnded(at)

    def _close_open(self) -> Iterator[Event]:
        if self._open is None:
            return
        at, kind = self._open
        self._open = None
        if kind == "thinking" and self._details:
            yield PartSigned(at, signature_of(self._details), ORIGIN)
            self._details = []
        yield PartEnded(at)

    def _call(self, place: int, entry: dict[str, Any]) -> Iterator[Event]:
        index = entry.get("index")
        if isinstance(index, bool) or not isinstance(index, int):
            index = place
        inner = entry.get("function")
        custom = entry.get("custom")
        is_custom = isinstance(custom, dict) and not isinstance(inner, dict)
        within = cast("Any", custom if is_custom else inner)
        fields = cast("dict[str, Any]", within) if isinstance(within, dict) else {}
        identity, name = text_of(entry.get("id")), text_of(fields.get("name"))
        given = fields.get("input" if is_custom else "arguments")
        if isinstance(given, dict | list):  # some providers send the value instead of its text
            text = msgspec.json.encode(cast("Any", given)).decode()
        else:
            text = text_of(given)
        call = self._known(index, identity, name, text)
        if call is None:
            yield from self._close_open()
            call = _Growing(self._parts, identity or made_id(self._id, self._parts))
            self._parts += 1
            self._calls.append(call)
        self._by_index[index] = call
        call.custom = call.custom or is_custom
        signature = _signature(entry)
        if name and not call.begun:
            call.name, call.begun, call.signed = name, True, signature is not None
            kind = "custom" if call.custom else "function"
            origin = "gemini" if call.signed else ""
            yield PartBegan(call.at, Call(call.id, name, "", kind, signature, origin))
            if call.size:
                yield PartGrew(call.at, call.written)
        again = len(text) == call.size and text == call.written and _is_object(text)
        if text and not again:
            call.write(text)
            if call.begun:
                yield PartGrew(call.at, text)
        if signature is not None and call.begun and not call.signed:
            call.signed = True
            yield PartSigned(call.at, signature, "gemini")

    def _known(self, index: int, identity: str, name: str, text: str) -> _Growing | None:
        """The call a piece belongs to; None where it begins one. Some providers give every call of
        a batch the same index, or none: then ids tell, or else that a whole call is followed by
        another with a name and arguments."""
        call = self._by_index.get(index)
        if call is None:
            return None
        if identity and call.id != identity:
            if not call.begun and not call.size:
                call.id = identity
                return call
            return next((one for one in self._calls if one.id == identity), None)
        again = bool(name and text) and not identity and call.begun and call.is_whole
        if again and (name != call.name or text != call.written):
            return None
        return call

    def _end(self) -> Iterator[Event]:
        self._over = True
        if self._details and (self._open is None or self._open[1] != "thinking"):
            yield from self._close_open()
            self._open = (self._parts, "thinking")
            self._parts += 1
            yield PartBegan(self._open[0], Thinking("", origin=ORIGIN))
        yield from self._close_open()
        if any(not call.begun for call in self._calls):
            words = "the upstream's stream holds a call without a name"
            yield from self._fail("upstream_malformed", words)
            return
        for call in self._calls:
            yield PartEnded(call.at)
        stop = stop_from(self._finish)
        if stop == "end" and (self._calls or self._refused):
            stop = "calls" if self._calls else "refusal"
        yield Ended(stop, usage=self._usage, service_tier=self._tier)

    def _fail(self, code: str, message: str) -> list[Event]:
        self._over = True
        return [Failed(Fault("upstream", message, 502, code=code))]


def _gather(details: list[Any], item: dict[str, Any]) -> None:
    """Adds a piece of `reasoning_details` to those before it: texts of one index and type grow."""
    key = (item.get("index"), item.get("type"))
    for known in details:
        if key[0] is not None and (known.get("index"), known.get("type")) == key:
            for name, value in item.items():
                grows = name in ("text", "summary", "data") and isinstance(known.get(name), str)
                if grows and isinstance(value, str):
                    known[name] += value
                elif value is not None:
                    known[name] = value
            return
    details.append(dict(item))


def _is_object(text: str) -> bool:
    """Whether arguments are whole: nothing can follow them."""
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (msgspec.MsgspecError, RecursionError):
        return False


def _signature(entry: dict[str, Any]) -> str | None:
    extra = entry.get("extra_content")
    google = cast("dict[str, Any]", extra).get("google") if isinstance(extra, dict) else None
    if not isinstance(google, dict):
        return None
    signature = cast("dict[str, Any]", google).get("thought_signature")
    return signature if isinstance(signature, str) else None
