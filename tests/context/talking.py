"""Conversations in each dialect for tests of pruning: turns of calls with their results."""

import base64
import json
import struct
from typing import Any

import msgspec

from reflexarc.wire.dialects import dialect
from reflexarc.wire.growing import Grown, take_apart

Given = tuple[str, str, dict[str, Any], Any]
"""Of a call: id, name, arguments, and its result (a text, or a list of parts of that dialect)."""


def conversation(name: str, *calls: Given) -> list[dict[str, Any]]:
    """A user's words, then each call as a turn of its own, with its result."""
    items: list[dict[str, Any]] = [_user(name, "Please repair the pump.")]
    for call in calls:
        items += _TURNS[name](*call)
    return items


def body_of(name: str, items: list[dict[str, Any]], **more: Any) -> bytes:
    """A request, written with spaces: whoever writes it anew is seen."""
    return json.dumps({"model": "m", dialect(name).conversation: items, **more}).encode()


def grown(name: str, items: list[dict[str, Any]]) -> Grown:
    return take_apart(body_of(name, items), dialect(name).conversation)


def png(width: int, height: int, size: int = 600) -> str:
    """The base64 text of something that begins as a PNG of that many pixels."""
    head = struct.pack(">8sI4sII", b"\x89PNG\r\n\x1a\n", 13, b"IHDR", width, height)
    return base64.b64encode(head + b"\0" * (size - len(head))).decode()


def image_part(name: str, data: str) -> dict[str, Any]:
    if name == "messages":
        source = {"type": "base64", "media_type": "image/png", "data": data}
        return {"type": "image", "source": source}
    if name == "gemini":
        return {"inlineData": {"mimeType": "image/png", "data": data}}
    url = f"data:image/png;base64,{data}"
    if name == "responses":
        return {"type": "input_image", "image_url": url}
    return {"type": "image_url", "image_url": {"url": url}}


def with_image(name: str, data: str) -> dict[str, Any]:
    """A user's item that shows an image."""
    item = _user(name, "This is how it looks.")
    parts = item.get("parts") or item["content"]
    if isinstance(parts, str):
        item["content"] = parts = [{"type": "text", "text": parts}]
    parts.append(image_part(name, data))
    return item


def result_of(name: str, item: bytes) -> Any:
    """What the first result in an item says."""
    value = msgspec.json.decode(item)
    if name == "chat":
        return value["content"]
    if name == "messages":
        return value["content"][0]["content"]
    if name == "responses":
        return value["output"]
    return value["parts"][0]["functionResponse"]["response"]


def _user(name: str, text: str) -> dict[str, Any]:
    if name == "gemini":
        return {"role": "user", "parts": [{"text": text}]}
    if name == "messages":
        return {"role": "user", "content": [{"type": "text", "text": text}]}
    if name == "responses":
        return {"role": "user", "content": [{"type": "input_text", "text": text}]}
    return {"role": "user", "content": text}


def _chat(identity: str, name: str, arguments: dict[str, Any], result: Any) -> list[dict[str, Any]]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": identity, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": identity, "content": result},
    ]


def _messages(
    identity: str, name: str, arguments: dict[str, Any], result: Any
) -> list[dict[str, Any]]:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": f"sig-{identity}=="}
    use = {"type": "tool_use", "id": identity, "name": name, "input": arguments}
    given = {"type": "tool_result", "tool_use_id": identity, "content": result}
    return [{"role": "assistant", "content": [thinking, use]}, {"role": "user", "content": [given]}]


def _responses(
    identity: str, name: str, arguments: dict[str, Any], result: Any
) -> list[dict[str, Any]]:
    return [
        {"type": "reasoning", "id": f"rs_{identity}", "summary": [], "encrypted_content": "x=="},
        {
            "type": "function_call", "call_id": identity, "name": name,
            "arguments": json.dumps(arguments),
        },
        {"type": "function_call_output", "call_id": identity, "output": result},
    ]  # fmt: skip


def _gemini(
    identity: str, name: str, arguments: dict[str, Any], result: Any
) -> list[dict[str, Any]]:
    del identity
    call = {"functionCall": {"name": name, "args": arguments}, "thoughtSignature": "c2ln"}
    given = {"functionResponse": {"name": name, "response": {"result": result}}}
    return [{"role": "model", "parts": [call]}, {"role": "user", "parts": [given]}]


_TURNS = {"chat": _chat, "messages": _messages, "responses": _responses, "gemini": _gemini}
