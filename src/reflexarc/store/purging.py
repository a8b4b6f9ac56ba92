"""Removes sessions so that no byte of them stays in the database's files, and proves it.

Rows are deleted with `secure_delete`, the file is written anew by VACUUM, and the write-ahead log
emptied. Other connections may have the file open; one that reads just then is waited for.
"""

import contextlib
import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any, cast

import msgspec
from sqlalchemy import Connection, String, delete, func, or_, select
from sqlalchemy.exc import DatabaseError

from reflexarc.store import tombs, trail
from reflexarc.store.lineage import START, Keyed, chain
from reflexarc.store.reading import contents
from reflexarc.store.records import TrailEntry
from reflexarc.store.schema import audits, decisions, messages, metadata, sessions, steps
from reflexarc.store.searching import standing_as_word, standing_in
from reflexarc.store.store import Store, said
from reflexarc.store.tombs import Tomb

MIN_VALUE = 4
"""Shorter values stand everywhere by chance."""
LONG_VALUE = 8
"""From so many characters on, bytes do not hold a value by chance."""
MIN_TASKS = 3
"""What stands in so many tasks is no single person's, see docs/privacy.md."""
_TELLING = re.compile(r"[\w.@+#/-]*[\d@][\w.@+#/-]*")
"""Parts of a text that tell who or what: numbers, codes, addresses."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z_-]*")
_TRIES = 40
_PAUSE_S = 0.25


class Conditions(msgspec.Struct, frozen=True):
    """What to purge: sessions for which all of them hold. `session` is an id of ours or the
    client's own name; None, and no tenants, take in everything."""

    session: str | None = None
    tenants: Sequence[str] = ()
    before_s: float | None = None


class Doomed(msgspec.Struct, frozen=True):
    """What a purge takes in."""

    sessions: list[str]
    steps: int


class Removed(msgspec.Struct, frozen=True):
    """What was deleted. `values` are texts and numbers of it that stand in no session that
    remains; `private` those that stand in fewer than three other tasks, which no artifact may
    hold."""

    sessions: list[str]
    steps: int
    values: frozenset[str]
    private: frozenset[str]


class Emptied(msgspec.Struct, frozen=True):
    """`fault` is empty where it is proven that the files hold none of the values."""

    fault: str


def doomed(connection: Connection, wanted: Conditions, secret: bytes) -> Doomed:
    """`secret` finds a name again where only its hash was kept."""
    query = select(sessions.c.id)
    if wanted.session is not None:
        hashed = Keyed(secret).hash("name", wanted.session)
        names = sessions.c.name.in_((wanted.session, hashed))
        query = query.where(or_(sessions.c.id == wanted.session, names))
    if wanted.tenants:
        query = query.where(sessions.c.tenant.in_(wanted.tenants))
    if wanted.before_s is not None:
        query = query.where(sessions.c.last_s < wanted.before_s)
    ids = list(connection.execute(query).scalars())
    number = 0
    for identity in ids:
        count = select(func.count()).select_from(steps).where(steps.c.session == identity)
        number += int(connection.execute(count).scalar() or 0)
    return Doomed(ids, number)


def remove(
    store: Store, wanted: Conditions, secret: bytes, who: str, unix_time: Callable[[], float]
) -> Removed:
    """Deletes the rows, says what of them may still be on its way and must not be written (see
    `store.tombs`), and notes it in the trail, in one transaction. Raises `DatabaseError`."""
    keyed = Keyed(secret)
    with store.writing(durable=True) as connection:
        # From here on nobody else writes: a step is there and deleted, or comes and is refused.
        now_s = unix_time()
        gone = doomed(connection, wanted, secret)
        found = _found_in(connection, gone.sessions)
        tombs.add(connection, _tombs(connection, keyed, wanted, gone.sessions, now_s))
        for identity in gone.sessions:
            of_session = select(steps.c.id).where(steps.c.session == identity)
            connection.execute(delete(audits).where(audits.c.step.in_(of_session)))
            connection.execute(delete(sessions).where(sessions.c.id == identity))
        evidence = {"sessions": len(gone.sessions), "steps": gone.steps}
        entry = TrailEntry(token_hex(16), now_s, "purge", who, evidence)
        trail.append(connection, [entry])
    with store.reading() as connection:
        values, private = _of_nobody_else(connection, found)
    return Removed(gone.sessions, gone.steps, frozenset(values), frozenset(private))


def _tombs(
    connection: Connection, keyed: Keyed, wanted: Conditions, ids: Sequence[str], now_s: float
) -> list[Tomb]:
    name = None if wanted.session is None else keyed.hash("name", wanted.session)
    found = [
        Tomb(now_s, tenant=tenant, name=name, before_s=wanted.before_s)
        for tenant in (wanted.tenants or (None,))
    ]
    if wanted.session is None:
        return found
    for identity in ids:
        # A conversation without a name, or asked for by our id, is known by its messages.
        row = connection.execute(select(sessions).where(sessions.c.id == identity)).one()
        digests = connection.execute(
            select(messages.c.digest).where(messages.c.session == identity).order_by(messages.c.at)
        ).scalars()
        heads: list[str] = []
        for digest in digests:
            heads.append(chain(keyed, heads[-1] if heads else START, digest))
        ends = frozenset((row.asked, row.head))
        found.append(Tomb(now_s, row.tenant, row.route, ends=ends, heads=frozenset(heads)))
    return found


def empty(
    store: Store, values: Collection[str], pause: Callable[[float], None] = time.sleep
) -> Emptied:
    """Rewrites the file, empties the log, and looks for the values in both."""
    fault = "nothing was tried"
    for attempt in range(_TRIES):
        if attempt:
            pause(_PAUSE_S)
        try:
            with store.bare() as connection:
                connection.exec_driver_sql("VACUUM")
                busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()[0]
        except DatabaseError as error:
            fault = f"the database could not be written anew: {said(error)}"
            continue
        if busy:
            fault = "a reader keeps the write-ahead log from being emptied"
            continue
        left = _rest(store, held(files_of(store.path), values))
        if not left:
            return Emptied("")
        fault = f"{len(left)} values of what was purged are still in {store.path} or its log"
    return Emptied(fault)


def _rest(store: Store, found: Sequence[str]) -> list[str]:
    """Of what the files hold, what no row accounts for. The file was written anew from rows, so
    few characters may also stand across two columns, in two hashes, say: such a value counts where
    it stands as a word, as everything that was said does."""
    return [
        value
        for value in found
        if not stands_in_a_row(store, value)
        and (
            len(value) >= LONG_VALUE
            or any(standing_as_word(files_of(store.path), form.encode()) for form in forms(value))
        )
    ]


def files_of(path: Path) -> list[Path]:
    """The database's files: itself, its log, its index."""
    return [path, *(path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal"))]


def held(files: Sequence[Path], values: Collection[str]) -> list[str]:
    """Those of the values that the files' bytes hold, as text or as JSON writes it."""
    wanted = {
        value: [form.encode("utf-8", "surrogatepass") for form in forms(value)] for value in values
    }
    found = standing_in(files, {form for encoded in wanted.values() for form in encoded})
    return [value for value, encoded in wanted.items() if not found.isdisjoint(encoded)]


def stands_in_a_row(store: Store, value: str) -> bool:
    """Whether a row that remains, or the schema, holds it: a tool's name, digits of a hash. The
    file was written anew from those, so what stands in one is no rest of what was purged."""
    with store.reading() as connection:
        schema = "\n".join(
            connection.exec_driver_sql(
                "SELECT type || name || tbl_name || coalesce(sql, '') FROM sqlite_master"
            ).scalars()
        )
        if any(form in schema for form in forms(value)):
            return True
        for table in metadata.sorted_tables:
            for column in table.c:
                if not isinstance(column.type, String):
                    continue
                for form in forms(value):
                    query = select(column).where(func.instr(column, form) > 0).limit(1)
                    if connection.execute(query).first() is not None:
                        return True
    return False


def forms(value: str) -> set[str]:
    """A text as itself, as JSON, as JSON in ASCII, and as JSON within JSON."""
    plain = msgspec.json.encode(value).decode("utf-8", "replace")[1:-1]
    within = msgspec.json.encode(plain).decode("utf-8", "replace")[1:-1]
    return {value, plain, within}


class _Found(msgspec.Struct):
    """`values` were said; `structure` are names of fields and what describes tools: those are
    looked for in the store, and not in artifacts, which have such words of their own."""

    values: set[str]
    structure: set[str]


def _found_in(connection: Connection, ids: Sequence[str]) -> _Found:
    """What these sessions hold that would tell that they were there."""
    found = _Found(set(), set())
    for identity in ids:
        row = connection.execute(
            select(sessions.c.name, sessions.c.task, sessions.c.tools).where(
                sessions.c.id == identity
            )
        ).one()
        found.values.update(
            name for name in (row.name, row.task) if name and len(name) >= MIN_VALUE
        )
        if row.tools is not None:
            described = _values_of(row.tools)
            found.structure |= described.values | described.structure
    for text in (*(text for _, text in contents(connection, ids)), *_decided(connection, ids)):
        said_ = _values_of(text)
        found.values |= said_.values
        found.structure |= said_.structure
    found.structure -= found.values
    return found


def _of_nobody_else(connection: Connection, found: _Found) -> tuple[set[str], set[str]]:
    """Those of the values that no session holds, and those that stand in too few tasks."""
    elsewhere: dict[str, set[str]] = {}
    everything = found.values | found.structure
    if everything:
        for row in connection.execute(select(sessions.c.id, sessions.c.task)).all():
            one = _found_in(connection, [row.id])
            for value in (one.values | one.structure) & everything:
                elsewhere.setdefault(value, set()).add(row.task)
    return (
        {value for value in everything if value not in elsewhere},
        {value for value in found.values if len(elsewhere.get(value, ())) < MIN_TASKS},
    )


def _decided(connection: Connection, ids: Sequence[str]) -> Iterator[str]:
    for identity in ids:
        rows = connection.execute(
            select(decisions.c.recorded, decisions.c.proposed)
            .join(steps, steps.c.id == decisions.c.step)
            .where(steps.c.session == identity)
        )
        for recorded, proposed in rows:
            yield from (text for text in (recorded, proposed) if text is not None)


_STRUCTURE = frozenset({"role", "type", "decided_by"})


def _values_of(text: str) -> _Found:
    """Texts, numbers and keys in a message's or a tool's JSON, at least `MIN_VALUE` characters;
    JSON within texts (arguments, results) is read too. Roles and types of parts are no values."""
    found = _Found(set(), set())
    try:
        value: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        found.values.update([text] if len(text) >= MIN_VALUE else [])
        return found
    left: list[Any] = [value]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            fields = cast("dict[str, Any]", one)
            function = fields.get("function")
            if isinstance(function, dict):  # a call or a tool: its name and kind are structure
                described = cast("dict[str, Any]", function)
                left += [described.get(key) for key in ("arguments", "description", "parameters")]
                continue
            for name, part in fields.items():
                if len(name) >= MIN_VALUE:
                    (found.structure if _NAME.fullmatch(name) else found.values).add(name)
                if name not in _STRUCTURE:
                    left.append(part)
        elif isinstance(one, list):
            left.extend(cast("list[Any]", one))
        elif isinstance(one, str):
            parts = (one, *_TELLING.findall(one))
            found.values.update(part for part in parts if len(part) >= MIN_VALUE)
            if one.lstrip()[:1] in ("{", "["):
                with contextlib.suppress(msgspec.DecodeError, RecursionError):
                    left.append(msgspec.json.decode(one))
        elif isinstance(one, int | float) and not isinstance(one, bool):
            shown = str(one)
            if len(shown) >= MIN_VALUE:
                found.values.add(shown)
    return found
