"""Answers that providers get wrong in what all dialects share."""

import json

import pytest

from reflexarc.steps.errors import MalformedError
from reflexarc.wire.dialects import NAMES
from tests.wire.frames import told
from tests.wire.matrix.cells import answering

MILLISECONDS = 1_700_000_000_000


@pytest.mark.parametrize("target", NAMES)
def test_a_date_in_milliseconds_breaks_nothing(target: str) -> None:
    choice = {"index": 0, "message": {"content": "x"}, "finish_reason": "stop"}
    body = {"id": "a", "model": "m", "created": MILLISECONDS, "choices": [choice]}
    conversion = answering("chat", target, stream=False)
    assert b"x" in conversion.write(conversion.read(json.dumps(body).encode()))
    chunk = {**body, "choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}]}
    stream = answering("chat", target, stream=True).stream()
    data = b"data: " + json.dumps(chunk).encode() + b"\n\n"
    assert told(target, stream.feed(data) + stream.close()).text == "x"


@pytest.mark.parametrize("target", NAMES)
def test_a_call_that_says_no_tool_is_a_fault(target: str) -> None:
    item = {"type": "function_call", "id": "i", "call_id": "c", "name": "", "arguments": "{}"}
    response = {"id": "r", "status": "completed", "output": [item]}
    conversion = answering("responses", target, stream=False)
    with pytest.raises(MalformedError, match="without a name"):
        conversion.read(json.dumps(response).encode())
    stream = answering("responses", target, stream=True).stream()
    event = {"type": "response.completed", "response": response}
    out = stream.feed(b"data: " + json.dumps(event).encode() + b"\n\n") + stream.close()
    assert stream.fault is not None
    assert not told(target, out).clean
