"""A reflex in production, simulated: sessions, acts that are right or wrong, audits that take their
time. What watches it is the code that watches a real one.

Seconds a run instead of hours; for the promise that is about many lives, not about one.
"""

import random
from collections import deque

import msgspec

from reflexarc.lifecycle.oversight import Act, Oversight
from reflexarc.lifecycle.standing import ReflexState, Version, promoted

DIGEST = "0" * 32


class World(msgspec.Struct, frozen=True):
    """How a life goes. Times are counted in acts.

    `error`: how often acts are wrong before anything happens, with the intra-class correlation
    `together` within a session; `tools` share the acts evenly. At `flips_at` the policy of the
    first tool flips: of its acts the share `wrong_after` is wrong from then on (`spread` true: of
    all tools; `over` acts: bit by bit). `level`: the certified error. Sessions have `session_acts`
    acts on average, `sessions` of them go on at once. An audit is answered `delay` acts later,
    with probability `unanswered` never. `acts`: how long it lasts, if nothing is demoted.
    """

    acts: int
    error: float = 0.01
    together: float = 0.0
    tools: int = 5
    flips_at: int | None = None
    wrong_after: float = 1.0
    spread: bool = False
    over: int = 0
    level: float = 0.05
    sessions: int = 8
    session_acts: float = 3.0
    delay: int = 5
    unanswered: float = 0.0


class Life(msgspec.Struct, frozen=True):
    """What came of it. `unaudited_wrong` and `audited_wrong`: acts of what flipped that were wrong
    from then on (without a flip: of all from the start), until it was demoted or the end;
    `demoted`: scopes; `lasted`: those acts, right or wrong; `audited` of all `acts` before."""

    unaudited_wrong: int
    audited_wrong: int
    demoted: tuple[str, ...]
    lasted: int
    acts: int
    audited: int


def live(world: World, seed: int, share: float | None = None) -> Life:
    """One life, deterministic for a seed. `share`: a fixed share of audits instead."""
    draw = random.Random(seed)
    version = promoted(Version(DIGEST, "file", 0.0), "reads", "simulation", 0.0)
    oversight = Oversight(ReflexState("simulated", DIGEST, (version,)), lambda: 0.0, share)
    sessions = [_Session(world, draw, number) for number in range(world.sessions)]
    opened = world.sessions
    due: deque[tuple[int, int, bool | None]] = deque()
    wrongs = [0, 0]
    lasted = audits = 0
    demoted: list[str] = []
    number = 0
    while number < world.acts and not demoted:
        number += 1
        while due and due[0][0] <= number:
            _, audit, outcome = due.popleft()
            demoted += [one.standing.scope for one in oversight.answered(audit, outcome)]
        place = draw.randrange(world.sessions)
        if draw.random() < 1 / world.session_acts:
            opened += 1
            sessions[place] = _Session(world, draw, opened)
        session = sessions[place]
        tool = draw.randrange(world.tools)
        wrong = session.wrong(world, tool, number, draw)
        flipped = world.flips_at is None or (
            number >= world.flips_at and (world.spread or not tool)
        )
        act = Act(DIGEST, "reads", f"tool_{tool}", world.level, False, session.name)
        if demoted:
            break
        if oversight.why_not(act) is not None:  # then System 2 is asked
            if draw.random() >= world.unanswered:
                demoted += [one.standing.scope for one in oversight.compared(act, wrong)]
            continue
        share = oversight.share(act)
        audited = draw.random() < share
        oversight.acted(number, act, audited=audited, share=share)
        audits += audited
        if audited:
            outcome = None if draw.random() < world.unanswered else wrong
            due.append((number + world.delay, number, outcome))
        if flipped:
            wrongs[audited] += wrong
            lasted += 1
    return Life(wrongs[False], wrongs[True], tuple(demoted), lasted, number, audits)


class _Session:
    """Its errors before the flip come together: of probability drawn from a beta law."""

    def __init__(self, world: World, draw: random.Random, number: int) -> None:
        self.name = number.to_bytes(8, "big")
        self._error = world.error
        if world.together and 0 < world.error < 1:
            spread = 1 / world.together - 1
            self._error = draw.betavariate(world.error * spread, (1 - world.error) * spread)

    def wrong(self, world: World, tool: int, number: int, draw: random.Random) -> bool:
        since = -1 if world.flips_at is None else number - world.flips_at
        if since < 0 or (tool and not world.spread):
            return draw.random() < self._error
        grown = min(1.0, since / world.over) if world.over else 1.0
        return draw.random() < self._error + grown * max(0.0, world.wrong_after - self._error)
