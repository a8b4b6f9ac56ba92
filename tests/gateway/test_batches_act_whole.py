"""A turn of several calls is answered with all of them or not at all, by a real gateway."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from reflexarc.lifecycle.by_hand import demote, promote
from reflexarc.lifecycle.off import entry_of, switch_off
from reflexarc.reflex import learn
from reflexarc.steps import Message, ToolCall
from reflexarc.steps.errors import StoreError
from reflexarc.store.store import Store
from reflexarc.store.trail import links
from reflexarc.wire.answers import answer_from_body
from reflexarc.wire.chat_answer import is_own_call
from tests.reflex import greenhouse
from tests.reflex.test_in_process import chat_message, chat_tool

from .upstream import Upstream, completion_bytes

TASK = 9011
SEVERAL = "several tools"


@pytest.fixture(scope="module")
def beds_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("greenhouse") / "greenhouse.reflex"
    learn(greenhouse.sessions(0, 100), max_error=0.1).save(path)
    return path


def before(tool: str, task: int = TASK) -> tuple[list[Message], tuple[ToolCall, ...]]:
    """The messages before the turn that calls a tool, and its calls."""
    messages = greenhouse.session(task).messages
    for at, message in enumerate(messages):
        if any(call.name == tool for call in message.tool_calls):
            return list(messages[:at]), message.tool_calls
    raise AssertionError(f"no turn calls {tool}")


def request(tool: str = "read_bed", task: int = TASK, **more: Any) -> dict[str, Any]:
    messages, _ = before(tool, task)
    return {
        "model": "greenhouse-model",
        "messages": [chat_message(message) for message in messages],
        "tools": [chat_tool(spec) for spec in greenhouse.TOOLS],
        **more,
    }


def made(calls: Sequence[ToolCall]) -> list[str]:
    return sorted(call.key for call in calls)


def turn(calls: Sequence[ToolCall]) -> bytes:
    """System 2's answer with these calls."""
    return completion_bytes(None, *((call.name, call.arguments) for call in calls))


async def acted(directory: Path) -> dict[str, Any]:
    """What the trail says of the first act, once it is written and nobody writes."""
    for _ in range(500):
        try:
            store = Store.open(directory / "reflexarc.db", create=False)
        except StoreError:
            await asyncio.sleep(0.02)
            continue
        with store.reading() as connection:
            found = [one.evidence for one in links(connection, what="act")]
        store.close()
        if found:
            return found[0]
        await asyncio.sleep(0.02)
    raise AssertionError("the trail never told of an act")


async def test_all_calls_stand_in_one_message_with_ids_of_their_own(
    start: Any, upstream: Upstream, beds_path: Path
) -> None:
    gateway = await start(reflex=str(beds_path), mode="live")
    _, wanted = before("read_bed")
    assert len({call.name for call in wanted}) == 2
    answer = await gateway.chat(request())
    assert upstream.received == []
    assert answer.decision.startswith("live; act; read_bed+weather; ")
    read = answer_from_body(answer.body, "application/json")
    assert made(read.calls) == made(wanted)
    ids = [call.id for call in read.calls]
    assert len(set(ids)) == len(wanted)
    assert all(is_own_call(identity) and len(identity) <= 40 for identity in ids)
    again = answer_from_body((await gateway.chat(request())).body, "application/json")
    assert again.calls == read.calls
    streamed = await gateway.chat(request(stream=True))
    told = answer_from_body(streamed.body, streamed.header("content-type") or "")
    assert told.complete
    assert made(told.calls) == made(wanted)
    decisions = {
        name: value
        for name, value in (await gateway.metrics()).items()
        if name.startswith("reflexarc_decisions_total{") and 'action="act"' in name
    }
    assert list(decisions.values()) == [3]


async def test_a_conversation_goes_on_after_it(
    start: Any, upstream: Upstream, beds_path: Path
) -> None:
    gateway = await start(reflex=str(beds_path), mode="live")
    session = greenhouse.session(TASK)
    results = {
        call.key: answer.content
        for message in session.messages
        for call, answer in zip(
            message.tool_calls,
            [one for one in session.messages if one.tool_call_id in
             {call.id for call in message.tool_calls}],
            strict=True,
        )
    }  # fmt: skip
    body = request("find_beds")
    seen: list[str] = []
    for _ in range(3):
        answer = await gateway.chat(body)
        seen.append(answer.decision.split("; ")[1])
        if seen[-1] != "act":
            break
        body["messages"].append(answer.json["choices"][0]["message"])
        for call in answer_from_body(answer.body, "application/json").calls:
            body["messages"].append(
                {"role": "tool", "tool_call_id": call.id, "content": results[call.key]}
            )
    assert seen == ["act", "act", "escalate"]
    assert len(upstream.received) == 1


async def test_who_wants_one_call_at_a_time_is_given_no_batch(
    start: Any, upstream: Upstream, beds_path: Path
) -> None:
    gateway = await start(reflex=str(beds_path), mode="live")
    answer = await gateway.chat(request(parallel_tool_calls=False))
    assert answer.decision == "live; escalate; field:parallel_tool_calls"
    assert len(upstream.received) == 1
    one = await gateway.chat(request("find_beds", parallel_tool_calls=False))
    assert one.decision.startswith("live; act; find_beds")
    assert (await gateway.chat(request(parallel_tool_calls=True))).decision.startswith("live; act")


async def test_a_token_limit_counts_all_calls(start: Any, beds_path: Path) -> None:
    gateway = await start(reflex=str(beds_path), mode="live")
    _, wanted = before("read_bed")
    enough_for_one = len(wanted[0].raw) + len(wanted[0].name) + 40
    tight = await gateway.chat(request(max_tokens=enough_for_one))
    assert tight.decision == "live; escalate; field:max_tokens"
    assert (await gateway.chat(request(max_tokens=2000))).decision.startswith("live; act")


async def test_a_tool_switched_off_takes_its_batches_with_it(
    start: Any, beds_path: Path, state_dir: Path
) -> None:
    switch_off(state_dir, entry_of("tool", "weather", time.time(), "ann", "broken"))
    gateway = await start(reflex=str(beds_path), mode="live")
    assert (await gateway.chat(request())).decision == "live; escalate; off:tool"
    assert (await gateway.chat(request("find_beds"))).decision.startswith("live; act")


async def test_a_demoted_tool_takes_its_batches_with_it(
    start: Any, beds_path: Path, state_dir: Path
) -> None:
    promote(state_dir, beds_path, "reads", "ann", "", time.time())
    demote(state_dir, beds_path, "reads:weather", "ann", "odd", time.time())
    gateway = await start(reflex=str(beds_path), mode="managed")
    assert (await gateway.chat(request())).decision == "managed; escalate; demoted"
    assert (await gateway.chat(request("find_beds"))).decision.startswith("managed; act")


async def test_a_batch_that_writes_never_acts_without_leave(
    start: Any, upstream: Upstream, beds_path: Path
) -> None:
    gateway = await start(reflex=str(beds_path), mode="live")
    answer = await gateway.chat(request("water_bed"))
    assert answer.decision == "live; escalate; side_effect"
    assert len(upstream.received) == 1


@pytest.mark.parametrize(
    ("calls", "outcome"),
    [
        (lambda wanted: wanted[::-1], "agree"),
        (lambda wanted: wanted[:-1], "disagree"),
        (lambda wanted: (*wanted, wanted[0]), "disagree"),
    ],
    ids=["in another order", "fewer", "one of them twice"],
)
async def test_an_audit_compares_all_calls(
    start: Any, upstream: Upstream, beds_path: Path, state_dir: Path, calls: Any, outcome: str
) -> None:
    _, wanted = before("read_bed")
    upstream.answer = turn(calls(wanted))
    gateway = await start(reflex=str(beds_path), mode="live", audit=1.0)
    assert (await gateway.chat(request())).decision.startswith("live; act")
    name = f'reflexarc_audits_total{{outcome="{outcome}",route="/v1",tool="{SEVERAL}"}}'
    await gateway.eventually(lambda counters: counters.get(name) == 1)
    act = await acted(state_dir)
    assert (act["tool"], act["tools"]) == (SEVERAL, ["read_bed", "weather"])
    assert act["certificate"]["scope"] == "reads"


@pytest.mark.parametrize("whole", [True, False])
async def test_shadow_compares_all_calls(
    start: Any, upstream: Upstream, beds_path: Path, whole: bool
) -> None:
    _, wanted = before("read_bed")
    upstream.answer = turn(wanted if whole else wanted[:1])
    gateway = await start(reflex=str(beds_path), mode="shadow")
    await gateway.chat(request())
    outcome = "agree" if whole else "disagree"
    name = f'reflexarc_shadow_total{{outcome="{outcome}",route="/v1",tool="{SEVERAL}"}}'
    await gateway.eventually(lambda counters: counters.get(name) == 1)


async def test_the_native_endpoint_gives_all_calls(start: Any, beds_path: Path) -> None:
    gateway = await start(reflex=str(beds_path))
    asked = request()
    del asked["model"]
    body = (await gateway.post("/api/v1/reflex", asked)).json
    _, wanted = before("read_bed")
    assert (body["decision"], body["reason"]) == ("act", "certified")
    calls = [ToolCall(one["id"], one["name"], one["arguments"]) for one in body["calls"]]
    assert made(calls) == made(wanted)
    assert len({call.id for call in calls}) == len(calls)
    assert [check["check"] for check in body["checks"]] == ["known_tool", "schema"] * len(wanted)
