"""Prompts of inspect_ai's model events: messages by reference into a pool, long texts by name.

Equal messages are one object; all that a log can make grow is bounded.
"""

import re

from reflexarc.steps.prompt import Piece, Prompt
from reflexarc.traces.formats.chat_pieces import message_piece, ordered, tool_pieces
from reflexarc.traces.loose import Table, encoded, listed, number, table, tables

MAX_REFERENCES = 20_000_000
"""Messages in all prompts of one file; prompts beyond are not kept."""

MAX_ATTACHED_BYTES = 1024 * 1024 * 1024
"""Texts put in by their names, in one file; beyond, the names stay."""

_ATTACHMENT = re.compile(rb'"attachment://([0-9A-Za-z]{1,64})"')
# what inspect keeps of a message for itself
_NOT_SENT = frozenset({"id", "source", "metadata"})


class Budget:
    """What is left of the limits for one file."""

    def __init__(self) -> None:
        self.references = MAX_REFERENCES
        self.attached_bytes = MAX_ATTACHED_BYTES


class SamplePieces:
    """The prompts of one sample's requests."""

    def __init__(self, sample: Table, shared: dict[bytes, Piece], budget: Budget) -> None:
        self._attachments = table(sample.get("attachments"))
        pool = sample.get("message_pool") or table(sample.get("events_data")).get("messages")
        self._pool = listed(pool)
        self._pooled: dict[int, Piece] = {}
        self._shared = shared
        self._known: dict[tuple[str, bytes], Piece] = {}
        self._budget = budget

    def prompt(self, event: Table) -> Prompt | None:
        """What this request was sent; None past the limits."""
        pieces = [self._same(tool) for tool in tool_pieces(event.get("tools"), self._shared)]
        for reference in listed(event.get("input_refs")):
            span = listed(reference)
            if len(span) != 2:
                continue
            begin, end = (number(bound) or 0 for bound in span)
            begin, end = max(0, int(begin)), min(int(end), len(self._pool))
            if end - begin > self._budget.references:
                return None
            self._budget.references -= max(0, end - begin)
            pieces += [self._from_pool(index) for index in range(begin, end)]
        for index, message in enumerate(tables(event.get("input"))):
            self._budget.references -= 1
            if self._budget.references < 0:
                return None
            pieces.append(self._piece(message, f"messages[{index}]"))
        return Prompt(ordered(pieces))

    def _from_pool(self, index: int) -> Piece:
        found = self._pooled.get(index)
        if found is None:
            message = table(self._pool[index])
            found = self._pooled[index] = self._piece(message, f"messages[{index}]")
        return found

    def _piece(self, message: Table, path: str) -> Piece:
        return self._same(message_piece(message, path, without=_NOT_SENT))

    def _same(self, piece: Piece) -> Piece:
        """The piece with its texts put in, one object for all that are equal."""
        known = self._known.get((piece.path, piece.raw))
        if known is not None:
            return known
        made = piece
        if b"attachment://" in piece.raw:
            made = Piece(piece.kind, piece.path, self._with_texts(piece.raw), piece.role)
        self._known[piece.path, piece.raw] = made
        return made

    def _with_texts(self, raw: bytes) -> bytes:
        return _ATTACHMENT.sub(self._text, raw)

    def _text(self, found: re.Match[bytes]) -> bytes:
        text = self._attachments.get(found[1].decode())
        if not isinstance(text, str):
            return found[0]
        put = encoded(text)
        if len(put) > self._budget.attached_bytes:
            return found[0]
        self._budget.attached_bytes -= len(put)
        return put
