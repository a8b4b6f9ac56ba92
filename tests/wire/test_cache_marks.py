"""A message without its cache marks is the text that its client sends where it sets none."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.wire.marks import unmarked

_MARK = {"type": "ephemeral", "ttl": "1h"}


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize("place", ["block", "message", "inner", "first"])
def test_text_with_and_without_a_mark_is_the_same(separators: tuple[str, str], place: str) -> None:
    inner = {"type": "text", "text": "the result"}
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": "t", "content": [inner]}
    message: dict[str, Any] = {"role": "user", "content": [result]}
    plain = json.dumps(message, separators=separators).encode()
    if place == "first":
        result.update(dict(reversed(list({**result, "cache_control": _MARK}.items()))))
        message["content"] = [{"cache_control": _MARK, **result}]
    else:
        {"block": result, "message": message, "inner": inner}[place]["cache_control"] = _MARK
    assert unmarked(json.dumps(message, separators=separators).encode()) == plain
    assert unmarked(plain) is plain


@pytest.mark.parametrize(
    "raw",
    [
        b'{"role":"user","content":"say \\"cache_control\\": null, please"}',
        b'{"content":[{"type":"tool_use","input":{"a":1,"cache_control":{"type":"x"}}}]}',
        b'{"content":[{"type":"text","text":"cache_control"}]}',
        b'{"content":"half a mark \\"cache_control"',
        b'["cache_control"]',
    ],
)
def test_words_that_look_like_marks_stay(raw: bytes) -> None:
    assert unmarked(raw) == raw


def test_a_mark_beside_arguments_of_that_name_goes_and_they_stay() -> None:
    block = {"type": "tool_use", "input": {"a": 1, "cache_control": {"b": 2}}}
    marked = {"content": [{**block, "cache_control": _MARK}]}
    assert json.loads(unmarked(json.dumps(marked).encode())) == {"content": [block]}


_spaces = st.text(" \t\r\n", max_size=3)


@given(_spaces, _spaces, _spaces, _spaces, st.sampled_from(["null", "{}", '{"type":"ephemeral"}']))
def test_a_mark_goes_with_one_comma_and_the_space_around_it(
    one: str, two: str, three: str, four: str, value: str
) -> None:
    mark = f'"cache_control"{three}:{four}{value}'
    last = f'{{"role":"user","content":"a  "{one},{two}{mark}{two}}}'.encode()
    assert unmarked(last) == f'{{"role":"user","content":"a  "{two}}}'.encode()
    first = f'{{{one}{mark}{two},{three}"role":"user"}}'.encode()
    assert unmarked(first) == f'{{{one}"role":"user"}}'.encode()


def test_white_space_without_end_holds_nobody_up() -> None:
    """Of time that grows with its square, four megabytes would take a day."""
    text = "a" + " " * 4_000_000 + "b"
    message = {"role": "user", "content": [{"type": "text", "text": text, "cache_control": None}]}
    plain = {"role": "user", "content": [{"type": "text", "text": text}]}
    assert unmarked(json.dumps(message).encode()) == json.dumps(plain).encode()


def test_marks_without_end_hold_nobody_up() -> None:
    raw = b'{"content":[%s]}' % b",".join([b'{"cache_control":null}'] * 300_000)
    assert unmarked(raw) == b'{"content":[%s]}' % b",".join([b"{}"] * 300_000)
