"""A body read from where an earlier one ended is read as if it had been read whole."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.steps.errors import MalformedError
from reflexarc.wire.growing import MAX_NEW_ITEMS, Bodies, Grown, in_common, take_apart
from reflexarc.wire.json import split_list, split_object

ITEMS = st.one_of(
    st.integers(-20, 20),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=4),
    st.none(),
    st.dictionaries(st.sampled_from(["role", "content", "messages"]), st.text(max_size=5)),
    st.lists(st.integers(0, 9), max_size=3),
)
AROUND = st.dictionaries(st.sampled_from(["model", "tools", "a"]), ITEMS, max_size=3)


def _written(before: dict[str, Any], items: list[Any], after: dict[str, Any], gap: str) -> bytes:
    members = [f"{json.dumps(k)}:{gap}{json.dumps(v)}" for k, v in before.items()]
    members.append(f'"messages"{gap}:[{gap}' + f"{gap},".join(map(json.dumps, items)) + f"{gap}]")
    members += [f"{json.dumps('z' + k)}:{json.dumps(v)}" for k, v in after.items()]
    return ("{" + ",".join(members) + gap + "}").encode()


def _same(grown: Grown, body: bytes) -> bool:
    members = split_object(body)
    items = [bytes(one) for one in split_list(members["messages"], "messages")]
    whole = take_apart(body, "messages")
    return (
        [grown.item(at) for at in range(len(grown))] == items
        and {key: bytes(raw) for key, raw in grown.members.items()}
        == {key: bytes(raw) for key, raw in members.items()}
        and list(grown.members) == list(members)
        and grown.chain == whole.chain
        and grown.ends == whole.ends
    )


@given(
    AROUND, st.lists(ITEMS, max_size=4), st.lists(ITEMS, max_size=4), AROUND, AROUND,
    st.sampled_from(["", " ", "\n  "]), st.data(),
)  # fmt: skip
def test_any_body_after_any_other_is_read_as_it_is(
    before: dict[str, Any], first: list[Any], more: list[Any], after: dict[str, Any],
    later: dict[str, Any], gap: str, data: st.DataObject,
) -> None:  # fmt: skip
    bodies = Bodies()
    bodies.read(b"t", "messages", _written(before, first, after, gap))
    kept = data.draw(st.integers(0, len(first)))
    body = _written(before, first[:kept] + more, later, gap)
    grown = bodies.read(b"t", "messages", body)
    assert _same(grown, body)
    assert grown.kept <= kept + len(more)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ('{"messages":[1]}', '{"messages":[12]}'),
        ('{"messages":[1]}', '{"messages":[1.5]}'),
        ('{"messages":[1]}', '{"messages":[1e3,2]}'),
        ('{"messages":["a"]}', '{"messages":["a","b"]}'),
        ('{"messages":[]}', '{"messages":[{}]}'),
        ('{"messages":[{}]}', '{"messages":[{}],"messagesx":[{}]}'),
    ],
)
def test_an_item_that_goes_on_is_another_item(earlier: str, later: str) -> None:
    bodies = Bodies()
    bodies.read(b"t", "messages", earlier.encode())
    assert _same(bodies.read(b"t", "messages", later.encode()), later.encode())


@pytest.mark.parametrize(
    "later",
    [
        '{"messages":[{"a":1},]}',
        '{"messages":[{"a":1} {}]}',
        '{"messages":[{"a":1}',
        '{"messages":[{"a":1}]}}',
        '{"messages":[{"a":1}],"messages":[]}',
        '{"messages":[{"a":1}],"x":1,"x":2}',
    ],
)
def test_what_is_wrong_in_the_rest_is_refused_as_in_a_whole_body(later: str) -> None:
    bodies = Bodies()
    bodies.read(b"t", "messages", b'{"messages":[{"a":1}]}')
    with pytest.raises(MalformedError) as grown:
        bodies.read(b"t", "messages", later.encode())
    with pytest.raises(MalformedError) as whole:
        take_apart(later.encode(), "messages")
    assert str(grown.value) == str(whole.value)


def _turns(count: int, mark: bool = False) -> bytes:
    messages: list[Any] = [
        {"role": "user", "content": [{"type": "text", "text": f"turn {at} " + "x" * 50}]}
        for at in range(count)
    ]
    if mark:
        messages[-1]["content"][0]["cache_control"] = {"type": "ephemeral"}
    return json.dumps({"model": "m", "messages": messages, "tools": ["t" * 99]}).encode()


def test_only_what_is_new_is_read() -> None:
    bodies = Bodies()
    for count in range(1, 60):
        assert bodies.read(b"t", "messages", _turns(count)).kept == count - 1
    assert len(bodies) == 1


def test_a_mark_that_moves_costs_the_message_it_stood_on_and_no_more() -> None:
    bodies = Bodies()
    kept: list[int] = []
    for count in range(1, 60):
        grown = bodies.read(b"t", "messages", _turns(count, mark=True))
        kept.append(grown.kept)
        assert grown.chain[:-1] == take_apart(_turns(count), "messages").chain[:-1]
        assert grown.chain[-1] == take_apart(_turns(count), "messages").chain[-1]
    assert kept[2:] == list(range(1, 58))
    assert len(bodies) == 1


def test_bodies_of_others_are_not_looked_at() -> None:
    bodies = Bodies()
    bodies.read(b"t", "messages", _turns(9))
    assert bodies.read(b"u", "messages", _turns(10)).kept == 0


def test_sessions_that_begin_alike_are_told_apart() -> None:
    def body(session: int, count: int) -> bytes:
        messages = [{"text": "alike " * 300}, *({"of": session, "at": at} for at in range(count))]
        return json.dumps({"messages": messages}).encode()

    bodies = Bodies()
    for session in range(6):
        bodies.read(b"t", "messages", body(session, 5))
    for session in range(6):
        assert bodies.read(b"t", "messages", body(session, 6)).kept == 6


def test_memory_is_bounded_by_number_and_by_bytes() -> None:
    size = take_apart(_turns(20), "messages").held_bytes
    for bodies in (Bodies(max_bodies=3), Bodies(max_bytes=3 * size)):
        for session in range(20):
            body = _turns(20).replace(b"turn 0", b"turn %d" % (session + 100))
            bodies.read(b"t", "messages", body)
            assert len(bodies) <= 3
            assert bodies.held_bytes <= 3 * (size + 4)
        assert len(bodies) >= 2


def test_items_of_a_byte_are_counted_by_what_they_take() -> None:
    """They take a hundred times what they were sent in."""
    bodies, items = Bodies(), [b"1"]
    for _ in range(5):
        items += [b"1"] * 1_900
        bodies.read(b"t", "messages", b'{"messages":[%s]}' % b",".join(items))
    assert bodies.held_bytes >= 50 * len(items)


def test_of_too_many_new_items_none_is_taken_in() -> None:
    body = msgspec.json.encode({"messages": [{}] * (MAX_NEW_ITEMS + 1)})
    grown = take_apart(body, "messages")
    assert (grown.crowded, grown.listed, len(grown)) == (True, False, 0)
    fits = take_apart(msgspec.json.encode({"messages": [{}] * MAX_NEW_ITEMS}), "messages")
    assert len(fits) == MAX_NEW_ITEMS
    assert in_common(fits.body, grown) is None
