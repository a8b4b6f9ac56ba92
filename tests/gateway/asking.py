"""Plain clients of the four dialects: bodies to send, and what came back, read by hand."""

import json
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import msgspec

SCHEMA = {
    "type": "object",
    "properties": {"zip": {"type": "string"}, "at": {"type": "string"}},
    "required": ["zip", "at"],
    "additionalProperties": False,
}
TOOLS = ("get_weather", "get_time")
MODEL = "faulty-1"


class Seen(msgspec.Struct):
    """An answer. `history`: what goes into the next request; `ended`: by the dialect's own word."""

    text: str = ""
    calls: list[tuple[str, str, str]] = []
    stop: str = ""
    usage: tuple[int, int, int] | None = None
    """Input in all, cached, output."""
    error: Any = None
    ended: bool = False
    history: list[Any] = []


def events(data: bytes) -> Iterator[tuple[str, Any]]:
    """Names and data; comments are passed over."""
    for block in data.decode().split("\n\n"):
        fields = [line.split(": ", 1) for line in block.split("\n") if line and line[0] != ":"]
        told = dict(pair for pair in fields if len(pair) == 2)
        if "data" in told:
            data_ = told["data"]
            yield told.get("event", ""), data_ if data_ == "[DONE]" else json.loads(data_)


class Client:
    """One dialect's client; `ask` builds a body, `more` are turns after the user's words."""

    name: ClassVar[str]
    stops: ClassVar[dict[str, str]]

    def path(self, *, stream: bool) -> str:
        raise NotImplementedError

    def ask(self, words: str, *, stream: bool, more: list[Any], think: bool) -> dict[str, Any]:
        raise NotImplementedError

    def results(self, seen: Seen, texts: list[str]) -> list[Any]:
        """The turns that go on from an answer with calls."""
        raise NotImplementedError

    def whole(self, body: Any) -> Seen:
        raise NotImplementedError

    def gathered(self, data: bytes) -> Seen:
        raise NotImplementedError

    def is_error(self, body: Any, status: int) -> bool:
        """Whether a body is an error in this dialect's form."""
        del status
        return isinstance(body["error"]["message"], str) and "type" in body["error"]


class Chat(Client):
    name = "chat"
    stops: ClassVar[dict[str, str]] = {"end": "stop", "calls": "tool_calls"}

    def path(self, *, stream: bool) -> str:
        del stream
        return "/v1/chat/completions"

    def ask(self, words: str, *, stream: bool, more: list[Any], think: bool) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": MODEL,
            "messages": [{"role": "user", "content": words}, *more],
            "tools": [
                {"type": "function", "function": {"name": name, "parameters": SCHEMA}}
                for name in TOOLS
            ],
        }
        if think:
            body["reasoning_effort"] = "medium"
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return body

    def results(self, seen: Seen, texts: list[str]) -> list[Any]:
        given = [
            {"role": "tool", "tool_call_id": call[0], "content": text}
            for call, text in zip(seen.calls, texts, strict=True)
        ]
        return [*seen.history, *given]

    def whole(self, body: Any) -> Seen:
        (choice,) = body["choices"]
        return self._seen(choice["message"], choice["finish_reason"], body.get("usage"))

    def _seen(self, message: dict[str, Any], stop: str, usage: Any) -> Seen:
        seen = Seen(message.get("content") or "", stop=stop, ended=True, history=[message])
        for call in message.get("tool_calls") or []:
            function = call["function"]
            seen.calls.append((call["id"], function["name"], function["arguments"]))
        if usage:
            cached = usage["prompt_tokens_details"]["cached_tokens"]
            seen.usage = usage["prompt_tokens"], cached, usage["completion_tokens"]
        return seen

    def gathered(self, data: bytes) -> Seen:
        message: dict[str, Any] = {"role": "assistant", "content": "", "reasoning_details": []}
        calls: dict[int, Any] = {}
        stop, usage, ended, error = "", None, False, None
        for _, chunk in events(data):
            assert not ended, "something came after [DONE]"
            if chunk == "[DONE]":
                ended = True
                continue
            error = error or chunk.get("error")
            assert not (usage and chunk.get("usage")), "usage came twice"
            usage = chunk.get("usage") or usage
            for choice in chunk.get("choices", []):
                stop = choice["finish_reason"] or stop
                delta = choice["delta"]
                message["content"] += delta.get("content") or ""
                message["reasoning_details"] += delta.get("reasoning_details") or []
                if "reasoning_content" in delta:
                    before = message.get("reasoning_content", "")
                    message["reasoning_content"] = before + delta["reasoning_content"]
                for piece in delta.get("tool_calls", []):
                    call = calls.setdefault(piece["index"], {"function": {"arguments": ""}})
                    assert not ("id" in call and "id" in piece), "the id came twice"
                    call.update({k: v for k, v in piece.items() if k not in ("index", "function")})
                    function = piece.get("function", {})
                    call["function"]["arguments"] += function.get("arguments", "")
                    if "name" in function:
                        call["function"]["name"] = function["name"]
        if calls:
            message["tool_calls"] = [calls[at] for at in sorted(calls)]
        if not message["reasoning_details"]:
            del message["reasoning_details"]
        seen = self._seen(message, stop, usage)
        seen.ended, seen.error = ended, error
        return seen


class Responses(Client):
    name = "responses"
    stops: ClassVar[dict[str, str]] = {
        "end": "completed",
        "calls": "completed",
        "length": "incomplete",
    }

    def path(self, *, stream: bool) -> str:
        del stream
        return "/v1/responses"

    def ask(self, words: str, *, stream: bool, more: list[Any], think: bool) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": MODEL,
            "store": False,
            "input": [{"role": "user", "content": words}, *more],
            "tools": [{"type": "function", "name": n, "parameters": SCHEMA} for n in TOOLS],
        }
        if think:
            body["reasoning"] = {"effort": "medium", "summary": "auto"}
            body["include"] = ["reasoning.encrypted_content"]
        return body | ({"stream": True} if stream else {})

    def results(self, seen: Seen, texts: list[str]) -> list[Any]:
        given = [
            {"type": "function_call_output", "call_id": call[0], "output": text}
            for call, text in zip(seen.calls, texts, strict=True)
        ]
        return [*seen.history, *given]

    def whole(self, body: Any) -> Seen:
        seen = Seen(stop=body["status"], ended=body["status"] != "failed", error=body["error"])
        seen.history = body["output"]
        for item in body["output"]:
            if item["type"] == "message":
                seen.text += "".join(part["text"] for part in item["content"])
            elif item["type"] == "function_call":
                seen.calls.append((item["call_id"], item["name"], item["arguments"]))
        if usage := body.get("usage"):
            cached = usage["input_tokens_details"]["cached_tokens"]
            seen.usage = usage["input_tokens"], cached, usage["output_tokens"]
        return seen

    def gathered(self, data: bytes) -> Seen:
        told = list(events(data))
        assert [one["sequence_number"] for _, one in told] == list(range(len(told)))
        assert all(name == one["type"] for name, one in told)
        grown = {"text": "", "arguments": ""}
        for name, one in told:
            if name == "response.output_text.delta":
                grown["text"] += one["delta"]
            elif name == "response.function_call_arguments.delta":
                grown["arguments"] += one["delta"]
        last = told[-1][1] if told else {}
        if not last.get("type", "").startswith(("response.completed", "response.incomplete")):
            error = last if last.get("type") == "error" else last.get("response", {}).get("error")
            return Seen(grown["text"], error=error)
        seen = self.whole(last["response"])
        assert seen.text == grown["text"]
        assert "".join(call[2] for call in seen.calls) == grown["arguments"]
        return seen


class Messages(Client):
    name = "messages"
    stops: ClassVar[dict[str, str]] = {
        "end": "end_turn",
        "calls": "tool_use",
        "length": "max_tokens",
    }

    def path(self, *, stream: bool) -> str:
        del stream
        return "/v1/messages"

    def ask(self, words: str, *, stream: bool, more: list[Any], think: bool) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": MODEL,
            "max_tokens": 4096,
            "messages": [{"role": "user", "content": words}, *more],
            "tools": [{"name": name, "input_schema": SCHEMA} for name in TOOLS],
        }
        if think:
            body["thinking"] = {"type": "enabled", "budget_tokens": 2048}
        return body | ({"stream": True} if stream else {})

    def results(self, seen: Seen, texts: list[str]) -> list[Any]:
        given = [
            {"type": "tool_result", "tool_use_id": call[0], "content": text}
            for call, text in zip(seen.calls, texts, strict=True)
        ]
        return [
            {"role": "assistant", "content": seen.history},
            {"role": "user", "content": given},
        ]

    def whole(self, body: Any) -> Seen:
        return self._seen(body["content"], body["stop_reason"], body["usage"])

    def _seen(self, blocks: list[Any], stop: str, usage: Any) -> Seen:
        seen = Seen(stop=stop, ended=True, history=blocks)
        for block in blocks:
            if block["type"] == "text":
                seen.text += block["text"]
            elif block["type"] == "tool_use":
                given = json.dumps(block["input"], separators=(",", ":"))
                seen.calls.append((block["id"], block["name"], given))
        cached = usage.get("cache_read_input_tokens", 0)
        if usage.get("input_tokens") or cached:
            seen.usage = usage["input_tokens"] + cached, cached, usage["output_tokens"]
        return seen

    def gathered(self, data: bytes) -> Seen:
        blocks: list[Any] = []
        stop, usage, ended, error, open_ = "", {}, False, None, False
        for name, one in events(data):
            assert name == one["type"]
            assert not ended, "something came after message_stop"
            if name == "content_block_start":
                assert not open_, "two blocks are open at once"
                assert one["index"] == len(blocks)
                open_ = True
                blocks.append({**one["content_block"], "json": ""})
            elif name == "content_block_delta":
                assert open_
                _grow(blocks[one["index"]], one["delta"])
            elif name == "content_block_stop":
                open_ = False
                text = blocks[-1].pop("json")
                if blocks[-1]["type"] == "tool_use":
                    blocks[-1]["input"] = json.loads(text)
            elif name == "message_delta":
                assert not open_
                stop, usage = one["delta"]["stop_reason"], one["usage"]
            elif name == "message_stop":
                ended = True
            elif name == "error":
                error = one["error"]
        if not ended:
            return Seen("".join(b.get("text", "") for b in blocks), error=error)
        return self._seen(blocks, stop, usage)

    def is_error(self, body: Any, status: int) -> bool:
        del status
        return body["type"] == "error" and {"type", "message"} <= set(body["error"])


def _grow(block: dict[str, Any], delta: dict[str, Any]) -> None:
    names = {
        "text_delta": ("text", "text"),
        "thinking_delta": ("thinking", "thinking"),
        "signature_delta": ("signature", "signature"),
        "input_json_delta": ("json", "partial_json"),
    }
    into, given = names[delta["type"]]
    block[into] += delta[given]


class Gemini(Client):
    name = "gemini"
    stops: ClassVar[dict[str, str]] = {"end": "STOP", "calls": "STOP"}

    def path(self, *, stream: bool) -> str:
        verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return f"/v1beta/models/{MODEL}:{verb}"

    def ask(self, words: str, *, stream: bool, more: list[Any], think: bool) -> dict[str, Any]:
        del stream
        declared = [{"name": name, "parametersJsonSchema": SCHEMA} for name in TOOLS]
        body: dict[str, Any] = {
            "contents": [{"role": "user", "parts": [{"text": words}]}, *more],
            "tools": [{"functionDeclarations": declared}],
        }
        if think:
            thinking = {"includeThoughts": True, "thinkingBudget": 2048}
            body["generationConfig"] = {"thinkingConfig": thinking}
        return body

    def results(self, seen: Seen, texts: list[str]) -> list[Any]:
        given: list[Any] = []
        for (identity, name, _), text in zip(seen.calls, texts, strict=True):
            answer: dict[str, Any] = {"name": name, "response": {"result": text}}
            given.append({"functionResponse": {**({"id": identity} if identity else {}), **answer}})
        return [{"role": "model", "parts": seen.history}, {"role": "user", "parts": given}]

    def whole(self, body: Any) -> Seen:
        return self._seen([body])

    def _seen(self, chunks: list[Any]) -> Seen:
        seen = Seen()
        for chunk in chunks:
            assert not seen.ended, "something came after the finish reason"
            if "error" in chunk:
                seen.error = chunk["error"]
                break
            (candidate,) = chunk["candidates"]
            parts = candidate["content"].get("parts", [])
            seen.history += parts
            for part in parts:
                if "functionCall" in part:
                    call = part["functionCall"]
                    given = json.dumps(call.get("args", {}), separators=(",", ":"))
                    seen.calls.append((call.get("id", ""), call["name"], given))
                elif not part.get("thought"):
                    seen.text += part["text"]
            seen.stop = candidate.get("finishReason", "")
            seen.ended = bool(seen.stop)
            if usage := chunk.get("usageMetadata"):
                output = usage["candidatesTokenCount"] + usage.get("thoughtsTokenCount", 0)
                cached = usage.get("cachedContentTokenCount", 0)
                seen.usage = usage["promptTokenCount"], cached, output
        return seen

    def gathered(self, data: bytes) -> Seen:
        return self._seen([chunk for _, chunk in events(data)])

    def is_error(self, body: Any, status: int) -> bool:
        return body["error"]["code"] == status and isinstance(body["error"]["status"], str)


_CLIENTS: dict[str, Callable[[], Client]] = {
    "chat": Chat,
    "responses": Responses,
    "messages": Messages,
    "gemini": Gemini,
}


def client_of(name: str) -> Client:
    return _CLIENTS[name]()
