"""Answers and errors of the four dialects as their providers write them, whole and streamed.

Nothing of the gateway's own conversions is used here.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from acceptance.wire_upstream_errors import failure

PROMPT_TOKENS, CACHED_TOKENS, OUTPUT_TOKENS, THINKING_TOKENS = 120, 100, 17, 5
CREATED_S = 1_790_000_000


class Part(msgspec.Struct, frozen=True):
    """`kind`: `text`, `thinking` (with a `signature`), `call` (with `id`, `name`, and `text` its
    arguments)."""

    kind: str
    text: str
    id: str = ""
    name: str = ""
    signature: str = ""


class Answer(msgspec.Struct, frozen=True):
    """One turn of the model. `cut`: it is broken off inside, after some words; `fails`: it ends
    with an error of the provider's instead."""

    model: str
    parts: tuple[Part, ...]
    length: bool = False
    cut: bool = False
    fails: bool = False

    @property
    def calls(self) -> list[Part]:
        return [part for part in self.parts if part.kind == "call"]

    @property
    def thinks(self) -> bool:
        return any(part.kind == "thinking" for part in self.parts)


def whole(dialect: str, answer: Answer) -> dict[str, Any]:
    return _WHOLE[dialect](answer)


def frames(dialect: str, answer: Answer) -> Iterator[bytes]:
    """The stream, event by event; what is cut ends early."""
    events = list(_STREAMED[dialect](answer))
    if answer.cut or answer.fails:
        # inside of the words, where there are several events of them
        texts = [at for at, event in enumerate(events) if _SPLITS in event]
        events = events[: texts[len(texts) // 2] + 1]
    for event in events:
        yield event.replace(_SPLITS, "").encode()
    if answer.fails:
        yield failure(dialect)


_SPLITS = "\u241e"  # marks the events that hold text; it is taken out before they are sent


def _data(value: Any, name: str = "") -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return (f"event: {name}\n" if name else "") + f"data: {text}\n\n"


def _pieces(text: str) -> list[str]:
    """In three, not at the ends of words."""
    third = max(1, len(text) // 3)
    return [piece for piece in (text[:third], text[third : 2 * third], text[2 * third :]) if piece]


def _thinking_tokens(answer: Answer) -> int:
    return THINKING_TOKENS if answer.thinks else 0


# --- chat ---------------------------------------------------------------------------------------


def _chat_finish(answer: Answer) -> str:
    return "length" if answer.length else "tool_calls" if answer.calls else "stop"


def _chat_usage(answer: Answer) -> dict[str, Any]:
    return {
        "prompt_tokens": PROMPT_TOKENS,
        "completion_tokens": OUTPUT_TOKENS,
        "total_tokens": PROMPT_TOKENS + OUTPUT_TOKENS,
        "prompt_tokens_details": {"cached_tokens": CACHED_TOKENS},
        "completion_tokens_details": {"reasoning_tokens": _thinking_tokens(answer)},
    }


def _chat_call(part: Part) -> dict[str, Any]:
    function = {"name": part.name, "arguments": part.text}
    return {"id": part.id, "type": "function", "function": function}


def _chat(answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": _text(answer) or None}
    if thought := _text(answer, "thinking"):
        message["reasoning_content"] = thought
    if answer.calls:
        message["tool_calls"] = [_chat_call(part) for part in answer.calls]
    choice = {"index": 0, "message": message, "finish_reason": _chat_finish(answer)}
    return {
        "id": "chatcmpl-upstream-1", "object": "chat.completion", "created": CREATED_S,
        "system_fingerprint": "fp_1",
        "model": answer.model, "choices": [choice], "usage": _chat_usage(answer),
    }  # fmt: skip


def _chat_stream(answer: Answer) -> Iterator[str]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {
            "id": "chatcmpl-upstream-1", "object": "chat.completion.chunk", "created": CREATED_S,
            "model": answer.model, "usage": None, "system_fingerprint": "fp_1",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }  # fmt: skip

    yield _data(chunk({"role": "assistant", "content": ""}))
    at = 0
    for part in answer.parts:
        if part.kind == "call":
            function = {"name": part.name, "arguments": ""}
            begun = {"index": at, "id": part.id, "type": "function", "function": function}
            yield _data(chunk({"tool_calls": [begun]}))
            for piece in _pieces(part.text):
                grown = {"index": at, "type": "function", "function": {"arguments": piece}}
                yield _data(chunk({"tool_calls": [grown]}))
            at += 1
        else:
            member = "content" if part.kind == "text" else "reasoning_content"
            for piece in _pieces(part.text):
                yield _data(chunk({member: piece + _SPLITS}))
    yield _data(chunk({}, _chat_finish(answer)))
    yield _data({**chunk({}), "choices": [], "usage": _chat_usage(answer)})
    yield "data: [DONE]\n\n"


def _text(answer: Answer, kind: str = "text") -> str:
    return "".join(part.text for part in answer.parts if part.kind == kind)


# --- responses ----------------------------------------------------------------------------------


def _response_item(part: Part, at: int) -> dict[str, Any]:
    if part.kind == "call":
        return {
            "type": "function_call", "id": f"fc_{at}", "call_id": part.id, "name": part.name,
            "arguments": part.text, "status": "completed",
        }  # fmt: skip
    if part.kind == "thinking":
        return {
            "type": "reasoning", "id": f"rs_{at}", "encrypted_content": part.signature,
            "summary": [{"type": "summary_text", "text": part.text}],
        }  # fmt: skip
    content: dict[str, Any] = {
        "type": "output_text",
        "text": part.text,
        "annotations": [],
        "logprobs": [],
    }
    return {
        "type": "message", "id": f"msg_{at}", "role": "assistant", "status": "completed",
        "content": [content],
    }  # fmt: skip


def _response(answer: Answer, status: str = "", items: list[Any] | None = None) -> dict[str, Any]:
    status = status or ("incomplete" if answer.length else "completed")
    usage = {
        "input_tokens": PROMPT_TOKENS,
        "input_tokens_details": {"cached_tokens": CACHED_TOKENS},
        "output_tokens": OUTPUT_TOKENS,
        "output_tokens_details": {"reasoning_tokens": _thinking_tokens(answer)},
        "total_tokens": PROMPT_TOKENS + OUTPUT_TOKENS,
    }
    begun = status == "in_progress"
    return {
        "id": "resp_upstream_1", "object": "response", "created_at": CREATED_S, "status": status,
        "error": None, "model": answer.model, "instructions": None, "metadata": {},
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "output": [] if begun else items or [], "parallel_tool_calls": True, "temperature": 1.0,
        "tool_choice": "auto", "tools": [], "top_p": 1.0, "usage": None if begun else usage,
    }  # fmt: skip


def _responses(answer: Answer) -> dict[str, Any]:
    return _response(answer, "", [_response_item(p, at) for at, p in enumerate(answer.parts)])


def _responses_stream(answer: Answer) -> Iterator[str]:
    number = -1

    def event(kind: str, **members: Any) -> str:
        nonlocal number
        number += 1
        return _data({"type": kind, "sequence_number": number, **members}, kind)

    yield event("response.created", response=_response(answer, "in_progress"))
    yield event("response.in_progress", response=_response(answer, "in_progress"))
    items: list[Any] = []
    for at, part in enumerate(answer.parts):
        item = _response_item(part, at)
        items.append(item)
        place = {"output_index": at, "item_id": item["id"]}
        empty: dict[str, Any] = {
            "call": {"arguments": ""},
            "text": {"content": []},
            "thinking": {"summary": []},
        }
        begun: dict[str, Any] = {**item, **empty[part.kind]}
        begun |= {} if part.kind == "thinking" else {"status": "in_progress"}
        yield event("response.output_item.added", output_index=at, item=begun)
        if part.kind == "call":
            for piece in _pieces(part.text):
                yield event("response.function_call_arguments.delta", delta=piece, **place)
            done = {"name": part.name, "arguments": part.text}
            yield event("response.function_call_arguments.done", **done, **place)
        elif part.kind == "thinking":
            place["summary_index"] = 0
            shown = {"type": "summary_text", "text": part.text}
            added = {**shown, "text": ""}
            yield event("response.reasoning_summary_part.added", part=added, **place)
            for piece in _pieces(part.text):
                grown = piece + _SPLITS
                yield event("response.reasoning_summary_text.delta", delta=grown, **place)
            yield event("response.reasoning_summary_text.done", text=part.text, **place)
            yield event("response.reasoning_summary_part.done", part=shown, **place)
        else:
            place["content_index"] = 0
            content = item["content"][0]
            added = {**content, "text": ""}
            yield event("response.content_part.added", part=added, **place)
            for piece in _pieces(part.text):
                grown = piece + _SPLITS
                yield event("response.output_text.delta", delta=grown, logprobs=[], **place)
            yield event("response.output_text.done", text=part.text, logprobs=[], **place)
            yield event("response.content_part.done", part=content, **place)
        yield event("response.output_item.done", output_index=at, item=item)
    last = _response(answer, "", items)
    yield event(f"response.{last['status']}", response=last)


# --- messages -----------------------------------------------------------------------------------


def _stop_reason(answer: Answer) -> str:
    return "max_tokens" if answer.length else "tool_use" if answer.calls else "end_turn"


def _block(part: Part) -> dict[str, Any]:
    if part.kind == "call":
        return {
            "type": "tool_use", "id": part.id, "name": part.name, "input": json.loads(part.text)
        }  # fmt: skip
    if part.kind == "thinking":
        return {"type": "thinking", "thinking": part.text, "signature": part.signature}
    return {"type": "text", "text": part.text}


def _message_usage(output: int) -> dict[str, Any]:
    return {
        "input_tokens": PROMPT_TOKENS - CACHED_TOKENS, "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": CACHED_TOKENS, "output_tokens": output,
        "service_tier": "standard",
    }  # fmt: skip


def _messages(answer: Answer) -> dict[str, Any]:
    return {
        "id": "msg_upstream_1", "type": "message", "role": "assistant", "model": answer.model,
        "content": [_block(part) for part in answer.parts], "stop_sequence": None,
        "stop_reason": _stop_reason(answer), "usage": _message_usage(OUTPUT_TOKENS),
    }  # fmt: skip


def _messages_stream(answer: Answer) -> Iterator[str]:
    def event(kind: str, **members: Any) -> str:
        return _data({"type": kind, **members}, kind)

    begun: dict[str, Any] = {
        **_messages(answer),
        "content": [],
        "stop_reason": None,
        "usage": _message_usage(1),
    }
    yield event("message_start", message=begun)
    yield event("ping")
    for at, part in enumerate(answer.parts):
        block = _block(part)
        empty: dict[str, Any] = {"call": {"input": {}}, "text": {"text": ""}}
        block |= empty.get(part.kind, {"thinking": "", "signature": ""})
        yield event("content_block_start", index=at, content_block=block)
        kind, member = {
            "call": ("input_json_delta", "partial_json"),
            "text": ("text_delta", "text"),
        }.get(part.kind, ("thinking_delta", "thinking"))
        for piece in _pieces(part.text):
            grown = piece if part.kind == "call" else piece + _SPLITS
            yield event("content_block_delta", index=at, delta={"type": kind, member: grown})
        if part.kind == "thinking":
            delta = {"type": "signature_delta", "signature": part.signature}
            yield event("content_block_delta", index=at, delta=delta)
        yield event("content_block_stop", index=at)
    delta = {"stop_reason": _stop_reason(answer), "stop_sequence": None}
    yield event("message_delta", delta=delta, usage=_message_usage(OUTPUT_TOKENS))
    yield event("message_stop")


# --- gemini -------------------------------------------------------------------------------------


def _gemini_part(part: Part, text: str, *, signed: bool) -> dict[str, Any]:
    said: dict[str, Any]
    if part.kind == "call":
        said = {"functionCall": {"name": part.name, "args": json.loads(part.text)}}
        if part.id:
            said["functionCall"]["id"] = part.id
    else:
        said = {"text": text} | ({"thought": True} if part.kind == "thinking" else {})
    return said | ({"thoughtSignature": part.signature} if part.signature and signed else {})


def _gemini_chunk(answer: Answer, parts: list[Any], finish: bool) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish:
        candidate["finishReason"] = "MAX_TOKENS" if answer.length else "STOP"
    thought = _thinking_tokens(answer)
    usage: dict[str, Any] = {
        "promptTokenCount": PROMPT_TOKENS, "cachedContentTokenCount": CACHED_TOKENS,
        "candidatesTokenCount": OUTPUT_TOKENS - thought if finish else 1,
        "totalTokenCount": PROMPT_TOKENS + OUTPUT_TOKENS,
    }  # fmt: skip
    if thought:
        usage["thoughtsTokenCount"] = thought
    return {
        "candidates": [candidate], "usageMetadata": usage, "modelVersion": answer.model,
        "responseId": "gemini-upstream-1",
    }  # fmt: skip


def _gemini(answer: Answer) -> dict[str, Any]:
    parts = [_gemini_part(part, part.text, signed=True) for part in answer.parts]
    return _gemini_chunk(answer, parts, finish=True)


def _gemini_stream(answer: Answer) -> Iterator[str]:
    for part in answer.parts:
        pieces = [""] if part.kind == "call" else _pieces(part.text)
        for at, piece in enumerate(pieces):
            marked = piece + _SPLITS if piece else piece
            said = _gemini_part(part, marked, signed=at == len(pieces) - 1)
            yield _data(_gemini_chunk(answer, [said], finish=False))
    yield _data(_gemini_chunk(answer, [{"text": ""}], finish=True))


_WHOLE: dict[str, Callable[[Answer], dict[str, Any]]] = {
    "chat": _chat, "responses": _responses, "messages": _messages, "gemini": _gemini,
}  # fmt: skip
_STREAMED: dict[str, Callable[[Answer], Iterator[str]]] = {
    "chat": _chat_stream, "responses": _responses_stream, "messages": _messages_stream,
    "gemini": _gemini_stream,
}  # fmt: skip
