"""Streams of the messages dialect to events. Nothing that a provider sends makes it raise."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, cast

import msgspec

from reflexarc.steps.errors import RequestError
from reflexarc.wire.dialects.messages.blocks_in import part_of
from reflexarc.wire.dialects.messages.faults import fault_in
from reflexarc.wire.dialects.messages.replies import stop_read, usage_rest
from reflexarc.wire.dialects.messages.words import NAME
from reflexarc.wire.faults import Fault
from reflexarc.wire.replies import (
    Began,
    Ended,
    Event,
    Failed,
    PartBegan,
    PartEnded,
    PartGrew,
    PartNoted,
    PartSigned,
    ReplyPart,
)
from reflexarc.wire.sse import SseEvent
from reflexarc.wire.turns import Call, Foreign, Result, Text, Thinking
from reflexarc.wire.usage import Usage, merged, usage_from_messages

_Kind = Literal["text", "thinking", "call", "whole"]


class _Block:
    """A block that began. `at` is its part's number, None for one that is given when it is whole;
    `held` what stands in for deltas where none come: a call's input, a thought's signature."""

    def __init__(self, kind: _Kind, at: int | None, value: dict[str, Any]) -> None:
        self.kind: _Kind = kind
        self.at = at
        self.value = value
        self.open = True
        self.held: str | None = None
        self.pieces: list[str] = []


class MessagesStreamReader:
    def __init__(self) -> None:
        self._done = False
        self._began = False
        self._parts = 0
        self._called = False
        self._blocks: dict[int, _Block] = {}
        self._last = -1
        self._said: _Block | None = None
        self._usage: Usage | None = None
        self._used: Usage | None = None
        self._tier: str | None = None
        self._word: str | None = None
        self._stop_sequence: str | None = None
        self._takers: dict[str, Callable[[dict[str, Any]], list[Event]]] = {
            "message_start": self._start,
            "content_block_start": self._begin,
            "content_block_delta": self._grow,
            "content_block_stop": self._stop,
            "message_delta": self._tell,
            "message_stop": self._end,
            "error": self._error,
        }

    def read(self, event: SseEvent) -> Iterable[Event]:
        if self._done or event.data == b"[DONE]":
            return ()
        try:
            value = msgspec.json.decode(event.data)
        except (msgspec.DecodeError, RecursionError):
            value = None
        if not isinstance(value, dict):
            return self._fail("the upstream sent an event that is not a JSON object")
        data = cast("dict[str, Any]", value)
        kind = data.get("type")
        if not isinstance(kind, str):
            kind = "error" if "error" in data else event.name.decode(errors="replace")
        take = self._takers.get(kind)
        if take is None:
            return ()
        try:
            return take(data)
        except RequestError as error:
            return self._fail(f"the upstream sent an event that does not fit: {error}")

    def close(self) -> Iterable[Event]:
        if self._done:
            return ()
        self._done = True
        return [
            Failed(
                Fault(
                    "upstream",
                    "the upstream's stream broke off before its end",
                    502,
                    code="upstream_truncated",
                )
            )
        ]

    def _start(self, data: dict[str, Any]) -> list[Event]:
        if self._began:
            return []
        self._began = True
        message = _object(data.get("message"))
        usage = message.get("usage")
        self._usage = usage_from_messages(usage)
        self._tier, _ = usage_rest(usage)
        return [
            Began(
                _string(message.get("id")),
                _string(message.get("model")),
                usage=self._usage,
                service_tier=self._tier,
                origin=NAME,
            )
        ]

    def _begin(self, data: dict[str, Any]) -> list[Event]:
        value = _object(data.get("content_block"))
        kind = value.get("type")
        at = self._index(data, self._last + 1)
        events = self._close_block(self._blocks.get(at))
        if kind in ("text", "thinking"):
            block = _Block(kind, None, value)
            events += self._open(block)
        elif kind == "tool_use":
            part = part_of(value, "content_block")
            events += self._close_block(self._said)
            block = _Block("call", self._parts, value)
            if isinstance(part, Call):
                block.held = None if part.arguments == "{}" else part.arguments
                events += self._part_began(msgspec.structs.replace(part, arguments=""))
            self._called = True
        else:
            block = _Block("whole", None, dict(value))
        self._blocks[at] = block
        self._last = at
        return events

    def _open(self, block: _Block, again: bool = False) -> list[Event]:
        """A part of text or thinking; one that is still open ends, as only calls may stand open
        beside one another."""
        events = self._close_block(self._said)
        if again:
            part: ReplyPart = Text("") if block.kind == "text" else Thinking("", origin=NAME)
            grown = ""
        else:
            part, grown = _emptied(block)
        block.at, block.open = self._parts, True
        self._said = block
        events += self._part_began(part)
        if grown:
            events.append(PartGrew(block.at, grown))
        return events

    def _grow(self, data: dict[str, Any]) -> list[Event]:
        delta = _object(data.get("delta"))
        kind = delta.get("type")
        block = self._blocks.get(self._index(data, self._last))
        if kind == "text_delta":
            return self._grow_said(data, block, "text", _string(delta.get("text")))
        if kind == "thinking_delta":
            return self._grow_said(data, block, "thinking", _string(delta.get("thinking")))
        if kind == "input_json_delta":
            return self._grow_input(block, _string(delta.get("partial_json")))
        if block is None:
            return []
        if kind == "signature_delta":
            return self._sign(block, _string(delta.get("signature")))
        if kind == "citations_delta":
            if block.kind != "text" or block.at is None or not block.open:
                return []
            return [PartNoted(block.at, "citations", delta.get("citation"))]
        if block.kind == "whole":
            _merge(block.value, delta)
        return []

    def _grow_said(
        self, data: dict[str, Any], block: _Block | None, kind: _Kind, text: str
    ) -> list[Event]:
        if not text:
            return []
        if block is None or (block.kind != kind and block.kind != "whole"):
            # Nothing said that this would come; what comes is not lost for it.
            at = self._index(data, self._last + 1)
            if block is not None:
                at = max(self._blocks) + 1
            block = _Block(kind, None, {"type": kind, kind: ""})
            self._blocks[at], self._last = block, at
            events = self._open(block)
        elif block.kind == "whole":
            block.value[kind] = _string(block.value.get(kind)) + text
            return []
        else:
            events = [] if block.open else self._open(block, again=True)
        assert block.at is not None
        events.append(PartGrew(block.at, text))
        return events

    def _grow_input(self, block: _Block | None, text: str) -> list[Event]:
        if not text:
            return []
        if block is not None and block.kind == "whole":
            block.pieces.append(text)
            return []
        if block is None or block.kind != "call" or block.at is None or not block.open:
            return self._fail("the upstream sent arguments of a call that is not under way")
        block.held = None
        return [PartGrew(block.at, text)]

    def _sign(self, block: _Block, signature: str) -> list[Event]:
        if block.kind != "thinking":
            return []
        events = [] if block.open else self._open(block, again=True)
        block.held = None
        assert block.at is not None
        events.append(PartSigned(block.at, signature, NAME))
        return events

    def _stop(self, data: dict[str, Any]) -> list[Event]:
        return self._close_block(self._blocks.get(self._index(data, self._last)))

    def _close_block(self, block: _Block | None) -> list[Event]:
        if block is None or not block.open:
            return []
        block.open = False
        if block is self._said:
            self._said = None
        if block.kind == "whole":
            return self._given_whole(block)
        assert block.at is not None
        events: list[Event] = []
        if block.held is not None:
            signed = block.kind == "thinking"
            events.append(
                PartSigned(block.at, block.held, NAME) if signed else PartGrew(block.at, block.held)
            )
            block.held = None
        return [*events, PartEnded(block.at)]

    def _given_whole(self, block: _Block) -> list[Event]:
        value = block.value
        if block.pieces:
            try:
                value["input"] = msgspec.json.decode("".join(block.pieces))
            except (msgspec.DecodeError, RecursionError):
                return self._fail("the upstream sent a block whose input is not JSON")
        part = part_of(value, "content_block")
        if isinstance(part, Result):
            part = Foreign("tool_result", value)
        at = self._parts
        return [*self._close_block(self._said), *self._part_began(part), PartEnded(at)]

    def _tell(self, data: dict[str, Any]) -> list[Event]:
        delta = _object(data.get("delta"))
        word = delta.get("stop_reason")
        if isinstance(word, str):
            self._word = word
        sequence = delta.get("stop_sequence")
        if isinstance(sequence, str):
            self._stop_sequence = sequence
        usage = data.get("usage")
        self._used = merged(self._used, usage_from_messages(usage))
        tier, _ = usage_rest(usage)
        self._tier = tier or self._tier
        return []

    def _end(self, _: dict[str, Any]) -> list[Event]:
        events: list[Event] = []
        for block in self._blocks.values():
            events += self._close_block(block)
            if self._done:
                return events
        self._done = True
        stop = stop_read(self._word, [])
        return [
            *self._began_anyway(),
            *events,
            Ended(
                "calls" if stop == "end" and self._called else stop,
                self._stop_sequence,
                None if self._used is None else merged(self._usage, self._used),
                self._tier,
            ),
        ]

    def _error(self, data: dict[str, Any]) -> list[Event]:
        self._done = True
        fault = fault_in(data)
        return [Failed(fault or Fault("api", "the upstream failed without saying why", 500))]

    def _fail(self, message: str) -> list[Event]:
        self._done = True
        return [Failed(Fault("upstream", message, 502, code="upstream_malformed"))]

    def _part_began(self, part: ReplyPart) -> list[Event]:
        events = [*self._began_anyway(), PartBegan(self._parts, part)]
        self._parts += 1
        return events

    def _began_anyway(self) -> list[Event]:
        if self._began:
            return []
        self._began = True
        return [Began("", "", origin=NAME)]

    def _index(self, data: dict[str, Any], missing: int) -> int:
        index = data.get("index")
        return index if isinstance(index, int) and not isinstance(index, bool) else missing


def _emptied(block: _Block) -> tuple[ReplyPart, str]:
    """The part that a block begins, and the text it has already."""
    given = {**block.value, block.kind: _string(block.value.get(block.kind))}
    part = part_of(given, "content_block")
    if isinstance(part, Thinking):
        block.held = part.signature
        return msgspec.structs.replace(part, text="", signature=None), part.text
    if isinstance(part, Text):
        return msgspec.structs.replace(part, text=""), part.text
    return Foreign(block.kind, block.value), ""


def _merge(value: dict[str, Any], delta: dict[str, Any]) -> None:
    """What grows a block that only this dialect knows: texts get longer, all else is set."""
    for name, more in delta.items():
        if name == "type" or more is None:
            continue
        before = value.get(name)
        value[name] = before + more if isinstance(before, str) and isinstance(more, str) else more


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
