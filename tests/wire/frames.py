"""Whether a stream that was written for a client has its dialect's frames in their order.

Reads what the writers wrote without their help; anything out of order is an `AssertionError`.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec


class Told(msgspec.Struct):
    """What a client gathers. `end` is the dialect's word for why the stream ended, `failed` that it
    told an error; with neither it broke off."""

    text: str = ""
    thinking: str = ""
    calls: list[tuple[str, str, str]] = []
    """Ids, names, arguments."""
    end: str = ""
    failed: bool = False
    usage: tuple[int, int] | None = None
    """Tokens in and out."""

    @property
    def clean(self) -> bool:
        return bool(self.end) and not self.failed


def frames(stream: bytes) -> Iterator[tuple[str, str]]:
    """Names and data of the events; comments are checked and passed over."""
    assert not stream or stream.endswith(b"\n\n"), "the last event is not whole"
    for block in stream.decode().removesuffix("\n\n").split("\n\n"):
        lines = block.split("\n")
        if lines == [""] or all(line.startswith(":") for line in lines):
            continue
        name = ""
        if lines[0].startswith("event: "):
            name = lines.pop(0).removeprefix("event: ")
        (line,) = lines
        assert line.startswith("data: "), line
        yield name, line.removeprefix("data: ")


def told(dialect: str, stream: bytes) -> Told:
    return _READ[dialect](list(frames(stream)))


# Chat.


def _chat(given: list[tuple[str, str]]) -> Told:
    out, calls, done = Told(), list[dict[str, str]](), False
    for at, (name, data) in enumerate(given):
        assert name == "", "something came after the end"
        assert not done, "something came after the end"
        assert not out.failed, "something came after the end"
        if data == "[DONE]":
            assert out.end, "[DONE] came without a finish reason"
            done = True
            continue
        chunk = json.loads(data)
        if "error" in chunk:
            assert not out.end
            out.failed = True
            continue
        assert chunk["object"] == "chat.completion.chunk"
        assert chunk["model"]
        if not chunk["choices"]:
            assert out.end, "usage came twice, or too early"
            assert out.usage is None, "usage came twice, or too early"
            usage = chunk["usage"]
            out.usage = usage["prompt_tokens"], usage["completion_tokens"]
            continue
        assert chunk.get("usage") is None, "a chunk with a choice carries usage"
        (choice,) = chunk["choices"]
        assert choice["index"] == 0
        assert not out.end
        delta = choice["delta"]
        assert ("role" in delta) == (at == 0)
        out.text += (delta.get("content") or "") + (delta.get("refusal") or "")
        out.thinking += delta.get("reasoning_content") or ""
        for piece in delta.get("tool_calls", []):
            _chat_piece(piece, calls)
        out.end = choice["finish_reason"] or ""
    assert out.failed or not out.end or done, "no [DONE] after the finish reason"
    out.calls = [(call["id"], call["name"], call["arguments"]) for call in calls]
    return out


def _chat_piece(piece: dict[str, Any], calls: list[dict[str, str]]) -> None:
    inner = piece.get("function") or piece.get("custom") or {}
    text = inner.get("arguments", inner.get("input", ""))
    if "id" in piece:
        assert piece["index"] == len(calls), "an index was given twice"
        calls.append({"id": piece["id"], "name": inner["name"], "arguments": text})
        return
    assert "name" not in inner, "the name came twice"
    calls[piece["index"]]["arguments"] += text


# Messages.


def _messages(given: list[tuple[str, str]]) -> Told:
    out, blocks, open_, delta_seen, stopped = Told(), list[dict[str, Any]](), False, False, False
    for at, (name, data) in enumerate(given):
        event = json.loads(data)
        assert name == event["type"]
        assert not stopped, "something came after the end"
        assert not out.failed, "something came after the end"
        assert (name == "message_start") == (at == 0)
        if name == "content_block_start":
            assert not open_
            assert event["index"] == len(blocks)
            assert not delta_seen
            blocks.append({**event["content_block"], "json": [], "signed": 0})
            open_ = True
        elif name == "content_block_delta":
            assert open_
            assert event["index"] == len(blocks) - 1
            _block_delta(blocks[-1], event["delta"])
        elif name == "content_block_stop":
            assert open_
            assert event["index"] == len(blocks) - 1
            open_ = False
            if blocks[-1]["type"] == "tool_use":
                assert blocks[-1]["input"] == {}, "a call without its delta"
                assert blocks[-1]["json"], "a call without its delta"
        elif name == "message_delta":
            assert not open_
            assert not delta_seen
            delta_seen = True
            out.end = event["delta"]["stop_reason"]
            usage = event["usage"]
            if "input_tokens" in usage:
                parts = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
                total = sum(usage.get(part, 0) for part in parts)
                out.usage = total, usage["output_tokens"]
        elif name == "message_stop":
            assert delta_seen
            stopped = True
        elif name == "error":
            assert event["error"]["type"]
            assert not delta_seen
            out.failed = True
        else:
            assert name == "message_start", name
            assert event["message"]["content"] == []
            assert event["message"]["model"]
    assert stopped == bool(out.end)
    for block in blocks:
        out.text += block.get("text", "")
        out.thinking += block.get("thinking", "")
        if block["type"] == "tool_use":
            out.calls.append((block["id"], block["name"], "".join(block["json"])))
    return out


def _block_delta(block: dict[str, Any], delta: dict[str, Any]) -> None:
    kind = delta["type"]
    if kind == "text_delta":
        assert block["type"] == "text"
        block["text"] += delta["text"]
    elif kind == "thinking_delta":
        assert block["type"] == "thinking"
        assert not block["signed"]
        block["thinking"] += delta["thinking"]
    elif kind == "signature_delta":
        assert block["type"] == "thinking", "signed twice"
        assert not block["signed"], "signed twice"
        block["signed"] += 1
    elif kind == "input_json_delta":
        assert block["type"] in ("tool_use", "server_tool_use")
        block["json"].append(delta["partial_json"])
    else:
        assert kind == "citations_delta", kind
        assert block["type"] == "text", kind


# Responses.

_SAYING = ("response.output_text.delta", "response.refusal.delta")


def _responses(given: list[tuple[str, str]]) -> Told:
    out, items, item, grown = Told(), list[Any](), None, dict[str, str]()
    for at, (name, data) in enumerate(given):
        event = json.loads(data)
        assert name == event["type"]
        assert event["sequence_number"] == at
        assert not out.end, "something came after the end"
        assert not out.failed, "something came after the end"
        order = {0: "response.created", 1: "response.in_progress"}
        assert order.get(at, name) == name
        assert at < 2 or name not in order.values()
        if name == "response.output_item.added":
            assert item is None
            assert event["output_index"] == len(items)
            item, grown = event["item"], {}
        elif name == "response.output_item.done":
            assert item is not None
            assert event["output_index"] == len(items)
            assert event["item"]["type"] == item["type"]
            assert event["item"]["id"] == item["id"]
            items.append(event["item"])
            _item(event["item"], grown, out)
            item = None
        elif name in ("response.completed", "response.incomplete", "response.failed"):
            response = event["response"]
            assert f"response.{response['status']}" == name
            out.failed = name == "response.failed"
            out.end = "" if out.failed else response["status"]
            if out.failed:
                out.text, out.calls = "", []
                for one in response["output"]:
                    _gather(one, out)
            else:
                assert item is None
                assert response["output"] == items
            usage = response["usage"]
            out.usage = usage and (usage["input_tokens"], usage["output_tokens"])
        elif at > 1:
            assert item is not None, name
            assert event["item_id"] == item["id"]
            assert event["output_index"] == len(items)
            if name == "response.content_part.added":
                for one in _SAYING:
                    grown["before"] = grown.get("before", "") + grown.pop(one, "")
            if name.endswith(".delta"):
                grown[name] = grown.get(name, "") + event["delta"]
            elif name.endswith(".done") and f"{name[:-5]}.delta" in grown:
                said = [
                    v for k, v in event.items() if k in ("text", "refusal", "arguments", "input")
                ]
                assert said == [grown[f"{name[:-5]}.delta"]], name
    return out


def _item(item: dict[str, Any], grown: dict[str, str], out: Told) -> None:
    """What a whole item says is what its deltas said."""
    if item["type"] == "message":
        said = "".join(p.get("text", p.get("refusal", "")) for p in item["content"])
        assert said == "".join(grown.get(name, "") for name in ("before", *_SAYING))
    elif item["type"] == "function_call":
        assert item["arguments"] == grown["response.function_call_arguments.delta"]
    elif item["type"] == "custom_tool_call":
        assert item["input"] == grown.get("response.custom_tool_call_input.delta", "")
    _gather(item, out)


def _gather(item: dict[str, Any], out: Told) -> None:
    kind = item["type"]
    if kind == "message":
        out.text += "".join(p.get("text", p.get("refusal", "")) for p in item["content"])
    elif kind == "function_call":
        out.calls.append((item["call_id"], item["name"], item["arguments"]))
    elif kind == "custom_tool_call":
        out.calls.append((item["call_id"], item["name"], item["input"]))
    elif kind == "reasoning":
        out.thinking += "".join(part["text"] for part in item["summary"])


# Gemini.


def _gemini(given: list[tuple[str, str]]) -> Told:
    out = Told()
    for name, data in given:
        assert name == "", "something came after the end"
        assert not out.end, "something came after the end"
        assert not out.failed, "something came after the end"
        chunk = json.loads(data)
        if "error" in chunk:
            assert chunk["error"]["status"]
            out.failed = True
            continue
        if "promptFeedback" in chunk and "candidates" not in chunk:
            out.end = chunk["promptFeedback"]["blockReason"]
            continue
        (candidate,) = chunk["candidates"]
        for part in candidate["content"]["parts"]:
            if "functionCall" in part:
                call = part["functionCall"]
                text = json.dumps(call["args"], separators=(",", ":"), ensure_ascii=False)
                out.calls.append((call.get("id", ""), call["name"], text))
            elif part.get("thought"):
                out.thinking += part["text"]
            else:
                out.text += part.get("text", "")
        out.end = candidate.get("finishReason", "")
        if usage := chunk.get("usageMetadata"):
            assert out.usage is None, "usage came twice, or too early"
            assert out.end, "usage came twice, or too early"
            output = usage["candidatesTokenCount"] + usage.get("thoughtsTokenCount", 0)
            out.usage = usage["promptTokenCount"], output
    return out


_READ: dict[str, Callable[[list[tuple[str, str]]], Told]] = {
    "chat": _chat,
    "messages": _messages,
    "responses": _responses,
    "gemini": _gemini,
}
