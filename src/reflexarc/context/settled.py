"""Prompts without marks for caches, so that what models read alike is alike to the byte."""

import json
import re
from collections.abc import Sequence

import msgspec

from reflexarc.context.changes import is_only_mark
from reflexarc.steps.forms import blocks, parsed, unmarked
from reflexarc.steps.prompt import Blocks, Piece, Prompt

_MARKS = re.compile(rb"cache_control|cachePoint")


def settled(prompts: Sequence[Prompt | Blocks]) -> list[Prompt | Blocks]:
    """The prompts of one conversation: as they are where none holds a mark; else each piece without
    its marks and in one way of writing, keys in their order. Equal pieces become one object."""
    pieces: dict[bytes, bool] = {}
    seen: tuple[Piece, ...] = ()
    for prompt in prompts:
        if isinstance(prompt, Prompt):
            begins = seen == prompt.pieces[: len(seen)]
            new = prompt.pieces[len(seen) :] if begins else prompt.pieces
            seen = prompt.pieces
            for piece in new:
                if not piece.plain and piece.raw not in pieces:
                    pieces[piece.raw] = _MARKS.search(piece.raw) is not None
    if not any(pieces.values()):
        return list(prompts)
    made: dict[tuple[bytes, str], Piece | None] = {}
    return [_bare(one, made) if isinstance(one, Prompt) else one for one in prompts]


def _bare(prompt: Prompt, made: dict[tuple[bytes, str], Piece | None]) -> Prompt:
    kept: list[Piece] = []
    for piece in prompt.pieces:
        key = (piece.raw, piece.path)
        if key not in made:
            made[key] = None if is_only_mark(piece) else _bare_piece(piece)
        bare = made[key]
        if bare is not None:
            kept.append(bare)
    return Prompt(tuple(kept), prompt.complete)


def _bare_piece(piece: Piece) -> Piece:
    if piece.plain or piece.kind == "settings":
        return piece
    try:
        value = blocks(unmarked(parsed(piece.raw)))
    except ValueError:
        return piece
    return msgspec.structs.replace(piece, raw=json.dumps(value).encode())
