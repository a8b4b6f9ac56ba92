"""Budgets of thinking come from outside: whatever the number, some effort says it."""

import json

import pytest

from reflexarc.steps.errors import RequestError
from reflexarc.wire.converting import Conversion, TurnMemory, read_ask
from reflexarc.wire.dialect import Where
from reflexarc.wire.dialects import NAMES, dialect


@pytest.mark.parametrize("target", NAMES)
@pytest.mark.parametrize("origin", ["messages", "gemini"])
@pytest.mark.parametrize("budget", [-(10**30), -2, -1, 0, 1, 65537, 10**19, 10**30])
def test_any_budget_is_told(origin: str, target: str, budget: int) -> None:
    body = {
        "messages": {
            "model": "m",
            "max_tokens": 10**31,
            "messages": [{"role": "user", "content": "hi"}],
            "thinking": {"type": "enabled", "budget_tokens": budget},
        },
        "gemini": {
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
            "generationConfig": {"thinkingConfig": {"thinkingBudget": budget}},
        },
    }[origin]
    try:
        ask = read_ask(dialect(origin), json.dumps(body).encode(), Where("m"), TurnMemory())
    except RequestError:
        return  # its own API would refuse it too
    written = Conversion(dialect(origin), dialect(target), ask, 1).request()
    assert isinstance(json.loads(written), dict)


@pytest.mark.parametrize("kind", ["tool_use", "thinking", "redacted_thinking"])
def test_a_user_neither_calls_nor_thinks(kind: str) -> None:
    block = {"type": kind, "id": "t", "name": "f", "input": {}, "thinking": "", "data": "d",
             "signature": "s"}  # fmt: skip
    body = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": [block]}]}
    with pytest.raises(RequestError):
        read_ask(dialect("messages"), json.dumps(body).encode(), Where(), TurnMemory())
