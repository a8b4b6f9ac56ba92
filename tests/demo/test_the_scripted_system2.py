"""The scripted System 2: finishes and verifies every task, is a pure function, and varies."""

import asyncio
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from reflexarc.bench.desk import ReturnsDeskSystem2, TaskRun
from reflexarc.bench.desk.record import SPECS, record, session_of
from reflexarc.bench.desk.schemas import READ_TOOLS
from reflexarc.steps import Message, ToolCall, decision_items

SEEDS = [f"s2-{n}" for n in range(60)]


@pytest.fixture(scope="module")
def runs() -> list[TaskRun]:
    return asyncio.run(record(SEEDS))


def test_every_task_is_finished_and_verified(runs: list[TaskRun]) -> None:
    assert [run.faults for run in runs] == [[]] * len(runs)
    assert all(run.finished for run in runs)


def test_a_task_takes_about_twenty_steps_most_of_them_reads(runs: list[TaskRun]) -> None:
    steps = [len(run.steps) for run in runs]
    assert 18 <= sum(steps) / len(steps) <= 26
    names = Counter(
        call.name for run in runs for m in session_of(run).messages for call in m.tool_calls
    )
    reads = sum(n for name, n in names.items() if name in READ_TOOLS)
    assert 0.7 < reads / names.total() < 0.85
    assert {spec.name for spec in SPECS} == set(names)


def test_histories_are_valid_each_call_is_answered_once_in_its_turn(runs: list[TaskRun]) -> None:
    for run in runs:
        messages: list[dict[str, Any]] = run.messages
        assert [m["role"] for m in messages[:2]] == ["system", "user"]
        assert "tool_calls" not in messages[-1]
        seen: set[str] = set()
        for message, following in pairwise(messages[2:]):
            if message["role"] == "assistant":
                (call,) = message["tool_calls"]
                assert call["id"] not in seen
                assert following["tool_call_id"] == call["id"]
                seen.add(call["id"])


def test_the_same_conversation_gives_the_same_answer_in_a_fresh_instance(
    runs: list[TaskRun],
) -> None:
    session = session_of(runs[0])
    for item in decision_items(session):
        answer = ReturnsDeskSystem2().answer(session.messages[: item.message], SPECS)
        recorded = session.messages[item.message]
        assert [(c.name, c.arguments) for c in answer.calls] == [
            (c.name, c.arguments) for c in recorded.tool_calls
        ]
        assert answer.content == recorded.content


def test_another_salt_varies_some_steps_and_every_task_still_verifies(runs: list[TaskRun]) -> None:
    other = ReturnsDeskSystem2("another trial")
    same = total = 0
    for run in runs:
        session = session_of(run)
        for item in decision_items(session):
            if item.recorded is None:
                continue
            answer = other.answer(session.messages[: item.message], SPECS)
            total += 1
            same += any(c.key == item.recorded.key for c in _calls(answer.calls))
    assert 0.80 < same / total < 0.97
    again = asyncio.run(record(SEEDS[:20], salt="another trial"))
    assert [run.faults for run in again] == [[]] * 20


def test_the_order_in_which_somebody_else_looked_things_up_is_taken_as_it_is() -> None:
    """System 1 may act in between: what is known is not looked up again."""

    def tool(call_id: str, name: str, arguments: dict[str, Any], result: str) -> list[Message]:
        call = ToolCall(call_id, name, arguments)
        return [Message("assistant", "", (call,)), Message("tool", result, tool_call_id=call_id)]

    request = (
        '{"request":{"request_id":"RR-1","order_id":"W1","sku":"EL-1","quantity":1,'
        '"reason":"changed_mind","comment":"","created_on":"2026-05-02"},"open_requests":1}'
    )
    product = '{"sku":"EL-1","category":"toys","final_sale":true}'
    order = '{"order_id":"W1","customer_id":"CU-1","shipment_id":"1Z1","payment_id":"pay_1"}'
    messages = [
        Message("user", "Take queue Q-0001A."),
        *tool("1", "next_request", {"queue_id": "Q-0001A"}, request),
        *tool("2", "get_product", {"sku": "EL-1"}, product),
        *tool("3", "get_order", {"order_id": "W1"}, order),
    ]
    answer = ReturnsDeskSystem2().answer(messages, SPECS)
    called = [call.name for call in answer.calls]
    assert called in (["reject_return"], ["track_shipment"], ["get_customer"])


def test_a_lookup_that_fails_twice_goes_to_a_person() -> None:
    def order(call_id: str) -> list[Message]:
        call = ToolCall(call_id, "get_order", {"order_id": "W1"})
        return [
            Message("assistant", "", (call,)),
            Message("tool", '{"error":"down"}', tool_call_id=call_id),
        ]

    first = ToolCall("1", "next_request", {"queue_id": "Q-0001A"})
    request = (
        '{"request":{"request_id":"RR-1","order_id":"W1","sku":"EL-1","quantity":1,'
        '"reason":"damaged","comment":"","created_on":"2026-05-02"},"open_requests":1}'
    )
    messages = [
        Message("user", "Take queue Q-0001A."),
        Message("assistant", "", (first,)),
        Message("tool", request, tool_call_id="1"),
        *order("2"),
    ]
    system2 = ReturnsDeskSystem2()
    assert system2.answer(messages, SPECS).calls[0].name == "get_order"
    messages += order("3")
    assert system2.answer(messages, SPECS).calls[0].name == "flag_for_review"


def test_without_a_queue_it_asks_for_one() -> None:
    answer = ReturnsDeskSystem2().answer([Message("user", "Good morning!")], SPECS)
    assert answer.calls == ()
    assert "queue" in answer.content


def _calls(planned: Any) -> list[ToolCall]:
    return [ToolCall("", call.name, call.arguments) for call in planned]
