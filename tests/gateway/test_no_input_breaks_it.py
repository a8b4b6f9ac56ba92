"""Whatever JSON stands wherever in a request, System 1 decides, escalates or refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflexarc.gateway.deciding import Decider
from reflexarc.gateway.frames import Decide, Native, Observe, ReflexSource, Setup
from reflexarc.gateway.native import NativeDesk
from reflexarc.gateway.worker import load

ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
    | st.sampled_from(["user", "assistant", "tool", "function", "text", "get_order", "\ud800"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "type", "function", "name", "id", "$ref", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def decider(reflex_path: Path) -> Decider:
    loaded = load(ReflexSource("/v1", str(reflex_path)))
    return Decider({"/v1": loaded}, Setup(reflexes=[]), lambda: 0.0, lambda: 0.0)


def _changed(value: Any, data: st.DataObject) -> Any:
    """The value with something inside it replaced by anything, or left out."""
    if isinstance(value, dict) and value and data.draw(st.booleans()):
        key = data.draw(st.sampled_from(sorted(value)))
        if data.draw(st.integers(0, 5)) == 0:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: _changed(value[key], data)}
    if isinstance(value, list) and value and data.draw(st.booleans()):
        index = data.draw(st.integers(0, len(value) - 1))
        return [*value[:index], _changed(value[index], data), *value[index + 1 :]]
    return data.draw(ANYTHING)


@settings(max_examples=300, deadline=None)
@given(data=st.data(), messages=st.integers(1, 8))
def test_a_chat_request_with_anything_in_it(
    data: st.DataObject, messages: int, decider: Decider, desk: Any
) -> None:
    request = _changed(desk.request(5000, messages), data)
    body = json.dumps(request).encode()
    decided, answer = decider.decide(Decide(1, "/v1", b"t", True, 0.05), body)
    assert decided.action in ("act", "escalate")
    assert decided.reason
    assert bool(answer) == (decided.action == "act")


@settings(max_examples=300, deadline=None)
@given(data=st.data(), messages=st.integers(1, 8))
def test_a_native_request_with_anything_in_it(
    data: st.DataObject, messages: int, decider: Decider, desk: Any
) -> None:
    native = NativeDesk(decider, Setup(reflexes=[]), lambda: 0.0)
    plain = desk.request(5000, messages)
    request: Any = {"messages": plain["messages"], "tools": plain["tools"], "session": "s"}
    if data.draw(st.booleans()):
        request["call"] = {"name": "get_order", "arguments": {"order_id": "W1"}}
    request = _changed({**request, "max_error": 0.1, "alternatives": 3}, data)
    reply, answer = native.answer(Native(1, b"t", {"/v1": 0.05}), json.dumps(request).encode())
    assert reply.status in (200, 400, 409, 422)
    assert isinstance(json.loads(answer), dict)


@settings(max_examples=200, deadline=None)
@given(data=st.data(), streamed=st.booleans())
def test_an_answer_with_anything_in_it(
    data: st.DataObject, streamed: bool, decider: Decider, desk: Any
) -> None:
    body = json.dumps(desk.request()).encode()
    decider.decide(Decide(7, "/v1", b"t", False, 0.05), body)
    call = {"index": 0, "id": "c", "function": {"name": "get_order", "arguments": "{}"}}
    turn = {"role": "assistant", "content": None, "tool_calls": [call]}
    part = "delta" if streamed else "message"
    answer = _changed({"choices": [{"index": 0, part: turn, "finish_reason": "stop"}]}, data)
    text = json.dumps(answer)
    kind = "text/event-stream" if streamed else "application/json"
    observed = decider.observe(
        Observe(7, 200, kind, ""), (f"data: {text}\n\n" if streamed else text).encode()
    )
    assert observed is not None
    assert observed.outcome in ("agree", "disagree", "unreadable")
