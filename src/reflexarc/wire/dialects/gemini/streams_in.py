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
from reflexarc.wire.dialects.gemini.partial_args import PartialArgs
from reflexarc.wire.dialects.gemini.parts_in import read_part
from reflexarc.wire.dialects.gemini.shapes import NAME, compact, listed, members
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

STOPS: dict[str, Stop] = {
    "STOP": "end",
    "MAX_TOKENS": "length",
    "SAFETY": "filter",
    "RECITATION": "filter",
    "LANGUAGE": "filter",
    "BLOCKLIST": "filter",
    "PROHIBITED_CONTENT": "filter",
    "SPII": "filter",
    "IMAGE_SAFETY": "filter",
    "IMAGE_PROHIBITED_CONTENT": "filter",
    "IMAGE_RECITATION": "filter",
    "MODEL_ARMOR": "filter",
    "CONTINUATION": "pause",
}
_BROKEN = frozenset(
    {
        "MALFORMED_FUNCTION_CALL",
        "MALFORMED_RESPONSE",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "MISSING_THOUGHT_SIGNATURE",
    }
)
"""The model's turn came to nothing: an error where there is no answer, a cut one where there is."""
_PLAIN = frozenset({"STOP", "MAX_TOKENS", "SAFETY", "CONTINUATION"})
"""Reasons that are written again as they were."""
BESIDE_CANDIDATES = frozenset({"promptFeedback", "modelStatus"})
_TELLING = frozenset({"responseId", "modelVersion", "candidates", "promptFeedback"})
"""A chunk with none of these keeps the line open, and tells nothing of the answer."""
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
        self._extra: dict[str, Any] = {}
        self._calls = False
        self._partial: tuple[Call, PartialArgs] | None = None

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
        self._end_partial(events)
        reason = self._reason
        if reason in _BROKEN and self._next == 0:
            told = self._extra.get("finishMessage")
            words = f": {told}" if isinstance(told, str) else ""
            message = f"the model's turn came to nothing ({reason}){words}"
            return [Failed(Fault("upstream", message, 502, code=reason.lower()))]
        self._end_open(events)
        if reason is not None and reason not in _PLAIN:
            self._extra = {"finishReason": reason, **self._extra}
        for name, held in self._extra.items():
            self._whole(Foreign(name, {name: held}), events)
        stop: Stop = "filter" if self._blocked else STOPS.get(reason or "", "truncated")
        if stop == "end" and self._calls:
            stop = "calls"
        events.append(Ended(stop, usage=self._usage))
        return events

    def _failed(self, message: str) -> list[Event]:
        self._over = True
        return [Failed(Fault("upstream", message, 502, code="upstream_malformed"))]

    def _take(self, value: dict[str, Any], events: list[Event]) -> None:
        given = members(value, "chunk")
        usage = usage_from_gemini(given.get("usageMetadata"))
        if usage is not None:
            # Cumulative; a last telling that leaves something out does not take it back.
            whole = usage.input and usage.output
            self._usage = usage if whole else merged(self._usage, usage)
        if not self._began and not _TELLING.isdisjoint(given):
            self._began = True
            self._salt = _text(given, "responseId")
            model = _text(given, "modelVersion").removeprefix("models/")
            created = _created(given.get("createTime"))
            events.append(Began(self._salt, model, created, usage, origin=NAME))
        for name in BESIDE_CANDIDATES:
            if name in given:
                self._extra[name] = given[name]
        feedback = given.get("promptFeedback")
        if isinstance(feedback, dict):
            reason = members(feedback, "promptFeedback").get("blockReason")
            self._blocked = self._blocked or isinstance(reason, str)
        candidate = _first(given.get("candidates"))
        if candidate is not None:
            self._candidate(candidate, events)

    def _candidate(self, value: Any, events: list[Event]) -> None:
        given = members(value, "candidates[0]")
        content = given.get("content")
        if content is not None:
            parts = members(content, "content").get("parts", [])
            for at, part in enumerate(listed(parts, "content.parts")):
                self._part(part, f"content.parts[{at}]", events)
        reason = given.get("finishReason")
        if isinstance(reason, str) and reason != "FINISH_REASON_UNSPECIFIED":
            self._reason = reason
        for name, held in given.items():
            if name not in _NOT_KEPT and held != [] and held != {}:
                self._extra[name] = held

    def _part(self, value: Any, path: str, events: list[Event]) -> None:
        # The most of a stream is this.
        if isinstance(value, dict) and len(cast("dict[str, Any]", value)) == 1:
            text = cast("dict[str, Any]", value).get("text")
            if isinstance(text, str):
                if text:
                    self._grow("text", Text(""), text, events)
                return
        if value == {} or self._partly(value, events):
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
        empty = msgspec.structs.replace(call, id=identity, arguments="", signature=None)
        events += [PartBegan(at, empty), PartGrew(at, call.arguments)]
        if call.signature is not None:
            events.append(PartSigned(at, call.signature, call.origin))
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

    def _partly(self, value: Any, events: list[Event]) -> bool:
        """Whether it was a bit of a call that comes in several."""
        if not isinstance(value, dict):
            return False
        outer = members(value, "part")
        held = outer.get("functionCall")
        if not isinstance(held, dict):
            return False
        given = members(held, "functionCall")
        goes_on = given.pop("willContinue", False) is True
        bits = given.pop("partialArgs", [])
        if self._partial is None:
            if not goes_on and not bits:
                return False
            begun = {**outer, "functionCall": {k: v for k, v in given.items() if k != "args"}}
            read = read_part(begun, "part")[0]
            args = given.get("args", {})
            if not isinstance(read, Call) or not isinstance(args, dict):
                return False
            self._partial = (read, PartialArgs(cast("dict[str, Any]", args)))
        call, partial = self._partial
        signature = outer.get("thoughtSignature")
        if isinstance(signature, str) and call.signature is None:
            call = msgspec.structs.replace(call, signature=signature, origin=NAME)
            self._partial = (call, partial)
        for bit in cast("list[Any]", bits) if isinstance(bits, list) else [bits]:
            if not partial.take(bit):
                raise RequestError("functionCall.partialArgs cannot be read")
        if not goes_on:
            self._end_partial(events)
        return True

    def _end_partial(self, events: list[Event]) -> None:
        if self._partial is not None:
            call, partial = self._partial
            self._partial = None
            self._call(msgspec.structs.replace(call, arguments=compact(partial.args)), events)


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
