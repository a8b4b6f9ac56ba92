"""Streams of chat as their providers send them, and their reading."""

import itertools
import json
from typing import Any

from reflexarc.wire.assembling import Assembler
from reflexarc.wire.dialects.chat import DIALECT
from reflexarc.wire.replies import Reply
from reflexarc.wire.sse import SseParser, data_event


def stream(*chunks: dict[str, Any], done: bool = True) -> bytes:
    events = [data_event(json.dumps(chunk).encode()) for chunk in chunks]
    return b"".join(events) + (b"data: [DONE]\n\n" if done else b"")


def chunk(delta: Any = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta if delta is not None else {}, "finish_reason": finish}
    return {"id": "c-1", "model": "m", "created": 7, "choices": [choice], **more}


def part(index: Any, name: str | None = None, arguments: str | None = None, **more: Any) -> Any:
    function = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    entry = {"index": index, "function": function, **more}
    return {k: v for k, v in entry.items() if v is not None}


def calls(*entries: Any, **more: Any) -> dict[str, Any]:
    return chunk({"tool_calls": list(entries)}, **more)


def read(data: bytes, cuts: list[int] | None = None) -> list[Any]:
    parser, reader = SseParser(), DIALECT.stream_reader()
    places = sorted({0, len(data), *(min(c, len(data)) for c in cuts or ())})
    events: list[Any] = []
    for a, b in itertools.pairwise(places):
        for event in parser.feed(data[a:b]):
            events.extend(reader.read(event))
    events.extend(reader.close())
    return events


def assembled(data: bytes) -> Reply:
    assembler = Assembler()
    for event in read(data):
        assembler.take(event)
    return assembler.reply()
