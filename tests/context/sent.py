"""Prompts made up for tests: texts from words, blocks from numbers."""

from array import array

from reflexarc.context.reuse import Sent
from reflexarc.steps.prompt import Blocks, Piece, Prompt


def text(*messages: str) -> Prompt:
    return Prompt(
        tuple(
            Piece("message", f"messages[{at}]", one.encode(), "user", plain=True)
            for at, one in enumerate(messages)
        )
    )


def blocks(*ids: int, scope: str = "") -> Blocks:
    return Blocks(10, array("q", ids), scope)


def sent(prompt: Prompt | Blocks, at_s: float | None = None, thread: str = "main") -> Sent:
    """As many tokens as bytes, or as its blocks hold."""
    if isinstance(prompt, Blocks):
        tokens = prompt.block_tokens * len(prompt.ids)
    else:
        tokens = sum(len(piece.raw) for piece in prompt.pieces)
    return Sent(thread, prompt, tokens, at_s)
