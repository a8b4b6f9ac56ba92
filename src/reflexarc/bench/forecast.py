"""What answered steps would save, in seconds and dollars, on recorded sessions.

Not a promise: every assumption is named in the result. A step that System 1 answers is not sent,
so its new tokens are read, uncached, by the next step that is: only its cached tokens, its output
and its waiting are saved. Answered steps come early, where prompts are short.
"""

from collections.abc import Collection, Iterable
from decimal import Decimal

import msgspec

from reflexarc.context.redundancy import CHARS_PER_TOKEN, turns
from reflexarc.sim import Profile
from reflexarc.sim.profiles import ENERGY
from reflexarc.steps import Session

StepPlace = tuple[str, int]
"""A step: the session's id and the index of its assistant message."""


class Bill(msgspec.Struct, frozen=True):
    """Waiting for models and what it costs, of all sessions together. `joules`: what System 2 takes
    (simulated); None where its profile gives no power."""

    model_s: float
    usd: Decimal
    joules: float | None = None


class Forecast(msgspec.Struct, frozen=True):
    """`before`: every step by System 2. `after`: `answered` of the `steps` by System 1."""

    sessions: int
    steps: int
    answered: int
    before: Bill
    after: Bill
    assumptions: tuple[str, ...]
    tasks: int = 0


def forecast(
    sessions: Iterable[Session],
    answered: Collection[StepPlace],
    profile: Profile,
    *,
    decision_ms: float,
) -> Forecast:
    """The bills of these sessions with and without System 1, at one service's latency and prices;
    `decision_ms` is what a decision of System 1 takes, paid at every step."""
    everything = list(sessions)
    before = _bill(everything, frozenset(), profile, 0.0)
    after = _bill(everything, answered, profile, decision_ms)
    places = {(session.id, turn.message) for session in everything for turn in turns(session)}
    return Forecast(
        sessions=len(everything),
        steps=len(places),
        answered=len(places & set(answered)),
        before=before,
        after=after,
        assumptions=(
            f"a token is {CHARS_PER_TOKEN} characters",
            f"System 2 is {profile.description}: {profile.network_ms + profile.queue_ms:g} ms "
            f"before it reads, {profile.prefill_tokens_per_s:g} tokens/s read, "
            f"{profile.output_tokens_per_s:g} tokens/s written",
            f"a million tokens cost {profile.usd_per_million_input} dollars in, "
            f"{profile.usd_per_million_cached_input} cached, "
            f"{profile.usd_per_million_output} out",
            f"what was sent before is cached from {profile.cache_min_tokens} tokens on",
            f"a decision of System 1 takes {decision_ms:.1f} ms and is paid at every step",
            "sessions go on as they were recorded; the time of tools is left out",
            *([ENERGY.format(power_w=profile.power_w)] if profile.power_w is not None else []),
        ),
        tasks=len({session.task for session in everything}),
    )


def _bill(
    sessions: Iterable[Session],
    answered: Collection[StepPlace],
    profile: Profile,
    decision_ms: float,
) -> Bill:
    waiting_ms = 0.0
    usd = Decimal(0)
    joules = None if profile.power_w is None else 0.0
    for session in sessions:
        sent_tokens = 0
        for turn in turns(session):
            waiting_ms += decision_ms
            if (session.id, turn.message) in answered:
                continue
            prompt_tokens = turn.prompt_chars // CHARS_PER_TOKEN
            output_tokens = -(-turn.output_chars // CHARS_PER_TOKEN)
            cached_tokens = sent_tokens - sent_tokens % profile.cache_block_tokens
            if cached_tokens < profile.cache_min_tokens:
                cached_tokens = 0
            waiting_ms += profile.latency_ms(prompt_tokens, cached_tokens, output_tokens)
            usd += profile.cost_usd(prompt_tokens, cached_tokens, output_tokens)
            energy_j = profile.energy_j(prompt_tokens, cached_tokens, output_tokens)
            if joules is not None and energy_j is not None:
                joules += energy_j
            sent_tokens = prompt_tokens
    return Bill(waiting_ms / 1e3, usd, joules)
