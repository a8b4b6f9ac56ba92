"""After a purge: artifacts that hold what was purged are learned again from what remains.

An artifact is looked into where the store knows it: learned from this store, or used by a gateway.
One learned from a purged session is learned again in any case. One learned from files cannot be:
it is named, with what to do.
"""

import contextlib
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
from sqlalchemy import delete, select

from reflexarc.lifecycle.from_store import ids_of, learned_again, note_learned
from reflexarc.reflex.artifact import read_artifact, unpack, write_atomic
from reflexarc.steps.errors import ArtifactError, LearnError
from reflexarc.store.purging import Removed
from reflexarc.store.schema import artifacts
from reflexarc.store.store import Store


class Relearned(msgspec.Struct, frozen=True):
    """`what` was done to an artifact; `fault` is empty unless it may still hold what was purged."""

    path: str
    what: str
    fault: str = ""


def artifacts_after(store: Store, gone: Removed, now_s: float) -> list[Relearned]:
    """Deals with every artifact the store knows."""
    with store.reading() as connection:
        known = connection.execute(select(artifacts).order_by(artifacts.c.path)).all()
    return [
        _one(store, gone, Path(row.path), row.options, ids_of(row.sessions), now_s) for row in known
    ]


def held_by(path: Path, values: Collection[str]) -> list[str]:
    """Those of the values that stand in an artifact's texts, as words of their own. Raises
    ArtifactError."""
    header, _ = unpack(read_artifact(path))
    texts = list(_texts(header))
    found: list[str] = []
    for value in values:
        word = re.compile(rf"(?<!\w){re.escape(value)}(?!\w)", re.IGNORECASE)
        if any(word.search(text) for text in texts):
            found.append(value)
    return found


def _one(
    store: Store, gone: Removed, path: Path, options: str | None, learned: list[str], now_s: float
) -> Relearned:
    name = str(path)
    if not path.exists():
        with store.writing() as connection:
            connection.execute(delete(artifacts).where(artifacts.c.path == name))
        return Relearned(name, "is not there any more")
    try:
        holds = held_by(path, gone.private)
    except ArtifactError as error:
        return Relearned(name, "", f"cannot be looked into ({error}): remove it by hand")
    from_purged = not set(learned).isdisjoint(gone.sessions)
    if not holds and not from_purged:
        return Relearned(name, "holds nothing of it")
    if options is None:
        return Relearned(
            name,
            "",
            f"holds {len(holds)} of the values and was learned from files: take the sessions out "
            "of those, run `reflexarc learn` again, and remove this file",
        )
    try:
        with store.reading() as connection:
            reflex, how, sessions = learned_again(connection, options)
    except LearnError as error:
        _destroy(path)
        with store.writing() as connection:
            connection.execute(delete(artifacts).where(artifacts.c.path == name))
        return Relearned(
            name, f"removed: what remains is too little to learn from ({error}); gateways escalate"
        )
    _replace(path, reflex.to_bytes())
    note_learned(store, path, how, sessions, now_s)
    left = held_by(path, gone.private)
    if left:
        return Relearned(
            name, "", f"still holds {len(left)} of the values after learning again: remove it"
        )
    return Relearned(name, f"learned again from {len(sessions)} sessions")


def _replace(path: Path, data: bytes) -> None:
    """Readers see the old file or the new one; the old one's bytes are written over after."""
    with path.open("r+b") as old:
        write_atomic(path, data)
        _blank(old.fileno())


def _destroy(path: Path) -> None:
    with path.open("r+b") as old:
        path.unlink()
        _blank(old.fileno())


def _blank(descriptor: int) -> None:
    """Where the file system writes in place; journals and snapshots are beyond our reach."""
    size = os.fstat(descriptor).st_size
    with contextlib.suppress(OSError):
        os.pwrite(descriptor, bytes(size), 0)
        os.fsync(descriptor)


def _texts(value: Any) -> Iterator[str]:
    left: list[Any] = [value]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            fields = cast("dict[str, Any]", one)
            left.extend(fields.keys())
            left.extend(fields.values())
        elif isinstance(one, list):
            left.extend(cast("list[Any]", one))
        elif isinstance(one, str):
            yield one
        elif isinstance(one, int) and not isinstance(one, bool):
            yield str(one)
