"""What is kept how long: whole sessions go, the oldest first. The audit trail stays."""

from typing import Any

from sqlalchemy import Connection, Delete, delete, select

from reflexarc.store.schema import audits, sessions
from reflexarc.store.store import Store

_AT_ONCE = 200


def retain(store: Store, oldest_s: float, max_bytes: int) -> int:
    """Deletes sessions whose last step is older than `oldest_s` (Unix seconds), then the oldest
    ones while the database holds more than `max_bytes`. How many went."""
    gone = 0
    while True:
        with store.writing() as connection:
            old = _oldest(connection, oldest_s)
            if old:
                _remove(connection, old)
            else:
                connection.execute(delete(audits).where(audits.c.at_s < oldest_s))
        gone += len(old)
        if len(old) < _AT_ONCE:
            break
    while True:
        with store.writing() as connection:
            excess = used_bytes(connection) - max_bytes
            total = max(1, used_bytes(connection))
            count = len(connection.execute(select(sessions.c.id)).all()) if excess > 0 else 0
            # About as many as the excess is of the whole, so that few rounds are needed.
            share = min(count, max(1, int(count * excess / total))) if count else 0
            old = _oldest(connection, None, min(share, _AT_ONCE))
            if old:
                _remove(connection, old)
        gone += len(old)
        if not old:
            break
    if gone:
        with store.bare() as connection:
            freed = connection.exec_driver_sql("PRAGMA incremental_vacuum")
            if freed.returns_rows:  # not where too little went to free a page
                freed.all()
    return gone


def used_bytes(connection: Connection) -> int:
    """Pages in use, free ones not counted."""

    def pragma(name: str) -> int:
        value: Any = connection.exec_driver_sql(f"PRAGMA {name}").scalar()
        return int(value)

    return (pragma("page_count") - pragma("freelist_count")) * pragma("page_size")


def _oldest(connection: Connection, before_s: float | None, count: int = _AT_ONCE) -> list[str]:
    query = select(sessions.c.id).order_by(sessions.c.last_s, sessions.c.id).limit(count)
    if before_s is not None:
        query = query.where(sessions.c.last_s < before_s)
    return list(connection.execute(query).scalars())


def _remove(connection: Connection, ids: list[str]) -> None:
    gone: Delete = delete(sessions).where(sessions.c.id.in_(ids))
    connection.execute(gone)
