"""Whatever a request holds: its prompt is looked at and mended without a fault, and stays JSON."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflexarc.context.lines import Lines
from reflexarc.gateway.config import Repair, Route
from reflexarc.gateway.prompt_repair import PromptRepair
from reflexarc.steps.errors import MalformedError
from reflexarc.wire.dialects import NAMES
from reflexarc.wire.dialects import dialect as dialect_of
from reflexarc.wire.growing import take_apart

ROUTE = Route(upstream="http://x/v1", repair=Repair("stable", "move", "auto", "session"))
MEMBERS = (
    "type", "role", "content", "text", "id", "input", "parts", "source", "data", "url", "name",
    "image_url", "cache_control", "cachePoint", "tool_calls", "function", "functionDeclarations",
)  # fmt: skip
words = st.sampled_from(
    [
        "",
        "user",
        "assistant",
        "system",
        "text",
        "tool_use",
        "It is 09:59.",
        "It is 10:00.",
        "é" * 400,
    ]
)
values = st.recursive(
    words | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(MEMBERS), inner | words, max_size=4)
    ),
    max_leaves=20,
)
heads = st.dictionaries(
    st.sampled_from(
        ["tools", "system", "instructions", "systemInstruction", "thinking", "model", "text"]
    ),
    values,
    max_size=4,
)


@pytest.mark.parametrize("dialect", NAMES)
@settings(max_examples=60, deadline=None)
@given(requests=st.lists(st.tuples(heads, st.lists(values, max_size=4)), min_size=2, max_size=4))
def test_a_session_of_any_requests(dialect: str, requests: list[tuple[Any, list[Any]]]) -> None:
    lines, repair = Lines(max_bytes=5_000), PromptRepair(b"a secret" * 4)
    spoken = dialect_of(dialect)
    for at, (head, conversation) in enumerate(requests):
        raw = json.dumps({**head, spoken.conversation: conversation}).encode()
        try:
            grown = take_apart(raw, spoken.conversation)
        except MalformedError:  # infinite numbers, say
            continue
        found = lines.take("s", dialect, grown, float(at))
        assert 0 <= found.kept_bytes <= max(found.before_bytes, found.line.size)
        assert 0 <= lines.held_bytes <= 5_000
        mended = repair.mended(ROUTE, b"t", [], "s", dialect, raw)
        assert mended is not None
        sent = json.loads(mended.finish(mended.sent, dialect))
        assert len(sent[spoken.conversation]) >= len(conversation)
        assert _size(sent.get("tools")) == _size(head.get("tools"))
        assert mended.names or mended.sent == raw


def _size(tools: Any) -> int:
    return len(tools) if isinstance(tools, list) else -1
