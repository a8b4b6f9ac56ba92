"""All deployments with what is known of each while it runs: circuit, measurements, slots.

It outlives a configuration: what was measured of a deployment that stays is not lost with it.
"""

from collections.abc import Iterable
from typing import Any

from reflexarc.upstream.circuit import Circuit, CircuitLimits
from reflexarc.upstream.deployments import Deployment
from reflexarc.upstream.measuring import Measures
from reflexarc.upstream.slots import TIERS, Slots


class Watched:
    """One deployment as it is at work."""

    def __init__(self, deployment: Deployment, limits: CircuitLimits) -> None:
        self.deployment = deployment
        self.circuit = Circuit(limits)
        self.measures = Measures()
        self.slots = Slots(deployment.max_parallel)

    @property
    def load(self) -> float:
        """Requests at work or waiting there."""
        return float(self.slots.busy + sum(self.slots.waiting(tier) for tier in TIERS))


class Fleet:
    """Watched deployments by name."""

    def __init__(self, limits: CircuitLimits | None = None) -> None:
        self._limits = limits or CircuitLimits()
        self._watched: dict[str, Watched] = {}

    def adopt(self, deployments: Iterable[Deployment], before: "Fleet | None" = None) -> None:
        """These are the deployments from now on. Those of the same name keep what is known of
        them, `before` being who knew it."""
        known = self._watched if before is None else before._watched
        adopted: dict[str, Watched] = {}
        for deployment in deployments:
            one = Watched(deployment, self._limits)
            old = known.get(deployment.name)
            if old is not None and old.deployment.base == deployment.base:
                one.circuit, one.measures, one.slots = old.circuit, old.measures, old.slots
                one.slots.resize(deployment.max_parallel)
            adopted[deployment.name] = one
        self._watched = adopted

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
                "measured": one.measures.snapshot(now_s),
            }
            for one in self._watched.values()
        ]
