"""The desk's tools: what they show, what they change, and what they refuse without changing it."""

from typing import Any

import pytest

from reflexarc.bench.desk import TOOLS
from reflexarc.bench.desk.record import SPECS
from reflexarc.bench.desk.schemas import READ_TOOLS
from tests.demo.conftest import Hands, Open, task_with


def dump(hands: Hands) -> list[str]:
    return list(hands.database.iterdump())


def test_there_are_at_least_six_reading_and_four_writing_tools_and_they_say_so() -> None:
    effects = {spec.name: spec.effect for spec in SPECS}
    assert sum(effect == "read" for effect in effects.values()) >= 6
    assert sum(effect == "write" for effect in effects.values()) >= 4
    assert {name for name, effect in effects.items() if effect == "read"} == READ_TOOLS
    assert all(tool["function"]["parameters"]["additionalProperties"] is False for tool in TOOLS)


def test_a_request_leads_to_everything_that_belongs_to_it(open_database: Open) -> None:
    task, _ = task_with("changed_mind")
    hands = Hands(open_database(task))
    shown = hands("next_request", queue_id=task.queue_id)
    request = shown["request"]
    assert shown["open_requests"] == 3
    assert hands("list_open_requests", queue_id=task.queue_id)["open_requests"] == list(task.kinds)
    order = hands("get_order", order_id=request["order_id"])
    assert request["sku"] in [line["sku"] for line in order["lines"]]
    assert hands("get_customer", customer_id=order["customer_id"])["tier"] in (
        "standard",
        "plus",
        "vip",
    )
    assert hands("track_shipment", shipment_id=order["shipment_id"])["status"] in (
        "delivered",
        "lost",
    )
    category = hands("get_product", sku=request["sku"])["category"]
    assert hands("get_return_policy", category=category)["window_days"] > 0
    assert hands("get_payment", payment_id=order["payment_id"])["amount"] == order["total"]


def test_reading_changes_nothing(open_database: Open) -> None:
    task, request_id = task_with("changed_mind")
    hands = Hands(open_database(task))
    request = hands.request(request_id)
    before = dump(hands)
    values: dict[str, Any] = {**request, "category": "home", "queue_id": task.queue_id}
    order = hands("get_order", order_id=request["order_id"])
    values |= {"customer_id": order["customer_id"], "shipment_id": order["shipment_id"]}
    for spec in SPECS:
        if spec.name in READ_TOOLS:
            arguments = {name: values[name] for name in spec.parameters["required"]}
            assert "error" not in hands(spec.name, **arguments), spec.name
    assert dump(hands) == before


def test_an_approved_request_is_refunded_and_leaves_the_queue(open_database: Open) -> None:
    task, request_id = task_with("changed_mind")
    hands = Hands(open_database(task))
    payment_id = hands.request(request_id)["payment_id"]
    assert hands("approve_return", request_id=request_id)["status"] == "approved"
    done = hands("issue_refund", request_id=request_id, payment_id=payment_id, amount=5.25)
    assert done == {"request_id": request_id, "status": "refunded", "amount": 5.25}
    assert hands("get_payment", payment_id=payment_id)["refunded"] == 5.25
    assert request_id not in hands("list_open_requests", queue_id=task.queue_id)["open_requests"]


def test_a_lost_parcel_is_refunded_without_a_return(open_database: Open) -> None:
    task, request_id = task_with("lost")
    hands = Hands(open_database(task))
    payment_id = hands.request(request_id)["payment_id"]
    done = hands("issue_refund", request_id=request_id, payment_id=payment_id, amount=5)
    assert done["status"] == "refunded"
    assert hands.request(request_id)["return_expected"] == 0


@pytest.mark.parametrize(
    ("tool", "arguments", "status"),
    [
        ("reject_return", {"reason": "final_sale"}, "rejected"),
        ("flag_for_review", {"reason": "Odd."}, "in_review"),
        ("ask_customer", {"question": "What is wrong?"}, "waiting"),
    ],
)
def test_each_decision_closes_the_request(
    open_database: Open, tool: str, arguments: dict[str, str], status: str
) -> None:
    task, request_id = task_with("changed_mind")
    hands = Hands(open_database(task))
    assert hands(tool, request_id=request_id, **arguments)["status"] == status
    assert hands.request(request_id)["status"] == status
    again = hands("approve_return", request_id=request_id)
    assert "not open" in again["error"]


def test_an_empty_queue_shows_no_request(open_database: Open) -> None:
    task, _ = task_with("changed_mind")
    hands = Hands(open_database(task))
    for request_id in task.kinds:
        hands("flag_for_review", request_id=request_id, reason="All of them.")
    assert hands("next_request", queue_id=task.queue_id) == {"request": None, "open_requests": 0}


@pytest.mark.parametrize(
    ("tool", "text", "said"),
    [
        ("get_orders", "{}", "no tool 'get_orders'"),
        ("get_order", "{", "not JSON"),
        ("get_order", "[]", "arguments"),
        ("get_order", "{}", "order_id"),
        ("get_order", '{"order_id": 7}', "arguments.order_id"),
        ("get_order", '{"order_id": ""}', "arguments.order_id"),
        ("get_order", '{"order_id": "W1", "x": 1}', "x"),
        ("get_order", '{"order_id": "W1"}', "no order 'W1'"),
        ("next_request", '{"queue_id": "Q-1"}', "no queue 'Q-1'"),
        ("get_return_policy", '{"category": "boats"}', "no category 'boats'"),
        ("approve_return", '{"request_id": "RR-1"}', "no request 'RR-1'"),
        ("reject_return", '{"request_id": "RR-1", "reason": "rude"}', "arguments.reason"),
    ],
)
def test_odd_calls_are_answered_with_an_error_and_change_nothing(
    open_database: Open, tool: str, text: str, said: str
) -> None:
    task, _ = task_with("changed_mind")
    hands = Hands(open_database(task))
    before = dump(hands)
    assert said in hands.raw(tool, text)["error"]
    assert dump(hands) == before


def test_refunds_that_may_not_be_are_refused(open_database: Open) -> None:
    task, request_id = task_with("changed_mind")
    hands = Hands(open_database(task))
    payment_id = hands.request(request_id)["payment_id"]

    def refund(amount: float, payment: str = payment_id) -> str:
        answer = hands("issue_refund", request_id=request_id, payment_id=payment, amount=amount)
        return answer["error"]

    assert "approve it before" in refund(5)
    hands("approve_return", request_id=request_id)
    before = dump(hands)
    other = hands.database.execute(
        "SELECT payment_id FROM payments WHERE payment_id <> ?", (payment_id,)
    ).fetchone()[0]
    assert "more than" in refund(1e6)
    assert "whole cents" in refund(1.001)
    assert "arguments.amount" in refund(0)
    assert "did not pay" in refund(5, other)
    assert "no payment" in refund(5, "pay_0")
    assert dump(hands) == before
    hands("issue_refund", request_id=request_id, payment_id=payment_id, amount=5)
    assert "refunded" in refund(5)
