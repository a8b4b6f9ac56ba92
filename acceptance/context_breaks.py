"""Lines 3.1 on: breaks planted in sessions through the real gateway, in every dialect, and sessions
without any. A break counts as found where the answer of that request says its cause, its place and
its price, and where no other answer of its session says anything of a break."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from acceptance.context_breaks_talks import (
    Body,
    Edit,
    Talk,
    changed,
    ids_written_anew,
    in_message,
    keys_reversed,
    messages_dropped,
    new_tool,
    other_system,
    picture_in_other_bytes,
    said_in,
    system,
    tool_described_otherwise,
    tool_dropped,
    tools_reversed,
    with_moving_marks,
)
from acceptance.lines import Lines
from acceptance.upstream_world import (
    DIALECTS,
    base_of,
    fault_upstreams,
    gateway,
    headers_of,
    provider,
)
from reflexarc.sim.faulty import FaultyUpstream

PRICE = {"input": 3.0, "output": 15.0, "cached": 0.3}
_SAVED_USD = 2.7e-6
"""What a cached token costs less."""
BREAK_AT, TURNS = 4, 7
UNBROKEN = 20


class Planted(NamedTuple):
    """`at`: the place that is to be named. `most`: nearly all of the prompt is lost by it."""

    cause: str
    client: str
    edit: Edit
    at: str
    most: bool = True


PLANTED = (
    Planted("clock", "messages", system("09:59:58", "10:04:11"), "system"),
    Planted("clock", "responses", system("2026-12-01", "2026-12-02"), "instructions"),
    Planted("id", "chat", system("run 4711", "run 4712"), "messages[0].content"),
    Planted("tools_order", "chat", tools_reversed, "tools[0]"),
    Planted(
        "tools_schema", "gemini", tool_described_otherwise,
        "tools[0].functionDeclarations[1].description",
    ),
    Planted("tools_added", "messages", new_tool, "tools[4]"),
    Planted("tools_removed", "responses", tool_dropped, "tools[0]"),
    Planted("system_changed", "gemini", other_system, "systemInstruction.parts[0].text"),
    Planted(
        "history_edited", "messages", in_message(2, "content", "Other words of this tool."),
        "messages[2].content[0].content", most=False,
    ),
    Planted("history_truncated", "chat", messages_dropped, "messages[2].content", most=False),
    Planted(
        "keys_reordered", "messages", keys_reversed, "messages[3].content[1].input", most=False
    ),
    Planted(
        "ids_rewritten", "messages", ids_written_anew, "messages[1].content[1].id", most=False
    ),
    Planted(
        "image_reencoded", "messages", picture_in_other_bytes,
        "messages[0].content[1].source.data", most=False,
    ),
    Planted("model", "chat", changed(model="faulty-2"), "model"),
    Planted(
        "thinking", "chat", changed(thinking={"type": "enabled", "budget_tokens": 1024}),
        "reasoning_effort",
    ),
    Planted(
        "tool_choice", "messages", changed(tool_choice={"type": "any"}), "tool_choice", most=False
    ),
)  # fmt: skip


class World:
    """A gateway and its clients."""

    def __init__(self, session: aiohttp.ClientSession, base: str) -> None:
        self._session = session
        self._base = base
        self.answered_by = ""

    async def told(
        self, client: str, body: Body, name: str = "", route: str = "", **more: str
    ) -> dict[str, str]:
        """What the answer says of the prompt's prefix, the first item as `how`."""
        path, raw = said_in(client, body)
        headers = headers_of(client, "theirs", **more)
        if name:
            headers["x-reflexarc-session"] = name
        url = f"{self._base}/{route or client}{path}"
        async with self._session.post(url, data=raw, headers=headers) as answer:
            text = await answer.text()
            if answer.status != 200:
                raise RuntimeError(f"status {answer.status}: {text[:300]}")
            how, *items = answer.headers.get("x-reflexarc-prefix", "(nothing)").split("; ")
            self.answered_by = answer.headers.get("x-reflexarc-upstream", "")
        return {"how": how, **dict(item.split("=", 1) for item in items)}

    async def metrics(self) -> str:
        async with self._session.get(f"{self._base}/metrics") as answer:
            return await answer.text()


def measure(lines: Lines) -> None:
    with tempfile.TemporaryDirectory(prefix="reflexarc-breaks-") as folder:
        asyncio.run(_measured(lines, Path(folder)))


async def _measured(lines: Lines, folder: Path) -> None:
    async with fault_upstreams(2) as (near, far):
        usual: Body = {"mode": "off", "record": "none", "price": PRICE}
        routes: list[Body] = [
            {"path": f"/{one}/v1", "upstream": base_of(near, one), "dialect": one, **usual}
            for one in DIALECTS
        ]
        routes.append({**routes[2], "path": "/late/v1", "cache_s": 0.4})
        routes.append({**routes[0], "path": "/converted/v1"})
        mends = {"tool_order": "stable", "volatile_system": "move"}
        routes += [
            {**one, "path": f"/mended-{name}/v1", "repair": mends}
            for one, name in zip(routes[:4], DIALECTS, strict=True)
        ]
        routes.append({"path": "/pool/v1", "upstream": "models", "mode": "off", "record": "none"})
        served = [
            {"provider": name, "model": "faulty-1", "price": PRICE} for name in ("near", "far")
        ]
        sections: dict[str, Any] = {
            "route": routes,
            "provider.near": provider(near.url),
            "provider.far": provider(far.url),
            "model.faulty-1": {"standard": served},
        }
        async with gateway(folder, sections) as running, aiohttp.ClientSession() as session:
            world = World(session, running.base)
            await _planted(lines, world)
            await _elsewhere_and_late(lines, world, near, far)
            await _unbroken(lines, world)
            await _mended(lines, world)


async def _planted(lines: Lines, world: World) -> None:
    found, named, priced, silent = 0, 0, 0, 0
    for number, planted in enumerate(PLANTED):
        talk = Talk(number, pictures=planted.cause == "image_reencoded")
        name = f"planted {number}" if number % 2 else ""
        said: list[dict[str, str]] = []
        for turn in range(TURNS):
            body = talk.body(turn)
            if turn >= BREAK_AT:
                planted.edit(body)
            said.append(await world.told(planted.client, body, name))
        broken = said[BREAK_AT]
        shown = "; ".join(f"{key}={value}" for key, value in broken.items())
        lines.say(f"   {planted.cause}, {planted.client}: {shown}")
        found += broken["how"] == "break"
        named += (broken.get("cause"), broken.get("at")) == (planted.cause, planted.at)
        priced += _is_priced(broken, said[BREAK_AT - 1], said[BREAK_AT + 1], most=planted.most)
        others = [one["how"] for at, one in enumerate(said) if at != BREAK_AT]
        silent += others == ["new"] + ["kept"] * (TURNS - 2)
    count = len(PLANTED)
    causes = len({one.cause for one in PLANTED})
    what = f"{count} planted breaks of {causes} causes, in every dialect"
    for at, (word, right) in enumerate(
        (
            ("found", found),
            ("named: cause and JSON path", named),
            ("priced: tokens read again, at input less cached", priced),
            ("nothing said of the turns before and after", silent),
        ),
        1,
    ):
        lines.add(f"3.{at}", f"{what}: {word}", f"{count} of {count}", f"{right} of {count}",
                  right == count)  # fmt: skip


def _is_priced(
    broken: dict[str, str], before: dict[str, str], after: dict[str, str], *, most: bool
) -> bool:
    """`before`, `after`: of the turns beside it. No more is lost than was sent, some of it is, and
    nearly all where the break stands at the beginning."""
    lost = int(broken.get("lost_tokens", -1))
    sent = int(after.get("tokens", 0))
    least = 0.7 * int(before.get("tokens", 0)) if most else 1
    right = abs(float(broken.get("usd", -1)) - lost * _SAVED_USD) < 1e-6
    return right and least <= lost <= sent


async def _elsewhere_and_late(
    lines: Lines, world: World, near: FaultyUpstream, far: FaultyUpstream
) -> None:
    talk, late = Talk(900), Talk(901)
    said = [await world.told("chat", talk.body(turn), "moves", "pool") for turn in range(3)]
    fails = near if world.answered_by.startswith("near") else far
    fails.usual = "error=503"
    said += [await world.told("chat", talk.body(turn), "moves", "pool") for turn in range(3, 5)]
    fails.usual = ""
    lines.add(
        "3.5", "a session whose deployment of a pool fails goes to another one",
        "kept, then cause=deployment once, priced; then kept",
        ", ".join(one.get("cause", one["how"]) for one in said),
        [one.get("cause", one["how"]) for one in said]
        == ["new", "kept", "kept", "deployment", "kept"] and float(said[3]["usd"]) > 0,
    )  # fmt: skip
    said = [await world.told("messages", late.body(turn), "late", "late") for turn in range(2)]
    await asyncio.sleep(0.8)
    said.append(await world.told("messages", late.body(2), "late", "late"))
    lines.add(
        "3.6", "a session that goes on after its cache is gone", "cause=expired, priced",
        ", ".join(one.get("cause", one["how"]) for one in said),
        [one.get("cause", one["how"]) for one in said] == ["new", "kept", "expired"]
        and float(said[2]["usd"]) > 0,
    )  # fmt: skip
    text = await world.metrics()
    causes = {
        line.split('cause="', 1)[1].split('"', 1)[0]
        for line in text.splitlines()
        if line.startswith("reflexarc_prefix_breaks_total{")
    }
    wanted = {one.cause for one in PLANTED} | {"deployment", "expired"}
    lines.add(
        "3.7", "causes that /metrics counts", f"the {len(wanted)} planted ones", f"{len(causes)}",
        causes == wanted,
    )  # fmt: skip


async def _unbroken(lines: Lines, world: World) -> None:
    """Two agents in turn in each session, one of them with other tools."""
    for number, (what, marks) in enumerate(
        (("unbroken sessions", False), ("sessions whose client moves its cache marks", True)), 8
    ):
        wrong: list[str] = []
        asked = 0
        for seed in range(UNBROKEN):
            client = "messages" if marks else (*DIALECTS, "converted")[seed % 5]
            first, second = Talk(1_000 + seed), Talk(2_000 + seed)
            for turn in range(TURNS):
                for agent in (first, second):
                    body = agent.body(turn)
                    if agent is second:
                        body["tools"] = body["tools"][:2]
                    body = with_moving_marks(body) if marks else body
                    spoken = "messages" if client == "converted" else client
                    said = await world.told(spoken, body, f"unbroken {seed} {marks}", client)
                    asked += 1
                    if said["how"] != ("kept" if turn else "new"):
                        wrong.append(f"{client}, turn {turn}: {said}")
        lines.add(
            f"3.{number}", f"{UNBROKEN} {what}, two agents each in turn: breaks told", "0",
            f"{len(wrong)} of {asked} requests" + (f": {wrong[0]}" if wrong else ""), not wrong,
        )  # fmt: skip


async def _mended(lines: Lines, world: World) -> None:
    """Clients that shuffle their tools and tell the time, as they are and mended."""
    lost: dict[str, int] = {}
    breaks: dict[str, int] = {}
    for route in ("", "mended-"):
        for number, client in enumerate(DIALECTS):
            talk = Talk(3_000 + number)
            for turn in range(TURNS):
                body = talk.body(turn)
                system("09:59:58", f"10:{turn:02d}:00")(body)
                body["tools"] = body["tools"][turn % 4 :] + body["tools"][: turn % 4]
                said = await world.told(client, body, f"mended {client}", f"{route}{client}")
                breaks[route] = breaks.get(route, 0) + (said["how"] == "break")
                lost[route] = lost.get(route, 0) + int(said.get("lost_tokens", 0))
    turns = len(DIALECTS) * (TURNS - 1)
    lines.add(
        "3.10",
        f"{len(DIALECTS)} sessions, one of each dialect, whose clients shuffle tools and tell the "
        "time: breaks, as they are and mended",
        f"{turns} of {turns}; one of each session, where the clock is seen changing first",
        f"{breaks['']} of {turns}, {lost['']} tokens lost; {breaks['mended-']}, "
        f"{lost['mended-']} tokens",
        breaks == {"": turns, "mended-": len(DIALECTS)} and lost["mended-"] < lost[""] / 3,
    )
