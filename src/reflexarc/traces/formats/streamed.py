"""Streams of answers that a log keeps as they came: the events of any API, put together into the
answer's body. Tolerant: what breaks off gives what there was. Not for live streams (`wire`)."""

from collections.abc import Sequence

from reflexarc.traces.formats.fields import is_table
from reflexarc.traces.loose import Table, decoded, table, tables, text
from reflexarc.wire.sse import SseParser


def is_stream(value: str) -> bool:
    """Whether text is server-sent events."""
    start = value.lstrip("\ufeff \r\n")[:64]
    return start.startswith(("data:", "event:", ":", "id:")) and "data:" in value[:65_536]


def events_in(value: str) -> list[Table]:
    """The events that are JSON objects, in order; one that breaks off is left out."""
    parser = SseParser(max_event_bytes=256 * 1024 * 1024)
    given = value.strip().encode("utf-8", "replace") + b"\n\n"
    found: list[Table] = []
    for event in parser.feed(given):
        try:
            one = table(decoded(event.data))
        except ValueError:
            continue
        if one:
            found.append(one)
    return found


def looks_streamed(events: Sequence[Table]) -> bool:
    """Whether a list of objects is a stream's events."""
    first = events[0] if events else {}
    kind = text(first.get("type"))
    return (
        first.get("object") == "chat.completion.chunk"
        or kind in ("message_start", "ping", "response.created")
        or (len(events) > 1 and "candidates" in first)
    )


def put_together(events: Sequence[Table]) -> Table:
    """The body that the events make, in the form of their API."""
    for event in reversed(events):
        if is_table(event.get("response")) and table(event["response"]).get("object"):
            return _responses(events, table(event["response"]))
    if any(text(event.get("type")).startswith(("message_", "content_block")) for event in events):
        return _messages(events)
    if any("candidates" in event or "usageMetadata" in event for event in events):
        return _gemini(events)
    return _chat(events)


def _chat(events: Sequence[Table]) -> Table:
    body: Table = {"object": "chat.completion"}
    words: list[str] = []
    calls: dict[object, Table] = {}
    for event in events:
        for key in ("id", "model", "created", "service_tier", "usage", "error"):
            if event.get(key):
                body[key] = event[key]
        for choice in tables(event.get("choices"))[:1]:
            delta = table(choice.get("delta"))
            words.append(text(delta.get("content")) or text(choice.get("text")))
            for call in tables(delta.get("tool_calls")):
                _grow(calls.setdefault(_place(call), {}), call)
    message = {"role": "assistant", "content": "".join(words), "tool_calls": list(calls.values())}
    return {**body, "choices": [{"message": message}]}


def _place(call: Table) -> object:
    index = call.get("index")
    return index if isinstance(index, int | str) else text(call.get("id"))


def _grow(call: Table, delta: Table) -> None:
    function = table(delta.get("function"))
    held = call.setdefault("function", {"name": "", "arguments": ""})
    held["name"] = held["name"] or text(function.get("name"))
    held["arguments"] += text(function.get("arguments"))
    if text(delta.get("id")):
        call["id"] = text(delta["id"])


def _responses(events: Sequence[Table], body: Table) -> Table:
    if tables(body.get("output")):
        return body
    items = [table(event["item"]) for event in events if _ends_item(event)]
    if not items:
        words = [
            text(event.get("delta"))
            for event in events
            if event.get("type") == "response.output_text.delta"
        ]
        items = [{"type": "message", "content": [{"type": "output_text", "text": "".join(words)}]}]
    return {**body, "output": items}


def _ends_item(event: Table) -> bool:
    return event.get("type") == "response.output_item.done" and "item" in event


def _messages(events: Sequence[Table]) -> Table:
    body: Table = {"type": "message", "role": "assistant"}
    usage: Table = {}
    blocks: dict[object, Table] = {}
    for event in events:
        kind = text(event.get("type"))
        if kind == "message_start":
            body.update(table(event.get("message")))
            usage.update(table(body.get("usage")))
        elif kind == "content_block_start":
            blocks[_place(event)] = {**table(event.get("content_block")), "grown": ""}
        elif kind == "content_block_delta":
            delta = table(event.get("delta"))
            block = blocks.setdefault(_place(event), {"type": "text", "grown": ""})
            block["grown"] += text(delta.get("text")) or text(delta.get("partial_json"))
        elif kind == "message_delta":
            # it has the last word on what it tells, and tells not all
            told = table(event.get("usage"))
            usage.update({key: one for key, one in told.items() if one is not None})
        elif kind == "error":
            body["error"] = event.get("error")
    return {**body, "usage": usage, "content": [_block(one) for one in blocks.values()]}


def _block(block: Table) -> Table:
    grown = block.pop("grown")
    if block.get("type") == "text":
        return {**block, "text": text(block.get("text")) + grown}
    return {**block, "input": grown} if grown and "name" in block else block


def _gemini(events: Sequence[Table]) -> Table:
    parts: list[Table] = []
    body: Table = {}
    for event in events:
        for key in ("usageMetadata", "modelVersion", "responseId"):
            if event.get(key):
                body[key] = event[key]
        for candidate in tables(event.get("candidates"))[:1]:
            parts += tables(table(candidate.get("content")).get("parts"))
    return {**body, "candidates": [{"content": {"role": "model", "parts": parts}}]}
