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
from tests.wire.dialects.responses_asked import said


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


USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 15,
}
CITATION = {"type": "url_citation", "url": "https://x", "start_index": 0, "end_index": 2}
REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [
        {"type": "summary_text", "text": "first \u2028 "},
        {"type": "summary_text", "text": "second"},
    ],
    "encrypted_content": "sealed==",
}
MESSAGE = said("hello world", id="msg_1")
MESSAGE["content"][0]["annotations"] = [CITATION]
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}}
OUTPUT = [REASONING, SEARCH, MESSAGE, call(1, '{"b":1,"a":2}'), call(2, "{}")]


def recorded() -> list[dict[str, Any]]:
    """A stream with everything in it, as the API sends it."""
    empty = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "other"}
    text = {"type": "output_text", "text": "", "annotations": []}
    arguments = "function_call_arguments"
    return [
        created(),
        {"type": "response.in_progress", "response": response("in_progress")},
        item("added", 0, empty),
        about("reasoning_summary_part.added", 0, "rs_1", summary_index=0, part={}),
        about("reasoning_summary_text.delta", 0, "rs_1", summary_index=0, delta="first "),
        about("reasoning_summary_text.delta", 0, "rs_1", summary_index=0, delta="\u2028 "),
        about("reasoning_summary_text.done", 0, "rs_1", summary_index=0, text="first \u2028 "),
        about("reasoning_summary_text.delta", 0, "rs_1", summary_index=1, delta="second"),
        item("done", 0, REASONING),
        item("added", 1, {**SEARCH, "status": "in_progress"}),
        about("web_search_call.searching", 1, "ws_1"),
        item("done", 1, SEARCH),
        item("added", 2, {**MESSAGE, "status": "in_progress", "content": []}),
        about("content_part.added", 2, "msg_1", content_index=0, part=text),
        about("output_text.delta", 2, "msg_1", content_index=0, delta="hello "),
        about("output_text.delta", 2, "msg_1", content_index=0, delta="world"),
        about("output_text.annotation.added", 2, "msg_1", content_index=0, annotation=CITATION),
        about("output_text.done", 2, "msg_1", content_index=0, text="hello world"),
        about("content_part.done", 2, "msg_1", content_index=0, part=MESSAGE["content"][0]),
        item("done", 2, MESSAGE),
        item("added", 3, call(1)),
        item("added", 4, call(2)),
        about(f"{arguments}.delta", 3, "fc_1", delta='{"b":1,'),
        about(f"{arguments}.delta", 4, "fc_2", delta="{}"),
        about(f"{arguments}.delta", 3, "fc_1", delta='"a":2}'),
        about(f"{arguments}.done", 3, "fc_1", arguments='{"b":1,"a":2}'),
        item("done", 3, call(1, '{"b":1,"a":2}')),
        item("done", 4, call(2, "{}")),
        completed(*OUTPUT, usage=USAGE, service_tier="default"),
    ]


RECORDED = frames(*recorded())
