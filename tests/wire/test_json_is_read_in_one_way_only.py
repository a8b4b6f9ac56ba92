"""Strict JSON: members come apart as a plain parser reads them; a key given twice is refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.steps.errors import MalformedError
from reflexarc.wire.json import MAX_NAME_CHARS, decode_strict, split_list, split_object

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), inner)
    ),
    max_leaves=8,
)
keys = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
separators = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t:\r\n ")])


@given(st.dictionaries(keys, values, max_size=6), separators, st.booleans())
def test_a_split_object_is_the_parsed_one(
    value: dict[str, Any], between: tuple[str, str], ascii_only: bool
) -> None:
    text = json.dumps(value, separators=between, ensure_ascii=ascii_only).encode()
    members = split_object(text)
    assert list(members) == list(value)
    assert {name: json.loads(bytes(raw)) for name, raw in members.items()} == value
    assert decode_strict(text) == value


@given(
    st.lists(st.tuples(keys, values), min_size=1, max_size=5),
    st.data(),
    separators,
    st.booleans(),
)
def test_a_key_given_twice_is_refused_wherever_it_stands(
    pairs: list[tuple[str, Any]], data: st.DataObject, between: tuple[str, str], ascii_only: bool
) -> None:
    repeated = data.draw(st.sampled_from(pairs))[0]
    at = data.draw(st.integers(0, len(pairs)))
    pairs = [*pairs[:at], (repeated, data.draw(values)), *pairs[at:]]
    written = [
        json.dumps(name, ensure_ascii=ascii_only) + between[1] + json.dumps(value)
        for name, value in pairs
    ]
    text = ("{" + between[0].join(written) + "}").encode()
    with pytest.raises(MalformedError):
        split_object(text)
    with pytest.raises(MalformedError):
        decode_strict(b'[{"x":' + text + b"}]")


def test_a_key_written_in_two_ways_is_the_same_key() -> None:
    for read in (split_object, decode_strict):
        with pytest.raises(MalformedError, match="twice"):
            read(b'{"a":1,"\\u0061":1}')


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"{}x", b"[1,]", b"NaN", b"[Infinity]", b"1e999", b"\xff", b'"\\ud83d"', b"01"],
)
def test_what_some_readers_accept_is_refused(text: bytes) -> None:
    with pytest.raises(MalformedError, match="messages"):
        decode_strict(text, "messages")


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"3", b"{}{}", b"\xff", b'{"a":}'])
def test_only_one_object_comes_apart(text: bytes) -> None:
    with pytest.raises(MalformedError):
        split_object(text)
    with pytest.raises(MalformedError):
        split_list(b'{"a":1}', "x")


def test_depth_is_limited_exactly() -> None:
    assert decode_strict(b"[" * 128 + b"]" * 128)
    assert decode_strict(b'{"a":' * 127 + b"[1]" + b"}" * 127)
    for depth in (129, 1000, 100_000):
        with pytest.raises(MalformedError, match="deeper than 128"):
            decode_strict(b"[" * depth + b"]" * depth)


def test_a_pair_of_surrogates_is_one_character() -> None:
    assert decode_strict(b'"\\ud83d\\ude00"') == "\U0001f600"


def test_a_name_without_end_is_refused_before_it_is_compared() -> None:
    longest = b'{"%s":1}' % (b"\\u0061" * MAX_NAME_CHARS)
    assert list(split_object(longest)) == ["a" * MAX_NAME_CHARS]
    with pytest.raises(MalformedError, match="name over 100000 characters"):
        split_object(b'{"%s":1}' % (b"a" * (MAX_NAME_CHARS + 1)))
