"""`with_tool_choice`: one value of a request changes, every other byte stays."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.wire.json import split_object
from reflexarc.wire.tool_choice import with_tool_choice

FORCED = {"type": "function", "function": {"name": "get_order"}}
KEYS = st.text(max_size=6).filter(lambda key: key != "tool_choice")
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(KEYS | st.just("tool_choice"), inner, max_size=3)
    ),
    max_leaves=8,
)
SPACES = st.text(" \t\r\n", max_size=3)


@st.composite
def bodies(draw: st.DrawFn) -> tuple[dict[str, Any], bytes]:
    """An object with or without an automatic choice, written with odd spaces and escapes."""
    members: list[tuple[str, Any]] = list(draw(st.dictionaries(KEYS, VALUES, max_size=4)).items())
    if draw(st.booleans()):
        place = draw(st.integers(0, len(members)))
        members.insert(place, ("tool_choice", draw(st.sampled_from([None, "auto"]))))
    ascii_only = draw(st.booleans())
    parts = [
        draw(SPACES)
        + json.dumps(key, ensure_ascii=ascii_only)
        + draw(SPACES)
        + ":"
        + draw(SPACES)
        + json.dumps(value, ensure_ascii=ascii_only)
        + draw(SPACES)
        for key, value in members
    ]
    inside = ",".join(parts) if parts else draw(SPACES)
    return dict(members), f"{draw(SPACES)}{{{inside}}}{draw(SPACES)}".encode()


@given(bodies())
def test_only_the_choice_changes(written: tuple[dict[str, Any], bytes]) -> None:
    members, body = written
    forced = with_tool_choice(body, "get_order")
    assert forced is not None
    assert json.loads(forced) == {**members, "tool_choice": FORCED}
    assert list(json.loads(forced)) == list({**members, "tool_choice": FORCED})
    before, after = split_object(body), split_object(forced)
    for name in before.keys() - {"tool_choice"}:
        assert bytes(after[name]) == bytes(before[name])
    choice = bytes(after["tool_choice"])
    if "tool_choice" in members:
        old = bytes(before["tool_choice"])
        assert len(forced) == len(body) - len(old) + len(choice)
        assert any(
            body[:at] + choice + body[at + len(old) :] == forced
            for at in range(len(body))
            if body[at : at + len(old)] == old
        )
    else:
        added = b'"tool_choice":' + choice
        assert forced.replace((b"," if members else b"") + added, b"") == body


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b'{"model":"m"',
        b'{"a":1,"a":2}',
        b'{"tool_choice":"auto","tool_choice":"auto"}',
        b'{"tool_choice":"none"}',
        b'{"tool_choice":"required"}',
        b'{"tool_choice":{"type":"function","function":{"name":"other"}}}',
        b'{"tool_choice":"auto"} {}',
        b"\x1f\x8b\x08\x00",
    ],
)
def test_what_is_no_plain_object_or_chooses_already_is_left_alone(body: bytes) -> None:
    assert with_tool_choice(body, "get_order") is None


def test_names_are_escaped() -> None:
    forced = with_tool_choice(b'{"model":"m"}', 'odd "name" \\ \u00e9')
    assert forced is not None
    assert json.loads(forced)["tool_choice"]["function"]["name"] == 'odd "name" \\ \u00e9'


def test_an_inner_tool_choice_is_not_the_requests() -> None:
    body = b'{"metadata":{"tool_choice":"auto"},"x\\"}":"{","tool_choice" : "auto" }'
    forced = with_tool_choice(body, "f")
    assert forced is not None
    assert forced.startswith(b'{"metadata":{"tool_choice":"auto"},"x\\"}":"{","tool_choice" : {')
    assert forced.endswith(b"}} }")
