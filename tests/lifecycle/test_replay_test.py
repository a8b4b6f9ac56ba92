"""The replay test: a provider that wants every turn signed fails it, one that does not passes."""

import json
from typing import Any

import pytest

from reflexarc.lifecycle.replay_test import replay_test
from reflexarc.steps.errors import InputError


class Provider:
    def __init__(self, *, strict: bool = False, thinks: bool = True) -> None:
        self.strict = strict
        self.thinks = thinks

    def ask(self, body: bytes) -> tuple[int, str, bytes]:
        request = json.loads(body)
        turns = [one for one in request["messages"] if one["role"] == "assistant"]
        if self.strict and any("reasoning_details" not in turn for turn in turns):
            return 400, "application/json", b'{"error": {"message": "a turn is not signed"}}'
        function = {"name": "get_order", "arguments": '{"order_id": "W1000001"}'}
        turn: dict[str, Any] = {"role": "assistant", "content": None}
        turn["tool_calls"] = [{"id": "call_9", "type": "function", "function": function}]
        if self.thinks:
            turn["reasoning_details"] = [{"type": "reasoning.encrypted", "data": "signed"}]
        if request.get("stream"):
            calls = [{"index": 0, **turn["tool_calls"][0]}]
            delta = {**turn, "tool_calls": calls}
            choice = {"index": 0, "delta": delta, "finish_reason": "tool_calls"}
            text = f"data: {json.dumps({'choices': [choice]})}\n\ndata: [DONE]\n\n"
            return 200, "text/event-stream", text.encode()
        choice = {"index": 0, "message": turn, "finish_reason": "tool_calls"}
        return 200, "application/json", json.dumps({"choices": [choice]}).encode()


def test_a_provider_that_takes_such_turns_passes() -> None:
    found = replay_test(Provider().ask, "m", {})
    assert (found.passed, found.thinks, len(found.checks)) == (True, True, 8)


def test_a_provider_that_wants_each_turn_signed_fails() -> None:
    found = replay_test(Provider(strict=True).ask, "m", {})
    assert not found.passed
    assert not any(check.accepted for check in found.checks)
    assert "not signed" in found.checks[0].detail


def test_a_model_that_shows_no_thinking_proves_nothing() -> None:
    found = replay_test(Provider(thinks=False).ask, "m", {})
    assert not found.passed
    assert all(check.accepted for check in found.checks)


def test_a_model_that_calls_nothing_cannot_be_tested() -> None:
    answer = json.dumps({"choices": [{"message": {"content": "no"}, "finish_reason": "stop"}]})
    with pytest.raises(InputError, match="called no tool"):
        replay_test(lambda _: (200, "application/json", answer.encode()), "m", {})
