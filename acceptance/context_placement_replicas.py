"""Two replicas, each with a prompt cache of its own, behind real gateways: what sessions find
cached with placement, and with requests sent to one after the other in turn; what happens when one
fails; whether two gateways that know nothing of each other agree.

The replicas are fault upstreams; each cache has room for three quarters of all sessions, in blocks
of 16 tokens, the least recently used first to go.
"""

import asyncio
import itertools
import random
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from acceptance.lines import Lines
from acceptance.upstream_engine_asking import orders
from acceptance.upstream_world import CHEAP, gateway
from reflexarc.sim.faulty import FaultyUpstream
from reflexarc.sim.prefix import PrefixCache

SESSIONS, TURNS = 24, 8
LEAST_SHARE = 0.9
AT_ONCE = 4
_KEY = "theirs"
_RECORDS, _MORE = 20, 4
_SESSION_TOKENS = 3_000
_ROOM = SESSIONS * _SESSION_TOKENS * 3 // 4


class Turn(NamedTuple):
    """`status` and who answered; tokens of the prompt, and of them those found cached."""

    status: int
    replica: str
    prompt: int
    cached: int


Sessions = list[list[Turn]]


def measure(lines: Lines) -> None:
    asyncio.run(_measured(lines))


async def _measured(lines: Lines) -> None:
    async with _replicas() as replicas:
        turns: Sessions = [[] for _ in range(SESSIONS)]
        urls = [f"{one.url}/chat/completions" for one in replicas]
        for number in range(TURNS):
            await _round(turns, number, urls)
        without = _share(turns)
    async with _replicas() as replicas, _gateway(replicas) as base:
        turns = [[] for _ in range(SESSIONS)]
        for number in range(TURNS // 2):
            await _round(turns, number, [base])
        _held(lines, turns, without)
        await _failing(lines, replicas, base, turns)
    await _agreeing(lines)


def _held(lines: Lines, turns: Sessions, without: float) -> None:
    share = _share(turns)
    moved = sum(len({turn.replica for turn in one}) > 1 for one in turns)
    spread = Counter(one[0].replica for one in turns)
    lines.add(
        "5.3",
        f"{SESSIONS} sessions at two replicas: tokens sent before that are found cached, with "
        "placement",
        f">= {LEAST_SHARE:.0%}, and more than by turns; both replicas have sessions",
        f"{share:.1%}, sent to one after the other {without:.1%}; {moved} sessions moved, "
        f"{' and '.join(map(str, spread.values()))} sessions",
        share >= LEAST_SHARE and share > without and len(spread) == 2,
    )


async def _failing(
    lines: Lines, replicas: Sequence[FaultyUpstream], base: str, turns: Sessions
) -> None:
    """The second half of all turns: one replica fails for two of them, and is well again."""
    broken = replicas[0]
    theirs = [one for one in turns if one[-1].replica.endswith(f":{broken.port}")]
    before, half = len(turns[0]), [list(one) for one in turns]
    broken.usual = "error=503"
    for number in range(before, before + 2):
        await _round(turns, number, [base])
    broken.usual = ""
    for number in range(before + 2, TURNS):
        await _round(turns, number, [base])
    others = [one for one in turns if one not in theirs]
    answered = sum(turn.status == 200 for one in turns for turn in one[before:])
    sent = SESSIONS * (TURNS - before)
    back = [one[before:] for one in theirs]
    lines.add(
        "5.4",
        f"one replica fails for two turns: requests answered; its {len(theirs)} sessions find at "
        "the other, from their second turn there on; the others' find meanwhile",
        f"all; >= {LEAST_SHARE:.0%} and >= {LEAST_SHARE:.0%}",
        f"{answered} of {sent}; {_share(back):.1%}; {_share([one[-5:] for one in others]):.1%}",
        answered == sent
        and 0 < len(theirs) < len(half)
        and min(_share(back), _share([one[-5:] for one in others])) >= LEAST_SHARE,
    )
    stayed = sum(len({turn.replica for turn in one}) == 1 for one in back)
    lines.add(
        "5.5",
        "the failed replica is well again: sessions that moved and stay where they are",
        f"{len(back)} of {len(back)}",
        f"{stayed} of {len(back)}",
        stayed == len(back),
    )


async def _agreeing(lines: Lines) -> None:
    """Each session's turns go to one gateway and the other in turn."""
    async with (
        _replicas() as replicas,
        _gateway(replicas) as one,
        _gateway(replicas[::-1]) as other,
    ):
        turns: Sessions = [[] for _ in range(SESSIONS)]
        for number in range(TURNS):
            way = (one, other)[number % 2]
            await _round(turns, number, [way])
    agreed = sum(len({turn.replica for turn in session}) == 1 for session in turns)
    share = _share(turns)
    lines.add(
        "5.6",
        "two gateways take each session's turns by turns: sessions for which both ask the same "
        "replica; tokens found cached",
        f"{SESSIONS} of {SESSIONS}; >= {LEAST_SHARE:.0%}",
        f"{agreed} of {SESSIONS}; {share:.1%}",
        agreed == SESSIONS and share >= LEAST_SHARE,
    )


def _share(turns: Sessions) -> float:
    before = found = 0
    for one in turns:
        for last, now in itertools.pairwise(one):
            before += last.prompt
            found += min(now.cached, last.prompt)
    return found / max(1, before)


async def _round(turns: Sessions, number: int, to: Sequence[str]) -> None:
    """A turn of each session, in an order of its own, some at once, to these addresses in turn."""
    gate = asyncio.Semaphore(AT_ONCE)
    order = random.Random(number).sample(range(SESSIONS), SESSIONS)
    async with aiohttp.ClientSession() as client:

        async def one(session: int, at: int) -> None:
            async with gate:
                turns[session].append(await _ask(client, to[at % len(to)], session, number))

        await asyncio.gather(*(one(session, at) for at, session in enumerate(order)))


async def _ask(client: aiohttp.ClientSession, to: str, session: int, number: int) -> Turn:
    """Turns of one session begin with the ones before."""
    rules = f"You are the agent of shop {session}. Its orders:\n{orders(session, _RECORDS)}"
    messages = [{"role": "system", "content": rules}]
    for at in range(number + 1):
        new = orders(1_000 * (session + 1) + at, _MORE)
        messages.append({"role": "user", "content": f"These came in: {new}"})
        if at < number:
            messages.append({"role": "assistant", "content": "Noted."})
    body = {"model": "agent", "messages": messages}
    headers = {"authorization": f"Bearer {_KEY}"}
    async with client.post(to, json=body, headers=headers) as answer:
        told = await answer.json()
        usage = told.get("usage", {"prompt_tokens": 0, "prompt_tokens_details": {}})
        cached = usage["prompt_tokens_details"].get("cached_tokens", 0)
        by = answer.headers.get("x-reflexarc-upstream", "")
        return Turn(answer.status, by, usage["prompt_tokens"], cached)


@asynccontextmanager
async def _replicas() -> AsyncGenerator[list[FaultyUpstream]]:
    running = [FaultyUpstream(key=_KEY, prompts=PrefixCache(16, 16, _ROOM)) for _ in range(2)]
    for one in running:
        await one.start()
    try:
        yield running
    finally:
        for one in running:
            await one.stop()


@asynccontextmanager
async def _gateway(replicas: Sequence[FaultyUpstream]) -> AsyncGenerator[str]:
    """Its address for chat. Its state is its own."""
    farm = {
        "urls": [one.url for one in replicas], "private": True, "key_env": "UPSTREAM_KEY",
        "dialect": "chat",
    }  # fmt: skip
    sections: dict[str, Any] = {
        "route": [{"upstream": "models", "mode": "off", "record": "none"}],
        "provider.farm": farm,
        "model.agent": {
            "standard": [{"provider": "farm", "model": "faulty-1", "price": {**CHEAP}}]
        },
    }
    with tempfile.TemporaryDirectory(prefix="reflexarc-replicas-") as folder:
        async with gateway(Path(folder), sections) as running:
            yield f"{running.base}/v1/chat/completions"
