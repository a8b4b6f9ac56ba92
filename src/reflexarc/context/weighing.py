"""What a prefix break loses, in bytes of what was sent before, and how it is told."""

import msgspec

from reflexarc.context.changes import Cause
from reflexarc.context.differences import Difference, offset_in, path_of, same_bytes
from reflexarc.context.layout import Laid, place_of
from reflexarc.context.pictures import weight
from reflexarc.steps.canonical import canonical_json
from reflexarc.steps.digests import meaning_digest, raw_digest
from reflexarc.steps.prompt import Piece, PieceKind

EXCERPT_CHARS = 60
_SAME_CONTENT: tuple[Cause | None, ...] = (
    "clock", "id", "keys_reordered", "reencoded", "image_reencoded", "ids_rewritten",
)  # fmt: skip
"""Changes that leave the rest of a piece what it was."""


class Break(msgspec.Struct, frozen=True, kw_only=True):
    """`piece` is the first of `before` that is lost, or how many there are where something was put
    after its last tool or system piece. `path` leads to the member, `byte` is where in its text,
    in UTF-8; `offset` where in the JSON text of the piece.

    Of the `before_bytes` of JSON that were sent before (pictures at a flat weight) no cache can
    give `lost_bytes` again; of those, `again_bytes` are sent once more and read anew, which is what
    a break costs: what was dropped is not paid for. Both are 0 where no model reads a difference
    (white space between members). `was` and `now` are excerpts; `names` the tools concerned.
    """

    cause: Cause
    kind: PieceKind
    path: str
    piece: int = 0
    message: int | None = None
    byte: int = 0
    offset: int = 0
    before_bytes: int = 0
    lost_bytes: int = 0
    again_bytes: int = 0
    was: str = ""
    now: str = ""
    names: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """Of `before`, how much is lost."""
        return self.lost_bytes / self.before_bytes if self.before_bytes else 0.0


class Known:
    """What is told of pieces: may be replaced by what remembers it."""

    def weight(self, piece: Piece) -> int:
        return weight(piece.raw)

    def meaning(self, piece: Piece) -> bytes:
        return raw_digest(piece.raw) if piece.plain else meaning_digest(piece.raw)


class Broken(msgspec.Struct):
    """A break before it is weighed: `piece` of the pieces that are read, in both."""

    cause: Cause
    piece: int
    was: Piece | None
    now: Piece | None
    first: Difference | None = None
    names: tuple[str, ...] = ()


def weighed(broken: Broken, old: Laid, new: Laid, known: Known) -> Break:
    pieces, start = old.read, broken.piece
    sizes = [known.weight(piece) for piece in pieces]
    shown = broken.now or broken.was
    assert shown is not None  # where both lists ended there is no break
    first = broken.first
    offset = kept = 0
    if first is not None:
        offset = first.byte if shown.plain else offset_in(shown.raw, first.steps, first.byte)
        kept = min(offset, sizes[start]) if start < len(sizes) else 0
    after = new.read[start:]
    again = 0
    if broken.was is not None and broken.now is not None and first is not None:
        old_rest, new_rest = pieces[start + 1 :], after[1:]
        if broken.cause in _SAME_CONTENT:
            again = max(0, min(known.weight(broken.now), sizes[start]) - kept)
        elif broken.cause in ("history_truncated", "history_edited"):
            old_rest, new_rest = pieces[start:], after
        else:
            again = _same_end(broken.was.raw, broken.now.raw)
    else:
        old_rest, new_rest = pieces[start:], after
    lost = sum(sizes[start:]) - kept
    again += again_of(old_rest, new_rest, known)
    return Break(
        cause=broken.cause,
        kind=shown.kind,
        path=shown.path if first is None else path_of(shown.path, first.steps),
        piece=start,
        message=place_of(shown),
        byte=0 if first is None else first.byte,
        offset=offset,
        before_bytes=sum(sizes),
        lost_bytes=lost,
        again_bytes=min(again, lost),
        was="" if first is None else _excerpt(first.was, first.byte),
        now="" if first is None else _excerpt(first.now, first.byte),
        names=broken.names,
    )


def again_of(old: list[Piece], new: list[Piece], known: Known) -> int:
    """What of `new` was also in `old`, wherever it stood."""
    raws = {piece.raw for piece in old}
    strange = [piece for piece in new if piece.raw not in raws]
    total = sum(known.weight(piece) for piece in new if piece.raw in raws)
    if strange and old:
        kept = {piece.raw for piece in new}
        meanings = {known.meaning(piece) for piece in old if piece.raw not in kept}
        total += sum(known.weight(one) for one in strange if known.meaning(one) in meanings)
    return total


def _same_end(was: bytes, now: bytes) -> int:
    """Bytes at the end of two pieces that are the same."""
    return same_bytes(was.decode("latin-1")[::-1], now.decode("latin-1")[::-1])


def _excerpt(value: object, byte: int) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        return canonical_json(value)[:EXCERPT_CHARS]
    at = len(value.encode("utf-8", "surrogatepass")[:byte].decode("utf-8", "replace"))
    start = max(0, at - EXCERPT_CHARS // 3)
    return value[start : start + EXCERPT_CHARS]
