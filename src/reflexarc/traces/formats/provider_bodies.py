"""The bodies in a line of a request log, wherever they are wrapped: objects, text, streams."""

from typing import Any

import msgspec

from reflexarc.steps.errors import InputError
from reflexarc.traces.loose import Table, amount, decoded, table, tables, text
from reflexarc.wire.answers import Answer, answer_from_body
from reflexarc.wire.usage import (
    Usage,
    usage_from_chat,
    usage_from_gemini,
    usage_from_messages,
    usage_from_responses,
)

_ANSWER_NAMES = (
    "response", "response_body", "resp", "res", "result", "completion", "response_json", "answer",
)  # fmt: skip
_REQUEST_NAMES = (
    "request", "request_body", "req", "params", "body", "request_json", "kwargs", "input",
    "payload",
)  # fmt: skip
_SESSION_NAMES = (
    "session_id", "sessionId", "conversation_id", "conversationId", "thread_id", "trace_id",
    "traceId", "session",
)  # fmt: skip


class Pair(msgspec.Struct, frozen=True):
    """`stream` is an answer that came in events, as text; then `answer` is what was put together
    of it as far as it tells model and id. Either side is empty where the line has none."""

    request: Table
    answer: Table
    stream: str = ""
    status: float | None = None


class Used(msgspec.Struct, frozen=True):
    """As `Usage`, and whether cached tokens were told of at all."""

    input: int
    output: int
    cache_read: int
    cache_write: int
    cache_write_1h: int
    reasoning: int
    told_read: bool
    told_write: bool


def pair_of(fields: Table) -> Pair | None:
    """None where a line holds neither."""
    if _is_answer(fields):
        return Pair({}, fields)
    if _is_request(fields):
        return Pair(fields, {})
    answer: Table = {}
    stream, status = "", amount(fields.get("status_code")) or amount(fields.get("status"))
    for name in _ANSWER_NAMES:
        found, inner_status = _unwrapped(fields.get(name))
        status = inner_status or status
        if isinstance(found, str) and _is_stream(found):
            stream, answer = found, _begun(found)
            break
        if _is_answer(table(found)) or "error" in table(found):
            answer = table(found)
            break
    request: Table = {}
    for name in _REQUEST_NAMES:
        found, _ = _unwrapped(fields.get(name))
        if _is_request(table(found)):
            request = table(found)
            break
    if not request and isinstance(fields.get("messages"), list) and answer:
        request = fields
    if not request and not _is_answer(answer) and not stream:
        return None
    return Pair(request, answer, stream, status)


def dialect_of(pair: Pair) -> str | None:
    """What they speak; None where that cannot be told."""
    answer, request = pair.answer, pair.request
    if answer.get("type") == "message" or "event: message_start" in pair.stream:
        return "messages"
    if answer.get("object") == "response" or "response.created" in pair.stream:
        return "responses"
    if "candidates" in answer or "contents" in request:
        return "gemini"
    if isinstance(answer.get("choices"), list):
        return "chat"
    if "input" in request or "instructions" in request:
        return "responses"
    if "messages" in request:
        return "messages" if _anthropics(request) else "chat"
    return None


def usage_of(dialect: str, pair: Pair) -> Used | None:
    """What the answer told."""
    if pair.stream:
        usage = _streamed(dialect, pair)
        if usage is None:
            return None
        told_read = "cache_read" in pair.stream or "cached" in pair.stream
        return _used(usage, told_read, "cache_creation" in pair.stream)
    name = "usageMetadata" if dialect == "gemini" else "usage"
    given = pair.answer.get(name)
    usage = _READERS[dialect](given)
    if usage is None:
        return None
    shown = str(given)
    return _used(
        usage,
        any(word in shown for word in ("cached_tokens", "cache_read", "cachedContentTokenCount")),
        any(word in shown for word in ("cache_creation", "cache_write")),
    )


def answer_of(dialect: str, pair: Pair) -> Answer | None:
    """The answer read as its dialect; None where it cannot be."""
    kind = "text/event-stream" if pair.stream else "application/json"
    body = pair.stream.encode() if pair.stream else msgspec.json.encode(pair.answer)
    if not pair.answer and not pair.stream:
        return None
    try:
        return answer_from_body(body, kind, dialect)
    except InputError:
        return None


def session_of(fields: Table, pair: Pair) -> str:
    """A name of the conversation, "" where nothing gives one."""
    for holder in (fields, table(fields.get("metadata")), table(pair.request.get("metadata"))):
        for name in _SESSION_NAMES:
            if found := text(holder.get(name)):
                return found
    return text(pair.request.get("prompt_cache_key")) or text(pair.request.get("conversation"))


_READERS = {
    "chat": usage_from_chat,
    "responses": usage_from_responses,
    "messages": usage_from_messages,
    "gemini": usage_from_gemini,
}


def _streamed(dialect: str, pair: Pair) -> Usage | None:
    answer = answer_of(dialect, pair)
    return None if answer is None else answer.usage


def _used(usage: Usage, told_read: bool, told_write: bool) -> Used:
    return Used(
        usage.input, usage.output, usage.cache_read, usage.cache_write, usage.cache_write_1h,
        usage.reasoning, told_read, told_write,
    )  # fmt: skip


def _unwrapped(value: Any) -> tuple[Any, float | None]:
    """A body out of `{status_code, body}` and the like, and out of text that is JSON."""
    status = None
    for _ in range(3):
        if isinstance(value, str):
            if _is_stream(value):
                return value, status
            try:
                value = decoded(value)
            except ValueError:
                return value, status
        fields = table(value)
        status = amount(fields.get("status_code")) or amount(fields.get("status")) or status
        inner = next((name for name in ("body", "json", "data") if name in fields), None)
        if inner is None or _is_answer(fields) or _is_request(fields):
            return value, status
        value = fields[inner]
    return value, status


def _is_answer(fields: Table) -> bool:
    return (
        (isinstance(fields.get("choices"), list) and "messages" not in fields)
        or (fields.get("object") == "response" and isinstance(fields.get("output"), list))
        or (fields.get("type") == "message" and isinstance(fields.get("content"), list))
        or isinstance(fields.get("candidates"), list)
    )


def _is_request(fields: Table) -> bool:
    if isinstance(fields.get("contents"), list):
        return True
    if "model" not in fields:
        return False
    has_input = isinstance(fields.get("input"), list | str) and "output" not in fields
    is_chat = any("role" in one for one in tables(fields.get("messages"))[:1])
    return has_input or (is_chat and "choices" not in fields and "response" not in fields)


def _anthropics(request: Table) -> bool:
    if "system" in request or "anthropic_version" in request:
        return True
    if any("input_schema" in tool for tool in tables(request.get("tools"))):
        return True
    blocks = [
        text(block.get("type"))
        for message in tables(request.get("messages"))[:20]
        for block in tables(message.get("content"))
    ]
    return any(kind in ("tool_use", "tool_result", "thinking") for kind in blocks)


def _is_stream(value: str) -> bool:
    return value.lstrip()[:6] in ("data: ", "event:") or value.lstrip().startswith("data:{")


def _begun(stream: str) -> Table:
    """Model and id as the first events tell them."""
    for line in stream.split("\n", 40)[:40]:
        if not line.startswith("data:"):
            continue
        try:
            event = table(decoded(line[5:].strip()))
        except ValueError:
            continue
        for inner in (event, table(event.get("message")), table(event.get("response"))):
            if text(inner.get("model")):
                return {"id": inner.get("id"), "model": inner.get("model")}
    return {}
