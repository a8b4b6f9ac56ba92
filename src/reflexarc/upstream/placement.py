"""In which order the deployments of a model are asked: the cheapest of those that are fast enough.

Pure: measured before, asked after. What is not known is tried like what meets the targets, for
nothing is learned of a deployment that is never asked; where it was slow or failing when it was
last known, by one request at a time.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from reflexarc.upstream.circuit import Circuit
from reflexarc.upstream.measuring import Measures
from reflexarc.upstream.sharing import Sharer, shared

TAIL = 0.95
"""Targets are for this share of requests."""
FAILING = 0.25
"""A deployment with more than this share of faults comes last."""
LATE = 3
"""A deployment that nothing is known of is slow where so many wait past the target."""

Why = Literal["meets", "unknown", "slow", "failing"]


class Targets(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What 95 of 100 requests should keep: time to the first token, and between tokens, in ms."""

    first_token_ms: float = 800.0
    token_ms: float = 30.0


class Candidate(msgspec.Struct, frozen=True):
    """A deployment for this request. `name` is its own in the list; what the request is expected
    to cost there, None where no price is known; its prompt, and how much of that is cached there.

    `whole_micro_usd`: what it would cost with nothing cached, None where that is the same. `kin`
    is one name for replicas of one deployment, empty where there are none. `held`: the share of
    the prompt that speaks for this one; `score`: decides between equals, the highest first.
    """

    name: str
    cost_micro_usd: int | None
    prompt_tokens: int
    cached_share: float
    whole_micro_usd: int | None = None
    kin: str = ""
    held: float = 0.0
    score: float = 0.0


class Standing(msgspec.Struct):
    """How a deployment stands. `free`: it has a slot for this request now; `load`: requests at work
    or waiting there; `weight`: how many it can take beside others (1 for all where no number is
    known)."""

    circuit: Circuit
    measures: Measures
    free: bool
    load: float = 0.0
    weight: float = 1.0


class Placed(msgspec.Struct, frozen=True):
    """A candidate, and why it stands where it does."""

    candidate: Candidate
    why: Why


class _Judged(msgspec.Struct, frozen=True):
    """`excess`: of the slow, how many times the target; of the failing, the share of faults."""

    candidate: Candidate
    order: int
    why: Why
    excess: float
    standing: Standing


def placed(
    candidates: Sequence[Candidate],
    standings: Mapping[str, Standing],
    targets: Targets | None,
    now_s: float,
) -> list[Placed]:
    """The candidates that may be asked, the best first. `targets` None: speed is no object.

    First those that meet the targets or are not known, with a slot free before without, the
    cheapest first, those without a price last in the order of the list; equals by what they hold
    of the prompt and by their load (`sharing.py`). Then the slow, nearest to the target first, then
    the failing. Left out are those whose circuit does not allow it.
    """
    judged = [
        _judge(candidate, order, standings[candidate.name], targets, now_s)
        for order, candidate in enumerate(candidates)
        if standings[candidate.name].circuit.allows(now_s)
    ]
    good = [one for one in judged if one.excess == 0]
    rest = sorted((one for one in judged if one.excess > 0), key=_distance)
    order = shared([_sharer(one) for one in good])
    return [Placed(one.candidate, one.why) for one in (*(good[at] for at in order), *rest)]


def retry_after_s(standings: Mapping[str, Standing], names: Iterable[str], now_s: float) -> float:
    """In how many seconds the first of these may be asked again; 0 where one may now."""
    return min((standings[name].circuit.opens_in_s(now_s) for name in names), default=0.0)


def _judge(
    candidate: Candidate, order: int, standing: Standing, targets: Targets | None, now_s: float
) -> _Judged:
    measures = standing.measures

    def judged(why: Why, excess: float = 0.0) -> _Judged:
        return _Judged(candidate, order, why, excess, standing)

    size, cached = candidate.prompt_tokens, candidate.cached_share
    faults = measures.error_rate(now_s, sure=True)
    if faults is not None and faults > FAILING:
        return judged("failing", faults)
    first_ms = gap_ms = None
    if targets is not None:
        first_ms = measures.first_token_ms(TAIL, size, cached, now_s, sure=True)
        gap_ms = measures.token_ms(TAIL, now_s, sure=True)
        excess = _excess(first_ms, gap_ms, targets)
        if excess > 1:
            return judged("slow", excess)
        if first_ms is None and measures.late(targets.first_token_ms, now_s) >= LATE:
            return judged("slow", 1.0)
    # What is known no longer is tried again, by one at a time where it was bad.
    if measures.trying(now_s):
        was_first_ms, was_gap_ms, was_faults = measures.remembered(TAIL, size, cached)
        if faults is None and was_faults is not None and was_faults > FAILING:
            return judged("failing", was_faults)
        if targets is not None:
            excess = _excess(
                was_first_ms if first_ms is None else None,
                was_gap_ms if gap_ms is None else None,
                targets,
            )
            if excess > 1:
                return judged("slow", excess)
    return judged("meets" if targets is None or first_ms is not None else "unknown")


def _excess(first_ms: float | None, gap_ms: float | None, targets: Targets) -> float:
    """How many times the target the worse of the two is; 0 where neither is known."""
    return max(
        0.0 if first_ms is None else first_ms / targets.first_token_ms,
        0.0 if gap_ms is None else gap_ms / targets.token_ms,
    )


def _sharer(one: _Judged) -> Sharer:
    candidate, standing = one.candidate, one.standing
    cost, whole = candidate.cost_micro_usd, candidate.whole_micro_usd
    return Sharer(
        kin=candidate.kin or candidate.name,
        cost=cost,
        whole_cost=cost if whole is None else whole,
        held=candidate.held,
        score=candidate.score,
        free=standing.free,
        load=standing.load,
        weight=standing.weight,
        order=one.order,
    )


def _distance(one: _Judged) -> tuple[bool, float, int]:
    return (one.why == "failing", one.excess, one.order)
