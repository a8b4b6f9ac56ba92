"""Streams of the Responses dialect: made for tests, read and put together."""

import json
from typing import Any

from reflexarc.wire.assembling import Assembler
from reflexarc.wire.dialects.responses import DIALECT
from reflexarc.wire.faults import Fault
from reflexarc.wire.losses import Losses
from reflexarc.wire.replies import Event, Reply
from reflexarc.wire.sse import SseParser
from reflexarc.wire.turns import Ask


def frames(*events: dict[str, Any]) -> bytes:
    """Events as an upstream sends them."""
    return b"".join(
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events
    )


def response(status: str = "completed", output: Any = (), **members: Any) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 7,
        "model": "m",
        "status": status,
        "output": list(output),
        **members,
    }


def created() -> dict[str, Any]:
    return {"type": "response.created", "response": response("in_progress")}


def completed(*output: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"type": "response.completed", "response": response("completed", output, **members)}


def about(kind: str, index: int, item_id: str, **members: Any) -> dict[str, Any]:
    """An event about an item."""
    return {"type": f"response.{kind}", "output_index": index, "item_id": item_id, **members}


def item(kind: str, index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": f"response.output_item.{kind}", "output_index": index, "item": item}


def call(number: int, arguments: str = "", **members: Any) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": f"fc_{number}",
        "call_id": f"c{number}",
        "name": f"f{number}",
        "arguments": arguments,
        "status": "completed",
        **members,
    }


def events(*chunks: bytes) -> list[Event]:
    """What a reader tells of bytes, their end told too."""
    reader, parser = DIALECT.stream_reader(), SseParser()
    told = [t for chunk in chunks for event in parser.feed(chunk) for t in reader.read(event)]
    return [*told, *reader.close()]


def assembled(*chunks: bytes) -> Reply:
    assembler = Assembler()
    for event in events(*chunks):
        assembler.take(event)
    return assembler.reply()


def fault(*chunks: bytes) -> Fault:
    assembler = Assembler()
    for event in events(*chunks):
        assembler.take(event)
    assert assembler.fault is not None
    return assembler.fault


def streamed(ask: Ask, *told: Event) -> tuple[list[dict[str, Any]], bytes]:
    """The data of the frames that a writer makes of events, and its bytes."""
    writer = DIALECT.stream_writer(ask, Losses("responses"))
    data = b"".join(writer.write(event) for event in told)
    parsed = SseParser().feed(data)
    values = [json.loads(event.data) for event in parsed]
    assert [event.name.decode() for event in parsed] == [value["type"] for value in values]
    return values, data
