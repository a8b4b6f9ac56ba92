"""Reads and writes streams of the messages dialect for its tests."""

import json
from collections.abc import Iterable
from typing import Any

from reflexarc.wire.assembling import Assembler
from reflexarc.wire.dialects.messages import DIALECT
from reflexarc.wire.losses import Losses
from reflexarc.wire.replies import Event, Reply
from reflexarc.wire.sse import SseParser
from tests.wire.dialects.messages_asked import from_chat


def frames(*events: dict[str, Any]) -> bytes:
    """A recorded stream."""
    return b"".join(
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events
    )


def begun(**message: Any) -> dict[str, Any]:
    usage = {"input_tokens": 3, "cache_read_input_tokens": 10, "output_tokens": 1}
    whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    return {"type": "message_start", "message": {**whole, "usage": usage, **message}}


def block(at: int, value: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": at, "content_block": value}


def delta(at: int, kind: str, **members: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": at, "delta": {"type": kind, **members}}


def stopped(at: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": at}


def told(reason: str | None, usage: Any = None, **more: Any) -> dict[str, Any]:
    used = {"output_tokens": 42} if usage is None else usage
    return {"type": "message_delta", "delta": {"stop_reason": reason, **more}, "usage": used}


END: dict[str, Any] = {"type": "message_stop"}


def read(*chunks: bytes) -> list[Event]:
    """The events of bytes that come in these chunks, and then no more."""
    parser, reader = SseParser(), DIALECT.stream_reader()
    events: list[Event] = []
    for chunk in chunks:
        for event in parser.feed(chunk):
            events.extend(reader.read(event))
    events.extend(reader.close())
    return events


def reply_of(events: Iterable[Event]) -> Reply:
    assembler = Assembler()
    for event in events:
        assembler.take(event)
    return assembler.reply()


def streamed(events: Iterable[Event]) -> tuple[bytes, tuple[str, ...]]:
    """The bytes a client gets, and what they could not say."""
    losses = Losses("messages")
    writer = DIALECT.stream_writer(from_chat(), losses)
    return b"".join([writer.write(event) for event in events]), losses.names


def parsed(stream: bytes) -> list[dict[str, Any]]:
    """What a client reads; each event's name is its type."""
    values: list[dict[str, Any]] = []
    for event in SseParser().feed(stream):
        value = json.loads(event.data)
        assert event.name.decode() == value["type"]
        values.append(value)
    return values
