"""Tokens of text that a log holds without a count: by rule of thumb, and said to be so."""

from collections.abc import Iterable

import msgspec

from reflexarc.steps.prompt import Blocks, Prompt
from reflexarc.traces.requests import ABSENT, Counts, Figure, estimated

BYTES_PER_TOKEN = 4
"""The usual rule of thumb for English text, code and JSON with common tokenizers."""


def tokens_of(size_bytes: int) -> int:
    """About how many tokens so many bytes of text are."""
    return -(-size_bytes // BYTES_PER_TOKEN)


def prompt_tokens(prompt: Prompt) -> Figure:
    """The tokens of a prompt's text: of what is in the log, where it is not all there."""
    return estimated(tokens_of(sum(len(piece.raw) for piece in prompt.pieces)))


def output_tokens(*written: str | bytes) -> Figure:
    """The tokens of what was generated."""
    size = sum(len(one.encode() if isinstance(one, str) else one) for one in written)
    return estimated(tokens_of(size))


def filled(
    counts: Counts, prompt: Prompt | Blocks | None, written: Iterable[str], *, failed: bool = False
) -> Counts:
    """The counts, those of prompt and output estimated from the text where the log has none. What
    failed generated nothing that is known of."""
    changes: dict[str, Figure] = {}
    if counts.prompt.value is None and isinstance(prompt, Prompt) and prompt.pieces:
        changes["prompt"] = prompt_tokens(prompt)
    text = "".join(written)
    if counts.output.value is None and text and not failed:
        changes["output"] = output_tokens(text)
    return msgspec.structs.replace(counts, **changes) if changes else counts


def shares(total: float, weights: list[int]) -> list[float]:
    """A whole number split in proportion to weights (none negative) into whole numbers that sum to
    it; evenly where all weights are nothing. No weights, no shares."""
    if not weights:
        return []
    whole = sum(weights) or len(weights)
    even = not sum(weights)
    found: list[float] = []
    before = 0
    taken = 0
    for weight in weights:
        before += 1 if even else weight
        upto = int(total) * before // whole
        found.append(upto - taken)
        taken = upto
    return found


def cost_shares(cost_usd: float | None, weights: list[int]) -> list[Figure]:
    """A run's cost split over its requests in proportion to weights, evenly where all are nothing.
    Absent for each where the run's is."""
    if cost_usd is None:
        return [ABSENT] * len(weights)
    whole = sum(weights)
    return [
        estimated(cost_usd * weight / whole if whole else cost_usd / len(weights))
        for weight in weights
    ]
