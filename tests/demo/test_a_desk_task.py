"""Tasks of the returns desk: the same seed makes the same world, and ids belong to one task."""

from pathlib import Path

import pytest

from reflexarc.bench.desk import DeskTask, build_database, make_task
from reflexarc.bench.desk.world import REQUESTS_PER_QUEUE


def dump(task: DeskTask) -> list[str]:
    database = build_database(task)
    try:
        return list(database.iterdump())
    finally:
        database.close()


def ids(task: DeskTask) -> set[str]:
    database = build_database(task)
    try:
        columns = (
            ("customers", "customer_id"),
            ("orders", "order_id"),
            ("payments", "payment_id"),
            ("products", "sku"),
            ("return_requests", "request_id"),
            ("shipments", "shipment_id"),
        )
        return {
            row[0]
            for table, column in columns
            for row in database.execute(f"SELECT {column} FROM {table}")
        }
    finally:
        database.close()


def test_the_same_seed_makes_the_same_rows() -> None:
    assert dump(make_task("a")) == dump(make_task("a"))
    assert make_task("a") == make_task("a")


def test_the_same_seed_makes_the_same_file(tmp_path: Path) -> None:
    for name in ("one", "two"):
        build_database(make_task("a"), tmp_path / name).close()
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_another_seed_makes_another_world() -> None:
    assert dump(make_task("a")) != dump(make_task("b"))


def test_a_queue_is_named_in_the_opening_and_holds_the_requests_to_decide() -> None:
    task = make_task("a")
    database = build_database(task)
    queue = "SELECT request_id FROM return_requests WHERE queue_id = ? ORDER BY position"
    rows = [row[0] for row in database.execute(queue, (task.queue_id,))]
    database.close()
    assert task.queue_id in task.opening
    assert rows == list(task.kinds)
    assert len(rows) == REQUESTS_PER_QUEUE


def test_every_kind_of_request_comes_up() -> None:
    kinds = [kind for n in range(300) for kind in make_task(f"kinds-{n}").kinds.values()]
    routine = {"changed_mind", "wrong_size", "late", "final_sale", "damaged", "lost"}
    assert {*routine, "damage_disputed", "frequent", "high_value", "wrong_item", "vague"} == set(
        kinds
    )
    assert 0.7 < sum(kind in routine for kind in kinds) / len(kinds) < 0.95


def test_identifiers_are_hardly_ever_shared_between_tasks() -> None:
    sets = [ids(make_task(f"ids-{n}")) for n in range(40)]
    distinct = len(set().union(*sets))
    assert distinct > 0.98 * sum(len(one) for one in sets)


def test_a_database_is_not_made_over_another(tmp_path: Path) -> None:
    build_database(make_task("a"), tmp_path / "one").close()
    with pytest.raises(Exception, match="already exists"):
        build_database(make_task("a"), tmp_path / "one")
