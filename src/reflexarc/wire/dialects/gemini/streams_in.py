"""Streams of `generateContent`, read. A whole body is a stream of one chunk.

Each chunk is a response with what is new of the parts. A stream's end is a finish reason and then
the end of the bytes: usage and grounding may come after the reason. What a candidate tells beside
its content becomes a part that only this dialect knows, after the others.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, cast

import msgspec

from reflexarc.steps.errors import RequestError
from reflexarc.wire.dialects.gemini.faults import error_in, fault_of
from reflexarc.wire.dialects.gemini.partial_calls import PartialCall
from reflexarc.wire.dialects.gemini.parts_in import read_part
from reflexarc.wire.dialects.gemini.shapes import NAME, listed, members
from reflexarc.wire.dialects.gemini.words import BESIDE_CANDIDATES, BROKEN, PLAIN, STOPS
from reflexarc.wire.faults import Fault
from reflexarc.wire.ids import made_id
from reflexarc.wire.replies import (
    Began,
    Ended,
    Event,
    Failed,
    PartBegan,
    PartEnded,
    PartGrew,
    PartSigned,
    ReplyPart,
    Stop,
)
from reflexarc.wire.sse import SseEvent
from reflexarc.wire.turns import Call, Foreign, Result, Text, Thinking
from reflexarc.wire.usage import Usage, merged, usage_from_gemini

_TELLING = frozenset({"responseId", "modelVersion", "candidates", "promptFeedback"})
"""A chunk with none of these keeps the line open, and tells nothing of the answer."""
_KNOWN = frozenset(
    {
        "candidates",
        "content",
        "finishReason",
        "index",
        "modelVersion",
        "parts",
        "responseId",
        "role",
        "usageMetadata",
        "promptTokenCount",
        "candidatesTokenCount",
        "totalTokenCount",
        "thoughtsTokenCount",
        "cachedContentTokenCount",
        "promptTokensDetails",
        "candidatesTokensDetails",
    }
)
_NOT_KEPT = frozenset({"content", "index", "finishReason", "tokenCount"})


class GeminiStreamReader:
    def __init__(self) -> None:
        self._began = False
        self._over = False
        self._salt = ""
        self._next = 0
        self._open: int | None = None
        self._open_kind = ""
        self._reason: str | None = None
        self._blocked = False
        self._usage: Usage | None = None
        self._told: dict[str, Any] = {}
        self._extra: dict[str, Any] = {}
        self._calls = False
        self._partial = PartialCall()

    def read(self, event: SseEvent) -> Iterable[Event]:
        if self._over or event.data == b"[DONE]":
            return ()
        try:
            value: Any = msgspec.json.decode(event.data)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return self._failed("a chunk of the provider's is not JSON")
        return self.take(value)

    def take(self, value: Any) -> list[Event]:
        """The events of one response."""
        error = error_in(value)
        if error is not None:
            self._over = True
            return [Failed(fault_of(error))]
        if not isinstance(value, dict):
            return self._failed("a chunk of the provider's is not a JSON object")
        events: list[Event] = []
        try:
            self._take(cast("dict[str, Any]", value), events)
        except RequestError as error:
            events += self._failed(f"a chunk of the provider's cannot be read: {error}")
        return events

    def close(self) -> Iterable[Event]:
        if self._over:
            return ()
        if self._reason is None and not self._blocked:
            self._over = True
            fault = Fault(
                "upstream",
                "the provider's stream ended before its answer did",
                502,
                code="upstream_truncated",
            )
            return [Failed(fault)]
        return self.end()

    def end(self) -> list[Event]:
        """The end of an answer that is all there."""
        self._over = True
        events: list[Event] = []
        if not self._began:
            self._begin({}, events)
        cut = self._partial.end()
        if cut is not None:
            self._call(cut, events)
        reason = self._reason
        if reason in BROKEN and self._next == 0:
            told = self._extra.get("finishMessage")
            words = f": {told}" if isinstance(told, str) else ""
            message = f"the model's turn came to nothing ({reason}){words}"
            return [Failed(Fault("upstream", message, 502, code=reason.lower()))]
        self._end_open(events)
        if reason is not None and reason not in PLAIN:
            self._extra = {"finishReason": reason, **self._extra}
        for name, held in self._extra.items():
            self._whole(Foreign(name, {name: held}), events)
        stop: Stop = "filter" if self._blocked else STOPS.get(reason or "", "truncated")
        if stop == "end" and self._calls:
            stop = "calls"
        events.append(Ended(stop, usage=self._counted()))
        return events

    def _failed(self, message: str) -> list[Event]:
        self._over = True
        return [Failed(Fault("upstream", message, 502, code="upstream_malformed"))]

    def _take(self, value: dict[str, Any], events: list[Event]) -> None:
        given = _plain(value, "chunk")
        told = given.get("usageMetadata")
        if told is not None:
            self._count(_plain(told, "usageMetadata"))
        if not self._began and not _TELLING.isdisjoint(given):
            self._begin(given, events)
        if not BESIDE_CANDIDATES.isdisjoint(given):
            for name in BESIDE_CANDIDATES & given.keys():
                if given[name] is not None:
                    self._extra[name] = given[name]
            feedback = given.get("promptFeedback")
            if isinstance(feedback, dict):
                reason = members(feedback, "promptFeedback").get("blockReason")
                self._blocked = self._blocked or isinstance(reason, str)
        candidate = _first(given.get("candidates"))
        if candidate is not None:
            self._candidate(candidate, events)

    def _begin(self, given: dict[str, Any], events: list[Event]) -> None:
        self._began = True
        self._salt = _text(given, "responseId")
        model = _text(given, "modelVersion").removeprefix("models/")
        created = _created(given.get("createTime"))
        events.append(Began(self._salt, model, created, self._counted(), origin=NAME))

    def _count(self, told: dict[str, Any]) -> None:
        """Cumulative: the last counts. One that leaves something out does not take it back."""
        if len(told) < len(self._told):
            self._usage = self._counted()
        self._told = told

    def _counted(self) -> Usage | None:
        usage = usage_from_gemini(self._told)
        if usage is not None and usage.input and usage.output:
            return usage
        return merged(self._usage, usage)

    def _candidate(self, value: Any, events: list[Event]) -> None:
        given = _plain(value, "candidates[0]")
        content = given.get("content")
        if content is not None:
            parts = _plain(content, "content").get("parts")
            if parts is not None:
                for at, part in enumerate(listed(parts, "content.parts")):
                    self._part(part, f"content.parts[{at}]", events)
        reason = given.get("finishReason")
        if isinstance(reason, str) and reason != "FINISH_REASON_UNSPECIFIED":
            self._reason = reason
        if not given.keys() <= _NOT_KEPT:
            for name, held in given.items():
                if name not in _NOT_KEPT and held not in (None, [], {}):
                    self._extra[name] = held

    def _part(self, value: Any, path: str, events: list[Event]) -> None:
        # The most of a stream is this.
        if isinstance(value, dict) and len(cast("dict[str, Any]", value)) == 1:
            text = cast("dict[str, Any]", value).get("text")
            if isinstance(text, str):
                if text:
                    self._grow("text", Text(""), text, events)
                return
        if value == {}:
            return
        is_bit, whole = self._partial.take(value)
        if whole is not None:
            self._call(whole, events)
        if is_bit:
            return
        for part in read_part(value, path):
            if isinstance(part, Text):
                self._say(part, events)
            elif isinstance(part, Thinking) and not part.redacted:
                self._think(part, events)
            elif isinstance(part, Call):
                self._call(part, events)
            elif isinstance(part, Result):
                raise RequestError(f"{path} holds a functionResponse")
            else:
                self._whole(part, events)

    def _grow(self, kind: str, empty: ReplyPart, text: str, events: list[Event]) -> None:
        if self._open is None or self._open_kind != kind:
            self._end_open(events)
            self._open, self._open_kind = self._next, kind
            self._next += 1
            events.append(PartBegan(self._open, empty))
        if text:
            events.append(PartGrew(self._open, text))

    def _say(self, part: Text, events: list[Event]) -> None:
        if part.more:
            self._end_open(events)
        if part.text or part.more:
            self._grow("text", msgspec.structs.replace(part, text=""), part.text, events)
        if part.more:
            self._end_open(events)

    def _think(self, part: Thinking, events: list[Event]) -> None:
        empty = msgspec.structs.replace(part, text="", signature=None)
        self._grow(f"thinking of {part.origin}", empty, part.text, events)
        if part.signature is not None and self._open is not None:
            events.append(PartSigned(self._open, part.signature, part.origin))
            self._end_open(events)

    def _call(self, call: Call, events: list[Event]) -> None:
        self._end_open(events)
        self._calls = True
        at = self._next
        self._next += 1
        # Ids must differ over a conversation, which holds more answers than this one.
        identity = call.id or made_id(f"{self._salt}/{at}", call.name, call.arguments)
        empty = msgspec.structs.replace(call, id=identity, arguments="")
        events += [PartBegan(at, empty), PartGrew(at, call.arguments)]
        events.append(PartEnded(at))

    def _whole(self, part: ReplyPart, events: list[Event]) -> None:
        self._end_open(events)
        at = self._next
        self._next += 1
        events += [PartBegan(at, part), PartEnded(at)]

    def _end_open(self, events: list[Event]) -> None:
        if self._open is not None:
            events.append(PartEnded(self._open))
            self._open = None


def _plain(value: Any, path: str) -> dict[str, Any]:
    """An object under camelCase names. Most come so, and are not copied; nulls may stand in it."""
    if isinstance(value, dict):
        given = cast("dict[str, Any]", value)
        if given.keys() <= _KNOWN:
            return given
    return members(value, path)


def _first(candidates: Any) -> Any:
    """The candidate that counts: the first of those without another index."""
    if isinstance(candidates, dict):
        return cast("dict[str, Any]", candidates)
    if not isinstance(candidates, list):
        return None
    for one in cast("list[Any]", candidates):
        given = cast("dict[str, Any]", one) if isinstance(one, dict) else None
        if given is None or given.get("index") in (None, 0):
            return cast("Any", one)
    return None


def _text(given: dict[str, Any], name: str) -> str:
    value = given.get(name)
    return value if isinstance(value, str) else ""


def _created(value: Any) -> int:
    if not isinstance(value, str):
        return 0
    try:
        return int(datetime.fromisoformat(value).timestamp())
    except (ValueError, OverflowError):
        return 0
