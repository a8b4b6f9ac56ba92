"""Chat completions as the fault upstream tells them, whole and in chunks, well or badly formed."""

from typing import Any

from reflexarc.sim.faulty.script import Asked, Called, Frame, Said, Words, inner, pieces

_FINISHES = {"end": "stop", "calls": "tool_calls", "length": "length", "refusal": "stop"}


def read(body: dict[str, Any]) -> Asked:
    choice = body.get("tool_choice")
    asked = Asked(
        body["model"],
        body.get("stream") is True,
        thinking=body.get("reasoning_effort") not in (None, "none"),
        forced=choice == "required" or isinstance(choice, dict),
        usage=inner(body, "stream_options").get("include_usage") is True,
    )
    asked.only = inner(body, "tool_choice", "function").get("name", "")
    for tool in body.get("tools", []):
        function = inner(tool, "function")
        if function:
            asked.tools.append((function["name"], inner(function, "parameters")))
    for message in body["messages"]:
        if message["role"] == "tool":
            asked.results.append(_text(message["content"]))
        elif message["role"] == "user":
            given = message["content"]
            shown = 0 if isinstance(given, str) else sum(p["type"] == "image_url" for p in given)
            if shown and asked.results:  # pictures of results, which have no place in them
                asked.images += shown
                continue
            asked.text, asked.images, asked.results = _text(given), shown, []
    return asked


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts: list[Any] = content or []
    return "\n".join(part["text"] for part in parts if part["type"] == "text")


def usage(said: Said) -> dict[str, Any]:
    return {
        "prompt_tokens": said.input,
        "completion_tokens": said.output,
        "total_tokens": said.input + said.output,
        "prompt_tokens_details": _prompt(said),
        "completion_tokens_details": {"reasoning_tokens": said.reasoning},
    }


def _prompt(said: Said) -> dict[str, int]:
    written = {"cache_write_tokens": said.written} if said.written else {}
    return {"cached_tokens": said.cached, **written}


def whole(said: Said, words: Words) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": said.text or None}
    if said.refusal:
        message["refusal"] = said.refusal
    if said.thinking:
        message["reasoning_content"] = said.thinking
    if said.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in said.calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": _finish(said, words)}
    body: dict[str, Any] = {
        "id": f"chatcmpl-{said.id}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": said.model,
        "choices": [choice],
    }
    if said.told_usage:
        body["usage"] = usage(said)
    return body


def _finish(said: Said, words: Words) -> str | None:
    if "nofinish" in words:
        return None
    return "stop" if "stopaftertools" in words else _FINISHES[said.stop]


def frames(said: Said, asked: Asked, words: Words) -> list[Frame]:
    chunks = _Chunks(said)
    out = [chunks.delta({"role": "assistant", "content": ""})]
    if "emptyfirst" in words:
        out = [Frame(""), chunks.delta({}), chunks.delta({"content": None}), *out]
    if "nochoices" in words:
        out = [chunks.chunk([], prompt_filter_results=[]), *out, chunks.chunk(None)]
    out += [chunks.delta({"reasoning_content": text}) for text in pieces(said.thinking)]
    out += [chunks.delta({"refusal": text}) for text in pieces(said.refusal)]
    out += [chunks.delta({"content": text}) for text in pieces(said.text, 4)]
    out += _calls(chunks, said.calls, words)
    last: dict[str, Any] = {}
    if "repeat" in words and said.calls:
        at = len(said.calls) - 1
        last = {"tool_calls": [_entry(at, said.calls[at], "", named=True)]}
    if "nofinish" not in words:
        out.append(chunks.delta(last, _finish(said, words)))
    if said.told_usage and (asked.usage or "usageanyway" in words):
        counted = usage(said)
        if "usageonlast" in words and "nofinish" not in words:
            out[-1] = Frame({**out[-1].data, "usage": counted})
        else:
            out.append(chunks.chunk([], usage=counted))
        if "usagetwice" in words:
            out.append(chunks.chunk([], usage=counted))
    if "nodone" not in words:
        out.append(Frame("[DONE]"))
    return out


def _calls(chunks: "_Chunks", calls: list[Called], words: Words) -> list[Frame]:
    again = "repeat" in words
    if "wholecalls" in words or "oneindex" in words:
        step = 0 if "oneindex" in words else 1
        return [
            chunks.delta({"tool_calls": [_entry(step * at, call, call.arguments, named=True)]})
            for at, call in enumerate(calls)
        ]
    begun = [_entry(at, call, "", named=True) for at, call in enumerate(calls)]
    grown = [
        [_entry(at, call, text, named=again) for text in pieces(call.arguments)]
        for at, call in enumerate(calls)
    ]
    if "twoinone" in words or "interleave" in words:
        longest = max((len(one) for one in grown), default=0)
        rounds = [begun, *([g[n] for g in grown if n < len(g)] for n in range(longest))]
        if "twoinone" in words:
            return [chunks.delta({"tool_calls": one}) for one in rounds if one]
        return [chunks.delta({"tool_calls": [one]}) for round_ in rounds for one in round_]
    return [
        chunks.delta({"tool_calls": [one]})
        for first, rest in zip(begun, grown, strict=True)
        for one in (first, *rest)
    ]


def _entry(at: int, call: Called, text: str, *, named: bool) -> dict[str, Any]:
    if not named:
        return {"index": at, "function": {"arguments": text}}
    function = {"name": call.name, "arguments": text}
    return {"index": at, "id": call.id, "type": "function", "function": function}


class _Chunks:
    def __init__(self, said: Said) -> None:
        self._head = {
            "id": f"chatcmpl-{said.id}",
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": said.model,
        }

    def chunk(self, choices: list[Any] | None, **more: Any) -> Frame:
        return Frame({**self._head, "choices": choices, **more})

    def delta(self, delta: dict[str, Any], finish: str | None = None) -> Frame:
        return self.chunk([{"index": 0, "delta": delta, "finish_reason": finish}])


def error(status: int, message: str, retry_s: float | None, param: str | None) -> dict[str, Any]:
    kinds = {401: "invalid_request_error", 429: "rate_limit_error", 503: "overloaded_error"}
    codes = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
    kind = kinds.get(status, "server_error" if status >= 500 else "invalid_request_error")
    if retry_s is not None:
        message = f"{message} Please try again in {retry_s:g}s."
    return {"error": {"message": message, "type": kind, "param": param, "code": codes.get(status)}}


def error_frame(status: int, message: str) -> Frame:
    told = error(status, message, None, None)
    told["error"]["code"] = status
    return Frame(told)
