"""The stream that every dialect's upstream tells in the measurement of CPU: small deltas of text,
then of a call's arguments, one event each, dressed as each provider dresses them.
"""

import json
import random
from typing import Any

from reflexarc.wire.sse import DONE, data_event, named_event

MODEL = "a-model"
TEXT_DELTAS = 300
CALL_DELTAS = 100
_ID = "01J8ZK3V5M9Q2R7T"
_WORDS = (
    " the", " order", " of", " your", " 24", " hours", ", and", " naïve", " we", " will", " refund",
    " shipping", ".", " “it”", " arrived", " in", "\n\n-", " Zürich", " before", " it", " was",
)  # fmt: skip
_draw = random.Random(5)
TEXT = tuple(_draw.choice(_WORDS) for _ in range(TEXT_DELTAS))
ARGUMENTS = (
    '{"order_id": "R0000001", "note": "',
    *(_draw.choice(_WORDS[:6]) for _ in range(CALL_DELTAS - 2)),
    '"}',
)
CALL = "look_up_order"


def events(dialect: str) -> list[bytes]:
    """The events of one answer; each is sent by itself."""
    return {"chat": _chat, "responses": _responses, "messages": _messages, "gemini": _gemini}[
        dialect
    ]()


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _chat() -> list[bytes]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        return _chunk([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}])

    def _chunk(choices: list[Any], **more: Any) -> bytes:
        value = {
            "id": f"chatcmpl-{_ID}",
            "object": "chat.completion.chunk",
            "created": 1790000000,
            "model": MODEL,
            "service_tier": "default",
            "system_fingerprint": "fp_44709d6fcb",
            "choices": choices,
            **more,
        }
        return data_event(_json(value))

    def call(**given: Any) -> bytes:
        return chunk({"tool_calls": [{"index": 0, **given}]})

    usage = {"prompt_tokens": 900, "completion_tokens": 400, "total_tokens": 1300}
    return [
        chunk({"role": "assistant", "content": "", "refusal": None}),
        *(chunk({"content": text}) for text in TEXT),
        call(id=f"call_{_ID}", type="function", function={"name": CALL, "arguments": ""}),
        *(call(function={"arguments": text}) for text in ARGUMENTS),
        chunk({}, "tool_calls"),
        _chunk([], usage=usage),
        DONE,
    ]


def _messages() -> list[bytes]:
    def event(kind: str, **members: Any) -> bytes:
        return named_event(kind.encode(), _json({"type": kind, **members}))

    def delta(index: int, **given: str) -> bytes:
        return event("content_block_delta", index=index, delta=given)

    usage = {"input_tokens": 900, "cache_read_input_tokens": 0, "output_tokens": 1}
    message: dict[str, Any] = {
        "id": f"msg_{_ID}", "type": "message", "role": "assistant", "model": MODEL, "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    call: dict[str, Any] = {"type": "tool_use", "id": f"toolu_{_ID}", "name": CALL, "input": {}}
    return [
        event("message_start", message=message),
        event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        *(delta(0, type="text_delta", text=text) for text in TEXT),
        event("content_block_stop", index=0),
        event("content_block_start", index=1, content_block=call),
        *(delta(1, type="input_json_delta", partial_json=text) for text in ARGUMENTS),
        event("content_block_stop", index=1),
        event(
            "message_delta",
            delta={"stop_reason": "tool_use", "stop_sequence": None},
            usage={"output_tokens": 400},
        ),
        event("message_stop"),
    ]


def _responses() -> list[bytes]:
    told: list[bytes] = []

    def event(kind: str, **members: Any) -> None:
        name = f"response.{kind}"
        value = {"type": name, "sequence_number": len(told), **members}
        told.append(named_event(name.encode(), _json(value)))

    def response(status: str, output: list[Any], usage: Any) -> dict[str, Any]:
        return {
            "id": f"resp_{_ID}", "object": "response", "created_at": 1790000000, "status": status,
            "error": None, "incomplete_details": None, "instructions": None, "model": MODEL,
            "output": output, "parallel_tool_calls": True, "store": False, "temperature": 1.0,
            "tool_choice": "auto", "tools": [], "usage": usage, "metadata": {},
        }  # fmt: skip

    text, arguments = "".join(TEXT), "".join(ARGUMENTS)
    about: dict[str, Any] = {"item_id": f"msg_{_ID}", "output_index": 0, "content_index": 0}
    part: dict[str, Any] = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
    message: dict[str, Any] = {
        "id": f"msg_{_ID}", "type": "message", "status": "in_progress", "content": [],
        "role": "assistant",
    }  # fmt: skip
    call = {
        "id": f"fc_{_ID}", "type": "function_call", "status": "in_progress", "arguments": "",
        "call_id": f"call_{_ID}", "name": CALL,
    }  # fmt: skip
    event("created", response=response("in_progress", [], None))
    event("in_progress", response=response("in_progress", [], None))
    event("output_item.added", output_index=0, item=message)
    event("content_part.added", **about, part=part)
    for piece in TEXT:
        hidden = "x" * (14 - len(piece) % 8)
        event("output_text.delta", **about, delta=piece, logprobs=[], obfuscation=hidden)
    event("output_text.done", **about, text=text, logprobs=[])
    event("content_part.done", **about, part={**part, "text": text})
    whole: dict[str, Any] = {**message, "status": "completed", "content": [{**part, "text": text}]}
    event("output_item.done", output_index=0, item=whole)
    event("output_item.added", output_index=1, item=call)
    about = {"item_id": f"fc_{_ID}", "output_index": 1}
    for piece in ARGUMENTS:
        event("function_call_arguments.delta", **about, delta=piece, obfuscation="xxxxxxxxxx")
    event("function_call_arguments.done", **about, arguments=arguments)
    called = {**call, "status": "completed", "arguments": arguments}
    event("output_item.done", output_index=1, item=called)
    usage = {
        "input_tokens": 900, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 400,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 1300,
    }  # fmt: skip
    event("completed", response=response("completed", [whole, called], usage))
    return told


def _gemini() -> list[bytes]:
    """Calls come whole here; the text makes up for their deltas."""

    def chunk(part: dict[str, Any], counted: int, finish: str | None = None) -> bytes:
        candidate: dict[str, Any] = {"content": {"parts": [part], "role": "model"}}
        if finish is not None:
            candidate["finishReason"] = finish
        usage = {
            "promptTokenCount": 900, "candidatesTokenCount": counted,
            "totalTokenCount": 900 + counted,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 900}],
        }  # fmt: skip
        value = {
            "candidates": [{**candidate, "index": 0}], "usageMetadata": usage,
            "modelVersion": MODEL, "responseId": _ID,
        }  # fmt: skip
        return data_event(_json(value))

    call = {"functionCall": {"name": CALL, "args": json.loads("".join(ARGUMENTS))}}
    texts = gemini_text()
    return [
        *(chunk({"text": text}, at) for at, text in enumerate(texts, 1)),
        chunk(call, len(texts) + 1),
        chunk({"text": ""}, len(texts) + 1, "STOP"),
    ]


def gemini_text() -> tuple[str, ...]:
    return TEXT + TEXT[:CALL_DELTAS]
