"""What a model was asked with, in the pieces it came in: the measure of what was sent before.

A prompt is known as text (`Prompt`), or as ids of equal blocks of tokens alone (`Blocks`).
"""

from array import array
from functools import cached_property
from typing import Literal

import msgspec

PieceKind = Literal["settings", "tool", "system", "message"]


class Piece(msgspec.Struct, frozen=True):
    """One part of a request: a tool, the system prompt or a block of it, a message.

    `raw` is its JSON text as it was sent, or its plain text where a log holds no more (`plain`).
    `path` is its JSON path in the request, as `tools[0]` or `messages[3]`. `role`: of a message.
    `settings` are members that are part of what a model reads: its tool choice, its thinking.
    """

    kind: PieceKind
    path: str
    raw: bytes
    role: str = ""
    plain: bool = False


class Prompt(msgspec.Struct, frozen=True, dict=True):
    """The pieces in the order in which providers read them: tools, system, messages.

    Equal pieces of several prompts are best one object. `complete`: nothing that the model read
    is missing (a transcript without tools and system prompt is not complete).
    """

    pieces: tuple[Piece, ...]
    complete: bool = True

    @cached_property
    def size_bytes(self) -> int:
        """Of its text; settings are no part of it. Added up once: prompts have thousands of pieces,
        and are asked often."""
        return sum([len(piece.raw) for piece in self.pieces if piece.kind != "settings"])


class Blocks(msgspec.Struct, frozen=True):
    """A prompt by ids of its blocks of `block_tokens` tokens; equal ids are equal tokens, within
    one `scope`. `ids` is an array of whole numbers; the last block may be shorter than a block."""

    block_tokens: int
    ids: "array[int]"
    scope: str = ""
