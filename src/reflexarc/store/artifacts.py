"""Which artifacts a store knows: learned from it, or used by a gateway that writes to it."""

import hashlib
from pathlib import Path

from sqlalchemy import Connection, select
from sqlalchemy.dialects.sqlite import insert

from reflexarc.store.schema import artifacts


def note_used(connection: Connection, path: Path, now_s: float) -> None:
    """What it was learned from stays known where its bytes are the same."""
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return
    note_artifact(connection, path, digest, now_s, None, None)


def note_artifact(
    connection: Connection,
    path: Path,
    digest: str,
    now_s: float,
    options: str | None,
    learned_from: str | None,
) -> None:
    """`options` and `learned_from` are JSON, None where they are not known: then those of the same
    bytes stay."""
    place = str(path.resolve())
    if options is None:
        known = connection.execute(
            select(artifacts.c.options, artifacts.c.sessions).where(artifacts.c.digest == digest)
        ).first()
        if known is not None:
            options, learned_from = known.options, known.sessions
    values = {"digest": digest, "noted_s": now_s, "options": options, "sessions": learned_from}
    connection.execute(
        insert(artifacts)
        .values(path=place, **values)
        .on_conflict_do_update(index_elements=["path"], set_=values)
    )
