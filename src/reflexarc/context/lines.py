"""The last prompts of each session, and how a new one goes on from them. Bounded; no text leaves.

A session holds several lines of prompts: an agent's, its subagents'. What goes on unbroken is told
by digests, at the cost of what is new in it; only what does not is looked at whole.
"""

import re
from collections import OrderedDict
from collections.abc import Hashable

import msgspec

from reflexarc.context.fitting import Found, Head, Line, broken, unbroken
from reflexarc.context.weighing import Known
from reflexarc.steps.digests import raw_digest
from reflexarc.steps.prompt import Piece
from reflexarc.wire.growing import Grown
from reflexarc.wire.marks import unmarked
from reflexarc.wire.pieces import head_pieces, message_pieces

MAX_SESSIONS = 4_096
MAX_LINES = 64
"""Of one session."""
MAX_BYTES = 64 * 1024 * 1024
"""Of the messages of all prompts remembered. Past a bound the longest unused goes first."""
HOUR_S = 3_600.0
_MAX_HEADS = 512
_hour = re.compile(rb'"ttl"\s*:\s*"1h"')
# Marks stand on the last messages.
_MARKED_LAST = 4


class Lines:
    """Prompts by whatever tells sessions apart. Not for several threads."""

    def __init__(
        self,
        max_sessions: int = MAX_SESSIONS,
        max_lines: int = MAX_LINES,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._max_sessions = max_sessions
        self._max_lines = max_lines
        self._max_bytes = max_bytes
        self._sessions: OrderedDict[Hashable, list[Line]] = OrderedDict()
        self._heads: OrderedDict[bytes, Head] = OrderedDict()
        self._known = Known()
        self.held_bytes = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def take(
        self, session: Hashable, dialect: str, grown: Grown, now_s: float, model: str = ""
    ) -> Found:
        """How this prompt goes on from those before it; from now on it is one of them. `model`:
        where the request itself does not name it."""
        head = self._head(dialect, grown, model)
        lines = self._sessions.setdefault(session, [])
        self._sessions.move_to_end(session)
        line = unbroken(lines, head, grown.chain)
        if line is not None:
            before = msgspec.structs.replace(line)
            found = Found("kept", line, line.size, line.size, None, before)
            self._extend(line, dialect, grown)
        else:
            new = Line(head, [], [], [])
            self._extend(new, dialect, grown)
            found = broken(lines, new, self._known)
            if found.before is not None and found.how in ("kept", "break"):
                self._drop(lines, found.before)
            lines.append(new)
        line = found.line
        line.last_s = now_s
        line.lasts_s = HOUR_S if head.hour or _has_hour(grown) else 0.0
        lines.remove(line)
        lines.append(line)
        self._bound(lines)
        return found

    def _head(self, dialect: str, grown: Grown, model: str) -> Head:
        pieces = head_pieces(dialect, grown.members)
        if model:
            pieces = (Piece("settings", "model", msgspec.json.encode(model)), *pieces)
        raws = b"\0".join(b"%s %s" % (one.path.encode(), one.raw) for one in pieces)
        digest = raw_digest(raws)
        known = self._heads.get(digest)
        if known is not None:
            self._heads.move_to_end(digest)
            return known
        plain = b"\0".join(b"%s %s" % (one.path.encode(), unmarked(one.raw)) for one in pieces)
        size = sum(self._known.weight(one) for one in pieces if one.kind != "settings")
        head = Head(raw_digest(plain), pieces, size, _hour.search(raws) is not None)
        self._heads[digest] = head
        if len(self._heads) > _MAX_HEADS:
            self._heads.popitem(last=False)
        return head

    def _extend(self, line: Line, dialect: str, grown: Grown) -> None:
        """By the messages that it does not have yet."""
        start = len(line.pieces)
        items = [grown.item(at) for at in range(start, len(grown))]
        new = message_pieces(dialect, items, start)
        line.pieces.extend(new)
        line.digests.extend(raw_digest(unmarked(item)) for item in items)
        line.chain = grown.chain
        line.size += sum(self._known.weight(piece) for piece in new)
        line.size += line.head.size if not start else 0
        added = sum(map(len, items))
        line.held_bytes += added
        self.held_bytes += added

    def _drop(self, lines: list[Line], line: Line) -> None:
        lines.remove(line)
        self.held_bytes -= line.held_bytes

    def _bound(self, lines: list[Line]) -> None:
        while len(lines) > self._max_lines:
            self._drop(lines, lines[0])
        while self.held_bytes > self._max_bytes or len(self._sessions) > self._max_sessions:
            oldest = next(iter(self._sessions))
            held = self._sessions[oldest]
            if len(self._sessions) <= self._max_sessions and len(held) > 1:
                self._drop(held, held[0])
                continue
            for line in list(held):
                self._drop(held, line)
            del self._sessions[oldest]


def _has_hour(grown: Grown) -> bool:
    last = range(max(0, len(grown) - _MARKED_LAST), len(grown))
    return any(_hour.search(grown.item(at)) for at in last)
