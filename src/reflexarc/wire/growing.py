"""A request's body taken apart at the cost of what is new in it.

Agents send their whole conversation every time, and most of it is what they sent before, to the
byte. So the bodies last seen are remembered with where the items of their conversation end; of a
body that begins as one of them only the rest is read. Nothing is taken for granted: what is
remembered is compared byte for byte, and what does not fit is read as a whole.
"""

from array import array
from collections import OrderedDict
from collections.abc import Iterator

import msgspec
import xxhash

from reflexarc.steps.errors import MalformedError
from reflexarc.wire.json import split_list, split_object, split_with_spans
from reflexarc.wire.marks import unmarked

MAX_BODIES = 1024
MAX_BYTES = 64 * 1024 * 1024
"""Of all bodies remembered with what is known of them, of all tenants together."""
ITEM_BYTES = 96
"""What is known of an item, roughly."""
MAX_NEW_ITEMS = 2_000
"""Items taken in at once: no body may hold others up for long. With more of them it is not listed.
"""
_SAME_BEGINNING = 8
"""Bodies remembered of those that share half of their bytes, the latest first."""
_LEAST_BITS = 10
_NEARLY_ALL = 2
# What is compared at once stays in the processor's cache.
_STRETCH = 64 * 1024
# Whatever follows it, it is a whole item or no JSON: a number the rest could go on.
_EARLIER = b"{}"


class Grown(msgspec.Struct, eq=False):
    """A body taken apart. `members` are those of its object, each as its text. `begins` and
    `ends`: where the items of its conversation stand in it; `kept` of them an earlier body had in
    the same place. `chain[n]` stands for the first n + 1 items and their order, cache marks aside
    (128 bits, no proof against who wants two of one digest). `kinds`: a byte for each item, for
    what a reader finds out of it once; shorter where it has not yet. `listed`: there is a
    conversation, and it is a list, which begins at `list_at`; of a list with more new items than
    are taken in it is False, and `crowded` True. `number` is the body's among those remembered (0:
    it is not), `after` the number of the one that it goes on from and how many bytes they have in
    common. `beside_bytes`: of the text that `members` were read from, where that is not `body`."""

    body: bytes
    members: dict[str, msgspec.Raw]
    begins: "array[int]"
    ends: "array[int]"
    chain: list[bytes]
    kinds: bytearray
    kept: int = 0
    listed: bool = True
    crowded: bool = False
    list_at: int = 0
    number: int = 0
    after: tuple[int, int] = (0, 0)
    beside_bytes: int = 0

    @property
    def held_bytes(self) -> int:
        """About what it takes in memory."""
        return len(self.body) + self.beside_bytes + ITEM_BYTES * len(self.ends)

    def __len__(self) -> int:
        return len(self.ends)

    def item(self, at: int) -> bytes:
        """One item of the conversation, as it was sent."""
        return self.body[self.begins[at] : self.ends[at]]

    def end_of(self, items: int) -> int:
        """Where so many items end; of none, where the first begins."""
        return self.ends[items - 1] if items else self.list_at + 1


def take_apart(body: bytes, conversation: str, before: Grown | None = None, kept: int = 0) -> Grown:
    """The body, read from the end of `kept` items on, which it has in common with `before`
    (`in_common`). Raises `MalformedError`."""
    if before is not None and before.listed:
        grown = _grown(body, conversation, before, kept)
        if grown is not None:
            return grown
    return _whole(body, conversation)


def in_common(body: bytes, before: Grown) -> int | None:
    """How many items of the conversation of `before`, and all that stands in front of them, a body
    begins with; None where not even its conversation begins at the same place."""
    if not before.listed:
        return None
    equal = before.list_at + 1
    if not _same(body, before.body, 0, equal):
        return None
    low, high = 0, len(before)
    while low < high:
        # Nearly always all or all but the last: those that moved a mark, say.
        middle = high if high == len(before) else (low + high + 1) // 2
        end = before.end_of(middle)
        if _same(body, before.body, equal, end):
            low, equal = middle, end
        else:
            high = middle - 1
    return low


def _same(one: bytes, other: bytes, begin: int, end: int) -> bool:
    """Whether two texts are equal there; the end first, where they differ if they do at all."""
    if one[max(begin, end - 64) : end] != other[max(begin, end - 64) : end]:
        return False
    return all(
        one[at : min(at + _STRETCH, end)] == other[at : min(at + _STRETCH, end)]
        for at in range(begin, end, _STRETCH)
    )


def _whole(body: bytes, conversation: str) -> Grown:
    members, spans = split_with_spans(body)
    at, _ = spans.get(conversation, (0, 0))
    grown = Grown(body, members, array("q"), array("q"), [], bytearray(), list_at=at)
    if conversation not in members or body[at : at + 1] != b"[":
        grown.listed = False
        return grown
    _append(grown, split_list(members[conversation], conversation), at + 1)
    return grown


def _grown(body: bytes, conversation: str, before: Grown, kept: int) -> Grown | None:
    """None where the rest is not what it should be: then it is read as a whole, for the message."""
    at, end = before.list_at, before.end_of(kept)
    earlier = _EARLIER if kept else b""
    rest = b"".join((body[: at + 1], earlier, body[end:]))
    try:
        members = split_object(rest)
        listed = members[conversation]
        new = split_list(listed, conversation)
    except (MalformedError, KeyError):
        return None
    close = end + len(memoryview(listed)) - 1 - len(earlier)
    members[conversation] = msgspec.Raw(memoryview(body)[at:close])
    grown = Grown(
        body, members, before.begins[:kept], before.ends[:kept], before.chain[:kept],
        before.kinds[:kept], kept, list_at=at, beside_bytes=len(rest),
    )  # fmt: skip
    _append(grown, new[1:] if earlier else new, end)
    return grown


def _append(grown: Grown, raws: list[msgspec.Raw], position: int) -> None:
    """Items that stand in the body from `position` on, with white space and commas between."""
    if len(raws) > MAX_NEW_ITEMS:
        grown.listed, grown.crowded = False, True
        return
    body, head = grown.body, grown.chain[-1] if grown.chain else b""
    for raw in raws:
        item = bytes(raw)
        position = body.index(item, position)
        grown.begins.append(position)
        position += len(item)
        grown.ends.append(position)
        head = xxhash.xxh3_128_digest(head + unmarked(item))
        grown.chain.append(head)


_Place = tuple[bytes, int, bytes]


class Bodies:
    """The bodies last seen: at most `MAX_BODIES`, and `MAX_BYTES` in all; the one longest unused
    goes first. Each is found by its first half."""

    def __init__(self, max_bodies: int = MAX_BODIES, max_bytes: int = MAX_BYTES) -> None:
        self._max_bodies = max_bodies
        self._max_bytes = max_bytes
        self._bytes = 0
        self._number = 0
        self._known: OrderedDict[int, tuple[Grown, tuple[_Place, ...]]] = OrderedDict()
        self._places: dict[_Place, list[int]] = {}

    def read(self, owner: bytes, conversation: str, body: bytes) -> Grown:
        """Takes a body apart and remembers it. `owner`: bodies of others are not looked at.
        Raises `MalformedError`."""
        marks = list(_marks(body))
        number, before, kept = self._nearest(owner, body, marks)
        grown = take_apart(body, conversation, before, kept)
        if number is not None and before is not None:
            if grown.kept:
                grown.after = number, grown.end_of(grown.kept)
            if grown.kept + _NEARLY_ALL >= len(before):
                self._forget(number)  # what goes on from there is found by this one as well
            else:
                self._known.move_to_end(number)
        self._remember(owner, grown, marks)
        return grown

    def __len__(self) -> int:
        return len(self._known)

    @property
    def held_bytes(self) -> int:
        return self._bytes

    def _nearest(
        self, owner: bytes, body: bytes, marks: list[tuple[int, bytes]]
    ) -> tuple[int | None, Grown | None, int]:
        for bits, digest in reversed(marks):
            best: tuple[int, Grown, int] | None = None
            for number in self._places.get((owner, bits, digest), ()):
                grown = self._known[number][0]
                kept = in_common(body, grown)
                if kept is not None and (best is None or kept > best[2]):
                    best = number, grown, kept
            if best is not None:
                return best
        return None, None, 0

    def _remember(self, owner: bytes, grown: Grown, marks: list[tuple[int, bytes]]) -> None:
        if not grown.listed or not len(grown):
            return
        end = grown.end_of(len(grown))
        fitting = [(owner, bits, digest) for bits, digest in marks if bits == 0 or 1 << bits <= end]
        # By its first half and its first quarter: the last item may be another next time.
        places = tuple(fitting[-2:])
        self._number += 1
        grown.number = self._number
        self._known[self._number] = grown, places
        self._bytes += grown.held_bytes
        for place in places:
            listed = self._places.setdefault(place, [])
            listed.insert(0, self._number)
            if len(listed) > _SAME_BEGINNING:
                self._forget(listed[-1])
        while len(self._known) > self._max_bodies or self._bytes > self._max_bytes:
            self._forget(next(iter(self._known)))

    def _forget(self, number: int) -> None:
        grown, places = self._known.pop(number)
        self._bytes -= grown.held_bytes
        for place in places:
            listed = self._places.get(place)
            if listed is not None and number in listed:
                listed.remove(number)
                if not listed:
                    del self._places[place]


def _marks(body: bytes) -> Iterator[tuple[int, bytes]]:
    """The digests of its beginnings of 1 kB, 2 kB, 4 kB..., as far as it is that long."""
    yield 0, b""
    hasher = xxhash.xxh3_128()
    bits, done = _LEAST_BITS, 0
    while 1 << bits <= len(body):
        hasher.update(memoryview(body)[done : 1 << bits])
        done = 1 << bits
        yield bits, hasher.digest()
        bits += 1
