"""Digests of pieces: one of bytes, one of what they mean."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reflexarc.steps.digests import meaning_digest, raw_digest

MARK = {"type": "ephemeral"}
texts = st.text(max_size=12)
data = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def raw(value: Any, **options: Any) -> bytes:
    return json.dumps(value, **options).encode()


def shuffled(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: shuffled(value[name]) for name in reversed(value)}
    return [shuffled(one) for one in value] if isinstance(value, list) else value


@st.composite
def messages(draw: st.DrawFn) -> dict[str, Any]:
    text = draw(texts)
    call = {"type": "tool_use", "id": "toolu_1", "name": draw(texts), "input": {"of": draw(data)}}
    return {"role": "assistant", "content": [{"type": "text", "text": text}, call]}


@given(messages())
def test_order_space_and_escapes_do_not_count(message: dict[str, Any]) -> None:
    meant = meaning_digest(raw(message))
    assert meaning_digest(raw(shuffled(message), indent=2)) == meant
    assert meaning_digest(raw(message, ensure_ascii=False)) == meant


@given(messages(), st.integers(0, 1))
def test_marks_for_caches_do_not_count(message: dict[str, Any], at: int) -> None:
    meant = meaning_digest(raw(message))
    message["content"][at]["cache_control"] = MARK
    message["content"].append({"cachePoint": {"type": "default"}})
    assert meaning_digest(raw(message)) == meant


@given(messages(), texts)
def test_ids_of_calls_do_not_count(message: dict[str, Any], id: str) -> None:
    meant = meaning_digest(raw(message))
    message["content"][1]["id"] = id
    assert meaning_digest(raw(message)) == meant


@given(messages(), data)
def test_what_a_tool_is_given_counts(message: dict[str, Any], other: Any) -> None:
    before = message["content"][1]["input"]["of"]
    meant = meaning_digest(raw(message))
    message["content"][1]["input"]["of"] = [before, other]
    assert meaning_digest(raw(message)) != meant


def test_what_looks_like_a_mark_or_an_id_in_a_tools_own_data_counts() -> None:
    def call(given: dict[str, Any]) -> bytes:
        return meaning_digest(raw({"type": "tool_use", "id": "a", "name": "f", "input": given}))

    assert call({"id": "1", "type": "x"}) != call({"id": "2", "type": "x"})
    assert call({"cache_control": 1}) != call({})
    assert call({"n": None}) != call({})


def test_a_text_is_a_block_of_text() -> None:
    block = [{"type": "text", "text": "so", "cache_control": MARK}]
    one = meaning_digest(raw({"role": "user", "content": "so"}))
    assert one == meaning_digest(raw({"role": "user", "content": block}))
    assert meaning_digest(b'"so"') == meaning_digest(raw(block[0]))


def test_arguments_written_as_text_mean_what_they_hold() -> None:
    def call(arguments: str) -> bytes:
        function = {"name": "f", "arguments": arguments}
        return meaning_digest(raw({"tool_calls": [{"type": "function", "function": function}]}))

    assert call('{"a": 1, "b": 2}') == call('{"b":2,"a":1}')
    assert call('{"a": 1}') != call('{"a": 2}')
    assert call("{broken") != call("{broken ")


def test_in_one_order_a_result_belongs_to_its_call() -> None:
    def chained(*ids: str) -> list[bytes]:
        order: dict[str, int] = {}
        calls = [{"type": "function", "id": id} for id in ids[:2]]
        result = {"role": "tool", "tool_call_id": ids[2]}
        return [meaning_digest(raw(one), order) for one in ({"tool_calls": calls}, result)]

    assert chained("a", "b", "a") == chained("x", "y", "x")
    assert chained("a", "b", "a") != chained("a", "b", "b")


def test_a_reference_means_what_it_refers_to() -> None:
    one, other = ({"type": "item_reference", "id": id} for id in ("msg_1", "msg_2"))
    assert meaning_digest(raw(one)) != meaning_digest(raw(other))


@given(st.binary(max_size=40) | st.sampled_from([b"[" * 5000, b'{"a":1,"a":2}', b"NaN", b"1e999"]))
def test_any_bytes_have_digests(of: bytes) -> None:
    assert len(raw_digest(of)) == len(meaning_digest(of)) == 16


def test_what_is_not_json_is_known_by_its_bytes() -> None:
    for of in (b"{", b"[" * 5000, b'{"a":1,"a":2}', b"\xff", b"9" * 5000):
        assert meaning_digest(of) == raw_digest(of)
