"""A desk task whose queue holds the kinds of requests a test asks for."""

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from reflexarc.bench.desk import Desk, DeskTask, build_database, make_task

Open = Callable[[DeskTask], sqlite3.Connection]


@pytest.fixture
def open_database() -> Iterator[Open]:
    """Builds databases in memory and closes them."""
    opened: list[sqlite3.Connection] = []

    def build(task: DeskTask) -> sqlite3.Connection:
        opened.append(build_database(task))
        return opened[-1]

    yield build
    for database in opened:
        database.close()


def task_with(kind: str) -> tuple[DeskTask, str]:
    """The first task with a request of this kind, and that request's id."""
    for number in range(2000):
        task = make_task(f"kind-{number}")
        for request_id, found in task.kinds.items():
            if found == kind:
                return task, request_id
    raise AssertionError(f"no request of kind {kind}")


class Hands:
    """Calls tools with plain arguments and reads their answers."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self.database = database
        self._desk = Desk(database)

    def __call__(self, name: str, **arguments: Any) -> dict[str, Any]:
        return msgspec.json.decode(self._desk.call(name, msgspec.json.encode(arguments).decode()))

    def raw(self, name: str, text: str) -> dict[str, Any]:
        return msgspec.json.decode(self._desk.call(name, text))

    def request(self, request_id: str) -> dict[str, Any]:
        cursor = self.database.execute(
            "SELECT * FROM return_requests JOIN payments USING (order_id) WHERE request_id = ?",
            (request_id,),
        )
        names = [column[0] for column in cursor.description]
        return dict(zip(names, cursor.fetchone(), strict=True))
