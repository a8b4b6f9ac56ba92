"""The audit trail: entries in a chain of hashes, so that none can be changed, moved or taken out
without it showing.

The hash of an entry covers its number, id, time, what, who, evidence and the hash before it. Who
can rewrite the whole file can rewrite the whole chain: note the head elsewhere to see that too.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, insert, select

from reflexarc.steps import canonical_json
from reflexarc.store.records import TrailEntry
from reflexarc.store.schema import trail

START = "0" * 64
"""What the first entry has as the hash before it."""


class Link(msgspec.Struct, frozen=True):
    """An entry in its place."""

    seq: int
    id: str
    at_unix_s: float
    what: str
    who: str
    evidence: dict[str, Any]
    previous: str
    hash: str


class Verified(msgspec.Struct, frozen=True):
    """`fault` is empty where the chain holds; it names the first entry that does not fit."""

    entries: int
    head: str
    fault: str


def append(connection: Connection, entries: Sequence[TrailEntry]) -> list[str]:
    """Writes those that are not there yet, within a transaction that holds the write lock. The
    ids of all, which now are."""
    last = connection.execute(
        select(trail.c.seq, trail.c.hash).order_by(trail.c.seq.desc()).limit(1)
    ).first()
    seq, previous = (last.seq, last.hash) if last is not None else (0, START)
    for entry in entries:
        known = select(trail.c.seq).where(trail.c.id == entry.id)
        if connection.execute(known).first() is not None:
            continue
        seq += 1
        evidence = canonical_json(entry.evidence)
        digest = link_hash(
            seq, entry.id, entry.at_unix_s, entry.what, entry.who, evidence, previous
        )
        connection.execute(
            insert(trail).values(
                seq=seq, id=entry.id, at_s=entry.at_unix_s, what=entry.what, who=entry.who,
                evidence=evidence, previous=previous, hash=digest,
            )
        )  # fmt: skip
        previous = digest
    return [entry.id for entry in entries]


def link_hash(
    seq: int, identity: str, at_s: float, what: str, who: str, evidence: str, previous: str
) -> str:
    """64 hexadecimal digits of SHA-256 over the canonical JSON of the parts, in this order."""
    text = canonical_json([seq, identity, repr(float(at_s)), what, who, evidence, previous])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def links(connection: Connection, *, what: str | None = None, last: int = 0) -> Iterator[Link]:
    """Entries in order; only the `last` of them where it is not 0."""
    query = select(trail).order_by(trail.c.seq.desc() if last else trail.c.seq)
    if what is not None:
        query = query.where(trail.c.what == what)
    if last:
        query = query.limit(last)
    rows = connection.execute(query)
    for row in reversed(rows.all()) if last else rows:
        yield Link(
            row.seq, row.id, row.at_s, row.what, row.who,
            msgspec.json.decode(row.evidence), row.previous, row.hash,
        )  # fmt: skip


def verify(connection: Connection, head: str | None = None) -> Verified:
    """Goes through the whole chain. `head` is a hash noted earlier: it must stand in it."""
    count, previous, met = 0, START, head is None or head == START
    for row in connection.execute(select(trail).order_by(trail.c.seq)):
        fault = ""
        if row.seq != count + 1:
            fault = f"entry {count + 1} is missing: entry {row.seq} comes next"
        elif row.previous != previous:
            fault = f"entry {row.seq} does not follow entry {count}: one was changed or put in"
        elif row.hash != link_hash(
            row.seq, row.id, row.at_s, row.what, row.who, row.evidence, row.previous
        ):
            fault = f"entry {row.seq} ({row.what}) was changed"
        if fault:
            return Verified(count, previous, fault)
        count, previous = row.seq, row.hash
        met = met or row.hash == head
    if not met:
        fault = f"the head {head} is not in the chain: entries were cut off, or all were rewritten"
        return Verified(count, previous, fault)
    return Verified(count, previous, "")
