"""Puts a step into its session, or begins one: rows of `sessions`, `messages` and `steps`.

A request whose messages extend a session continues it; the same request again is another attempt
of its step; one that branches off a session that has gone further begins one of its own. Sessions
of one tenant, one route and one name (where the client gave one) are looked at.
"""

import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, Row, and_, bindparam, delete, insert, or_, select, update

from reflexarc.store.lineage import Chained, Keyed, Lineage, Told
from reflexarc.store.reading_step import Read
from reflexarc.store.records import StepEnded
from reflexarc.store.schema import attempts, messages, sessions, steps
from reflexarc.store.tombs import Tomb
from reflexarc.store.usage import cost_of

_AT_ONCE = 400
_SESSION_ID_BYTES = 12
# Built once: building them costs more than running them.
_ADD_SESSION = insert(sessions)
_CHANGE_SESSION = update(sessions).where(sessions.c.id == bindparam("of"))
_ADD_STEP = insert(steps)
_ADD_ATTEMPTS = insert(attempts)
_ADD_MESSAGES = insert(messages)
_CUT_MESSAGES = delete(messages).where(
    messages.c.session == bindparam("of"), messages.c.at >= bindparam("keep")
)
_FORCED = (
    update(messages)
    .where(messages.c.session == bindparam("of"), messages.c.at == bindparam("place"))
    .values(forced=True)
)
_FORCED_HEADS = select(steps.c.head).where(
    steps.c.action == "partial", steps.c.head.in_(bindparam("heads", expanding=True))
)


class _Place(NamedTuple):
    """`keep`: so many of the session's messages stay as they are."""

    session: str
    keep: int
    attempt: int


class Placing:
    """`random_hex` draws the ids of sessions."""

    def __init__(
        self, keyed: Keyed, lineage: Lineage, random_hex: Callable[[int], str] = secrets.token_hex
    ) -> None:
        self._keyed = keyed
        self._lineage = lineage
        self._random_hex = random_hex

    def place(
        self, connection: Connection, step: StepEnded, read: Read, purged: Sequence[Tomb] = ()
    ) -> bool:
        """Within a writing transaction. False where the step is one of those `purged`: then
        nothing of it is written."""
        full = step.record == "full"
        name = self._shown("name", step.session, full)
        chained = self._lineage.chained(read.conversation)
        count = chained.count
        found = self._found(connection, step, name, chained, count)
        if found is None and chained.known:
            # What others said in the same words was skipped; this one may stand further back.
            chained = self._lineage.chained(read.conversation, 0)
            found = self._found(connection, step, name, chained, count)
        if purged and self._is_purged(step, read, purged, goes_on=found is not None):
            return False
        if found is None:
            found = _Place(self._random_hex(_SESSION_ID_BYTES), 0, 0)
            self._begin(connection, found.session, step, name, chained)
        asked = chained.heads[count]
        told = chained.told[found.keep - chained.known :] if found.keep < count else []
        answered = 0
        head = asked
        if read.answer is not None:
            last = self._lineage.answered(read.answer, step.decided_by == "system1", read.content)
            told = [*told, last]
            head = self._lineage.after(asked, last.digest)
            answered = 1
        _write_messages(connection, found, told, full)
        _mark_forced(connection, found, chained, count)
        task = self._task(connection, step, found.session)
        changed: dict[str, Any] = {
            "last_s": step.began_unix_s,
            "messages": count + answered,
            "asked": asked,
            "head": head,
            "attempt": found.attempt,
            "model": read.model,
            "task": task[0],
            "task_from": task[1],
        }
        if read.tools:
            changed["tools_hash"] = self._keyed.hash("tools", read.tools.decode("utf-8", "replace"))
            changed["tools"] = read.tools.decode("utf-8", "replace") if full else None
        connection.execute(_CHANGE_SESSION, {"of": found.session, **changed})
        used = read.used
        added = connection.execute(
            _ADD_STEP,
            {
                "session": found.session,
                "gateway": step.gateway,
                "number": step.number,
                "request_id": step.request_id,
                "at": count,
                "attempt": found.attempt,
                "began_s": step.began_unix_s,
                "route": step.route,
                "mode": step.mode,
                "record": step.record,
                "tenant": step.tenant,
                "task": task[0],
                "model": read.model,
                "decided_by": step.decided_by,
                "status": step.status,
                "complete": step.complete,
                "request_bytes": step.request_bytes,
                "tier": step.attempts[-1].tier if step.attempts else "",
                "provider": _provider(step),
                "prompt_tokens": used.usage.input,
                "cached_tokens": used.usage.cache_read,
                "cache_write_tokens": used.usage.cache_write,
                "completion_tokens": used.usage.output,
                "tokens_estimated": used.estimated,
                "partial": used.partial,
                "cost_micro_usd": used.micro_usd,
                "cost_usd": None if used.micro_usd is None else used.micro_usd / 1e6,
                "total_ms": step.timings_ms.get("total", 0.0),
                "before_upstream_ms": step.timings_ms.get("before_upstream"),
                "upstream_head_ms": step.timings_ms.get("upstream_head"),
                "decide_ms": step.timings_ms.get("decide"),
                "reflex": step.reflex,
                "action": step.action,
                "reason": step.reason,
                "tool": step.tool,
                "confidence": step.confidence,
                "max_error": step.max_error,
                "head": head,
            },
        )
        if step.attempts:
            [identity] = added.inserted_primary_key or (None,)
            connection.execute(_ADD_ATTEMPTS, _attempt_rows(identity, step))
        if answered and step.action == "partial":
            connection.execute(_FORCED, {"of": found.session, "place": count})
        return True

    def _is_purged(
        self, step: StepEnded, read: Read, purged: Sequence[Tomb], *, goes_on: bool
    ) -> bool:
        name = None if step.session is None else self._keyed.hash("name", step.session)
        heads: list[str] = [""]
        if any(one.of_conversation for one in purged):
            chained = self._lineage.chained(read.conversation, 0)
            heads = [chained.heads[at] for at in range(1, chained.count + 1)]
        return any(one.takes(step, name, heads, goes_on=goes_on) for one in purged)

    def _shown(self, what: str, value: str | None, full: bool) -> str | None:
        return value if value is None or full else self._keyed.hash(what, value)

    def _task(self, connection: Connection, step: StepEnded, session: str) -> tuple[str, str]:
        given = self._shown("task", step.task, step.record == "full")
        if given is not None:
            return given, "header"
        row = connection.execute(
            select(sessions.c.task, sessions.c.task_from).where(sessions.c.id == session)
        ).one()
        return row.task, row.task_from

    def _begin(
        self, connection: Connection, session: str, step: StepEnded, name: str | None,
        chained: Chained,
    ) -> None:  # fmt: skip
        connection.execute(
            _ADD_SESSION,
            {
                "id": session,
                "tenant": step.tenant,
                "route": step.route,
                "name": name,
                "task": f"~{self._keyed.hash('opening', chained.opening)[:12]}",
                "task_from": "derived",
                "model": "",
                "began_s": step.began_unix_s,
                "last_s": step.began_unix_s,
                "messages": 0,
                "asked": "",
                "head": "",
                "attempt": 0,
            },
        )

    def _found(
        self, connection: Connection, step: StepEnded, name: str | None, chained: Chained,
        count: int,
    ) -> _Place | None:  # fmt: skip
        """The place of a request in a session that is there, None where it begins one."""
        scope = and_(
            sessions.c.tenant == step.tenant,
            sessions.c.route == step.route,
            sessions.c.name.is_(None) if name is None else sessions.c.name == name,
        )
        asked = chained.heads[count]
        again = connection.execute(
            select(sessions).where(scope, sessions.c.asked == asked)
            .order_by(sessions.c.last_s.desc(), sessions.c.id)
        ).all()  # fmt: skip
        for row in again:
            # An opening may be asked by several at once; it is the same one's second try where a
            # name says so, or where the first got no answer.
            if chained.has_assistant or name is not None or row.head == row.asked:
                return _Place(row.id, count, row.attempt + 1)
        before = {head: at for at, head in chained.heads.items() if at < count and head}
        extended: list[tuple[int, Row[Any]]] = []
        other: list[tuple[int, Row[Any]]] = []
        for part in _parts(before):
            rows = connection.execute(
                select(sessions).where(
                    scope, or_(sessions.c.head.in_(part), sessions.c.asked.in_(part))
                )
            )
            for row in rows:
                if row.head in before:
                    extended.append((before[row.head], row))
                else:
                    other.append((before[row.asked], row))
        if extended:
            at, row = min(extended, key=_longest_then_oldest)
            return _Place(row.id, at, 0)
        for at, row in sorted(other, key=_longest_then_oldest):
            # The client goes on with another answer than the last we saw: that of an earlier
            # attempt, or one it has changed. Not where another session gave that answer.
            givers = connection.execute(
                select(steps.c.session).where(steps.c.head == chained.heads[at + 1])
            ).scalars()
            if all(giver == row.id for giver in givers):
                return _Place(row.id, at, 0)
        return None


def _provider(step: StepEnded) -> str:
    """Whose answer the client got, else who was asked last."""
    answered = [one for one in step.attempts if one.outcome in ("answered", "repaired")]
    return (answered or step.attempts)[-1].provider if step.attempts else ""


def _attempt_rows(identity: int | None, step: StepEnded) -> list[dict[str, Any]]:
    return [
        {
            "step": identity,
            "position": position,
            "provider": one.provider,
            "model": one.model,
            "service_tier": one.service_tier,
            "tier": one.tier,
            "outcome": one.outcome,
            "status": one.status,
            "code": one.code,
            "first_token_ms": one.first_token_ms,
            "total_ms": one.total_ms,
            "prompt_tokens": one.usage.input,
            "cached_tokens": one.usage.cache_read,
            "cache_write_tokens": one.usage.cache_write,
            "cache_write_1h_tokens": one.usage.cache_write_1h,
            "completion_tokens": one.usage.output,
            "reasoning_tokens": one.usage.reasoning,
            "micro_usd": cost_of(one),
            "partial": one.partial,
            "estimated": one.estimated,
        }
        for position, one in enumerate(step.attempts)
    ]


def _longest_then_oldest(one: tuple[int, Row[Any]]) -> tuple[int, float, str]:
    at, row = one
    return -at, row.began_s, row.id


def _parts(heads: Iterable[str]) -> Iterable[list[str]]:
    listed = list(heads)
    for begin in range(0, len(listed), _AT_ONCE):
        yield listed[begin : begin + _AT_ONCE]


def _mark_forced(connection: Connection, place: _Place, chained: Chained, count: int) -> None:
    """Answers that this request brings along and another session got: where System 1 chose their
    tool, they are no examples here either. `count`: of the request's messages."""
    written = {
        chained.heads[at + 1]: at
        for at in range(place.keep, count)
        if chained.told[at - chained.known].role == "assistant"
    }
    for part in _parts(written):
        for head in connection.execute(_FORCED_HEADS, {"heads": part}).scalars():
            connection.execute(_FORCED, {"of": place.session, "place": written[head]})


def _write_messages(connection: Connection, place: _Place, told: list[Told], full: bool) -> None:
    connection.execute(_CUT_MESSAGES, {"of": place.session, "keep": place.keep})
    if not told:
        return
    connection.execute(
        _ADD_MESSAGES,
        [
            {
                "session": place.session,
                "at": place.keep + index,
                "role": one.role,
                "digest": one.digest,
                "size": one.size,
                "calls": msgspec.json.encode(one.calls).decode(),
                "by_system1": one.by_system1,
                "content": one.content if full else None,
            }
            for index, one in enumerate(told)
        ],
    )
