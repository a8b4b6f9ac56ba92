"""How probable the next error is where errors come together: within a session, one follows another.

A certificate says how often acts are wrong over tasks. Within one session the next act may be wrong
far more probably once one was, and a test that took acts for independent would demote a reflex that
keeps its promise. With an intra-class correlation r, errors of a session follow a beta-binomial
law, and after s errors in m acts the next is wrong with probability (p a + s) / (a + m), where
a = 1/r - 1 (Skellam 1948). Over all r up to .5, the largest a certificate supposes, that is at most
max(p, (p + s) / (1 + m)): the odds at which an act of a session is bet on.
"""

from collections import OrderedDict

MAX_SESSIONS = 2_048
MOST_TOGETHER = 20
"""Acts of one session and stream after which it counts as a new one: sessions that cannot be told
apart, all opening with the same word, must not hide a flip for ever."""


class Clusters:
    """A bounded memory of what each session's audits said; the least recently used goes first."""

    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[bytes, str], tuple[int, int]] = OrderedDict()

    def null(self, session: bytes, stream: str, level: float, *, wrong: bool) -> float:
        """The largest probability of an error that a claim of at most `level` allows this act, and
        remembers what it was. `session` is any name of it."""
        acts, errors = self._seen.pop((session, stream), (0, 0))
        if acts >= MOST_TOGETHER:
            acts = errors = 0
        self._seen[session, stream] = (acts + 1, errors + wrong)
        if len(self._seen) > MAX_SESSIONS:
            self._seen.popitem(last=False)
        return max(level, (level + errors) / (1 + acts))
