"""Line 3: random histories that hold turns of System 1, put to a strict System 2.

New desk tasks run through a live gateway; before each step chance says whether System 1 may act
(the others are System 2's), and whether the answer is streamed. Every history that holds a turn of
System 1 is sent to System 2 as it stands, through the gateway with System 1 off, whole or cut after
some earlier turn. System 2 refuses what a strict provider would.
"""

import asyncio
import json
import random
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import aiohttp
import msgspec
from aiohttp import web

from acceptance.gateway_world import MAX_ERROR, desk_reflex, desk_sessions, gateway_config
from acceptance.lines import Lines
from acceptance.processes import Process, process
from acceptance.strict_upstream import faults
from reflexarc.bench.desk.agent import StepRun
from reflexarc.bench.desk.record import SPECS, run_tasks
from reflexarc.bench.desk.system2 import ReturnsDeskSystem2
from reflexarc.bench.desk.world import make_task
from reflexarc.sim.wire import assistant_message
from reflexarc.wire.answers import answer_from_body
from reflexarc.wire.chat import message_from_chat
from reflexarc.wire.chat_answer import CALL_ID_PREFIX

HISTORIES = 1_000
_TASKS_AT_ONCE = 4


class _Strict:
    """System 2: refuses with a 400 what does not hold, else answers as the desk's does."""

    def __init__(self, draw: random.Random) -> None:
        self.refused: Counter[str] = Counter()
        self.accepted = 0
        self._draw = draw
        self._runner: web.AppRunner | None = None

    async def start(self) -> str:
        app = web.Application(client_max_size=64 * 1024**2)
        app.router.add_post("/v1/chat/completions", self._answer)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = cast("dict[str, Any]", await request.json())
        found = faults(body["messages"], body["tools"])
        if found:
            self.refused.update(found[:1])
            error = {"message": "; ".join(found[:5]), "type": "invalid_request_error"}
            return web.json_response({"error": error}, status=400)
        self.accepted += 1
        policy = ReturnsDeskSystem2()
        answer = policy.answer([message_from_chat(m) for m in body["messages"]], SPECS)
        message = assistant_message(answer, f"{self._draw.getrandbits(64):016x}")
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": finish}
            return web.json_response({"object": "chat.completion", "choices": [choice]})
        delta = dict(message)
        if "tool_calls" in delta:
            delta["tool_calls"] = [
                {"index": index, **call} for index, call in enumerate(delta["tool_calls"])
            ]
        chunks: list[dict[str, Any]] = [
            {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
        ]
        text = b"".join(b"data: " + msgspec.json.encode(chunk) + b"\n\n" for chunk in chunks)
        return web.Response(body=text + b"data: [DONE]\n\n", content_type="text/event-stream")


class _Agent:
    """Asks through the gateway, and puts every history to System 2 on the way."""

    def __init__(self, client: aiohttp.ClientSession, base: str, draw: random.Random) -> None:
        self._client = client
        self._url = f"{base}/v1/chat/completions"
        self._draw = draw
        self.histories = self.turns = self.acts = 0
        self.other_ids: list[str] = []
        self.broken: list[str] = []

    async def complete(self, body: Mapping[str, Any]) -> tuple[dict[str, Any], StepRun]:
        messages = cast("list[dict[str, Any]]", body["messages"])
        await self._replay(body, messages)
        off = self._draw.random() < 0.4
        stream = self._draw.random() < 0.5
        asked = {**body, "stream": stream}
        headers = {"x-reflexarc": "off"} if off else {}
        message, decision = await self._ask(asked, headers)
        acted = decision.startswith("live; act")
        if acted:
            self.acts += 1
            again, _ = await self._ask(asked, {})
            if again != message:
                self.other_ids.append(f"{message} and then {again}")
        return message, StepRun(len(messages), 0.0, acted, decision)

    async def _replay(self, body: Mapping[str, Any], messages: Sequence[dict[str, Any]]) -> None:
        ends = [
            at
            for at in range(1, len(messages) + 1)
            if messages[at - 1]["role"] in ("user", "tool")
            and (at == len(messages) or messages[at]["role"] not in ("tool",))
        ]
        end = self._draw.choice(ends) if self._draw.random() < 0.3 else len(messages)
        acted = sum(
            cast("str", call["id"]).startswith(CALL_ID_PREFIX)
            for message in messages[:end]
            for call in cast("list[dict[str, Any]]", message.get("tool_calls") or [])
        )
        if not acted or self.histories >= HISTORIES:
            return
        self.histories += 1
        self.turns += acted
        try:
            await self._ask({**body, "messages": messages[:end]}, {"x-reflexarc": "off"})
        except _RefusedError as error:
            self.broken.append(str(error))

    async def _ask(
        self, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> tuple[dict[str, Any], str]:
        data = msgspec.json.encode(body)
        given = {"content-type": "application/json", **headers}
        async with self._client.post(self._url, data=data, headers=given) as answer:
            read = await answer.read()
            if answer.status != 200:
                raise _RefusedError(f"{answer.status}: {read[:300].decode(errors='replace')}")
            decision = answer.headers.get("x-reflexarc-decision", "")
            turn = answer_from_body(read, answer.headers.get("content-type", ""))
        return turn.as_chat(), decision


class _RefusedError(Exception):
    """System 2, or the gateway, did not answer with a 200."""


def measure(lines: Lines, seed: int) -> None:
    with tempfile.TemporaryDirectory(prefix="reflexarc-history-") as name:
        folder = Path(name)
        desk_reflex(desk_sessions(), folder / "desk.reflex")
        asyncio.run(_measure(lines, folder, random.Random(seed)))


async def _measure(lines: Lines, folder: Path, draw: random.Random) -> None:
    strict = _Strict(draw)
    _checks_itself()
    upstream = await strict.start()
    route: dict[str, Any] = {
        "mode": "live", "max_error": MAX_ERROR, "deadline_ms": 1000, "audit": 0.0,
    }  # fmt: skip
    config = gateway_config(folder, "history", upstream, folder / "desk.reflex", **route)
    try:
        manager = process("serve", "--config", str(config), "--port", "0")
        gateway: Process = await asyncio.to_thread(manager.__enter__)
        try:
            async with aiohttp.ClientSession() as client:
                agent = _Agent(client, gateway.base, draw)
                tasks = 0
                while agent.histories < HISTORIES and tasks < 40 * _TASKS_AT_ONCE:
                    names = [f"history-{draw.random()}" for _ in range(_TASKS_AT_ONCE)]
                    place = folder / str(tasks)
                    place.mkdir()
                    runs = await run_tasks(
                        [make_task(name) for name in names], lambda _: agent, place
                    )
                    tasks += len(runs)
        finally:
            await asyncio.to_thread(manager.__exit__, None, None, None)
    finally:
        await strict.stop()
    refused = sum(strict.refused.values())
    lines.add(
        "3.1",
        "random histories with turns of System 1, replayed to a strict System 2: refused",
        f"0 of {HISTORIES}",
        f"{len(agent.broken)} of {agent.histories} ({agent.turns} turns of System 1 in them); "
        f"{refused} of {strict.accepted + refused} requests refused in all"
        + (f"; {json.dumps(strict.refused.most_common(3))}" if refused else ""),
        not agent.broken and not refused and agent.histories >= HISTORIES,
    )
    lines.add(
        "3.2",
        "the same request again: other calls or ids",
        "0 times",
        f"{len(agent.other_ids)} of {agent.acts} acts",
        not agent.other_ids and agent.acts > 0,
    )


def _checks_itself() -> None:
    """A System 2 that refuses nothing would prove nothing."""
    function = {"name": "f", "arguments": "{}"}
    call = {"id": "call_1", "type": "function", "function": function}
    tools = [{"function": {"name": "f", "parameters": {"type": "object"}}}]
    turn = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "call_1", "content": "x"}
    user = {"role": "user", "content": "x"}
    assert not faults([user, turn, result], tools)
    for bad in (
        [user, result],
        [user, turn, user],
        [user, turn],
        [user, turn, result, turn, result],
        [user, turn, {**result, "tool_call_id": "call_2"}],
        [user, {**turn, "tool_calls": [{**call, "id": "x" * 41}]}, result],
        [user, {**turn, "tool_calls": [{**call, "function": {**function, "name": "g"}}]}, result],
        [user, {**turn, "tool_calls": []}],
        [user, {"role": "assistant", "content": None}],
    ):
        assert faults(bad, tools), bad
