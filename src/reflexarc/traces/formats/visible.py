"""The part of prompts that a transcript shows: pieces shared between prompts, their number bounded.

Harnesses keep neither the system prompt nor the schemas of tools, so no such prompt is complete.
"""

from collections.abc import Sequence

from reflexarc.steps.prompt import Piece, Prompt
from reflexarc.traces.loose import encoded

MAX_REFERENCES = 20_000_000
"""Pieces of all prompts together, of all transcripts read at once; what is beyond has no prompt."""


class Prompts:
    """Makes prompts until the limit is reached; `cut` then says so."""

    def __init__(self, most: int = MAX_REFERENCES) -> None:
        self._most = most
        self._references = 0
        self.cut = ""

    def of(self, pieces: Sequence[Piece], *, walked: int = 0) -> Prompt | None:
        """None for no pieces, and past the limit. `walked`: how many messages were looked at to
        find them, where that is more."""
        self._references += max(len(pieces), walked)
        if self._references > self._most:
            self.cut = (
                f"prompts hold more than {self._most:,} messages in all: of the rest only the "
                "counts are known; read fewer transcripts at once"
            )
            return None
        return Prompt(tuple(pieces), complete=False) if pieces else None


def message(role: str, content: object, place: int) -> Piece:
    """A message as a piece, `place` its number in its conversation."""
    return Piece("message", f"messages[{place}]", encoded({"role": role, "content": content}), role)
