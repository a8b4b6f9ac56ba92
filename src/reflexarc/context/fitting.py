"""Which line of prompts a new one goes on from, and whether that broke its prefix.

A request alone does not say which agent of a session sent it. It goes on from the line with which
it shares most; with too little in common it is a line of its own, and nothing is broken.
"""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from reflexarc.context.breaks import compare
from reflexarc.context.differences import same_bytes
from reflexarc.context.weighing import Break, Known
from reflexarc.steps.prompt import Piece, Prompt

_SYSTEM_ROLES = frozenset({"system", "developer"})
_USERS = frozenset({"user", *_SYSTEM_ROLES})
_MAX_MEANT = 16
"""Lines that are looked at by what their messages mean, the latest first."""
_SHARED = 0.5
_COMPACTED_FROM, _COMPACTED_TO = 4, 4
_SUMMARY_BYTES = 4_096
_summary = re.compile(
    rb"summar|compact|continued from a previous|conversation so far|previous conversation",
    re.IGNORECASE,
)
_SAME_AGENT = frozenset(
    {"clock", "id", "tools_order", "keys_reordered", "reencoded", "image_reencoded"}
    | {"ids_rewritten", "thinking", "tool_choice"}
)
"""Causes that say by themselves that one agent sent both."""


class Head(msgspec.Struct, frozen=True, eq=False):
    """Tools, system prompt and settings. `digest`: marks for caches aside. `size` in bytes,
    settings apart. `hour`: a mark asks for an hour. `held_bytes`: what it takes in memory."""

    digest: bytes
    pieces: tuple[Piece, ...]
    size: int
    hour: bool
    held_bytes: int = 0


class Line(msgspec.Struct, eq=False):
    """A line of prompts, by its last one. `digests` are of its messages one by one, `chain` of each
    with all before it, marks aside. `size`: bytes of the prompt, pictures flat. `last_s`: when it
    was asked with; `where`, where that is told; `bytes_of_token`, as they were counted there, 0
    where they were not. `lasts_s`: for so long its cache was to be kept, where a mark said.
    `number`: no other line of a memory has or had it."""

    head: Head
    chain: list[bytes]
    digests: list[bytes]
    pieces: list[Piece]
    size: int = 0
    held_bytes: int = 0
    last_s: float = 0.0
    lasts_s: float = 0.0
    where: str = ""
    number: int = 0
    bytes_of_token: float = 0.0
    meanings: list[bytes] = []

    @property
    def prompt(self) -> Prompt:
        return Prompt((*self.head.pieces, *self.pieces))


class Found(NamedTuple):
    """How a prompt goes on: from nothing (`new`), from all of the one before it (`kept`), another
    way from an earlier place of it (`branch`), or broken. Of the `before_bytes` of that one
    `kept_bytes` are how this one begins. `line` is where it stands now; `before` what that was."""

    how: Literal["new", "kept", "branch", "break"]
    line: Line
    before_bytes: int = 0
    kept_bytes: int = 0
    break_: Break | None = None
    before: Line | None = None


def unbroken(lines: Sequence[Line], head: Head, chain: Sequence[bytes]) -> Line | None:
    """The longest line that is the beginning of what is asked now, to the byte but for marks."""
    best: Line | None = None
    for line in lines:
        size = len(line.chain)
        if line.head.digest != head.digest or not 0 < size <= len(chain):
            continue
        if line.chain[-1] == chain[size - 1] and (best is None or size >= len(best.chain)):
            best = line
    return best


def broken(lines: Sequence[Line], new: Line, known: Known) -> Found:
    """How a prompt goes on of which no line is the whole beginning."""
    own = _shareable(new.pieces, new.digests)
    best: tuple[int, Line, set[bytes]] | None = None
    for line in reversed(lines):
        shared = own.intersection(line.digests)
        if shared and (best is None or len(shared) > best[0]):
            best = len(shared), line, shared
    by_meaning = False
    if len(new.pieces) > 1 and (best is None or not _enough(best[2], best[1], new)):
        meant = _by_meaning(lines, new, known)
        if meant is not None and (best is None or meant[0] > best[0]):
            best, by_meaning = meant, True
    if best is None:
        return _compacted(lines, new, known)
    _, line, shared = best
    found = compare(line.prompt, new.prompt, known)
    if found is None:
        return _whole(line, new)
    if found.lost_bytes == 0:
        return Found("kept", new, line.size, line.size, found, line)
    if not _is_same_conversation(line, new, shared, found, by_meaning=by_meaning):
        return _compacted(lines, new, known)
    kept = line.size - found.lost_bytes
    if found.again_bytes or _edits_last(line, new, found):
        return Found("break", new, line.size, kept, found, line)
    return Found("branch", new, line.size, kept, None, line)


def _whole(line: Line, new: Line) -> Found:
    """One is how the other begins."""
    if len(new.pieces) < len(line.pieces):
        return Found("branch", new, line.size, new.size, None, line)
    return Found("kept", new, line.size, line.size, None, line)


def _shareable(pieces: Sequence[Piece], digests: Sequence[bytes]) -> set[bytes]:
    """A system prompt is shared by all conversations of an agent, and tells none of them."""
    return {
        digest
        for piece, digest in zip(pieces, digests, strict=True)
        if piece.role not in _SYSTEM_ROLES
    }


def _by_meaning(
    lines: Sequence[Line], new: Line, known: Known
) -> tuple[int, Line, set[bytes]] | None:
    """Where too few messages have the same bytes: they may have been written anew."""
    best: tuple[int, Line, set[bytes]] | None = None
    own: set[bytes] = set()
    for line in list(reversed(lines))[:_MAX_MEANT]:
        own = own or _shareable(new.pieces, _meanings(new, known))
        shared = own.intersection(_meanings(line, known))
        if shared and (best is None or len(shared) > best[0]):
            best = len(shared), line, shared
    return best


def _meanings(line: Line, known: Known) -> list[bytes]:
    """Once for each message."""
    if not line.meanings:
        line.meanings = []
    for piece in line.pieces[len(line.meanings) :]:
        line.meanings.append(known.meaning(piece))
    return line.meanings


def _enough(shared: set[bytes], line: Line, new: Line) -> bool:
    return len(shared) >= _SHARED * min(len(line.pieces), len(new.pieces))


def _is_same_conversation(
    line: Line, new: Line, shared: set[bytes], found: Break, *, by_meaning: bool
) -> bool:
    """Whether so much is shared that one went on from the other."""
    if not _enough(shared, line, new):
        return False
    digests = new.meanings if by_meaning else new.digests
    said = {piece.role for piece, one in zip(new.pieces, digests, strict=True) if one in shared}
    if not said <= _USERS or len(new.pieces) > len(line.pieces):
        return True
    # The same question at its beginning: of one agent that asks again, or of two.
    if found.cause == "system_changed":
        return _alike(_system_of(line), _system_of(new))
    return found.cause in _SAME_AGENT


def _system_of(line: Line) -> bytes:
    told = [one.raw for one in line.head.pieces if one.kind == "system"]
    return b"".join(told) or next(
        (one.raw for one in line.pieces if one.role in _SYSTEM_ROLES), b""
    )


def _alike(one: bytes, other: bytes) -> bool:
    a, b = one.decode("latin-1"), other.decode("latin-1")
    same = same_bytes(a, b) + same_bytes(a[::-1], b[::-1])
    return same >= _SHARED * max(len(a), len(b))


def _edits_last(line: Line, new: Line, found: Break) -> bool:
    """Whether the last message of a prompt was changed after it was answered: nothing else of it is
    lost, and yet nobody went another way."""
    at = len(line.pieces) - 1
    is_last = found.kind == "message" and found.message == at and len(new.pieces) > at + 1
    return is_last and line.pieces[at].role == new.pieces[at].role


def _compacted(lines: Sequence[Line], new: Line, known: Known) -> Found:
    """A conversation may begin anew with a summary of what it was."""
    if 0 < len(new.pieces) <= _COMPACTED_TO and any(
        _summary.search(piece.raw[:_SUMMARY_BYTES])
        for piece in new.pieces
        if piece.role not in _SYSTEM_ROLES
    ):
        for line in reversed(lines):
            if len(line.pieces) <= _COMPACTED_FROM or line.head.digest != new.head.digest:
                continue
            found = compare(line.prompt, new.prompt, known)
            if found is not None and found.cause == "history_truncated":
                return Found("break", new, line.size, line.size - found.lost_bytes, found, line)
    return Found("new", new)
