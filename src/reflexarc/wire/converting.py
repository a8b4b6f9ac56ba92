"""One exchange between two dialects: the client's request to the upstream's, the answer back.

A message is read once: the turns of those seen before are remembered, whatever request brings them.
"""

import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import xxhash

from reflexarc.steps.errors import MalformedError
from reflexarc.wire.assembling import Assembler, BrokenOffError, events_of
from reflexarc.wire.dialect import Dialect, StreamReader, StreamWriter, Where
from reflexarc.wire.faults import Fault
from reflexarc.wire.ids import IdMap, IdRule
from reflexarc.wire.json import MAX_DEPTH, decode_strict, encode_json, split_list, split_object
from reflexarc.wire.losses import Losses
from reflexarc.wire.replies import (
    Began,
    Ended,
    Event,
    Failed,
    PartBegan,
    PartGrew,
    Reply,
    is_content,
)
from reflexarc.wire.sse import SseParser
from reflexarc.wire.turns import Ask, Call, Turn, joined

_NAMELESS = Fault(
    "upstream",
    "the upstream's answer holds a call without a name",
    502,
    code="upstream_malformed",
)
_REMEMBERED_BYTES = 64 * 1024 * 1024
_LONG_MEMBER_BYTES = 512
_ENTRY_BYTES = 1024
"""What remembering even the shortest message takes, about."""


class TurnMemory:
    """What was read, by the bytes it was read from: turns of messages, and values of long members
    (tools, which come again with every turn). Least recently used go first, past `max_bytes`.

    Its key is content alone: two tenants who send the same message share the reading of it, and
    nothing else; a seed drawn anew keeps anyone from finding another message of the same key.
    Nobody may change what it gives.
    """

    def __init__(self, max_bytes: int = _REMEMBERED_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._seed = secrets.randbits(64)
        self._known: OrderedDict[tuple[str, bytes], tuple[Any, int]] = OrderedDict()

    def read(self, dialect: Dialect, raw: bytes, path: str, max_depth: int) -> tuple[Turn, ...]:
        """Raises `MalformedError` or `RequestError`; of these nothing is remembered."""
        return self._once(
            dialect.name,
            raw,
            lambda: dialect.read_message(decode_strict(raw, path, max_depth), path),
        )

    def value(self, name: str, raw: bytes, max_depth: int) -> Any:
        """The value of a member. Raises `MalformedError`."""
        if len(raw) < _LONG_MEMBER_BYTES:
            return decode_strict(raw, name, max_depth)
        return self._once(f"{name}:", raw, lambda: decode_strict(raw, name, max_depth))

    def _once(self, kind: str, raw: bytes, read: Callable[[], Any]) -> Any:
        key = kind, xxhash.xxh3_128_digest(raw, seed=self._seed)
        known = self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
            return known[0]
        found = read()
        size = len(raw) + _ENTRY_BYTES
        self._known[key] = found, size
        self._bytes += size
        while self._bytes > self._max_bytes and self._known:
            _, (_, size) = self._known.popitem(last=False)
            self._bytes -= size
        return found


def read_ask(
    dialect: Dialect,
    body: bytes,
    where: Where,
    memory: TurnMemory,
    max_depth: int = MAX_DEPTH,
) -> Ask:
    """A request. Raises `MalformedError` (a key given twice among them) or `RequestError`."""
    fields = split_object(body)
    conversation = fields.pop(dialect.conversation, None)
    values = {name: memory.value(name, bytes(raw), max_depth) for name, raw in fields.items()}
    head = dialect.read_head(values, where)
    turns = list(head.turns)
    if conversation is not None:
        turns.extend(_conversation(dialect, bytes(conversation), memory, max_depth))
    return Ask(dialect.name, head.settings, joined(turns), head.tools)


def _conversation(
    dialect: Dialect, raw: bytes, memory: TurnMemory, max_depth: int
) -> Iterable[Turn]:
    name = dialect.conversation
    if not raw.lstrip().startswith(b"["):
        yield from dialect.read_message(decode_strict(raw, name, max_depth), name)
        return
    for at, one in enumerate(split_list(raw, name)):
        yield from memory.read(dialect, bytes(one), f"{name}[{at}]", max_depth)


class Conversion:
    """One exchange. `losses` names what could not be said, `ids` is its map of ids; `rule` is the
    upstream's for ids of calls, where it is stricter than its dialect's. `now_s`: Unix time, for
    answers that say none."""

    def __init__(
        self,
        client: Dialect,
        upstream: Dialect,
        ask: Ask,
        now_s: int,
        rule: IdRule | None = None,
    ) -> None:
        self.client = client
        self.upstream = upstream
        self.ask = ask
        self.losses = Losses(upstream.name)
        self.answer_losses = Losses(client.name)
        self.ids = IdMap(rule or upstream.ids)
        self.on_reply: Callable[[Reply], None] | None = None
        """Shown the whole reply, before its end is told."""
        self._now_s = now_s

    def request(self) -> bytes:
        """The upstream's request."""
        return encode_json(self.upstream.write_ask(self.ask, self.losses, self.ids))

    def read(self, body: bytes) -> Reply:
        """A whole answer of the upstream's. Raises `MalformedError`, and `BrokenOffError` where the
        body tells a fault."""
        value = decode_strict(body, "the upstream's answer")
        if isinstance(value, list):  # an error, from some
            value = next(iter(value), None)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - of anything
        if not isinstance(value, dict):
            raise MalformedError("the upstream's answer is not a JSON object")
        return self.own(self.upstream.read_reply(value))  # pyright: ignore[reportUnknownArgumentType] - of anything

    def own(self, reply: Reply) -> Reply:
        """With a time, a model, and the ids that the client knows. Raises `BrokenOffError` for a
        call that says no tool."""
        if any(not call.name for call in reply.calls):
            raise BrokenOffError(_NAMELESS)
        return msgspec.structs.replace(
            reply,
            model=reply.model or self.ask.settings.model,
            created_s=reply.created_s or self._now_s,
            parts=tuple(self._known_id(part) for part in reply.parts),
        )

    def write(self, reply: Reply) -> bytes:
        """A reply, whole, in the client's dialect."""
        if self.on_reply is not None:
            self.on_reply(reply)
        return encode_json(self.client.write_reply(reply, self.ask, self.answer_losses))

    def streamed(self, reply: Reply) -> bytes:
        """The same as a stream."""
        if self.on_reply is not None:
            self.on_reply(reply)
        writer = self.client.stream_writer(self.ask, self.answer_losses)
        return b"".join(writer.write(event) for event in events_of(reply))

    def stream(self) -> "StreamConversion":
        return StreamConversion(
            self.upstream.stream_reader(),
            self.client.stream_writer(self.ask, self.answer_losses),
            self._known_event,
            self.on_reply,
        )

    def fault(
        self, status: int, body: bytes, request_id: str, retry_after_s: float | None = None
    ) -> tuple[int, bytes, Fault]:
        """An upstream's error in the client's dialect. `retry_after_s`: what its headers hint, for
        dialects whose bodies do."""
        fault = self.upstream.read_fault(status, body)
        if fault.retry_after_s is None and retry_after_s is not None:
            fault = msgspec.structs.replace(fault, retry_after_s=retry_after_s)
        status, value = self.client.write_fault(fault, request_id)
        return status, encode_json(value), fault

    def _known_event(self, event: Event) -> Event:
        if isinstance(event, Began):
            return msgspec.structs.replace(
                event,
                model=event.model or self.ask.settings.model,
                created_s=event.created_s or self._now_s,
            )
        if isinstance(event, PartBegan):
            return PartBegan(event.at, self._known_id(event.part))
        return event

    def _known_id(self, part: Any) -> Any:
        if isinstance(part, Call) and (known := self.ids.back(part.id)) != part.id:
            return msgspec.structs.replace(part, id=known)
        return part


class StreamConversion:
    """An answer's bytes in, the client's out, as soon as they can be told. Until there is content
    nothing comes out: before that a fault still has its own status, and can be answered by
    another upstream."""

    def __init__(
        self,
        reader: StreamReader,
        writer: StreamWriter,
        known: Callable[[Event], Event],
        on_reply: Callable[[Reply], None] | None = None,
    ) -> None:
        self.fault: Fault | None = None
        self.over = False
        self._parser = SseParser()
        self._reader = reader
        self._writer = writer
        self._known = known
        self.committed = False
        """Whether the client has a status already: then a fault is told inside the stream, though
        nothing else was."""
        self._held: list[Event] = []
        self._begun = False
        self._on_reply = on_reply
        self._assembler = Assembler() if on_reply is not None else None

    @property
    def begun(self) -> bool:
        """Whether anything came out."""
        return self._begun

    def feed(self, chunk: bytes) -> bytes:
        if self.over:
            return b""
        out: list[bytes] = []
        for event in self._parser.feed(chunk):
            for told in self._reader.read(event):
                self._tell(told, out)
        if self._parser.overflown and not self.over:
            fault = Fault("upstream", "the upstream sent an event that is too long", 502)
            self._tell(Failed(fault), out)
        return b"".join(out)

    def close(self) -> bytes:
        """The upstream's bytes ended."""
        out: list[bytes] = []
        if not self.over:
            for event in self._parser.close():
                for told in self._reader.read(event):
                    self._tell(told, out)
        if not self.over:
            for told in self._reader.close():
                self._tell(told, out)
        return b"".join(out)

    def fail(self, fault: Fault) -> bytes:
        """The upstream broke off: what tells the client, empty where it was told nothing yet."""
        out: list[bytes] = []
        if not self.over:
            self._tell(Failed(fault), out)
        return b"".join(out)

    def _begin(self, out: list[bytes]) -> None:
        self._begun = True
        held = self._held
        if not held or not isinstance(held[0], Began):
            held = [self._known(Began("", "")), *held]
        out.extend(map(self._writer.write, held))

    def _tell(self, event: Event, out: list[bytes]) -> None:
        if self.over:
            return
        if self._begun and isinstance(event, PartGrew):  # the most of a stream
            if self._assembler is not None:
                self._assembler.take(event)
            out.append(self._writer.write(event))
            return
        event = self._known(event)
        if isinstance(event, PartBegan) and isinstance(event.part, Call) and not event.part.name:
            event = Failed(_NAMELESS)
        if self._assembler is not None:
            self._assembler.take(event)
        if not self._begun and not is_content(event):
            self._held.append(event)
            return
        if isinstance(event, Failed):
            self.over = True
            self.fault = event.fault
            if self.committed and not self._begun:
                self._begin(out)
            if self._begun:
                out.append(self._writer.write(event))
            return
        if not self._begun:
            self._begin(out)
        self.over = isinstance(event, Ended)
        if self.over and self._assembler is not None and self._on_reply is not None:
            self._on_reply(self._assembler.reply())
        out.append(self._writer.write(event))
