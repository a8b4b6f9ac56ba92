"""Which values of a slot are tried, where it holds more than there is room for: those whose record
was spoken of, the first of the newest list, the newest. And how much room each slot leaves to those
after it.
"""

from collections.abc import Sequence

from reflexarc.provenance import Entry
from reflexarc.provenance.entries import NO_RECORD
from reflexarc.provenance.stems import is_common
from reflexarc.reflex.context import Context

NEWEST = 32
_LOOKED_AT = 240
_SPOKEN_OF = 12
_FIRST = 8
_LEFT = 4


def tried(context: Context, entries: Sequence[Entry]) -> Sequence[Entry]:
    """At most `NEWEST` entries of a slot, in their order."""
    if len(entries) <= NEWEST:
        return entries
    entries = entries[-_LOOKED_AT:]
    newest = entries[-1].origin
    if newest.kind == "user_message":
        said = [entry for entry in entries if not is_common(entry.text)]
        return said[-NEWEST:]
    if entries[-1].record is NO_RECORD:
        return entries[-NEWEST:]
    overlap = context.said_now().overlap
    scores = [overlap(entry.record) for entry in entries]
    best = sorted(range(len(entries)), key=lambda at: (-max(scores[at]), -at))[:_SPOKEN_OF]
    kept = {at for at in best if max(scores[at]) > 0.0}
    start = next(at for at, entry in enumerate(entries) if entry.origin is newest)
    kept.update(range(start, min(start + _FIRST, len(entries))))
    for at in range(len(entries) - 1, -1, -1):
        if len(kept) >= NEWEST:
            break
        kept.add(at)
    return [entries[at] for at in sorted(kept)]


def rooms(sizes: Sequence[int], limit: int) -> list[int]:
    """How many values there may be in all once each slot has given its own: the slots after it
    keep a little room."""
    most = [0] * len(sizes)
    kept = 0
    for at in range(len(sizes) - 1, -1, -1):
        most[at] = limit - min(kept, limit // 2)
        kept += min(sizes[at], _LEFT)
    return most
