"""How much of each prompt was sent before, by how long prompts are: in the previous turn of the
same conversation, and in any earlier prompt of a log."""

import itertools
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from reflexarc.context.prefixes import Beginnings, comparable, length_of, shared
from reflexarc.steps.prompt import Blocks, Prompt

BAND_EDGES_TOKENS = (0, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 100_000)
LITTLE = 0.5
"""A turn that reuses less than this share of its prompt counts as one that reuses little."""


class Sent(msgspec.Struct, frozen=True):
    """A prompt as it was sent: `thread` is its conversation (session and agent), `tokens` how long
    it is, `at_s` when (None where that is not known). `hidden_tokens` more stood in front of it,
    which a log does not hold: a system prompt, tools."""

    thread: str
    prompt: Prompt | Blocks
    tokens: float
    at_s: float | None = None
    hidden_tokens: float = 0.0


class Reused(msgspec.Struct, frozen=True):
    """Shares of a prompt's tokens, 0 to 1: what the previous turn's prompt began with too, and what
    any earlier prompt did. None where there is no earlier one that it can be compared with.
    `again`: the prompt is one that was sent before, nothing more and nothing less; False where a
    log does not hold all of it."""

    previous: float | None
    earlier: float | None
    again: bool = False


class Band(msgspec.Struct, frozen=True):
    """Prompts of `from_tokens` to below `to_tokens` (None: no limit): how many, and their shares.
    `context` names the band, as 8k-16k."""

    context: str
    from_tokens: int
    to_tokens: int | None
    n: int
    median: float
    p10: float
    p90: float


class Concentration(msgspec.Struct, frozen=True):
    """How much of what is read anew is due to few turns: of `turns`, `little` reuse less than half
    of their prompt, and those cause `tokens_little` of `tokens_anew`."""

    turns: int
    little: int
    tokens_anew: float
    tokens_little: float

    @property
    def share_of_turns(self) -> float:
        return self.little / self.turns if self.turns else 0.0

    @property
    def share_of_tokens(self) -> float:
        return self.tokens_little / self.tokens_anew if self.tokens_anew else 0.0


def reuse(sent: Iterable[Sent]) -> list[Reused]:
    """For each prompt, in the order in which they were sent."""
    found: list[Reused] = []
    last: dict[str, Prompt | Blocks] = {}
    everything = Beginnings()
    for one in sent:
        before = last.get(one.thread)
        keys = everything.keys(one.prompt)
        previous = earlier = None
        again = False
        if before is not None and comparable(before, one.prompt):
            previous = share_of(one, shared(before, one.prompt))
        if everything.any_like(one.prompt) is not None:
            match = everything.match(one.prompt, keys)
            earlier = max(share_of(one, match.length) if match is not None else 0.0, previous or 0)
            is_whole = isinstance(one.prompt, Blocks) or one.prompt.complete
            again = is_whole and match is not None and everything.ends_with(keys)
        found.append(Reused(previous, earlier, again))
        everything.add(one.prompt, keys)
        last[one.thread] = one.prompt
    return found


def share_of(sent: Sent, length: int) -> float:
    """A length of `sent`'s prompt (`prefixes.length_of`) as a share of all of it. Of blocks what
    stands behind the last whole one counts as not shared; it is less than a block."""
    whole = length_of(sent.prompt)
    if isinstance(sent.prompt, Blocks):
        whole = max(sent.tokens, 1.0)
    return min(1.0, length / whole) if whole else 0.0


def by_context(tokens: Sequence[float], shares: Sequence[float | None]) -> list[Band]:
    """Bands that have any prompt, the shortest first; prompts without a share count nowhere."""
    edges = (*BAND_EDGES_TOKENS, None)
    bands: list[Band] = []
    for low, high in itertools.pairwise(edges):
        assert low is not None
        held = [
            share
            for length, share in zip(tokens, shares, strict=True)
            if share is not None and low <= length and (high is None or length < high)
        ]
        if held:
            p10, median, p90 = (float(one) for one in np.percentile(held, (10, 50, 90)))
            name = f"{_thousands(low)}-{_thousands(high)}" if high else f"over {_thousands(low)}"
            bands.append(
                Band(name, low, high, len(held), *(round(x, 6) for x in (median, p10, p90)))
            )
    return bands


def concentration(tokens: Sequence[float], shares: Sequence[float | None]) -> Concentration:
    """Over the turns that have a previous one."""
    turns = little = 0
    anew = anew_little = 0.0
    for length, share in zip(tokens, shares, strict=True):
        if share is None:
            continue
        turns += 1
        anew += length * (1 - share)
        if share < LITTLE:
            little += 1
            anew_little += length * (1 - share)
    return Concentration(turns, little, anew, anew_little)


def _thousands(tokens: int) -> str:
    return f"{tokens // 1000}k"
