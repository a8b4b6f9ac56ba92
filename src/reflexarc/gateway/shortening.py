"""Bodies that go on from one that the other process has: only the rest crosses to it.

Both ends keep the same bodies by the same rule, in the order of the frames: neither tells the other
what it has. A process that starts anew has none, and neither has its new channel.
"""

import struct
from collections import OrderedDict

from reflexarc.wire.growing import Grown

MAX_BYTES = 32 * 1024 * 1024
"""Of the bodies that a process keeps to be gone on from."""
_LEAST_BYTES = 4096
"""What is shorter costs nothing to send."""
PLAN = struct.Struct("<QQII")
"""The number of this body, that of the one it goes on from (0: none), bytes in common, bytes of the
body itself in what follows, the rest of which is another's."""


class _Kept:
    """The rule: the latest bodies, as many as fit. One that was gone on from goes."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._kept: OrderedDict[int, tuple[int, bytes]] = OrderedDict()

    def __contains__(self, number: int) -> bool:
        return number in self._kept

    def body(self, number: int) -> bytes:
        return self._kept[number][1]

    def keep(self, number: int, size: int, body: bytes, instead_of: int) -> None:
        for gone in (instead_of, number):
            if gone in self._kept:
                self._bytes -= self._kept.pop(gone)[0]
        self._kept[number] = size, body
        self._bytes += size
        while self._bytes > self._max_bytes:
            self._bytes -= self._kept.popitem(last=False)[1][0]


class Shortening:
    """The sender's end. It knows which bodies the other end has, and holds none."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._there = _Kept(max_bytes)

    def plan(self, grown: Grown) -> tuple[bytes, bytes]:
        """How the other end makes the body, and what it needs of it. Must be sent: it counts on
        having it from then on."""
        size = len(grown.body)
        before, common = grown.after
        if before not in self._there:
            before, common = 0, 0
        rest = grown.body[common:] if common else grown.body
        self._there.keep(grown.number, size, b"", before)
        return PLAN.pack(grown.number, before, common, len(rest)), rest


class Lengthening:
    """The receiver's end."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._here = _Kept(max_bytes)

    def body(self, plan: bytes, sent: bytes) -> bytes:
        """The body, and what came behind it. Raises `KeyError` where the ends are apart, which they
        never are."""
        number, before, common, size = PLAN.unpack(plan)
        rest = sent[:size] if size < len(sent) else sent
        whole = b"".join((memoryview(self._here.body(before))[:common], rest)) if before else rest
        self._here.keep(number, len(whole), whole, before)
        return whole + sent[size:] if size < len(sent) else whole


def is_long(grown: Grown | None, body: bytes) -> bool:
    """Whether a body is worth it."""
    return (
        grown is not None and grown.number > 0 and grown.body is body and len(body) > _LEAST_BYTES
    )
