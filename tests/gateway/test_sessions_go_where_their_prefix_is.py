"""Replicas with prompt caches of their own: who holds a session's prefix is asked again."""

import json
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any

import pytest

from reflexarc.gateway.config import Route
from reflexarc.gateway.config_pool import ModelConfig, ProviderConfig, Served
from reflexarc.gateway.prefixes import beginning_of
from reflexarc.sim.faulty import FaultyUpstream
from reflexarc.sim.prefix import PrefixCache
from reflexarc.wire.dialects import dialect
from reflexarc.wire.growing import take_apart

from .conftest import Running, Starter
from .pools import CHEAP

SESSIONS, TURNS = 12, 4
SYSTEM = "You are the agent of a shop, and you know its rules by heart. " * 20
Body = dict[str, Any]


@pytest.fixture
async def replicas() -> AsyncIterator[list[FaultyUpstream]]:
    running = [FaultyUpstream(prompts=PrefixCache(16, 16, 10_000_000)) for _ in range(3)]
    for one in running:
        await one.start()
    yield running
    for one in running:
        await one.stop()


async def farm(start: Starter, replicas: list[FaultyUpstream], **more: Any) -> Running:
    provider = ProviderConfig(
        urls=tuple(one.url for one in replicas), private=True, key_env="KEY", **more
    )
    return await start(
        routes=(Route(upstream="models", mode="off"),),
        environment={"KEY": "one"},
        pool={
            "provider": {"farm": provider},
            "model": {"agent": ModelConfig(standard=(Served("farm", "faulty-1", price=CHEAP),))},
        },
    )


def turn(session: int, number: int) -> Body:
    """The messages of a session as they stand at its turn of this number, the first being 0."""
    messages: list[Body] = [{"role": "system", "content": f"Shop {session}. {SYSTEM}"}]
    for at in range(number + 1):
        messages.append({"role": "user", "content": f"{session}: question {at}. " + "why? " * 60})
        if at < number:
            messages.append({"role": "assistant", "content": "because. " * 30})
    return {"model": "agent", "messages": messages}


async def asked(running: Running, body: Body, **headers: str) -> tuple[str, float]:
    """Who answered, and the share of the prompt that was found cached there."""
    sent = {"authorization": "Bearer mine", **headers}
    answer = await running.post("/v1/chat/completions", json.dumps(body).encode(), sent)
    assert answer.status == 200
    names = {name.decode().lower(): value.decode() for name, value in answer.headers}
    usage = answer.json["usage"]
    share = usage["prompt_tokens_details"]["cached_tokens"] / usage["prompt_tokens"]
    return names["x-reflexarc-upstream"], share


async def all_turns(running: Running) -> dict[int, list[tuple[str, float]]]:
    found: dict[int, list[tuple[str, float]]] = defaultdict(list)
    for number in range(TURNS):
        for session in range(SESSIONS):
            found[session].append(await asked(running, turn(session, number)))
    return found


async def test_each_session_stays_at_one_replica_and_finds_its_prefix_there(
    start: Starter, replicas: list[FaultyUpstream]
) -> None:
    found = await all_turns(await farm(start, replicas))
    for turns in found.values():
        assert len({name for name, _ in turns}) == 1
        assert all(share > 0.6 for _, share in turns[1:])
    names = {turns[0][0] for turns in found.values()}
    assert names <= {f"farm/faulty-1#127.0.0.1:{one.port}" for one in replicas}
    assert len(names) > 1  # which, the ports of this run say


async def test_two_gateways_that_know_nothing_of_each_other_agree(
    start: Starter, replicas: list[FaultyUpstream]
) -> None:
    first = await farm(start, replicas)
    second = await farm(start, replicas[::-1])
    for session in range(SESSIONS):
        at_one = await asked(first, turn(session, 0))
        at_other = await asked(second, turn(session, 1), authorization="Bearer another")
        assert at_one[0] == at_other[0]
        assert at_other[1] > 0.5


async def test_a_session_moves_once_where_its_replica_fails_and_stays(
    start: Starter, replicas: list[FaultyUpstream]
) -> None:
    running = await farm(start, replicas)
    name, _ = await asked(running, turn(0, 0))
    (broken,) = [one for one in replicas if name.endswith(f":{one.port}")]
    broken.usual = "error=503"
    moved = [await asked(running, turn(0, number)) for number in (1, 2)]
    broken.usual = ""
    moved += [await asked(running, turn(0, number)) for number in (3, 4)]
    (other,) = {where for where, _ in moved}
    assert other != name
    assert moved[0][1] == 0
    assert all(share > 0.6 for _, share in moved[1:])


async def test_a_session_is_not_held_up_by_a_replica_without_a_slot(
    start: Starter, replicas: list[FaultyUpstream]
) -> None:
    running = await farm(start, replicas, max_parallel=1)
    name, _ = await asked(running, turn(0, 0))
    watched = running.gateway.system2.fleet.of(name)
    await watched.slots.take("standard")
    other, _ = await asked(running, turn(0, 1))
    watched.slots.give("standard")
    assert other != name


async def test_a_new_session_goes_where_its_tools_and_instructions_were_read(
    start: Starter, replicas: list[FaultyUpstream]
) -> None:
    running = await farm(start, replicas)
    name, _ = await asked(running, turn(0, 0))
    for number in range(6):
        body = turn(0, 0)
        body["messages"][1]["content"] = f"Another matter, number {number}."
        where, share = await asked(running, body)
        assert where == name
        assert share > 0.8


# --- the pieces of a prompt


def begun(client: str, body: Body) -> Any:
    return beginning_of(client, take_apart(json.dumps(body).encode(), dialect(client).conversation))


def test_a_conversation_begins_with_its_first_message_that_is_no_instruction() -> None:
    body = {
        "messages": [
            {"role": "system", "content": "a"}, {"role": "developer", "content": "b"},
            {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"},
        ],
        "tools": [],
    }  # fmt: skip
    begins = begun("chat", body)
    assert begins.prefix.opening == 3
    assert [json.loads(one)["content"] for one in begins.opening] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("client", "body"),
    [
        ("responses", {"instructions": "a", "input": "b"}),
        ("responses", {"instructions": "a", "input": [{"role": "user", "content": "b"}]}),
        ("messages", {"system": "a", "messages": [{"role": "user", "content": "b"}]}),
        ("gemini", {"systemInstruction": {"parts": []}, "contents": [{"parts": []}]}),
    ],
)
def test_instructions_beside_the_conversation_come_before_it(client: str, body: Body) -> None:
    begins = begun(client, {**body, "tools": [{"name": "x"}]})
    assert begins.prefix.opening == 2
    assert len(begins.prefix) == 3
    assert len(begins.opening) == 2


@pytest.mark.parametrize("messages", [None, 3, "x", {}, [], [1, None, []], [{"role": 3}]])
def test_what_is_no_conversation_is_taken_as_it_is(messages: Any) -> None:
    begins = begun("chat", {"messages": messages})
    assert len(begins.prefix) == (len(messages) if isinstance(messages, list) else 1)


def test_marks_that_move_from_message_to_message_change_no_prefix() -> None:
    def message(text: str, *, marked: bool = False, first: bool = False) -> Body:
        mark: Body = {"cache_control": {"type": "ephemeral", "ttl": "1h"}} if marked else {}
        block = {"type": "text", "text": text}
        return {"role": "user", "content": [{**mark, **block} if first else {**block, **mark}]}

    for first in (False, True):
        before = begun("messages", {"messages": [message("a", marked=True, first=first)]})
        after = begun("messages", {"messages": [message("a"), message("b", marked=True)]})
        assert after.prefix.digest(0) == before.prefix.digest(0)
