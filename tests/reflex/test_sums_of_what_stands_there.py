"""Expressions of numbers are written of those that what was said points at."""

import random
from typing import Any

import pytest

from reflexarc.reflex import Context
from reflexarc.reflex.candidates import enumerate_candidates
from reflexarc.reflex.fit import fit_predictor
from reflexarc.reflex.private import Private
from reflexarc.reflex.replay import replay
from reflexarc.reflex.slot_index import SlotIndex
from reflexarc.reflex.sums import LESS, PLUS, SumCounts, parts_of, sum_entries, terms_of
from reflexarc.steps import Message, Session, ToolCall, ToolSpec

TOOLS = (
    ToolSpec("list_boats", "Lists boats.", {"type": "object", "properties": {}}),
    ToolSpec("work_out", "Works out an expression.", {"type": "object", "properties": {}}),
)
KINDS = ("sloop", "canoe", "ketch", "raft")
DIFFERENCE = "sum: - |out:list_boats:.boats[*].fee|out:list_boats:.boats[*].fee"


def session(number: int) -> Session:
    """How much more one boat costs than another, of four."""
    drawn = random.Random(number)
    fees = {kind: drawn.randrange(1_000, 90_000) / 100 for kind in KINDS}
    dear, cheap = drawn.sample(KINDS, 2)
    asked = f"How much more is the {dear} than the {cheap}?"
    boats = ",".join(f'{{"kind": "{kind}", "fee": {fee}}}' for kind, fee in fees.items())
    arguments: dict[str, Any] = {"sum": f"{fees[dear]} - {fees[cheap]}"}
    messages = (
        Message("user", asked),
        Message("assistant", tool_calls=(ToolCall("a", "list_boats", {}, "{}"),)),
        Message("tool", f'{{"boats": [{boats}]}}', tool_call_id="a"),
        Message("assistant", tool_calls=(ToolCall("b", "work_out", arguments, "{}"),)),
        Message("tool", "ok", tool_call_id="b"),
    )
    return Session(f"s{number}", f"t{number}", TOOLS, messages)


def last(number: int) -> tuple[Context, ToolCall]:
    for context, item in replay(session(number)):
        if item.recorded is not None and item.recorded.name == "work_out":
            return context, item.recorded
    raise AssertionError("no call")


def test_a_difference_of_two_things_said_is_among_the_candidates() -> None:
    sessions = [session(number) for number in range(30)]
    predictor = fit_predictor(sessions, set(), Private(sessions))
    (argument,) = predictor.sources.by_name["work_out"].arguments
    assert [slot.name for slot in argument.slots] == [DIFFERENCE]
    for number in range(100, 120):
        context, call = last(number)
        texts = [one.text for one in enumerate_candidates(context, argument, ())]
        wanted = call.arguments["sum"]
        one, other = wanted.split(LESS)
        assert {wanted, f"{other} - {one}"} == set(texts[:2])


def counted(numbers: range) -> SumCounts:
    counts = SumCounts()
    for number in numbers:
        context, call = last(number)
        index = SlotIndex(context)
        index.update()
        counts.observe(call.arguments["sum"], f"t{number}", index)
    return counts


def test_fewer_than_three_tasks_teach_nothing() -> None:
    assert counted(range(2)).slots() == []
    assert [slot for slot, *_ in counted(range(3)).slots()] == [DIFFERENCE]


def test_counts_of_parts_are_those_of_the_whole() -> None:
    taken = counted(range(2))
    taken.take(counted(range(2, 6)))
    assert taken.slots() == counted(range(6)).slots()


@pytest.mark.parametrize(
    ("value", "terms"),
    [
        ("256.67 - 242.92", (LESS, ["256.67", "242.92"])),
        ("1 + 2.50 + 3", (PLUS, ["1", "2.5", "3"])),
        ("1 - 2 - 3", None),
        ("1 - 2 + 3", None),
        ("2024-05-16", None),
        ("12", None),
        ("import os + 1", None),
        (5, None),
    ],
)
def test_what_counts_as_an_expression(value: Any, terms: Any) -> None:
    assert terms_of(value) == terms


def test_a_slot_that_learning_does_not_give_makes_nothing() -> None:
    context, _ = last(1)
    for slot in ("sum: - |usr:9", "sum: * |usr:9|usr:9", "sum:", "sum: + |", "sum: + |a|b|c"):
        assert parts_of(slot) == ("", ())
        assert sum_entries(context, slot) == []


def test_what_is_made_is_bounded() -> None:
    context = Context()
    numbers = ",".join(f'{{"kind": "k{at}", "fee": {at + 0.5}}}' for at in range(400))
    context.extend([Message("user", "all"), Message("tool", f"[{numbers}]", name="list")])
    fees = "out:list:[*].fee"
    assert 1 <= len(sum_entries(context, f"sum: - |{fees}|{fees}")) <= 16
    assert 1 <= len(sum_entries(context, f"sum: + |{fees}")) <= 26
