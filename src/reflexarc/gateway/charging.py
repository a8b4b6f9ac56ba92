"""What attempts cost, whatever way they ended: usage as it was told, else estimated, and said so.

A provider that says it failed bills nothing. One that was cut off, or left before its first token,
works on and bills: its prompt counts, and what of the answer came; `partial` and `estimated`.
"""

import msgspec

from reflexarc.gateway.attempting import Attempt, Outcome
from reflexarc.gateway.choosing import Chooser
from reflexarc.gateway.exchange import Exchange
from reflexarc.gateway.metrics import Metrics
from reflexarc.gateway.planning import Plan
from reflexarc.store.records import AttemptMade
from reflexarc.upstream.deployments import Deployment
from reflexarc.upstream.ratios import Ratios
from reflexarc.wire.price import Price
from reflexarc.wire.reckoning import Reckoned
from reflexarc.wire.usage import Usage

_NOTHING = Usage(0, 0)
_FEW_TOKENS = 8
_MOST_LETTERS = 80
"""Of a provider's own word that is written down."""


class Charging:
    """Reckons each attempt as it ends, and learns from it what the next will take."""

    def __init__(self, chooser: Chooser, metrics: Metrics) -> None:
        self._chooser = chooser
        self._metrics = metrics

    def finished(self, exchange: Exchange, attempt: Attempt) -> None:
        """An attempt is over: its account is the exchange's from here on."""
        plan = exchange.plan
        assert plan is not None  # who has attempts has a plan
        deployment = attempt.watched.deployment
        told = _told(attempt)
        usage, partial, estimated = used(
            attempt.outcome or "stopped", attempt, told, len(plan.body), self._chooser.ratios,
            deployment.kin,
        )  # fmt: skip
        served_in = deployment.service_tier or (told.service_tier or "")[:_MOST_LETTERS]
        price = self._chooser.price(deployment, served_in)
        if told.told_whole and told.usage is not None:
            self._learn(plan, attempt, deployment, told, told.usage)
        first_ms = (attempt.first_s - attempt.began_s) * 1e3 if attempt.first_s else None
        made = AttemptMade(
            provider=deployment.provider,
            model=deployment.model,
            service_tier=served_in,
            tier=plan.tier,
            outcome=attempt.outcome or "stopped",
            status=attempt.status,
            code=attempt.code[:_MOST_LETTERS],
            first_token_ms=first_ms,
            total_ms=(attempt.ended_s - attempt.began_s) * 1e3,
            usage=usage,
            micro_usd=_cost(price, usage),
            partial=partial,
            estimated=estimated,
        )
        # In the order they began: no more than two are on their way at once.
        exchange.spent.insert(attempt.number - 1, made)
        self._metrics.attempt(deployment.name, made)

    def _learn(
        self, plan: Plan, attempt: Attempt, deployment: Deployment, told: Reckoned, usage: Usage
    ) -> None:
        ratios, measures = self._chooser.ratios, attempt.watched.measures
        ratios.learn(deployment.kin, len(plan.body), usage.input)
        if not usage.reasoning:  # thinking that is not shown is counted all the same
            ratios.learn(deployment.kin, told.generated_bytes, usage.output, generated=True)
        now_s, tokens = attempt.ended_s, usage.output
        self._chooser.used(plan, deployment, usage, now_s)
        if plan.stream:
            if tokens > 1 and attempt.first_s:
                measures.gap((now_s - attempt.first_s) * 1e3 / (tokens - 1), now_s)
            return
        # A whole answer does not say when its first token was there.
        total_ms = (now_s - attempt.began_s) * 1e3
        gap_ms = measures.token_ms(0.5, now_s)
        share = usage.cache_read / max(usage.input, 1)
        if gap_ms is not None or tokens <= _FEW_TOKENS:
            first_ms = max(0.0, total_ms - (gap_ms or 0.0) * tokens)
            measures.first_token(usage.input, share, first_ms, now_s)
        else:
            measures.gap(total_ms / tokens, now_s)


def used(
    outcome: Outcome,
    attempt: Attempt,
    told: Reckoned,
    prompt_bytes: int,
    ratios: Ratios,
    name: str,
) -> tuple[Usage, bool, bool]:
    """Usage, whether it is partial, whether any of it is estimated."""
    if outcome == "refused" or not attempt.sent:
        return _NOTHING, False, False
    prompt = ratios.tokens(name, prompt_bytes)
    if outcome == "repaired":
        size = len(attempt.copy.kept)
        return Usage(prompt, ratios.tokens(name, size, generated=True)), False, True
    if outcome == "answered" and told.usage is not None and told.told_whole:
        return told.usage, False, False
    generated = ratios.tokens(name, told.generated_bytes, generated=True)
    if outcome == "answered":
        return _at_least(told.usage, prompt, generated), False, True
    refused = attempt.head_s and not 200 <= attempt.status < 300
    silent = not attempt.head_s and attempt.code != "upstream_timeout"
    if outcome == "failed" and (refused or silent):
        return _NOTHING, False, False  # a redirect, or broken before it said anything
    return _at_least(told.usage, prompt, generated), True, True


def _at_least(told: Usage | None, prompt: int, generated: int) -> Usage:
    if told is None:
        return Usage(prompt, generated)
    return msgspec.structs.replace(
        told, input=told.input or prompt, output=max(told.output, generated)
    )


def _told(attempt: Attempt) -> Reckoned:
    copy = attempt.copy
    if attempt.outcome in ("refused", "repaired") or not 200 <= copy.status < 300:
        return Reckoned()
    if copy.overflown:  # what was not kept was generated all the same
        return Reckoned(generated_bytes=copy.overflown)
    return attempt.told()


def _cost(price: Price | None, usage: Usage) -> int | None:
    if usage == _NOTHING:
        return 0
    return None if price is None else price.micro_usd(usage)
