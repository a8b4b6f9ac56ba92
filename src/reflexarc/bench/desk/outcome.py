"""Judges a finished task by its database alone, whatever way led there.

What each request should have become is computed by SQL from a fresh database of the same seed;
the scripted System 2 is not asked. Judgement cases accept more than one end.
"""

import sqlite3
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import msgspec

from reflexarc.bench.desk.world import (
    FREQUENT_RETURNS,
    REVIEW_OVER_CENTS,
    DeskTask,
    build_database,
)

_UNTOUCHED = (
    "customers",
    "products",
    "return_policies",
    "orders",
    "order_lines",
    "shipments",
)


class Outcome(msgspec.Struct, frozen=True):
    """How one request ended. A request never refunded has `refunds_cents` ()."""

    status: str
    return_expected: bool = False
    reject_reason: str | None = None
    refunds_cents: tuple[int, ...] = ()


def verify(task: DeskTask, database: sqlite3.Connection) -> list[str]:
    """What is wrong with the end state, one sentence each; empty where it is acceptable."""
    fresh = build_database(task)
    try:
        faults = [
            f"{request_id}: ended as {actual}, acceptable: {' or '.join(map(str, accepted))}"
            for request_id in task.kinds
            if (actual := _actual(database, request_id))
            not in (accepted := acceptable(task, fresh, request_id))
        ]
        faults.extend(
            f"{table}: rows were changed that no return may change"
            for table in _UNTOUCHED
            if _rows(database, f"SELECT * FROM {table}") != _rows(fresh, f"SELECT * FROM {table}")
        )
        return faults + _side_effects(task, database, fresh)
    finally:
        fresh.close()


def acceptable(task: DeskTask, fresh: sqlite3.Connection, request_id: str) -> tuple[Outcome, ...]:
    """Every acceptable end of one request, by the handbook, from the database before the shift."""
    cursor = fresh.execute(
        "SELECT r.reason, r.quantity, r.created_on, l.unit_price_cents, p.final_sale,"
        " y.window_days, y.restocking_percent, s.status AS shipped, s.delivered_on, s.condition,"
        " c.tier, c.returns_last_12_months AS returns FROM return_requests r"
        " JOIN order_lines l USING (order_id, sku) JOIN products p USING (sku)"
        " JOIN return_policies y USING (category) JOIN shipments s USING (order_id)"
        " JOIN orders o USING (order_id) JOIN customers c USING (customer_id)"
        " WHERE request_id = ?",
        (request_id,),
    )
    names = [column[0] for column in cursor.description]
    f: dict[str, Any] = dict(zip(names, cursor.fetchone(), strict=True))
    review, full = Outcome("in_review"), f["quantity"] * f["unit_price_cents"]
    reason, kind = f["reason"], task.kinds[request_id]
    if reason in ("changed_mind", "wrong_size"):
        if f["final_sale"]:
            return (Outcome("rejected", reject_reason="final_sale"),)
        last_day = date.fromisoformat(f["delivered_on"]) + timedelta(days=f["window_days"])
        if date.fromisoformat(f["created_on"]) > last_day:
            return (Outcome("rejected", reject_reason="outside_window"),)
    if f["returns"] >= FREQUENT_RETURNS:
        return (review,)
    if reason == "damaged" and f["condition"] != "damaged":
        return (review, Outcome("waiting"))
    if reason == "not_received" and f["shipped"] != "lost":
        return (review,)
    if reason == "other" and kind == "vague":
        return (Outcome("waiting"), review)
    keeps_fee = reason == "changed_mind" and f["tier"] == "standard"
    fee_percent = f["restocking_percent"] if keeps_fee else 0
    exact = Decimal(full) * (100 - fee_percent) / 100
    amount = int(exact.quantize(Decimal(1), ROUND_HALF_UP))
    if amount > REVIEW_OVER_CENTS:
        return (review,)
    refunded = Outcome("refunded", reason != "not_received", None, (amount,))
    return (refunded, review) if reason == "other" else (refunded,)


def _actual(database: sqlite3.Connection, request_id: str) -> Outcome:
    row = database.execute(
        "SELECT status, return_expected, reject_reason FROM return_requests WHERE request_id = ?",
        (request_id,),
    ).fetchone()
    if row is None:
        return Outcome("missing")
    refunds = _rows(
        database,
        "SELECT amount_cents FROM refunds WHERE request_id = ? ORDER BY refund_id",
        request_id,
    )
    return Outcome(row[0], bool(row[1]), row[2], tuple(amount for (amount,) in refunds))


def _side_effects(
    task: DeskTask, database: sqlite3.Connection, fresh: sqlite3.Connection
) -> list[str]:
    """Faults beside the requests themselves: books that do not balance, other queues touched."""
    faults: list[str] = []
    others = "SELECT * FROM return_requests WHERE queue_id <> ? ORDER BY request_id"
    if _rows(database, others, task.queue_id) != _rows(fresh, others, task.queue_id):
        faults.append("return_requests: a request of another queue was touched")
    facts = (
        "SELECT request_id, queue_id, position, order_id, sku, quantity, reason, comment,"
        " created_on FROM return_requests ORDER BY request_id"
    )
    if _rows(database, facts) != _rows(fresh, facts):
        faults.append("return_requests: what a customer wrote was changed")
    payments = "SELECT payment_id, order_id, method, amount_cents FROM payments ORDER BY payment_id"
    if _rows(database, payments) != _rows(fresh, payments):
        faults.append("payments: what was paid was changed")
    unbalanced = _rows(
        database,
        "SELECT payment_id FROM payments p WHERE refunded_cents <> (SELECT"
        " coalesce(sum(amount_cents), 0) FROM refunds f WHERE f.payment_id = p.payment_id)",
    )
    faults += [f"payments: {row[0]} does not equal the sum of its refunds" for row in unbalanced]
    strangers = _rows(
        database,
        "SELECT DISTINCT table_name, request_id FROM"
        " (SELECT 'refunds' AS table_name, request_id FROM refunds UNION ALL"
        "  SELECT 'remarks', request_id FROM remarks) JOIN return_requests USING (request_id)"
        " WHERE queue_id <> ?",
        task.queue_id,
    )
    faults += [f"{table}: {request_id} is not in this queue" for table, request_id in strangers]
    wrong_payment = _rows(
        database,
        "SELECT f.request_id FROM refunds f JOIN return_requests r USING (request_id)"
        " JOIN payments p USING (payment_id) WHERE p.order_id <> r.order_id",
    )
    faults += [f"refunds: {row[0]} went to another order's payment" for row in wrong_payment]
    return faults


def _rows(database: sqlite3.Connection, sql: str, *parameters: str) -> list[tuple[Any, ...]]:
    return database.execute(sql, parameters).fetchall()
