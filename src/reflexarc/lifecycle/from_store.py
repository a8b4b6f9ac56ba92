"""Learning from what a store holds in full, and how it is done again after a purge."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import msgspec
from sqlalchemy import Connection, select

from reflexarc.reflex import Reflex, learn
from reflexarc.reflex.claims import CertificateClass
from reflexarc.steps import Effect, Session
from reflexarc.steps.errors import LearnError, SessionLineError
from reflexarc.store.artifacts import note_artifact
from reflexarc.store.reading import Gone, kept_sessions
from reflexarc.store.schema import sessions as stored
from reflexarc.store.store import Store
from reflexarc.traces import Recording
from reflexarc.traces.lines import Line
from reflexarc.traces.sessions import session_from_line
from reflexarc.traces.tasks import cluster_tasks


class Learning(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a reflex was learned from a store. `since_s`: Unix seconds."""

    max_error: float
    confidence: float
    effects: dict[str, Effect] = {}
    route: str | None = None
    since_s: float | None = None
    certificate_class: CertificateClass = "model-based"
    attempt: int = 0


def sessions_of(connection: Connection, how: Learning) -> tuple[Recording, Gone]:
    """The sessions as a recording. Raises `LearnError` where there is none in full."""
    kept, gone = kept_sessions(connection, route=how.route, since_s=how.since_s)
    sessions: list[Session] = []
    raw: list[bytes] = []
    bad: list[SessionLineError] = []
    for number, one in enumerate(kept, 1):
        try:
            sessions.append(session_from_line(Line("store", number, one.line)))
            raw.append(one.line)
        except SessionLineError as error:
            bad.append(error)
    if not sessions:
        raise LearnError(
            f"the store holds no session in full ({gone.not_in_full} are kept as hashes): set "
            'record = "full" on the route to learn from'
        )
    clustering = None
    if any(not session.task for session in sessions):
        clustering = cluster_tasks(sessions)
        sessions = [
            msgspec.structs.replace(session, task=task)
            for session, task in zip(sessions, clustering.tasks, strict=True)
        ]
    return Recording(sessions, raw, bad, clustering), gone


def note_learned(
    store: Store, path: Path, how: Learning, sessions: list[Session], now_s: float
) -> None:
    """Says in the store what an artifact was learned from, so that a purge can learn it again.
    Raises `LearnError`, and removes the artifact, where one of the sessions is gone meanwhile: a
    purge that came between did not know of it."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    options = msgspec.json.encode(how).decode()
    ids = msgspec.json.encode([session.id for session in sessions]).decode()
    with store.writing() as connection:
        there = set(connection.execute(select(stored.c.id)).scalars())
        gone = sum(session.id not in there for session in sessions)
        if not gone:
            note_artifact(connection, path, digest, now_s, options, ids)
    if gone:
        path.unlink()
        raise LearnError(
            f"{gone} of the sessions went from the store while they were learned from: {path} is "
            "removed, learn again"
        )


def learned_again(
    connection: Connection,
    options: str,
    learning: Callable[[list[Session], Learning], Reflex] | None = None,
) -> tuple[Reflex, Learning, list[Session]]:
    """Learns with the same options from what is there now. Raises `LearnError`."""
    how = msgspec.json.decode(options, type=Learning)
    recording, _ = sessions_of(connection, how)
    return (learning or _learn)(recording.sessions, how), how, recording.sessions


def _learn(sessions: list[Session], how: Learning) -> Reflex:
    called = {
        *(tool.name for session in sessions for tool in session.tools),
        *(c.name for session in sessions for m in session.messages for c in m.tool_calls),
    }
    effects: dict[str, Effect] = {
        name: effect for name, effect in how.effects.items() if name in called
    }
    return learn(
        sessions, max_error=how.max_error, confidence=how.confidence, effects=effects,
        certificate_class=how.certificate_class, attempt=how.attempt,
    )  # fmt: skip


def ids_of(text: str | None) -> list[str]:
    """Session ids as `note_learned` wrote them."""
    return [] if text is None else msgspec.json.decode(text, type=list[str])
