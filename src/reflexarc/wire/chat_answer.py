"""Writes System 1's answer as an ordinary OpenAI chat turn: one completion, or its stream.

Token counts: `prompt_tokens` is an estimate (a token per four bytes of request body, at least
one), because no tokenizer of System 2 is at hand; `completion_tokens` is 0, because none was
generated, and so nothing is billed that no model did.
"""

import re
from typing import Any

import msgspec

from reflexarc.wire.sse import DONE, data_event

BYTES_PER_TOKEN = 4
CALL_ID_PREFIX = "call_s1"
"""By it, and 24 hexadecimal digits after it, a later request shows which turns were System 1's."""
_own_id = re.compile(rf"{CALL_ID_PREFIX}[0-9a-f]{{24}}")


def is_own_call(identity: str) -> bool:
    """Whether System 1 made the call of this id. The prefix alone does not tell: one in some
    thousand ids of providers begins so too."""
    return _own_id.fullmatch(identity) is not None


class ActedTurn(msgspec.Struct, frozen=True):
    """One call made by System 1. `key` is hexadecimal and stands for request and reflex: ids
    are cut from it, so the same request gets the same ids. `created_s` is Unix time."""

    key: str
    created_s: int
    model: str
    name: str
    arguments: dict[str, Any]
    prompt_tokens: int

    @property
    def call_id(self) -> str:
        """31 characters; OpenAI refuses ids longer than 40."""
        return f"{CALL_ID_PREFIX}{self.key[:24]}"


def estimated_tokens(body_bytes: int) -> int:
    return max(1, body_bytes // BYTES_PER_TOKEN)


def completion(turn: ActedTurn) -> bytes:
    """The body of a `chat.completion`."""
    return msgspec.json.encode(
        {
            "id": f"chatcmpl-{turn.key[:24]}",
            "object": "chat.completion",
            "created": turn.created_s,
            "model": turn.model,
            "choices": [
                {
                    "index": 0,
                    "message": {
                        "role": "assistant",
                        "content": None,
                        "refusal": None,
                        "tool_calls": [_call(turn)],
                    },
                    "logprobs": None,
                    "finish_reason": "tool_calls",
                }
            ],
            "usage": _usage(turn),
        }
    )


def completion_stream(turn: ActedTurn, include_usage: bool) -> bytes:
    """The whole stream: call opened, arguments, finish, the usage chunk if asked for, `[DONE]`."""
    opened = {**_call(turn), "index": 0}
    opened["function"] = {"name": turn.name, "arguments": ""}
    text = _arguments(turn)
    deltas: list[tuple[dict[str, Any], str | None]] = [
        ({"role": "assistant", "content": None, "refusal": None, "tool_calls": [opened]}, None),
        ({"tool_calls": [{"index": 0, "function": {"arguments": text}}]}, None),
        ({}, "tool_calls"),
    ]
    events: list[bytes] = []
    for delta, finish in deltas:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        events.append(_chunk(turn, [choice], {"usage": None} if include_usage else {}))
    if include_usage:
        events.append(_chunk(turn, [], {"usage": _usage(turn)}))
    events.append(DONE)
    return b"".join(events)


def _chunk(turn: ActedTurn, choices: list[Any], extra: dict[str, Any]) -> bytes:
    body = {
        "id": f"chatcmpl-{turn.key[:24]}",
        "object": "chat.completion.chunk",
        "created": turn.created_s,
        "model": turn.model,
        "choices": choices,
        **extra,
    }
    return data_event(msgspec.json.encode(body))


def _call(turn: ActedTurn) -> dict[str, Any]:
    return {
        "id": turn.call_id,
        "type": "function",
        "function": {"name": turn.name, "arguments": _arguments(turn)},
    }


def _arguments(turn: ActedTurn) -> str:
    return msgspec.json.encode(turn.arguments).decode()


def _usage(turn: ActedTurn) -> dict[str, Any]:
    return {
        "prompt_tokens": turn.prompt_tokens,
        "completion_tokens": 0,
        "total_tokens": turn.prompt_tokens,
        "prompt_tokens_details": {"cached_tokens": 0},
    }
