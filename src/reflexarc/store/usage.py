"""What a step used and cost: its attempts' sums, else what its answer told, else an estimate."""

import msgspec

from reflexarc.store.records import AttemptMade, StepEnded
from reflexarc.wire.answers import Answer
from reflexarc.wire.chat_answer import estimated_tokens
from reflexarc.wire.usage import Usage


class Used(msgspec.Struct, frozen=True):
    """`micro_usd` is None where a price is not known. `estimated`: at least one count was not given
    by who answered; `partial`: an answer was cut off, and what it used may not be all told."""

    usage: Usage
    micro_usd: int | None
    estimated: bool
    partial: bool


def used_of(step: StepEnded, turn: Answer | None, request_bytes: int, generated_bytes: int) -> Used:
    """`turn` is the answer where one could be read; `generated_bytes`: of its text and arguments.
    Where nobody told a count, it is a token per four bytes."""
    if step.attempts:
        return _of_attempts(step.attempts)
    usage, estimated = _read(step, turn, request_bytes, generated_bytes)
    micro_usd = 0
    if step.decided_by == "system2":
        micro_usd = None if step.price is None else step.price.micro_usd(usage)
    partial = step.decided_by == "system2" and 200 <= step.status < 300 and not step.complete
    return Used(usage, micro_usd, estimated, partial)


def _read(
    step: StepEnded, turn: Answer | None, request_bytes: int, generated_bytes: int
) -> tuple[Usage, bool]:
    if step.decided_by == "system1":
        return Usage(estimated_tokens(request_bytes), 0), True
    if not 200 <= step.status < 300:
        return Usage(0, 0), True
    told = turn.usage if turn is not None else None
    if told is not None:
        return told, False
    generated = estimated_tokens(generated_bytes) if generated_bytes else 0
    return Usage(estimated_tokens(request_bytes), generated), True


def _of_attempts(attempts: list[AttemptMade]) -> Used:
    costs = [cost_of(one) for one in attempts]
    known = [cost for cost in costs if cost is not None]
    return Used(
        Usage(*(sum(getattr(one.usage, name) for one in attempts) for name in _COUNTS)),
        sum(known) if len(known) == len(costs) else None,
        any(one.estimated for one in attempts),
        any(one.partial for one in attempts),
    )


def cost_of(attempt: AttemptMade) -> int | None:
    """Of an attempt that used nothing the price need not be known."""
    if attempt.micro_usd is None and not (attempt.usage.input or attempt.usage.output):
        return 0
    return attempt.micro_usd


_COUNTS = Usage.__struct_fields__
