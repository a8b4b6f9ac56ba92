"""The scripted System 2 of the returns desk: follows the handbook, varies order and wording.

Stateless: everything is derived from the messages. About one step in twelve varies as a real
LLM's would: it looks up the customer first, looks a payment up that it could skip, adds a note,
words things otherwise. The variation is drawn from a hash of the salt, the opening message and
the request, so the same conversation always gives the same answer.
"""

import random
import re
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, cast

import msgspec

from reflexarc.bench.desk.world import FREQUENT_RETURNS, MODEL, REVIEW_OVER_CENTS
from reflexarc.sim.policy import Answer, PlannedCall, UnknownConversationError
from reflexarc.steps import Message, ToolSpec

_QUEUE = re.compile(r"\bQ-\d{4}[A-Z]\b")
_WRONG_ITEM = re.compile(r"wrong article|different colour|someone else's item", re.I)
_MAX_TRIES = 2  # of one lookup that answers with an error, before a person is asked

_ASIDE = ("Let me look that up.", "Checking the next detail.", "One moment.", "On it.")
_OPEN = ("Starting with the queue.", "I will begin with the first request.", "Let's see.")
_DISPUTED = (
    "Customer reports damage, but the carrier recorded the parcel as intact.",
    "Damage claim contradicts the shipment record (intact on delivery).",
    "Claimed damaged; carrier says intact. Please look at the photos.",
)
_FREQUENT = (
    "Unusually many returns in the last twelve months.",
    "Return count of this customer is at or above the limit.",
    "Frequent returner; the handbook wants a person to decide.",
)
_EXPENSIVE = (
    "Refund would be above 500 dollars.",
    "Amount exceeds what I may refund alone.",
    "High value: above the 500 dollar limit.",
)
_UNSURE = (
    "I could not look up everything this decision needs.",
    "A lookup failed twice; please decide.",
)
_QUESTIONS = (
    "Could you tell us what exactly is wrong with the item, and whether it is still unused?",
    "What is the problem with the article? A short description or a photo would help us.",
    "We would like to help: please describe what went wrong with your order.",
    "Can you say in a sentence what you would like us to do, and why?",
)
_NOTES = (
    "Handled according to the handbook.",
    "Checked order, shipment and policy.",
    "Refund done, label sent.",
    "Nothing unusual here.",
)
_SUMMARY = (
    "The queue is empty. {parts}.",
    "All done for this shift: {parts}.",
    "Finished. Summary: {parts}.",
)

Result = dict[str, Any]
_Lookup = tuple[str, str, str | None]  # tool, argument, value where it is known yet


class ReturnsDeskSystem2:
    """Fits `sim.Policy`. `salt` gives another draw of the variation, as another trial would."""

    def __init__(self, salt: str = "") -> None:
        self._salt = salt

    @property
    def model(self) -> str:
        return MODEL

    def answer(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Answer:  # noqa: ARG002 - fits Policy
        """The next step of a returns-desk conversation. Raises `UnknownConversationError` where
        results are not what this desk's tools answer."""
        try:
            return self._next(messages)
        except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise UnknownConversationError(
                "a tool result in this conversation is not one of the returns desk's tools "
                f"({type(error).__name__}: {error}); run its own tools"
            ) from error

    def _next(self, messages: Sequence[Message]) -> Answer:
        opening = next((m.content for m in messages if m.role == "user"), "")
        found = _QUEUE.search(opening)
        if found is None:
            return Answer("Which return queue should I work through? It looks like Q-0000A.")
        history = _History(messages)
        draw = random.Random(f"{self._salt}|{opening}|{len(history.calls)}")
        queue = found.group()
        request = history.current_request()
        if request is None:
            if history.queue_is_empty:
                return Answer(_summary(history, draw))
            if not history.calls and draw.random() < 0.1:
                return _say(draw, _OPEN, _call("list_open_requests", queue_id=queue))
            return _say(draw, _OPEN, _call("next_request", queue_id=queue))
        habits = random.Random(f"{self._salt}|{opening}|{request['request_id']}")
        call = _Case(request, history, habits, draw).next_call()
        return _say(draw, _ASIDE, call or _call("next_request", queue_id=queue))


class _History:
    """The calls so far with their results, and where the current request begins."""

    def __init__(self, messages: Sequence[Message]) -> None:
        results = {m.tool_call_id: m.content for m in messages if m.role == "tool"}
        self.calls: list[tuple[str, dict[str, Any], Result]] = [
            (call.name, call.arguments, _object(results.get(call.id, "{}")))
            for message in messages
            for call in message.tool_calls
        ]
        asked = [i for i, (name, _, _) in enumerate(self.calls) if name == "next_request"]
        self._start = asked[-1] if asked else -1
        self.queue_is_empty = bool(asked) and self.calls[asked[-1]][2].get("open_requests") == 0

    def current_request(self) -> Result | None:
        if self._start < 0:
            return None
        return cast("Result | None", self.calls[self._start][2].get("request"))

    def wrote(self, name: str) -> Result | None:
        """The last good result of this write on the current request."""
        return next(
            (
                result
                for called, _, result in reversed(self.calls[self._start + 1 :])
                if called == name and "error" not in result
            ),
            None,
        )

    def looked_up(self, name: str, value: str) -> Result | None:
        """What a lookup of this value answered, whenever it was made."""
        for called, arguments, result in reversed(self.calls):
            if called == name and value in arguments.values() and "error" not in result:
                return result
        return None

    def tries(self, name: str) -> int:
        return sum(called == name for called, _, _ in self.calls[self._start + 1 :])


class _Case:
    """One request: what is known, what to do next."""

    def __init__(
        self, request: Result, history: _History, habits: random.Random, draw: random.Random
    ) -> None:
        self._request = request
        self._id = cast("str", request["request_id"])
        self._history = history
        self._draw = draw
        order = history.looked_up("get_order", cast("str", request["order_id"]))
        self._order: Result = order or {}
        # Drawn in a fixed order, whether or not they matter for this request.
        self._customer_first = habits.random() < 0.06
        self._product_first = habits.random() < 0.06
        self._looks_on = habits.random() < 0.15
        self._checks_payment = habits.random() < 0.08
        self._adds_note = habits.random() < 0.08

    def next_call(self) -> PlannedCall | None:
        """None where nothing is left to do for this request."""
        wrote = self._history.wrote
        if wrote("flag_for_review") or wrote("ask_customer") or wrote("reject_return"):
            return None
        if wrote("issue_refund"):
            if self._adds_note and not wrote("add_note"):
                return _call("add_note", request_id=self._id, text=self._draw.choice(_NOTES))
            return None
        for name, argument, value in self._lookups():
            if value is None or self._history.looked_up(name, value) is not None:
                continue
            if self._settled() and not self._looks_on:
                break
            if self._history.tries(name) >= _MAX_TRIES:
                return self._flag(_UNSURE)
            return _call(name, **{argument: value})
        return self._decide()

    def _lookups(self) -> list[_Lookup]:
        """What this kind of request needs, in the order this System 2 is in the mood for."""
        reason = self._request["reason"]
        order: _Lookup = ("get_order", "order_id", self._request["order_id"])
        shipment: _Lookup = ("track_shipment", "shipment_id", self._order.get("shipment_id"))
        customer: _Lookup = ("get_customer", "customer_id", self._order.get("customer_id"))
        product: _Lookup = ("get_product", "sku", self._request["sku"])
        policy: _Lookup = ("get_return_policy", "category", self._product().get("category"))
        if reason == "not_received":
            plan: list[_Lookup] = [order, shipment, customer]
        elif reason in ("changed_mind", "wrong_size"):
            plan = [order, shipment, product, policy, customer]
        else:
            plan = [order, shipment, product, customer]
        if self._customer_first:
            plan.remove(customer)
            plan.insert(1, customer)
        if self._product_first and product in plan:
            plan.remove(product)
            plan.insert(1, product)
        return plan

    def _settled(self) -> bool:
        """Whether what is known already rejects the request."""
        return self._reject_reason() is not None

    def _reject_reason(self) -> str | None:
        if self._request["reason"] not in ("changed_mind", "wrong_size"):
            return None
        if self._product().get("final_sale"):
            return "final_sale"
        delivered_on = self._shipment().get("delivered_on")
        window_days = self._policy().get("window_days")
        if delivered_on is None or window_days is None:
            return None
        last_day = date.fromisoformat(delivered_on) + timedelta(days=window_days)
        late = date.fromisoformat(self._request["created_on"]) > last_day
        return "outside_window" if late else None

    def _decide(self) -> PlannedCall:
        reason = self._request["reason"]
        rejected = self._reject_reason()
        if rejected is not None:
            return _call("reject_return", request_id=self._id, reason=rejected)
        if self._customer().get("returns_last_12_months", 0) >= FREQUENT_RETURNS:
            return self._flag(_FREQUENT)
        if reason == "damaged" and self._shipment().get("condition_on_delivery") != "damaged":
            return self._flag(_DISPUTED)
        if reason == "not_received" and self._shipment().get("status") != "lost":
            return self._flag(_UNSURE)
        if reason == "other" and not _WRONG_ITEM.search(self._request["comment"]):
            question = self._draw.choice(_QUESTIONS)
            return _call("ask_customer", request_id=self._id, question=question)
        amount = self._amount_cents()
        if amount is None:
            return self._flag(_UNSURE)
        if amount > REVIEW_OVER_CENTS:
            return self._flag(_EXPENSIVE)
        if reason != "not_received" and not self._history.wrote("approve_return"):
            return _call("approve_return", request_id=self._id)
        payment = cast("str", self._order["payment_id"])
        if self._checks_payment and self._history.looked_up("get_payment", payment) is None:
            return _call("get_payment", payment_id=payment)
        return _call("issue_refund", request_id=self._id, payment_id=payment, amount=amount / 100)

    def _amount_cents(self) -> int | None:
        lines = cast("list[Result]", self._order.get("lines", []))
        price = next((x["unit_price"] for x in lines if x["sku"] == self._request["sku"]), None)
        if price is None:
            return None
        fee_percent = 0
        if self._request["reason"] == "changed_mind" and self._customer().get("tier") == "standard":
            fee_percent = self._policy().get("restocking_percent", 0)
        full = Decimal(str(price)) * 100 * self._request["quantity"]
        exact = full * (100 - fee_percent) / 100
        return int(exact.quantize(Decimal(1), ROUND_HALF_UP))

    def _flag(self, reasons: Sequence[str]) -> PlannedCall:
        return _call("flag_for_review", request_id=self._id, reason=self._draw.choice(reasons))

    def _find(self, name: str, value: str | None) -> Result:
        return (self._history.looked_up(name, value) if value else None) or {}

    def _product(self) -> Result:
        return self._find("get_product", self._request["sku"])

    def _policy(self) -> Result:
        return self._find("get_return_policy", self._product().get("category"))

    def _shipment(self) -> Result:
        return self._find("track_shipment", self._order.get("shipment_id"))

    def _customer(self) -> Result:
        return self._find("get_customer", self._order.get("customer_id"))


def _call(name: str, **arguments: Any) -> PlannedCall:
    return PlannedCall(name, arguments)


def _say(draw: random.Random, phrases: Sequence[str], call: PlannedCall) -> Answer:
    """A call, now and then with a few words beside it."""
    return Answer(draw.choice(phrases) if draw.random() < 0.1 else "", (call,))


def _summary(history: _History, draw: random.Random) -> str:
    done = {
        "issue_refund": "refunded",
        "reject_return": "rejected",
        "flag_for_review": "handed to a person",
        "ask_customer": "waiting for the customer",
    }
    parts = [
        f"{arguments['request_id']} {done[name]}"
        for name, arguments, result in history.calls
        if name in done and "error" not in result
    ]
    return draw.choice(_SUMMARY).format(parts="; ".join(parts) or "there was nothing to do")


def _object(text: str) -> Result:
    try:
        value: Any = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {"error": text}
    return cast("Result", value) if isinstance(value, dict) else {"error": text}
