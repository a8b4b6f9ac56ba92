"""The returns desk's tools at work on one task's database.

A tool answers with a JSON object. What cannot be done is answered with `{"error": why}` and
changes nothing, as a tool server would.
"""

import sqlite3
from collections.abc import Callable
from decimal import Decimal
from typing import Any, cast

import jsonschema_rs
import msgspec

from reflexarc.bench.desk.schemas import TOOLS

Answer = dict[str, Any]


class _RefusedError(Exception):
    """The tool cannot do this; the text is the answer's `error`."""


class Desk:
    """The tools over one database. Calls are serial, as those of one agent are."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._tools: dict[str, Callable[..., Answer]] = {
            name: getattr(self, f"_{name}") for name in _VALIDATORS
        }

    def call(self, name: str, arguments_text: str) -> str:
        """Run a call as an agent wrote it; the result as JSON text. Never raises for odd input."""
        try:
            arguments = self._checked(name, arguments_text)
            answer = self._tools[name](**arguments)
        except _RefusedError as refused:
            answer = {"error": str(refused)}
        return msgspec.json.encode(answer).decode()

    def _checked(self, name: str, arguments_text: str) -> dict[str, Any]:
        validator = _VALIDATORS.get(name)
        if validator is None:
            raise _RefusedError(f"there is no tool {name!r}; there are {', '.join(_VALIDATORS)}")
        try:
            arguments: Any = msgspec.json.decode(arguments_text)
        except msgspec.DecodeError as error:
            raise _RefusedError(f"the arguments are not JSON: {error}") from None
        fault = next(validator.iter_errors(arguments), None)
        if fault is not None:
            where = "".join(f".{part}" for part in fault.instance_path)
            raise _RefusedError(f"arguments{where}: {fault.message}")
        return cast("dict[str, Any]", arguments)

    def _one(self, sql: str, key: str, what: str) -> dict[str, Any]:
        cursor = self._database.execute(sql, (key,))
        row = cursor.fetchone()
        if row is None:
            raise _RefusedError(f"there is no {what} {key!r}")
        return dict(zip((column[0] for column in cursor.description), row, strict=True))

    def _list_open_requests(self, queue_id: str) -> Answer:
        self._one("SELECT 1 FROM return_requests WHERE queue_id = ?", queue_id, "queue")
        rows = self._database.execute(
            "SELECT request_id FROM return_requests WHERE queue_id = ? AND status = 'open'"
            " ORDER BY position",
            (queue_id,),
        )
        return {"queue_id": queue_id, "open_requests": [row[0] for row in rows]}

    def _next_request(self, queue_id: str) -> Answer:
        open_ids = self._list_open_requests(queue_id)["open_requests"]
        if not open_ids:
            return {"request": None, "open_requests": 0}
        request = self._request(open_ids[0])
        shown = ("request_id", "order_id", "sku", "quantity", "reason", "comment", "created_on")
        return {"request": {k: request[k] for k in shown}, "open_requests": len(open_ids)}

    def _get_order(self, order_id: str) -> Answer:
        order = self._one(
            "SELECT order_id, customer_id, placed_on, orders.status, payment_id, shipment_id,"
            " shipping_cents, amount_cents FROM orders JOIN payments USING (order_id)"
            " JOIN shipments USING (order_id) WHERE order_id = ?",
            order_id,
            "order",
        )
        lines = self._database.execute(
            "SELECT sku, title, quantity, unit_price_cents FROM order_lines JOIN products"
            " USING (sku) WHERE order_id = ? ORDER BY order_lines.rowid",
            (order_id,),
        )
        order["lines"] = [
            {"sku": sku, "title": title, "quantity": n, "unit_price": _dollars(cents)}
            for sku, title, n, cents in lines
        ]
        order["shipping_fee"] = _dollars(order.pop("shipping_cents"))
        order["total"] = _dollars(order.pop("amount_cents"))
        return order

    def _get_customer(self, customer_id: str) -> Answer:
        return self._one("SELECT * FROM customers WHERE customer_id = ?", customer_id, "customer")

    def _get_product(self, sku: str) -> Answer:
        product = self._one("SELECT * FROM products WHERE sku = ?", sku, "product")
        product["final_sale"] = bool(product["final_sale"])
        product["list_price"] = _dollars(product.pop("list_price_cents"))
        return product

    def _track_shipment(self, shipment_id: str) -> Answer:
        shipment = self._one(
            "SELECT * FROM shipments WHERE shipment_id = ?", shipment_id, "shipment"
        )
        shipment["condition_on_delivery"] = shipment.pop("condition")
        del shipment["order_id"]
        return shipment

    def _get_return_policy(self, category: str) -> Answer:
        return self._one("SELECT * FROM return_policies WHERE category = ?", category, "category")

    def _get_payment(self, payment_id: str) -> Answer:
        payment = self._one("SELECT * FROM payments WHERE payment_id = ?", payment_id, "payment")
        payment["amount"] = _dollars(payment.pop("amount_cents"))
        payment["refunded"] = _dollars(payment.pop("refunded_cents"))
        return payment

    def _approve_return(self, request_id: str) -> Answer:
        self._open_request(request_id)
        return self._set(request_id, "approved", return_expected=1)

    def _reject_return(self, request_id: str, reason: str) -> Answer:
        self._open_request(request_id)
        return self._set(request_id, "rejected", reject_reason=reason)

    def _issue_refund(self, request_id: str, payment_id: str, amount: float) -> Answer:
        request = self._request(request_id)
        cents = Decimal(str(amount)) * 100
        if cents != int(cents):
            raise _RefusedError(f"arguments.amount: {amount} is not whole cents")
        payment = self._one("SELECT * FROM payments WHERE payment_id = ?", payment_id, "payment")
        if payment["order_id"] != request["order_id"]:
            raise _RefusedError(f"{payment_id} did not pay for the order of {request_id}")
        shipment = self._one(
            "SELECT status FROM shipments WHERE order_id = ?", request["order_id"], "shipment of"
        )
        lost = request["status"] == "open" and shipment["status"] == "lost"
        if request["status"] != "approved" and not lost:
            raise _RefusedError(f"{request_id} is {request['status']}; approve it before a refund")
        left = payment["amount_cents"] - payment["refunded_cents"]
        if cents > left:
            raise _RefusedError(f"{amount} is more than the {_dollars(left)} left of {payment_id}")
        execute = self._database.execute
        execute("BEGIN")
        execute(
            "INSERT INTO refunds (request_id, payment_id, amount_cents) VALUES (?, ?, ?)",
            (request_id, payment_id, int(cents)),
        )
        execute(
            "UPDATE payments SET refunded_cents = refunded_cents + ? WHERE payment_id = ?",
            (int(cents), payment_id),
        )
        execute(
            "UPDATE return_requests SET status = 'refunded' WHERE request_id = ?", (request_id,)
        )
        execute("COMMIT")
        return {"request_id": request_id, "status": "refunded", "amount": _dollars(int(cents))}

    def _flag_for_review(self, request_id: str, reason: str) -> Answer:
        self._open_request(request_id)
        self._remark(request_id, "review", reason)
        return self._set(request_id, "in_review")

    def _ask_customer(self, request_id: str, question: str) -> Answer:
        self._open_request(request_id)
        self._remark(request_id, "question", question)
        return self._set(request_id, "waiting")

    def _add_note(self, request_id: str, text: str) -> Answer:
        self._request(request_id)
        self._remark(request_id, "note", text)
        return {"request_id": request_id, "noted": True}

    def _request(self, request_id: str) -> dict[str, Any]:
        return self._one(
            "SELECT * FROM return_requests WHERE request_id = ?", request_id, "request"
        )

    def _open_request(self, request_id: str) -> None:
        status = self._request(request_id)["status"]
        if status != "open":
            raise _RefusedError(f"{request_id} is {status}, not open; nothing was changed")

    def _set(self, request_id: str, status: str, **more: str | int) -> Answer:
        values: dict[str, str | int] = {"status": status, **more}
        assignments = ", ".join(f"{column} = ?" for column in values)
        self._database.execute(
            f"UPDATE return_requests SET {assignments} WHERE request_id = ?",
            (*values.values(), request_id),
        )
        return {"request_id": request_id, "status": status}

    def _remark(self, request_id: str, kind: str, text: str) -> None:
        self._database.execute(
            "INSERT INTO remarks (request_id, kind, text) VALUES (?, ?, ?)",
            (request_id, kind, text),
        )


def _dollars(cents: int) -> float:
    return cents / 100


_VALIDATORS = {
    cast("str", tool["function"]["name"]): jsonschema_rs.validator_for(
        tool["function"]["parameters"]
    )
    for tool in TOOLS
}
