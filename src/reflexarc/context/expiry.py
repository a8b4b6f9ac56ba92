"""What if a cache kept every prefix for so long after its last use, and no longer: how much of
what was sent would it have missed? For prompts of one session, with their times."""

from collections.abc import Sequence

import msgspec

from reflexarc.context.prefixes import Beginnings
from reflexarc.context.reuse import Sent, share_of


class Expiry(msgspec.Struct, frozen=True):
    """With a time to live of `ttl_s`: of `prompt_tokens` that were sent, `missed_tokens` are in no
    cache; `cold_tokens` of those no earlier prompt of the session began with, so that no cache can
    have them. The rest is what expired."""

    ttl_s: float
    requests: int
    prompt_tokens: float
    missed_tokens: float
    cold_tokens: float

    @property
    def share(self) -> float:
        return self.missed_tokens / self.prompt_tokens if self.prompt_tokens else 0.0


class Missed(msgspec.Struct, frozen=True):
    """Of one prompt, the tokens that no cache can have (`cold`), and those missed with each time to
    live, the cold ones among them."""

    tokens: float
    cold: float
    at: tuple[float, ...]


def expiry(sent: Sequence[Sent], ttls_s: Sequence[float]) -> list[Expiry]:
    """One for each time to live, over a session (see `misses`)."""
    return added(misses(sent, ttls_s), ttls_s)


def added(missed: Sequence[Missed], ttls_s: Sequence[float]) -> list[Expiry]:
    """The sums of what prompts missed."""
    total = sum(one.tokens for one in missed)
    cold = sum(one.cold for one in missed)
    return [
        Expiry(ttl_s, len(missed), total, sum(one.at[place] for one in missed), cold)
        for place, ttl_s in enumerate(ttls_s)
    ]


def misses(sent: Sequence[Sent], ttls_s: Sequence[float]) -> list[Missed]:
    """For each prompt that has a time. `sent` is all that was sent in one session by any of its
    agents, in order of time. Every prompt is cached whole, and each use of a prefix keeps it for
    another time to live. By whole blocks, as caches are. What is hidden in front of a prompt is
    taken to be the same in all prompts of a session."""
    held = Beginnings()
    times: list[float] = []
    found: list[Missed] = []
    for one in sent:
        if one.at_s is None:
            continue
        keys = held.keys(one.prompt)
        ends = held.lengths(one.prompt)
        lacking: list[float] = []
        for since_s in (float("-inf"), *(one.at_s - ttl_s for ttl_s in ttls_s)):
            blocks = held.alive(keys, times, since_s)
            length = int(ends[blocks - 1]) if blocks else 0
            is_held = any(at_s >= since_s for at_s in times[-1:])
            hidden = 0.0 if is_held else one.hidden_tokens
            lacking.append(hidden + one.tokens * (1 - share_of(one, length)))
        whole = one.tokens + one.hidden_tokens
        found.append(Missed(whole, lacking[0], tuple(lacking[1:])))
        held.add(one.prompt, keys)
        times.append(one.at_s)
    return found
