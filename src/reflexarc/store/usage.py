"""Tokens of an answer: what it told of its usage, else an estimate."""

import msgspec

from reflexarc.store.records import StepEnded
from reflexarc.wire.answers import Answer
from reflexarc.wire.chat_answer import estimated_tokens


class Usage(msgspec.Struct, frozen=True):
    """`estimated`: at least one count was not given by who answered."""

    prompt: int
    cached: int
    completion: int
    estimated: bool


def usage_of(turn: Answer | None, request_bytes: int, generated_bytes: int) -> Usage:
    """Counts as given; where they are not, a token per four bytes. `generated_bytes`: of text and
    arguments."""
    told = turn.usage if turn is not None else None
    if told is None:
        generated = estimated_tokens(generated_bytes) if generated_bytes else 0
        return Usage(estimated_tokens(request_bytes), 0, generated, True)
    return Usage(told.input, told.cache_read, told.output, False)


def cost_usd(usage: Usage, step: StepEnded) -> float | None:
    """What System 2 cost; nothing where it was not asked, None where its price is not known."""
    if step.decided_by != "system2":
        return 0.0
    if step.price is None:
        return None
    fresh, cached, output = step.price
    dollars = (usage.prompt - usage.cached) * fresh + usage.cached * cached
    return (dollars + usage.completion * output) / 1e6
