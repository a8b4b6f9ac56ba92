"""The verifier accepts what the handbook wants, and names each planted wrong end state."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from reflexarc.bench.desk import DeskTask, build_database, verify
from reflexarc.bench.desk.record import InProcess, run_tasks
from reflexarc.bench.desk.system2 import ReturnsDeskSystem2
from tests.demo.conftest import task_with


def finished(task: DeskTask, folder: Path) -> sqlite3.Connection:
    """The database of a task that was worked through by the book."""
    policy = ReturnsDeskSystem2()
    runs = asyncio.run(run_tasks([task], lambda _: InProcess(policy), folder))
    assert runs[0].faults == []
    return sqlite3.connect(folder / "0.sqlite", isolation_level=None)


def plant(kind: str, sql: str, folder: Path) -> list[str]:
    """The faults found after one statement; `:id` is the request of that kind."""
    task, request_id = task_with(kind)
    database = finished(task, folder)
    assert verify(task, database) == []
    changed = database.execute(sql, {"id": request_id, "queue": task.queue_id}).rowcount
    assert changed > 0, "the planted fault changed nothing"
    faults = verify(task, database)
    database.close()
    return faults


SET = "UPDATE return_requests SET {} WHERE request_id = :id"
REMARK = "INSERT INTO remarks (request_id, kind, text) SELECT request_id, 'note', 'x' FROM "
PLANTED = [
    ("changed_mind", SET.format("status = 'open'"), "ended as"),
    ("changed_mind", SET.format("status = 'approved'"), "ended as"),
    ("changed_mind", SET.format("status = 'in_review'"), "ended as"),
    ("changed_mind", SET.format("status = 'rejected', reject_reason = 'final_sale'"), "ended as"),
    ("changed_mind", SET.format("return_expected = 0"), "ended as"),
    (
        "changed_mind",
        "UPDATE refunds SET amount_cents = amount_cents - 1 WHERE request_id = :id",
        "ended as",
    ),
    ("changed_mind", "DELETE FROM refunds WHERE request_id = :id", "ended as"),
    (
        "changed_mind",
        "INSERT INTO refunds (request_id, payment_id, amount_cents)"
        " SELECT request_id, payment_id, amount_cents FROM refunds WHERE request_id = :id",
        "ended as",
    ),
    ("late", SET.format("reject_reason = 'final_sale'"), "ended as"),
    ("late", SET.format("status = 'refunded', reject_reason = NULL"), "ended as"),
    ("final_sale", SET.format("reject_reason = 'outside_window'"), "ended as"),
    ("lost", SET.format("return_expected = 1"), "ended as"),
    ("damage_disputed", SET.format("status = 'refunded'"), "ended as"),
    ("frequent", SET.format("status = 'refunded'"), "ended as"),
    ("high_value", SET.format("status = 'refunded'"), "ended as"),
    ("vague", SET.format("status = 'rejected'"), "ended as"),
    ("wrong_item", SET.format("status = 'rejected'"), "ended as"),
    ("changed_mind", "DELETE FROM return_requests WHERE request_id = :id", "missing"),
    (
        "changed_mind",
        "UPDATE payments SET refunded_cents = refunded_cents + 1",
        "sum of its refunds",
    ),
    ("changed_mind", "UPDATE payments SET amount_cents = amount_cents + 1", "what was paid"),
    ("changed_mind", "UPDATE customers SET tier = 'vip'", "customers"),
    ("changed_mind", "UPDATE products SET final_sale = 1 - final_sale", "products"),
    ("changed_mind", "UPDATE return_policies SET window_days = 99", "return_policies"),
    ("changed_mind", "UPDATE order_lines SET quantity = 9", "order_lines"),
    ("changed_mind", "UPDATE orders SET status = 'x'", "orders"),
    ("changed_mind", "UPDATE shipments SET condition = 'unknown'", "shipments"),
    (
        "changed_mind",
        "UPDATE return_requests SET status = 'in_review' WHERE queue_id <> :queue",
        "another queue",
    ),
    (
        "changed_mind",
        REMARK + "return_requests WHERE queue_id <> :queue",
        "not in this queue",
    ),
    ("changed_mind", SET.format("comment = comment || '!'"), "what a customer wrote"),
    (
        "changed_mind",
        "UPDATE refunds SET payment_id = (SELECT p.payment_id FROM payments p WHERE p.payment_id"
        " <> refunds.payment_id LIMIT 1) WHERE request_id = :id",
        "another order's payment",
    ),
]


@pytest.mark.parametrize(("kind", "sql", "said"), PLANTED)
def test_a_planted_wrong_end_is_named(tmp_path: Path, kind: str, sql: str, said: str) -> None:
    faults = plant(kind, sql, tmp_path)
    assert any(said in fault for fault in faults), faults


def test_a_note_on_an_own_request_is_no_fault(tmp_path: Path) -> None:
    assert plant("changed_mind", REMARK + "return_requests WHERE request_id = :id", tmp_path) == []


def test_a_queue_nobody_touched_is_not_done() -> None:
    task, _ = task_with("changed_mind")
    database = build_database(task)
    assert len(verify(task, database)) == len(task.kinds)
    database.close()


@pytest.mark.parametrize(
    ("kind", "ends"),
    [("vague", ("waiting", "in_review")), ("damage_disputed", ("in_review", "waiting"))],
)
def test_judgement_accepts_more_than_one_end(
    tmp_path: Path, kind: str, ends: tuple[str, str]
) -> None:
    task, request_id = task_with(kind)
    database = finished(task, tmp_path)
    for status in ends:
        database.execute(
            "UPDATE return_requests SET status = ? WHERE request_id = ?", (status, request_id)
        )
        assert verify(task, database) == []
    database.close()
