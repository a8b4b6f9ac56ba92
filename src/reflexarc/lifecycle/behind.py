"""How many acts of a tool are made while an audit of it is under way, in one process.

They are wrong unseen if the policy flipped, and so belong to the limit that `watched.py` keeps:
where an audit is drawn with probability s and answered L acts later, (1 - s) / s unaudited acts
come before the first audit that shows the flip, and L (1 - s) while it is under way. `Behind` knows
L, and the smallest s for which both together stay within the limit.
"""

import math
from collections import OrderedDict

from reflexarc.lifecycle.watched import LIMIT, LOW_SHARE

MAX_PENDING = 4_096
_MEMORY = 0.1
"""What the newest answer weighs in the mean of L."""


class Behind:
    """Acts behind the open audits of each tool. A bounded memory."""

    def __init__(self) -> None:
        self._pending: OrderedDict[int, str] = OrderedDict()
        self._open: dict[str, OrderedDict[int, tuple[int, int]]] = {}
        self._acts: dict[str, int] = {}
        self._unaudited: dict[str, int] = {}
        self._delay: dict[str, float] = {}

    def least_share(self, tool: str) -> float:
        """The smallest share of audits that keeps the limit; 1 where it is used up."""
        delay, unaudited = self._delay.get(tool, 0.0), 0
        audits = self._open.get(tool)
        if audits:
            acts, before = next(iter(audits.values()))
            delay = max(delay, self._acts[tool] - acts)
            unaudited = self._unaudited.get(tool, 0) - before
        share = max(LOW_SHARE, _share(delay))
        return 1.0 if unaudited + (1 - share) / share > LIMIT else share

    def acted(self, number: int, tool: str, *, audited: bool) -> None:
        """An act was made; `number` names its audit where it has one."""
        self._acts[tool] = self._acts.get(tool, 0) + 1
        if not audited:
            self._unaudited[tool] = self._unaudited.get(tool, 0) + 1
            return
        self._pending[number] = tool
        here = self._acts[tool], self._unaudited.get(tool, 0)
        self._open.setdefault(tool, OrderedDict())[number] = here
        if len(self._pending) > MAX_PENDING:
            self.ended(next(iter(self._pending)))

    def ended(self, number: int) -> None:
        """An audit was answered, or never will be."""
        tool = self._pending.pop(number, None)
        if tool is None:
            return
        acts, _ = self._open[tool].pop(number)
        if not self._open[tool]:
            del self._open[tool]
        took, known = self._acts[tool] - acts, self._delay.get(tool)
        self._delay[tool] = took if known is None else known + _MEMORY * (took - known)


def _share(delay: float) -> float:
    """The root of (1 - s) (1 / s + delay) = LIMIT."""
    if delay <= 0:
        return 1 / (1 + LIMIT)
    half = delay - 1 - LIMIT
    return (half + math.sqrt(half * half + 4 * delay)) / (2 * delay)
