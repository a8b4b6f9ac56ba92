"""After a purge: artifacts that hold what was purged are learned again from what remains.

An artifact is looked into where the store knows it: learned from this store, or used by a gateway.
One learned from a purged session is learned again in any case. One learned from files cannot be:
it is named, with what to do.
"""

import contextlib
import os
import re
from collections.abc import Collection, Generator, Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
from sqlalchemy import delete, select

from reflexarc.lifecycle.from_store import ids_of, learned_again, note_learned
from reflexarc.reflex.artifact import read_artifact, unpack, write_atomic
from reflexarc.reflex.scan import scan_values
from reflexarc.steps.errors import ArtifactError, LearnError
from reflexarc.store.purging import LONG_VALUE, Removed, stands_in_a_row
from reflexarc.store.schema import artifacts
from reflexarc.store.store import Store

_WORD = re.compile(r"[A-Za-z_-]+")
_PLAIN = re.compile(r"[a-z_]+")


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
    """Those of the values that an artifact holds: anywhere in it, as `reflexarc reflex scan` finds
    them; single words and short values, which other names and bytes hold by chance, as words of
    its texts. Raises ArtifactError."""
    header, _ = unpack(read_artifact(path))
    texts = "\n".join(_texts(header))
    chancy = [value for value in values if len(value) < LONG_VALUE or _WORD.fullmatch(value)]
    telling = sorted(set(values).difference(chancy))
    found = _scanned(path, [value for value in telling if value.strip()])
    for value in chancy:
        if re.search(rf"(?<!\w){re.escape(value)}(?!\w)", texts, re.IGNORECASE):
            found.append(value)
    return found


def _scanned(path: Path, values: list[str]) -> list[str]:
    """By halves: reading an artifact takes longer than looking for many values in it."""
    if not values or not scan_values(path, values):
        return []
    if len(values) == 1:
        return values
    middle = len(values) // 2
    return _scanned(path, values[:middle]) + _scanned(path, values[middle:])


def _left(store: Store, path: Path, private: Collection[str]) -> list[str]:
    """What a newly learned artifact still holds and has from nowhere: it was learned from what
    remains, so what stands in a row, and a plain word (of which it has its own), is no rest."""
    return [
        value
        for value in held_by(path, private)
        if not _PLAIN.fullmatch(value) and not stands_in_a_row(store, value)
    ]


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
        _replace(path, reflex.to_bytes())
        note_learned(store, path, how, sessions, now_s)
    except OSError as error:
        return Relearned(
            name, "", f"cannot be replaced ({error.strerror or error}): remove it by hand"
        )
    except LearnError as error:
        try:
            _destroy(path)
        except OSError as why:
            return Relearned(
                name, "", f"cannot be removed ({why.strerror or why}): remove it by hand"
            )
        with store.writing() as connection:
            connection.execute(delete(artifacts).where(artifacts.c.path == name))
        return Relearned(
            name, f"removed: what remains is too little to learn from ({error}); gateways escalate"
        )
    left = _left(store, path, gone.private)
    if left:
        return Relearned(
            name, "", f"still holds {len(left)} of the values after learning again: remove it"
        )
    return Relearned(name, f"learned again from {len(sessions)} sessions")


def _replace(path: Path, data: bytes) -> None:
    """Readers see the old file or the new one; the old one's bytes are written over after."""
    with _opened(path) as old:
        write_atomic(path, data)
        _blank(old)


def _destroy(path: Path) -> None:
    with _opened(path) as old:
        path.unlink()
        _blank(old)


@contextlib.contextmanager
def _opened(path: Path) -> Generator[int | None]:
    """For writing over; None where it may not be written, only replaced."""
    try:
        file = path.open("r+b")
    except PermissionError:
        yield None
        return
    with file:
        yield file.fileno()


def _blank(descriptor: int | None) -> None:
    """Where the file system writes in place; journals and snapshots are beyond our reach."""
    if descriptor is None:
        return
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
