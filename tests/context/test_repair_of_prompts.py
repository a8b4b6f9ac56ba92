"""What mends prompts, on whatever they hold: nothing is lost, nothing is made up."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.context.breakpoints import MAX_MARKS, with_breakpoints
from reflexarc.context.moving import MAX_UNITS, Moving, tail_of, with_texts
from reflexarc.context.tool_order import Orders, in_known_order
from reflexarc.steps.digests import meaning_digest
from tests.context.prompts import Body, request, tool


def raw(names: list[str]) -> bytes:
    return json.dumps([tool(name) for name in names]).encode()


@given(st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1), st.integers(0, 99))
def test_a_shuffled_list_is_in_its_first_order_again(names: list[str], seed: int) -> None:
    orders: Orders = []
    assert in_known_order(raw(names), orders) is None
    other = random.Random(seed).sample(names, len(names))
    mended = in_known_order(raw(other), orders)
    assert json.loads(mended or raw(other)) == json.loads(raw(names))


def test_lists_of_two_agents_do_not_order_one_another() -> None:
    orders: Orders = []
    assert in_known_order(raw(["read", "write", "run"]), orders) is None
    assert in_known_order(raw(["write", "search", "open", "click"]), orders) is None
    mended = in_known_order(raw(["run", "read", "write"]), orders)
    assert mended is not None
    assert [one["name"] for one in json.loads(mended)] == ["read", "write", "run"]


def test_functions_declared_in_one_entry_are_ordered_within_it() -> None:
    def listed(*names: str) -> bytes:
        return json.dumps([{"functionDeclarations": [{"name": one} for one in names]}]).encode()

    orders: Orders = []
    assert in_known_order(listed("a", "b"), orders) is None
    assert json.loads(in_known_order(listed("b", "a"), orders) or b"") == json.loads(
        listed("a", "b")
    )


@pytest.mark.parametrize("odd", [b"7", b"[]", b"[7,null]", b'[{"type":"x"},{"type":"x"}]', b"[["])
def test_lists_that_are_none_stay(odd: bytes) -> None:
    orders: Orders = []
    assert in_known_order(odd, orders) is None
    assert in_known_order(odd, orders) is None


lines = st.lists(
    st.sampled_from(["Be kind.", "Now: {0}", "run {1} of 9", "", "Use at most 3 tools."]),
    max_size=6,
)


@given(lines, st.integers(10, 20), st.integers(0, 9))
def test_every_line_is_told_once(told: list[str], minute: int, run: int) -> None:
    def text(minute: int, run: int) -> str:
        return "\n".join(told).format(f"2026-12-01 09:{minute}", run)

    moving = Moving()
    moving.learn([text(minute, run)])
    moving.learn([text(minute + 1, run + 1)])
    kept, moved = moving.split(text(minute + 2, run + 2))
    words = [line for line in text(minute + 2, run + 2).split("\n") if line]
    assert sorted([*(line for line in kept.split("\n") if line), *moved]) == sorted(words)
    assert not any(line.startswith(("Now", "run")) for line in kept.split("\n"))
    assert all(line in tail_of(moved) for line in moved)


def test_a_sentence_of_a_long_line_moves_alone() -> None:
    def text(clock: str) -> str:
        return f"{'Be kind and be brief. ' * 20}It is {clock}. {'Ask first. ' * 20}"

    moving = Moving()
    moving.learn([text("09:59")])
    moving.learn([text("10:00")])
    kept, moved = moving.split(text("10:01"))
    assert moved == ["It is 10:01."]
    assert "10:01" not in kept
    assert kept.startswith("Be kind and be brief. Be kind")


@pytest.mark.parametrize("between", ["\n", " "])
def test_a_text_of_very_many_lines_or_sentences_stays_as_it_is(between: str) -> None:
    def text(clock: str, rules: int) -> str:
        return between.join([f"It is {clock}.", *["Be kind and ask before you act."] * rules])

    for rules, moves in ((MAX_UNITS - 1, True), (MAX_UNITS, False)):
        moving = Moving()
        moving.learn([text("09:59", rules)])
        moving.learn([text("10:00", rules)])
        assert moving.split(text("10:01", rules))[1] == (["It is 10:01."] if moves else [])
        assert len(moving.last) == 1


def test_texts_of_any_form_are_changed() -> None:
    upper = str.upper
    assert with_texts("a", upper) == "A"
    assert with_texts([{"type": "text", "text": "a"}], upper) == [{"type": "text", "text": "A"}]
    assert with_texts({"parts": [{"text": "a"}]}, upper) == {"parts": [{"text": "A"}]}
    assert with_texts({"role": "system", "content": "a"}, upper)["role"] == "system"


@given(st.integers(0, 12), st.sets(st.integers(0, 12), max_size=6), st.integers(0, 30))
def test_marks_are_added_within_the_limit_and_nothing_else_is(
    turns: int, own: set[int], reused: int
) -> None:
    body = request(turns, system="You mend. " * 500)
    for at in own:
        if at < len(body["messages"]) and isinstance(body["messages"][at]["content"], list):
            body["messages"][at]["content"][-1]["cache_control"] = {"type": "ephemeral"}
    sent = with_breakpoints(json.dumps(body).encode(), reused)
    before, after = _marks(body), _marks(json.loads(sent))
    assert before <= after <= max(before, MAX_MARKS)
    assert after > before or before >= MAX_MARKS or own
    for was, now in zip(body["messages"], json.loads(sent)["messages"], strict=True):
        assert meaning_digest(json.dumps(was).encode()) == meaning_digest(json.dumps(now).encode())
    again = with_breakpoints(sent, reused)
    assert _marks(json.loads(again)) <= max(before, MAX_MARKS)


def test_hours_and_automatic_marks_are_left_alone() -> None:
    hour: list[Any] = [{"type": "text", "text": "You. " * 2000, "cache_control": {"ttl": "1h"}}]
    for body in (request(9, system=hour), request(9, cache_control={"type": "ephemeral"})):
        raw = json.dumps(body).encode()
        assert with_breakpoints(raw) == raw


def _marks(body: Body) -> int:
    return json.dumps(body).count('"cache_control"')
