"""Whether a scripted failure came to what it must: what the client and the upstreams saw, what
is recorded, what it cost. Each check gives what is wrong, nothing where all is well."""

import json
from typing import Any

from acceptance.processes import Process
from acceptance.upstream_chaos_cases import Case
from acceptance.upstream_world import (
    CHEAP,
    DEAR,
    Answered,
    Rows,
    admin_state,
    base_of,
    eventually,
    provider,
    request_of,
)
from reflexarc.accounts.keys import VirtualKey
from reflexarc.sim.faulty import FaultyUpstream
from reflexarc.sim.faulty.script import HELLO

GONE_WITHIN_S = 1.0
_PRICES = {"a": CHEAP, "b": DEAR}
_ATTEMPTS = (
    "select a.provider, a.outcome, a.status, a.prompt_tokens, a.completion_tokens, a.micro_usd,"
    " a.partial, a.estimated from attempts a join steps s on s.id = a.step"
    " where s.request_id = ? order by a.position"
)
_CHARGES = (
    "select provider, outcome, status, input, output, micro_usd, partial, estimated from charges"
    " where request_id = ? order by attempt"
)
_STEP = (
    "select status, cost_micro_usd, prompt_tokens, completion_tokens, partial, tokens_estimated"
    " from steps where request_id = ?"
)


class World:
    """One case's upstreams, key, and place in the configuration."""

    def __init__(self, number: int, case: Case) -> None:
        self.name = f"c{number:02d}"
        self.case = case
        self.a = FaultyUpstream(key="theirs")
        self.b = FaultyUpstream(key="theirs")
        self.key: VirtualKey | None = None
        self.secret = ""

    async def start(self) -> None:
        await self.a.start()
        await self.b.start()
        self.a.script.extend(self.case.a)
        self.b.script.extend(self.case.b)

    async def stop(self) -> None:
        await self.a.stop()
        await self.b.stop()

    def sections(self) -> dict[str, Any]:
        case, found = self.case, dict[str, Any]()
        served: list[dict[str, Any]] = []
        for letter, faulty, spoken in (
            ("a", self.a, case.spoken[0]),
            ("b", self.b, case.spoken[1]),
        ):
            name = f"{self.name}{letter}"
            url = case.url if letter == "a" and case.url else base_of(faulty, spoken)
            more: dict[str, Any] = {"timeouts": case.timeouts} if case.timeouts else {}
            found[f"provider.{name}"] = provider(url, spoken, kind=case.kind, **more)
            served.append({"provider": name, "model": self.name, "price": _PRICES[letter]})
        found[f"model.{self.name}"] = {"standard": served}
        return found


def request(world: World) -> tuple[str, dict[str, Any]]:
    case = world.case
    model = case.model.format(world.name) if case.model else world.name
    return request_of(case.client, model, case.words, stream=case.stream, **case.more)


def seen(world: World, answered: Answered) -> list[str]:
    case, problems = world.case, list[str]()
    if answered.fault:
        problems.append(f"the client cannot read it: {answered.fault}")
    sees, _, word = case.sees.partition(" ")
    if sees == "gone":
        return problems
    status = int(sees) if sees.isdigit() else 200
    if answered.status != status:
        problems.append(f"status {answered.status}: {answered.body[:300]!r}")
    if word and word not in answered.body.decode("utf-8", "replace"):
        problems.append(f"no {word} in {answered.body[:300]!r}")
    seen = answered.seen
    if status == 200 and seen is not None:
        if sees == "hello":
            fits = seen.text.startswith(HELLO) and seen.ended and seen.error is None
        elif sees == "calls":
            fits = [(name, json.loads(text)) for _, name, text in seen.calls] == [
                ("get_weather", {"city": "Oslo"})
            ]
        else:
            fits = seen.error is not None and not seen.ended
        if not fits:
            problems.append(f"not {sees}: {answered.body[-300:]!r}")
    expected: dict[str, str | None] = {"x-should-retry": None, "retry-after": None}
    if case.up and not (sees.isdigit() and case.up == "-"):
        expected["x-reflexarc-upstream"] = f"{world.name}{case.up}/{world.name}"
    if case.attempts:
        expected["x-reflexarc-attempts"] = str(len(case.attempts))
        expected["x-reflexarc-tier"] = case.tier
    for name, value in (expected | case.headers).items():
        if (got := answered.headers.get(name)) != value:
            problems.append(f"{name}: {got}, not {value}")
    return problems


async def upstreams(world: World) -> list[str]:
    case, problems = world.case, list[str]()
    for letter, faulty, asked, left in (
        ("a", world.a, case.asked[0], case.left[0]), ("b", world.b, case.asked[1], case.left[1]),
    ):  # fmt: skip
        await eventually(lambda faulty=faulty, left=left: faulty.left >= left, GONE_WITHIN_S)
        if (asked >= 0 and len(faulty.received) != asked) or len(faulty.received) > 41:
            problems.append(f"{letter} was asked {len(faulty.received)} times, not {asked}")
        if left >= 0 and faulty.left != left:
            problems.append(f"{faulty.left} clients left {letter}, not {left}")
        if not await eventually(lambda faulty=faulty: not faulty.at_work, GONE_WITHIN_S):
            problems.append(f"{letter} is still at work")
        if faulty.refusals:
            problems.append(f"{letter} refuses: {faulty.refusals[0]}")
        spoken = case.spoken[0 if letter == "a" else 1]
        for one in faulty.received:
            if one.dialect != spoken:
                problems.append(f"{letter} was asked in {one.dialect}")
            if world.secret in json.dumps(one.headers):
                problems.append(f"{letter} saw the client's key")
            if spoken != "gemini" and one.json["model"] != world.name:
                problems.append(f"{letter} was asked for {one.json['model']}")
            if spoken == case.client != "gemini" and one.json != {**request(world)[1]}:
                problems.append(f"{letter} was asked something else than the client said")
    return problems


async def recorded(
    world: World, request_id: str, rows: Rows, answered: Answered
) -> tuple[str, list[str]]:
    """Attempts with what they cost, as they are written, in the store and in the book."""
    case, problems = world.case, list[str]()
    assert world.key is not None
    key = world.key.id
    wanted = len(case.attempts)
    refused = case.sees in ("402", "403", "404")
    if not refused and not await eventually(lambda: bool(rows.store(_STEP, request_id))):
        return "nothing recorded", ["no step is in the store"]
    await eventually(lambda: len(rows.book(_CHARGES, request_id)) >= wanted)
    settled = await eventually(
        lambda: not rows.book("select 1 from reservations where key = ?", key)
    )
    attempts, charges = rows.store(_ATTEMPTS, request_id), rows.book(_CHARGES, request_id)
    if not settled:
        problems.append("money is kept back")
    if attempts != charges:
        problems.append(f"the store has {attempts}, the book {charges}")
    if len(charges) != wanted:
        problems.append(f"{len(charges)} attempts are charged: {charges}")
    size = len(json.dumps(request(world)[1]))
    shown: list[str] = []
    for row, said in zip(charges, case.attempts, strict=False):
        shown.append(f"{row[0][-1]} {row[1]} {row[2]}: {row[3]}+{row[4]} tokens, {row[5]} µ$")
        problems += _charged(row, said, size)
    if not refused:
        [step] = rows.store(_STEP, request_id)
        status = answered.status or 499
        sums = [sum(row[at] for row in charges) for at in (5, 3, 4)]
        flags = [any(row[at] for row in charges) for at in (6, 7)]
        if wanted and list(step) != [status, *sums, *flags]:
            problems.append(f"the step says {step}, not {[status, *sums, *flags]}")
        if not wanted and step[0] != status:
            problems.append(f"the step has status {step[0]}")
    [(spent,)] = rows.book(
        "select coalesce(sum(micro_usd), 0) from tallies where key = ? and scope = 'key'"
        " and window = ''", key,
    )  # fmt: skip
    [(summed,)] = rows.book("select coalesce(sum(micro_usd), 0) from charges where key = ?", key)
    if spent != summed:
        problems.append(f"{spent} of the budget are spent, the charges sum to {summed}")
    return ", ".join(shown) or "nobody asked", problems


def _charged(row: tuple[Any, ...], said: str, size: int) -> list[str]:
    provider, outcome, status, tokens, output, micro_usd, partial, estimated = row
    problems: list[str] = []
    letter, wanted, code, used = said.split(" ")
    if (provider[-1], outcome, str(status)) != (letter, wanted, code):
        problems.append(f"{provider[-1]} {outcome} {status} is not {said}")
    guess = size / 4
    near = abs(tokens - guess) <= 1
    fits = {
        "-": (tokens, output, partial, estimated) == (0, 0, 0, 0),
        "told": (tokens, output, partial, estimated) == (100, 20, 0, 0),
        "prompt": near and output == 0 and (partial, estimated) == (1, 1),
        "learned": (tokens, output) == (100, 0) and (partial, estimated) == (1, 1),
        "part": (tokens == 100 or near) and 0 < output < 500 and (partial, estimated) == (1, 1),
        "guessed": near and output > 0 and (partial, estimated) == (0, 1),
    }[used]
    if not fits:
        problems.append(f"{letter} is charged {row[3:]}, which is not {used} (of {guess:.0f})")
    price = _PRICES[letter]
    cost = round(tokens * price["input"] + output * price["output"])
    if micro_usd != cost:
        problems.append(f"{letter} cost {micro_usd} micro-dollars, not {cost}")
    return problems


def cooling(running: Process, world: World, cools_s: float) -> list[str]:
    found = admin_state(running.base).get("deployments", [])
    name = f"{world.name}a/{world.name}"
    left_s = [one["opens_in_s"] for one in found if one["deployment"] == name]
    # Up to a second of a date is lost in its writing; a few more may have passed since.
    if len(left_s) != 1 or not cools_s - 3 < left_s[0] <= cools_s:
        return [f"a is left alone for {left_s} s, not {cools_s:g}"]
    return []
