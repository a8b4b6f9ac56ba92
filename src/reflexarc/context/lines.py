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
"""Of all prompts remembered. Past a bound the longest unused goes first."""
HOUR_S = 3_600.0
PIECE_BYTES = 512
"""What a message or a tool holds beside its text, roughly."""
MAX_READ_BYTES = 256 * 1024
MAX_READ_PROMPT_BYTES = 4 * 1024 * 1024
"""Of a message and of a prompt, pictures flat. What is longer, or stands behind that, is compared
by its bytes: the event loop waits for it."""
_MAX_HEADS = 512
_MAX_HEAD_BYTES = 16 * 1024 * 1024
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
        self._heads_bytes = 0
        self._lines_of: dict[Head, int] = {}
        self._known = Known()
        self._number = 0
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
            self._number += 1
            new = Line(head, [], [], [], number=self._number)
            self._hold(head)
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
        sizes = [self._known.weight(one) for one in pieces]
        size = sum(size for one, size in zip(pieces, sizes, strict=True) if one.kind != "settings")
        pieces = tuple(
            _unread(one) if size > MAX_READ_BYTES else one
            for one, size in zip(pieces, sizes, strict=True)
        )
        held = len(raws) + PIECE_BYTES * len(pieces)
        head = Head(raw_digest(plain), pieces, size, _hour.search(raws) is not None, held)
        self._heads[digest] = head
        self._heads_bytes += held
        while len(self._heads) > _MAX_HEADS or self._heads_bytes > _MAX_HEAD_BYTES:
            self._heads_bytes -= self._heads.popitem(last=False)[1].held_bytes
        return head

    def _extend(self, line: Line, dialect: str, grown: Grown) -> None:
        """By the messages that it does not have yet."""
        start = len(line.pieces)
        items = [grown.item(at) for at in range(start, len(grown))]
        line.size += line.head.size if not start else 0
        for piece in message_pieces(dialect, items, start):
            size = self._known.weight(piece)
            line.size += size
            line.digests.append(raw_digest(unmarked(piece.raw)))
            is_long = size > MAX_READ_BYTES or line.size > MAX_READ_PROMPT_BYTES
            line.pieces.append(_unread(piece) if is_long else piece)
        line.chain = grown.chain
        added = sum(map(len, items)) + PIECE_BYTES * len(items)
        line.held_bytes += added
        self.held_bytes += added

    def _drop(self, lines: list[Line], line: Line) -> None:
        lines.remove(line)
        self.held_bytes -= line.held_bytes
        self._lines_of[line.head] -= 1
        if not self._lines_of[line.head]:
            del self._lines_of[line.head]
            self.held_bytes -= line.head.held_bytes

    def _hold(self, head: Head) -> None:
        """Lines share it."""
        if head not in self._lines_of:
            self.held_bytes += head.held_bytes
        self._lines_of[head] = self._lines_of.get(head, 0) + 1

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


def _unread(piece: Piece) -> Piece:
    """It is compared by its bytes, marks aside."""
    return msgspec.structs.replace(piece, raw=unmarked(piece.raw), plain=True)


def _has_hour(grown: Grown) -> bool:
    last = range(max(0, len(grown) - _MARKED_LAST), len(grown))
    return any(_hour.search(grown.item(at)) for at in last)
