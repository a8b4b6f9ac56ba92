"""Streams put together and in order: the one assembler of parts, and the one sequencer.

An assembler makes the whole reply of a stream; the sequencer puts parts that come beside one
another one after the other, for dialects in which a part ends before the next begins.
"""

import re
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from reflexarc.steps.errors import MalformedError
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
    Reply,
    ReplyPart,
    stop_of,
)
from reflexarc.wire.turns import Call, Refusal, Text, Thinking
from reflexarc.wire.usage import merged


class BrokenOffError(MalformedError):
    """A stream failed: by its own word, or by ending without one."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class Assembler:
    """Takes a stream's events; gives the reply once it ended."""

    def __init__(self) -> None:
        self.fault: Fault | None = None
        self._began: Began | None = None
        self._parts: dict[int, ReplyPart] = {}
        self._texts: dict[int, list[str]] = {}
        self._notes: dict[int, dict[str, list[Any]]] = {}
        self._ended: Ended | None = None

    def take(self, event: Event) -> None:
        if isinstance(event, PartGrew):
            self._texts[event.at].append(event.text)
        elif isinstance(event, PartBegan):
            self._parts[event.at] = event.part
            self._texts[event.at] = []
        elif isinstance(event, PartSigned):
            part = self._parts[event.at]
            if isinstance(part, Thinking | Call):
                self._parts[event.at] = msgspec.structs.replace(
                    part, signature=event.signature, origin=event.origin
                )
        elif isinstance(event, PartNoted):
            listed = self._notes.setdefault(event.at, {}).setdefault(event.name, [])
            listed.append(event.value)
        elif isinstance(event, Began):
            self._began = event
        elif isinstance(event, Ended):
            self._ended = event
        elif isinstance(event, Failed):
            self.fault = event.fault

    @property
    def over(self) -> bool:
        """Whether it came to its end, or failed."""
        return self._ended is not None or self.fault is not None

    @property
    def parts(self) -> tuple[ReplyPart, ...]:
        """As far as they have come."""
        return tuple(
            noted(filled(part, "".join(self._texts[at])), self._notes.get(at, {}))
            for at, part in sorted(self._parts.items())
        )

    def reply(self) -> Reply:
        """Raises `BrokenOffError` where the stream did not come to its end."""
        ended = self._ended
        if ended is None or self.fault is not None:
            raise BrokenOffError(self.fault or Fault("upstream", "the stream did not end", 502))
        began = self._began or Began("", "")
        parts = self.parts
        return Reply(
            id=began.id,
            model=began.model,
            parts=parts,
            stop=stop_of(ended.stop, parts),
            stop_sequence=ended.stop_sequence,
            usage=merged(began.usage, ended.usage) if ended.usage is not None else None,
            created_s=began.created_s,
            service_tier=ended.service_tier or began.service_tier,
            origin=began.origin,
        )


def noted(part: ReplyPart, notes: dict[str, list[Any]]) -> ReplyPart:
    """The part with what its own dialect alone told of it while it grew."""
    if not notes or not isinstance(part, Text):
        return part
    more = dict(part.more)
    for name, values in notes.items():
        before = more.get(name)
        more[name] = [*cast(list[Any], before), *values] if isinstance(before, list) else values
    return msgspec.structs.replace(part, more=more)


def filled(part: ReplyPart, text: str) -> ReplyPart:
    """The part with what it grew by."""
    if isinstance(part, Call):
        arguments = part.arguments + text
        if part.kind == "function" and not arguments.strip():
            arguments = "{}"
        return msgspec.structs.replace(part, arguments=arguments)
    if isinstance(part, Text | Thinking | Refusal) and text:
        return msgspec.structs.replace(part, text=part.text + text)
    return part


def events_of(reply: Reply) -> Iterator[Event]:
    """A whole reply as the stream it could have been."""
    yield Began(
        reply.id, reply.model, reply.created_s, reply.usage, reply.service_tier, reply.origin
    )
    for at, part in enumerate(reply.parts):
        yield from _part_events(at, part)
        yield PartEnded(at)
    yield Ended(reply.stop, reply.stop_sequence, reply.usage, reply.service_tier)


def _part_events(at: int, part: ReplyPart) -> Iterator[Event]:
    grows, signature, origin = "", None, ""
    if isinstance(part, Call):
        grows, signature, origin = part.arguments, part.signature, part.origin
        part = msgspec.structs.replace(part, arguments="", signature=None)
    elif isinstance(part, Thinking) and not part.redacted:
        grows, signature, origin = part.text, part.signature, part.origin
        part = msgspec.structs.replace(part, text="", signature=None)
    elif isinstance(part, Text | Refusal):
        grows = part.text
        part = msgspec.structs.replace(part, text="")
    yield PartBegan(at, part)
    if grows:
        yield PartGrew(at, grows)
    if signature is not None:
        yield PartSigned(at, signature, origin)


class Sequencer:
    """Puts events so that each part ends before the next begins. The open part's events go on at
    once; a part that begins meanwhile waits until the open one ends, or is a call whose arguments
    have come to their last brace: few streams say more of where a call ends."""

    def __init__(self) -> None:
        self._open: int | None = None
        self._watch = _Closing()
        self._part: ReplyPart | None = None
        self._waiting: dict[int, list[Event]] = {}

    def take(self, event: Event) -> list[Event]:
        if isinstance(event, PartGrew):
            if event.at == self._open:
                if isinstance(self._part, Call):
                    self._watch.feed(event.text)
                return [event]
            self._waiting.setdefault(event.at, []).append(event)
            return []
        if isinstance(event, PartBegan):
            return self._begin(event)
        if isinstance(event, PartSigned | PartNoted):
            if event.at == self._open:
                return [event]
            if event.at in self._waiting:
                self._waiting[event.at].append(event)
            return []
        if isinstance(event, PartEnded):
            if event.at == self._open:
                self._open = None
                return [event, *self._next()]
            if event.at in self._waiting:
                self._waiting[event.at].append(event)
            return []
        if isinstance(event, Ended):
            return [*self._flush(), event]
        return [event]

    def _begin(self, event: PartBegan) -> list[Event]:
        closing: list[Event] = []
        if self._open is not None:
            if not self._whole():
                self._waiting[event.at] = [event]
                return []
            closing = [PartEnded(self._open)]
            self._open = None
        if self._waiting:
            self._waiting[event.at] = [event]
            return [*closing, *self._next()]
        self._start(event)
        return [*closing, event]

    def _start(self, event: PartBegan) -> None:
        self._open, self._part = event.at, event.part
        self._watch = _Closing()
        if isinstance(event.part, Call):
            self._watch.feed(event.part.arguments)

    def _whole(self) -> bool:
        return isinstance(self._part, Call) and self._part.kind == "function" and self._watch.closed

    def _next(self) -> list[Event]:
        """What waited, as far as the first of it that is still open."""
        out: list[Event] = []
        while self._waiting and self._open is None:
            at = min(self._waiting)
            held = self._waiting.pop(at)
            for event in held:
                if isinstance(event, PartBegan):
                    self._start(event)
                elif isinstance(event, PartGrew) and isinstance(self._part, Call):
                    self._watch.feed(event.text)
                elif isinstance(event, PartEnded):
                    self._open = None
                out.append(event)
            if self._open is not None and self._waiting:
                if not self._whole():
                    return out
                out.append(PartEnded(self._open))
                self._open = None
        return out

    def _flush(self) -> list[Event]:
        out: list[Event] = []
        while self._open is not None or self._waiting:
            if self._open is not None:
                out.append(PartEnded(self._open))
                self._open = None
            out.extend(self._next())
        return out


_telling = re.compile(r'["\\{}\[\]]')


class _Closing:
    """Whether the text of a JSON object has come to its last brace. Each character is looked at
    once."""

    def __init__(self) -> None:
        self.closed = False
        self._depth = 0
        self._in_text = False
        self._escaped = False

    def feed(self, text: str) -> None:
        position = 0
        while not self.closed and position < len(text):
            if self._escaped:
                self._escaped = False
                position += 1
                continue
            found = _telling.search(text, position)
            if found is None:
                return
            position = found.end()
            self._take(found.group())

    def _take(self, mark: str) -> None:
        if self._in_text:
            if mark == "\\":
                self._escaped = True
            elif mark == '"':
                self._in_text = False
        elif mark == '"':
            self._in_text = True
        elif mark in "{[":
            self._depth += 1
        elif mark in "}]":
            self._depth -= 1
            self.closed = self._depth <= 0
