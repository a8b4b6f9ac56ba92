"""Among deployments that are fast enough: the cheapest, and of equals the one that holds a prompt's
beginning, unless it has too much to do. Pure.

Equals are replicas of one deployment, or whatever costs the same with nothing cached. Requests that
nobody holds anything of are spread by score, with bounded loads (Mirrokni, Thorup, Zadimoghaddam,
2018): none takes more than a quarter over its share. Who holds a beginning may take more than that
before a session leaves it: what it leaves behind is read again elsewhere. A handful of requests is
no load: gateways that each see their own alone would disagree over it.
"""

import math
from collections.abc import Sequence

import msgspec

OVER_SHARE = 1.25
"""So many times its share of the load a deployment takes of what it does not hold."""
OVER_OTHERS = 2.0
"""A session leaves the deployment that holds it where that has over so many times the load of the
least loaded equal."""
AND_MORE = 4.0
"""Either only where it has over so many requests more than the least loaded."""


class Sharer(msgspec.Struct, frozen=True):
    """A deployment as it stands for one request. Costs in any one unit, None where they are not
    known; `whole_cost` with nothing cached. Shares load by `weight`; `order` is its place in the
    list of its model."""

    kin: str
    cost: float | None
    whole_cost: float | None
    held: float
    score: float
    free: bool
    load: float
    weight: float
    order: int


def shared(sharers: Sequence[Sharer]) -> list[int]:
    """Their places, the best first: with a slot free before without, priced before not."""
    groups: dict[tuple[bool, float | None, str], list[int]] = {}
    for at, one in enumerate(sharers):
        like = one.kin if one.whole_cost is None else ""
        groups.setdefault((one.free, one.whole_cost, like), []).append(at)
    keys: dict[int, tuple[bool, bool, float, int, int]] = {}
    for (free, whole_cost, _), places in groups.items():
        ranked = _ranked(sharers, places)
        first = min(sharers[at].order for at in places)
        cost, held = 0.0, -1.0
        for rank, (at, leaves) in enumerate(ranked):
            one = sharers[at]
            # What is spread among those that hold alike is not undone by cents between them.
            if leaves:
                cost = max(cost, one.whole_cost or 0.0)
            elif one.held != held:
                cost = max(cost, one.cost or 0.0)
            held = one.held
            keys[at] = (not free, whole_cost is None, cost, first, rank)
    return sorted(keys, key=keys.__getitem__)


def _ranked(sharers: Sequence[Sharer], places: Sequence[int]) -> list[tuple[int, bool]]:
    """Of one group, each with whether even a session that it holds should leave it."""
    load = sum(sharers[at].load for at in places)
    weight = sum(max(sharers[at].weight, 0.0) for at in places)
    least = min(_filled(sharers[at]) for at in places)

    def key(at: int) -> tuple[bool, float, bool, float, int]:
        one = sharers[at]
        bound = math.ceil(OVER_SHARE * (load + 1) * max(one.weight, 0.0) / weight) if weight else 0
        over = one.load + 1 > bound and _has_more(one, least)
        return (_leaves(one, least), -one.held, over, -one.score, one.order)

    return [(at, _leaves(sharers[at], least)) for at in sorted(places, key=key)]


def _leaves(one: Sharer, least: float) -> bool:
    return one.load > OVER_OTHERS * _least(one, least) and _has_more(one, least)


def _has_more(one: Sharer, least: float) -> bool:
    return one.load > _least(one, least) + AND_MORE


def _least(one: Sharer, least: float) -> float:
    """What the least loaded has at work, were it as large as this one."""
    return least * max(one.weight, 0.0)


def _filled(one: Sharer) -> float:
    return one.load / max(one.weight, 1e-9)
