"""All deployments with what is known of each while it runs: circuit, measurements, slots.

It outlives a configuration: what was measured of a deployment that stays is not lost with it.
"""

import math
from collections.abc import Iterable
from typing import Any

import msgspec

from reflexarc.upstream.circuit import Circuit, CircuitLimits
from reflexarc.upstream.deployments import Deployment
from reflexarc.upstream.measuring import Measures
from reflexarc.upstream.readings import Reading
from reflexarc.upstream.slots import TIERS, Slots

POLL_S = 2.0
"""From one question for a server's own load to the next."""
_STALE = 3
_WAITING_MANY = 4


class Watched:
    """One deployment as it is at work."""

    def __init__(self, deployment: Deployment, limits: CircuitLimits) -> None:
        self.deployment = deployment
        self.circuit = Circuit(limits)
        self.measures = Measures()
        self.slots = Slots(deployment.max_parallel)

        self.reading: Reading | None = None
        self._told_s = -math.inf
        self._told_busy = 0

    def told(self, reading: Reading, busy: int, now_s: float) -> None:
        """What the server itself tells, asked when this gateway had so many requests there."""
        self.reading, self._told_busy, self._told_s = reading, busy, now_s

    def lately(self, now_s: float) -> Reading | None:
        """What it told, unless that is too long ago."""
        return self.reading if now_s - self._told_s <= POLL_S * _STALE else None

    def load(self, now_s: float) -> float:
        """Requests at work or waiting there: this gateway's, and with `metrics` everybody's."""
        own = float(self.slots.busy + sum(self.slots.waiting(tier) for tier in TIERS))
        reading = self.lately(now_s)
        if reading is None or reading.load is None:
            return own
        return max(own, reading.load + own - self._told_busy)

    def full(self, now_s: float) -> bool:
        """Whether the server tells that a further request would wait there: all its slots are
        taken, or several wait already."""
        reading = self.lately(now_s)
        if reading is None:
            return False
        if (reading.waiting or 0.0) > _WAITING_MANY:
            return True
        return reading.slots is not None and self.load(now_s) >= reading.slots

    def weight(self, now_s: float) -> float:
        """How many requests it can take beside others; 1 where no number is known."""
        reading = self.lately(now_s)
        told = None if reading is None else reading.slots
        return float(self.deployment.max_parallel or told or 1)


class Fleet:
    """Watched deployments by name."""

    def __init__(self, limits: CircuitLimits | None = None) -> None:
        self._limits = limits or CircuitLimits()
        self._watched: dict[str, Watched] = {}

    def adopt(self, deployments: Iterable[Deployment], before: "Fleet | None" = None) -> None:
        """These are the deployments from now on. Those of the same name keep what is known of
        them, `before` being who knew it; how many slots they have changes with `resize`."""
        known = self._watched if before is None else before._watched
        adopted: dict[str, Watched] = {}
        for deployment in deployments:
            one = Watched(deployment, self._limits)
            old = known.get(deployment.name)
            if old is not None and old.deployment.base == deployment.base:
                one.circuit, one.measures, one.slots = old.circuit, old.measures, old.slots
                one.reading = old.reading
            adopted[deployment.name] = one
        self._watched = adopted

    def resize(self) -> None:
        """Every deployment has as many slots as it says from now on."""
        for one in self._watched.values():
            one.slots.resize(one.deployment.max_parallel)

    def of(self, name: str) -> Watched:
        return self._watched[name]

    def all(self) -> list[Watched]:
        return list(self._watched.values())

    def shown(self, now_s: float) -> list[dict[str, Any]]:
        """For people: each deployment as it stands."""
        return [
            {
                "deployment": one.deployment.name,
                "circuit": one.circuit.state(now_s),
                "opens_in_s": round(one.circuit.opens_in_s(now_s), 3),
                "busy": one.slots.busy,
                "max_parallel": one.deployment.max_parallel,
                "waiting": {tier: one.slots.waiting(tier) for tier in TIERS},
                "server": _shown(one.lately(now_s)),
                "measured": one.measures.snapshot(now_s),
            }
            for one in self._watched.values()
        ]


def _shown(reading: Reading | None) -> dict[str, Any] | None:
    return None if reading is None else msgspec.structs.asdict(reading)
