"""Writes System 1's answer as an ordinary OpenAI chat turn: one completion, or its stream.

Token counts: `prompt_tokens` is an estimate (a token per four bytes of request body, at least
one), because no tokenizer of System 2 is at hand; `completion_tokens` is 0, because none was
generated, and so nothing is billed that no model did.
"""

import hashlib
import re
from typing import Any

import msgspec

from reflexarc.wire.ids import MISTRAL_IDS, IdMap
from reflexarc.wire.sse import DONE, data_event

BYTES_PER_TOKEN = 4
FINGERPRINT = ""
"""`system_fingerprint` where there is none to tell. Without the member Cerebras' client makes no
objects of the chunks of a stream."""
CALL_ID_PREFIX = "call_s1"
"""By it, and 24 hexadecimal digits after it, a later request shows which turns were System 1's."""
OWN_ID_START = f'"{CALL_ID_PREFIX}'.encode()
_own_id = re.compile(rf"{CALL_ID_PREFIX}[0-9a-f]{{24}}")
_own_quoted = re.compile(rf'"({CALL_ID_PREFIX}[0-9a-f]{{24}})"'.encode())


def is_own_call(identity: str) -> bool:
    """Whether System 1 made the call of this id. The prefix alone does not tell: one in some
    thousand ids of providers begins so too."""
    return _own_id.fullmatch(identity) is not None


def own_ids_fitted(body: bytes) -> bytes:
    """A request with the ids of System 1's calls as an upstream takes them that wants nine letters
    and digits: the same each time, every other byte as it was."""
    ids = IdMap(MISTRAL_IDS)
    return _own_quoted.sub(lambda found: f'"{ids.out(found.group(1).decode())}"'.encode(), body)


def call_id(key: str, at: int = 0) -> str:
    """The id of a turn's call at this place: 31 characters (OpenAI refuses ids longer than 40), the
    first one's cut from the turn's key, the others' made from it."""
    if at:
        key = hashlib.blake2b(f"{key} {at}".encode(), digest_size=12).hexdigest()
    return f"{CALL_ID_PREFIX}{key[:24]}"


class ActedTurn(msgspec.Struct, frozen=True):
    """A turn of System 1: `calls` made together, each a name and arguments. `key` is hexadecimal
    and stands for request and reflex: ids are made from it, so the same request gets the same ids.
    `created_s` is Unix time."""

    key: str
    created_s: int
    model: str
    calls: tuple[tuple[str, dict[str, Any]], ...]
    prompt_tokens: int


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
            "system_fingerprint": FINGERPRINT,
            "choices": [
                {
                    "index": 0,
                    "message": {
                        "role": "assistant",
                        "content": None,
                        "refusal": None,
                        "tool_calls": _calls(turn),
                    },
                    "logprobs": None,
                    "finish_reason": "tool_calls",
                }
            ],
            "usage": _usage(turn),
        }
    )


def completion_stream(turn: ActedTurn, include_usage: bool) -> bytes:
    """The whole stream: each call opened, its arguments; finish, the usage chunk if asked for,
    `[DONE]`."""
    begins: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
    deltas: list[tuple[dict[str, Any], str | None]] = []
    for at, call in enumerate(_calls(turn)):
        function = call["function"]
        opened = {**call, "index": at, "function": {**function, "arguments": ""}}
        filled = {"index": at, "type": "function", "function": {"arguments": function["arguments"]}}
        deltas.append(({**begins, "tool_calls": [opened]}, None))
        deltas.append(({"tool_calls": [filled]}, None))
        begins = {}
    deltas.append(({}, "tool_calls"))
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
        "system_fingerprint": FINGERPRINT,
        "choices": choices,
        **extra,
    }
    return data_event(msgspec.json.encode(body))


def _calls(turn: ActedTurn) -> list[dict[str, Any]]:
    return [
        {
            "id": call_id(turn.key, at),
            "type": "function",
            "function": {"name": name, "arguments": msgspec.json.encode(arguments).decode()},
        }
        for at, (name, arguments) in enumerate(turn.calls)
    ]


def _usage(turn: ActedTurn) -> dict[str, Any]:
    return {
        "prompt_tokens": turn.prompt_tokens,
        "completion_tokens": 0,
        "total_tokens": turn.prompt_tokens,
        "prompt_tokens_details": {"cached_tokens": 0},
    }
