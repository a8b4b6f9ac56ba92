"""Conversations that nothing names, told apart by how their prompts begin."""

import xxhash

from reflexarc.steps.prompt import Prompt


def opening_of(prompt: Prompt) -> str:
    """Stands for all prompts that begin alike: their first instructions, their first message."""
    first = [piece.raw for piece in prompt.pieces if piece.kind == "system"][:1]
    first += [piece.raw for piece in prompt.pieces if piece.kind == "message"][:1]
    return "~" + xxhash.xxh3_64_hexdigest(b"\0".join(first))
