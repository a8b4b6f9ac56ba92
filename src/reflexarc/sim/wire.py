"""The simulated System 2's chat completions: one answer as a message, a completion, a stream."""

from collections.abc import Iterator
from typing import Any

import msgspec

from reflexarc.sim.policy import Answer
from reflexarc.wire.chat_answer import FINGERPRINT

_BYTES_PER_TOKEN = 4


def tokens_of(size_bytes: int) -> int:
    """Estimated tokens of so many bytes of UTF-8: a quarter, rounded up.

    The usual rule of thumb for English text and JSON; no tokenizer is shipped. The same rule for
    prompts and answers, so ratios hold.
    """
    return -(-size_bytes // _BYTES_PER_TOKEN)


def output_tokens(answer: Answer) -> int:
    """Estimated tokens System 2 would write: text, names and arguments of calls."""
    size = len(answer.content.encode("utf-8", "surrogatepass"))
    return max(1, tokens_of(size + sum(len(c.name) + len(c.text.encode()) for c in answer.calls)))


def assistant_message(answer: Answer, seed: str) -> dict[str, Any]:
    """The answer as an OpenAI chat message. `seed` makes the call ids; same seed, same ids."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.content or None}
    if answer.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{seed}{index:02d}",
                "type": "function",
                "function": {"name": call.name, "arguments": call.text},
            }
            for index, call in enumerate(answer.calls)
        ]
    return message


def finish_reason(answer: Answer) -> str:
    return "tool_calls" if answer.calls else "stop"


def completion(
    answer: Answer, seed: str, model: str, created_s: int, usage: dict[str, Any]
) -> dict[str, Any]:
    """A whole `chat.completion`."""
    return {
        "id": f"chatcmpl-{seed}",
        "object": "chat.completion",
        "created": created_s,
        "model": model,
        "system_fingerprint": FINGERPRINT,
        "choices": [
            {
                "index": 0,
                "message": assistant_message(answer, seed),
                "logprobs": None,
                "finish_reason": finish_reason(answer),
            }
        ],
        "usage": usage,
    }


def stream_deltas(answer: Answer, seed: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """(tokens, delta) pieces of a streamed answer, about a token each, in order."""
    yield 0, {"role": "assistant", "content": "" if answer.content else None}
    for piece in _pieces(answer.content):
        yield 1, {"content": piece}
    for index, call in enumerate(answer.calls):
        head = {"id": f"call_{seed}{index:02d}", "type": "function"}
        function = {"name": call.name, "arguments": ""}
        yield (
            tokens_of(len(call.name)),
            {"tool_calls": [{"index": index, **head, "function": function}]},
        )
        for piece in _pieces(call.text):
            yield 1, {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def chunk(
    seed: str,
    model: str,
    created_s: int,
    delta: dict[str, Any] | None,
    *,
    finish: str | None = None,
    usage: dict[str, Any] | None = None,
    include_usage: bool = False,
) -> bytes:
    """One SSE event. Without a delta it is the usage event, whose `choices` are empty."""
    event: dict[str, Any] = {
        "id": f"chatcmpl-{seed}",
        "object": "chat.completion.chunk",
        "created": created_s,
        "model": model,
        "system_fingerprint": FINGERPRINT,
        "choices": []
        if delta is None
        else [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
    }
    if include_usage:
        event["usage"] = usage
    return b"data: " + msgspec.json.encode(event) + b"\n\n"


def _pieces(text: str) -> Iterator[str]:
    size = _BYTES_PER_TOKEN
    return (text[i : i + size] for i in range(0, len(text), size))
