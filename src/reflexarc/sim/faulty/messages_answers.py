"""Answers of the messages dialect as the fault upstream tells them, whole and as events."""

import json
from typing import Any

from reflexarc.sim.faulty.script import Asked, Called, Frame, Said, Words, inner, pieces

_STOPS = {"end": "end_turn", "calls": "tool_use", "length": "max_tokens", "refusal": "refusal"}


def read(body: dict[str, Any]) -> Asked:
    choice = inner(body, "tool_choice")
    asked = Asked(
        body["model"],
        body.get("stream") is True,
        thinking=inner(body, "thinking").get("type") in ("enabled", "adaptive"),
        forced=choice.get("type") in ("any", "tool"),
        only=choice.get("name", ""),
    )
    for tool in body.get("tools", []):
        if "input_schema" in tool:
            asked.tools.append((tool["name"], tool["input_schema"]))
    for message in body["messages"]:
        if message["role"] != "user":
            continue
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        results = [_text(one.get("content", "")) for one in blocks if one["type"] == "tool_result"]
        said = "\n".join(one["text"] for one in blocks if one["type"] == "text")
        if results:
            asked.results += results
        if said or not results:
            asked.text, asked.results = said, results
        asked.images = sum(one["type"] == "image" for one in blocks)
    return asked


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(one["text"] for one in content if one["type"] == "text")


def usage(said: Said) -> dict[str, Any]:
    return {
        "input_tokens": said.input - said.cached - said.written,
        "cache_creation_input_tokens": said.written,
        "cache_read_input_tokens": said.cached,
        "output_tokens": said.output,
    }


def _head(said: Said) -> dict[str, Any]:
    return {
        "id": f"msg_{said.id}",
        "type": "message",
        "role": "assistant",
        "model": said.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def whole(said: Said, words: Words) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    if said.thinking:
        signature = said.signature
        blocks.append({"type": "thinking", "thinking": said.thinking, "signature": signature})
    if said.text or said.refusal:
        blocks.append({"type": "text", "text": said.text or said.refusal})
    for call in said.calls:
        given = json.loads(call.arguments)
        blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": given})
    return {
        **_head(said),
        "content": blocks,
        "stop_reason": _stop(said, words),
        "usage": usage(said),
    }


def _stop(said: Said, words: Words) -> str | None:
    if "nofinish" in words:
        return None
    return "end_turn" if "stopaftertools" in words else _STOPS[said.stop]


def _event(name: str, **members: Any) -> Frame:
    return Frame({"type": name, **members}, name)


def frames(said: Said, asked: Asked, words: Words) -> list[Frame]:
    del asked
    counted = {**usage(said), "output_tokens": 1}
    out = [_event("message_start", message={**_head(said), "usage": counted})]
    if "pings" in words:
        out.append(_event("ping"))
    index = 0
    if said.thinking:
        block = {"type": "thinking", "thinking": "", "signature": ""}
        out.append(_event("content_block_start", index=index, content_block=block))
        out += [_delta(index, "thinking_delta", thinking=text) for text in pieces(said.thinking)]
        out.append(_delta(index, "signature_delta", signature=said.signature))
        out.append(_event("content_block_stop", index=index))
        index += 1
    text = said.text or said.refusal
    if text:
        out.append(
            _event("content_block_start", index=index, content_block={"type": "text", "text": ""})
        )
        out += [_delta(index, "text_delta", text=piece) for piece in pieces(text, 4)]
        out.append(_event("content_block_stop", index=index))
        index += 1
    out += _calls(index, said.calls, words)
    if "nofinish" not in words:
        delta = {"stop_reason": _stop(said, words), "stop_sequence": None}
        out.append(_event("message_delta", delta=delta, usage=usage(said)))
    if "nodone" not in words:
        out.append(_event("message_stop"))
    return out


def _calls(index: int, calls: list[Called], words: Words) -> list[Frame]:
    blocks = [_call(index + at, call, words) for at, call in enumerate(calls)]
    if "interleave" not in words:
        return [frame for block in blocks for frame in block]
    longest = max((len(block) for block in blocks), default=0)
    return [block[n] for n in range(longest) for block in blocks if n < len(block)]


def _call(index: int, call: Called, words: Words) -> list[Frame]:
    block: dict[str, Any] = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
    if "wholecalls" in words:
        block["input"] = json.loads(call.arguments)
        texts: list[str] = []
    else:
        texts = [] if call.arguments == "{}" else ["", *pieces(call.arguments)]
    return [
        _event("content_block_start", index=index, content_block=block),
        *(_delta(index, "input_json_delta", partial_json=text) for text in texts),
        _event("content_block_stop", index=index),
    ]


def _delta(index: int, kind: str, **members: Any) -> Frame:
    return _event("content_block_delta", index=index, delta={"type": kind, **members})


def error(status: int, message: str, retry_s: float | None, param: str | None) -> dict[str, Any]:
    del retry_s, param  # told in headers, and in the message
    kinds = {
        400: "invalid_request_error",
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        413: "request_too_large",
        429: "rate_limit_error",
        503: "overloaded_error",
        504: "timeout_error",
        529: "overloaded_error",
    }
    told = {"type": kinds.get(status, "api_error"), "message": message}
    return {"type": "error", "error": told, "request_id": "req_faulty"}


def error_frame(status: int, message: str) -> Frame:
    return _event("error", error=error(status, message, None, None)["error"])
