"""Asks a real System 2 whether it takes turns that System 1 wrote, among turns with its thinking.

Four histories, each streamed and whole: a turn of System 1 first; System 2's own turn, kept to the
byte with its thinking, and then one of System 1; the other order; two of System 1 in a row. A
provider that wants a signature in each turn refuses the ones without.
"""

from collections.abc import Callable
from typing import Any, cast

import msgspec

from reflexarc.steps.errors import InputError, UpstreamError
from reflexarc.wire.answers import answer_from_body
from reflexarc.wire.chat_answer import CALL_ID_PREFIX

Ask = Callable[[bytes], tuple[int, str, bytes]]
"""Sends a body to System 2: status, content type, body. Raises `UpstreamError`."""

_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_order",
            "description": "Read an order.",
            "parameters": {
                "type": "object",
                "properties": {"order_id": {"type": "string"}},
                "required": ["order_id"],
                "additionalProperties": False,
            },
        },
    }
]
_START: list[dict[str, Any]] = [
    {"role": "system", "content": "You help with orders. Look each order up with get_order."},
    {"role": "user", "content": "What is the status of the orders W1000001 and W1000002?"},
]


class Check(msgspec.Struct, frozen=True):
    """One history put to System 2. `detail` says why it was refused."""

    name: str
    accepted: bool
    detail: str


class Replayed(msgspec.Struct, frozen=True):
    """`thinks`: System 2's own turn carried thinking, or its usage counts some; else the test says
    nothing."""

    checks: tuple[Check, ...]
    thinks: bool

    @property
    def passed(self) -> bool:
        return self.thinks and bool(self.checks) and all(check.accepted for check in self.checks)


def replay_test(ask: Ask, model: str, more: dict[str, Any]) -> Replayed:
    """`more` are further fields of each request, such as `reasoning_effort`. Raises `InputError`
    where System 2's own turn cannot be read or calls no tool, `UpstreamError` where it cannot be
    asked."""
    own, thinks = _own_turn(ask, model, more)
    first, second = _system1_turn(1), _system1_turn(2)
    histories: list[tuple[str, list[dict[str, Any]]]] = [
        ("system1", [first, *_results(first)]),
        ("system2, system1", [own, *_results(own), second, *_results(second)]),
        ("system1, system2", [first, *_results(first), own, *_results(own)]),
        ("system1 twice", [first, *_results(first), second, *_results(second)]),
    ]
    checks: list[Check] = []
    for name, turns in histories:
        for stream in (False, True):
            body = _body(model, [*_START, *turns], {**more, "stream": stream})
            shown = f"{name}, streamed" if stream else name
            checks.append(_checked(shown, ask, body))
    return Replayed(tuple(checks), thinks)


def _own_turn(ask: Ask, model: str, more: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    status, content_type, body = ask(_body(model, _START, more))
    if status != 200:
        raise UpstreamError(f"System 2 refused a plain request: {_short(status, body)}")
    answer = answer_from_body(body, content_type)
    try:
        completion = cast("dict[str, Any]", msgspec.json.decode(body))
        message = cast("dict[str, Any]", completion["choices"][0]["message"])
        usage = cast("dict[str, Any]", completion.get("usage") or {})
        details = cast("dict[str, Any]", usage.get("completion_tokens_details") or {})
        hidden = bool(details.get("reasoning_tokens"))
        calls = cast("list[Any]", message.get("tool_calls") or [])
    except (msgspec.DecodeError, LookupError, TypeError, AttributeError) as error:
        raise InputError("System 2's answer is not a chat completion") from error
    if not calls:
        raise InputError(
            "System 2 called no tool when asked about two orders: it cannot be tested like this"
        )
    return message, answer.thinking or hidden


def _checked(name: str, ask: Ask, body: bytes) -> Check:
    status, content_type, answer = ask(body)
    if status != 200:
        return Check(name, False, _short(status, answer))
    try:
        read = answer_from_body(answer, content_type)
    except InputError as error:
        return Check(name, False, str(error))
    if read.stop in (None, "truncated"):
        return Check(name, False, "the answer broke off")
    return Check(name, True, "")


def _body(model: str, messages: list[dict[str, Any]], more: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"model": model, "messages": messages, "tools": _TOOLS, **more})


def _system1_turn(number: int) -> dict[str, Any]:
    """As the gateway writes them: no thinking, nothing signed."""
    arguments = msgspec.json.encode({"order_id": f"W100000{number}"}).decode()
    call = {
        "id": f"{CALL_ID_PREFIX}{number:024x}",
        "type": "function",
        "function": {"name": "get_order", "arguments": arguments},
    }
    return {"role": "assistant", "content": None, "refusal": None, "tool_calls": [call]}


def _results(turn: dict[str, Any]) -> list[dict[str, Any]]:
    """A result for every call of a turn."""
    calls = cast("list[dict[str, Any]]", turn["tool_calls"])
    return [
        {"role": "tool", "tool_call_id": call.get("id"), "content": '{"status": "delivered"}'}
        for call in calls
    ]


def _short(status: int, body: bytes) -> str:
    return f"status {status}: {body[:300].decode('utf-8', 'replace')}"
