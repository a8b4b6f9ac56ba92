"""A model of several deployments under load: a clock, arriving requests, returning answers."""

import heapq
import random
from collections import Counter
from collections.abc import Callable

from reflexarc.upstream.circuit import Circuit, CircuitLimits
from reflexarc.upstream.measuring import Measures
from reflexarc.upstream.placement import Candidate, Standing, Targets, placed

TARGETS = Targets()
FIRST_MS = Callable[[float, random.Random], float]
"""What a first token takes, of a request sent at this time (s)."""


class Load:
    """Requests of one tier over simulated time. `costs` and `speeds` by deployment."""

    def __init__(
        self,
        costs: dict[str, int | None],
        speeds: dict[str, FIRST_MS],
        targets: Targets = TARGETS,
        max_parallel: int = 10_000,
        gaps: dict[str, FIRST_MS] | None = None,
        tokens: int = 1,
        seed: int = 5,
    ) -> None:
        self.standings = {
            name: Standing(Circuit(CircuitLimits()), Measures(), True) for name in costs
        }
        self.now_s = 0.0
        self.sent: list[tuple[float, str]] = []
        self.busy = Counter[str]()
        self.most_busy = Counter[str]()
        self._costs, self._speeds, self._targets = costs, speeds, targets
        self._max_parallel = max_parallel
        self._gaps, self._tokens = gaps or {}, tokens
        self._draw = random.Random(seed)
        self._due: list[tuple[float, int, str, float, bool]] = []

    def run(self, until_s: float, a_second: float) -> None:
        """Requests arrive at this rate, at random times."""
        while True:
            self.now_s += self._draw.expovariate(a_second)
            if self.now_s >= until_s:
                self.now_s = until_s
                return
            self._settle()
            self._send()

    def share(self, name: str, begin_s: float, end_s: float) -> float:
        """Of the requests sent in this time, those that went to one deployment."""
        there = [sent for at_s, sent in self.sent if begin_s <= at_s < end_s]
        return there.count(name) / len(there)

    def count(self, name: str, begin_s: float, end_s: float) -> int:
        return sum(sent == name and begin_s <= at_s < end_s for at_s, sent in self.sent)

    def _send(self) -> None:
        for name, standing in self.standings.items():
            standing.free = self.busy[name] < self._max_parallel
            standing.load = self.busy[name]
        # Each request begins a session of its own, that nobody holds anything of.
        candidates = [
            Candidate(name, cost, 500, 0.0, score=self._draw.random())
            for name, cost in self._costs.items()
        ]
        order = placed(candidates, self.standings, self._targets, self.now_s)
        name = order[0].candidate.name
        number = len(self.sent)
        self.sent.append((self.now_s, name))
        self.busy[name] += 1
        self.most_busy[name] = max(self.most_busy[name], self.busy[name])
        standing = self.standings[name]
        standing.circuit.begin(self.now_s)
        standing.measures.began(number, self.now_s, 500)
        first_ms = self._speeds[name](self.now_s, self._draw)
        heapq.heappush(self._due, (self.now_s + first_ms / 1_000, number, name, first_ms, False))

    def _settle(self) -> None:
        while self._due and self._due[0][0] <= self.now_s:
            at_s, number, name, took_ms, over = heapq.heappop(self._due)
            measures = self.standings[name].measures
            if not over:
                measures.heard(number)
                measures.first_token(500, 0.0, took_ms, at_s)
                # Of one token where nobody asked for gaps: it is over at once.
                gap_ms = self._gaps[name](at_s, self._draw) if name in self._gaps else 0.0
                end_s = at_s + gap_ms * (self._tokens - 1) / 1_000
                heapq.heappush(self._due, (end_s, number, name, gap_ms, True))
                continue
            self.busy[name] -= 1
            if name in self._gaps:
                measures.gap(took_ms, at_s)
            measures.outcome(True, at_s)
            self.standings[name].circuit.succeeded(at_s)
