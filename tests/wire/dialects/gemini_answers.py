"""Answers of `generateContent` as the tests of that dialect make, read and write them."""

import itertools
import json
from collections.abc import Iterable
from typing import Any

from reflexarc.wire.assembling import Assembler
from reflexarc.wire.dialects.gemini import DIALECT
from reflexarc.wire.losses import Losses
from reflexarc.wire.replies import Event, Reply
from reflexarc.wire.sse import SseEvent, SseParser, data_event
from reflexarc.wire.turns import Ask, Settings

ASK = Ask("gemini", Settings("gemini-3-pro"), ())
USAGE = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}


def chunk(*parts: dict[str, Any], reason: str | None = None, **more: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if reason is not None:
        candidate["finishReason"] = reason
    return {"candidates": [candidate], "modelVersion": "gemini-3-pro", "responseId": "r1", **more}


def sse(*chunks: Any) -> bytes:
    return b"".join(data_event(json.dumps(one).encode()) for one in chunks)


def events(stream: bytes, cuts: Iterable[int] = ()) -> list[Event]:
    """All events of a stream, however it is cut."""
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    parser, reader = SseParser(), DIALECT.stream_reader()
    found: list[Event] = []
    for start, end in itertools.pairwise(places):
        for event in parser.feed(stream[start:end]):
            found += reader.read(event)
    return [*found, *reader.close()]


def assembled(found: Iterable[Event]) -> Reply:
    """Raises `BrokenOffError`."""
    assembler = Assembler()
    for event in found:
        assembler.take(event)
    return assembler.reply()


def written(found: Iterable[Event], losses: Losses | None = None) -> list[dict[str, Any]]:
    """The chunks that a client gets."""
    writer = DIALECT.stream_writer(ASK, losses or Losses("gemini"))
    stream = b"".join(writer.write(event) for event in found)
    for line in stream.split(b"\n"):
        assert not line or line.startswith(b"data: ")  # their clients read nothing else
    return [json.loads(event.data) for event in SseParser().feed(stream)]


def parts_of(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        part
        for one in chunks
        for candidate in one.get("candidates", [])
        for part in candidate["content"]["parts"]
    ]


def event_of(data: bytes) -> SseEvent:
    return SseEvent(b"", data)
