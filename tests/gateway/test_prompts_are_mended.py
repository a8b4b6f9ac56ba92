"""Repair of prompts through a real gateway: what is sent stays valid, and begins as before."""

import copy
import json
import random

import pytest

from reflexarc.gateway.config import Repair, Route
from reflexarc.gateway.prompt_repair import PromptRepair
from reflexarc.sim.faulty import FaultyUpstream
from reflexarc.wire.growing import take_apart
from tests.context.prompts import Body, request, tool

from .conftest import Starter
from .pools import Two, pool_of
from .test_prefixes_are_watched import ask, prefix, system, told

TOOLS = [tool(name) for name in ("read", "write", "look", "find", "wait")]


def shuffled(seed: int) -> list[Body]:
    return random.Random(seed).sample(TOOLS, len(TOOLS))


def session(turns: int) -> list[Body]:
    """A client that shuffles its tools and tells the time."""
    return [
        request(turn, tools=shuffled(turn), system=system(f"09:59:{turn:02d}"))
        for turn in range(turns)
    ]


def names(body: Body) -> list[str]:
    return [one["name"] for one in body["tools"]]


async def test_without_a_word_nothing_is_touched(start: Starter, faulty: FaultyUpstream) -> None:
    running = await start(upstream=faulty.url, dialect="messages", mode="off")
    for body in session(3):
        await ask(running, body)
    assert [one.body for one in faulty.received] == [json.dumps(one).encode() for one in session(3)]


async def test_tools_stay_in_their_first_order(start: Starter, faulty: FaultyUpstream) -> None:
    repair = Repair(tool_order="stable")
    running = await start(upstream=faulty.url, dialect="messages", mode="off", repair=repair)
    found = [await prefix(running, request(at, tools=shuffled(at)), "s") for at in range(4)]
    assert [one["how"] for one in found] == ["new", "kept", "kept", "kept"]
    assert found[1]["repaired"] == "tool_order"
    first = names(faulty.received[0].json)
    for at, one in enumerate(faulty.received):
        assert names(one.json) == first
        assert {**one.json, "tools": 0} == {**request(at), "tools": 0}
        assert sorted(names(one.json)) == sorted(names(request(at, tools=TOOLS)))


async def test_a_new_tool_stands_last_and_marks_stay_where_they_were(
    start: Starter, faulty: FaultyUpstream
) -> None:
    repair = Repair(tool_order="stable")
    running = await start(upstream=faulty.url, dialect="messages", mode="off", repair=repair)
    for at, tools in enumerate((TOOLS, [tool("new"), *reversed(TOOLS)])):
        marked = copy.deepcopy(tools)
        marked[-1]["cache_control"] = {"type": "ephemeral"}
        await prefix(running, request(at, tools=marked), "s")
    sent = faulty.received[-1].json["tools"]
    assert [one["name"] for one in sent] == [*names({"tools": TOOLS}), "new"]
    assert ["cache_control" in one for one in sent] == [False] * 5 + [True]


async def test_a_clock_is_told_at_the_end_once_it_was_seen_changing(
    start: Starter, faulty: FaultyUpstream
) -> None:
    repair = Repair(volatile_system="move")
    running = await start(upstream=faulty.url, dialect="messages", mode="off", repair=repair)
    found = [
        await prefix(running, request(at, system=system(f"09:59:{at:02d}")), "s") for at in range(5)
    ]
    # Once more it breaks where the line was; from then on nothing does.
    assert [one["how"] for one in found] == ["new", "break", "kept", "kept", "kept"]
    last = faulty.received[-1].json
    assert "2026-12-01" not in last["system"]
    assert last["system"].startswith("You mend programs.\nBe brief.")
    block = last["messages"][-1]["content"][-1]
    assert block["text"].endswith("\nToday is 2026-12-01 09:59:04.")
    assert last["messages"][:-1] == request(4)["messages"][:-1]
    assert last["messages"][-1]["content"][:-1] == request(4)["messages"][-1]["content"]


async def test_other_words_in_a_system_prompt_stay_where_they_are(
    start: Starter, faulty: FaultyUpstream
) -> None:
    repair = Repair(volatile_system="move")
    running = await start(upstream=faulty.url, dialect="messages", mode="off", repair=repair)
    for at, words in enumerate(("Be kind.", "Be strict.", "Be kind.")):
        await prefix(running, request(at, system=f"You help.\n{words}\nAnswer."), "s")
        assert faulty.received[-1].json["system"] == f"You help.\n{words}\nAnswer."


@pytest.mark.parametrize("kind", ["chat", "responses", "gemini"])
async def test_clocks_are_moved_in_every_dialect(
    start: Starter, faulty: FaultyUpstream, kind: str
) -> None:
    upstream = faulty.gemini_url if kind == "gemini" else faulty.url
    repair = Repair(volatile_system="move", tool_order="stable")
    running = await start(upstream=upstream, dialect=kind, mode="off", repair=repair)
    found: list[dict[str, str]] = []
    for at in range(4):
        said = system(f"09:59:{at:02d}")
        turns = [f"word {turn}" for turn in range(2 * at + 1)]
        path, body = _body(kind, said, turns)
        answer = await ask(running, body, "s", path)
        found.append(told(answer.header("x-reflexarc-prefix")))
    assert [one["how"] for one in found] == ["new", "break", "kept", "kept"]
    sent = faulty.received[-1].body.decode()
    assert sent.index("09:59:03") > sent.rindex("word 6")


def _body(kind: str, said: str, turns: list[str]) -> tuple[str, Body]:
    if kind == "gemini":
        roles = ("user", "model")
        contents = [
            {"role": roles[at % 2], "parts": [{"text": text}]} for at, text in enumerate(turns)
        ]
        path = "/v1beta/models/faulty-1:generateContent"
        return path, {"systemInstruction": {"parts": [{"text": said}]}, "contents": contents}
    listed = [
        {"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(turns)
    ]
    if kind == "responses":
        whole = {"model": "faulty-1", "instructions": said, "store": False}
        return "/v1/responses", {**whole, "input": listed}
    system_first = [{"role": "system", "content": said}, *listed]
    return "/v1/chat/completions", {"model": "faulty-1", "messages": system_first}


async def test_marks_are_set_where_a_prompt_is_read_again(
    start: Starter, faulty: FaultyUpstream
) -> None:
    repair = Repair(breakpoints="auto")
    running = await start(upstream=faulty.url, dialect="messages", mode="off", repair=repair)
    long = request(8, system="You mend. " * 600)
    await ask(running, long)
    sent = faulty.received[-1].json
    assert sent["system"][-1]["cache_control"] == {"type": "ephemeral"}
    assert sent["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}
    assert _marks(sent) == 2
    await ask(running, request(1))  # too short to be kept
    assert _marks(faulty.received[-1].json) == 0
    for block in (message["content"][-1] for message in long["messages"][2:10:2]):
        block["cache_control"] = {"type": "ephemeral"}
    await ask(running, long)  # four marks of its client's
    assert faulty.received[-1].json == long


def _marks(body: Body) -> int:
    return json.dumps(body).count('"cache_control"')


async def test_the_mark_stands_before_what_is_told_at_the_end(
    start: Starter, faulty: FaultyUpstream
) -> None:
    repair = Repair(breakpoints="auto", volatile_system="move")
    running = await start(upstream=faulty.url, dialect="messages", mode="off", repair=repair)
    for at in range(3):
        body = request(8 + at, system=system(f"09:59:{at:02d}") * 3)
        await prefix(running, body, "s")
    *_, marked, told_last = faulty.received[-1].json["messages"][-1]["content"]
    assert "cache_control" in marked
    assert "cache_control" not in told_last
    assert "09:59:02" in told_last["text"]


async def test_a_session_is_named_to_the_provider(start: Starter, faulty: FaultyUpstream) -> None:
    repair = Repair(prompt_cache_key="session")
    running = await start(upstream=faulty.url, dialect="chat", mode="off", repair=repair)
    keys: list[str] = []
    for name, own in (("a", None), ("a", None), ("b", None), ("b", "mine")):
        _, body = _body("chat", "You help.", ["hi"])
        await ask(
            running, body | ({"prompt_cache_key": own} if own else {}), name, "/v1/chat/completions"
        )
        keys.append(faulty.received[-1].json["prompt_cache_key"])
    assert keys[0] == keys[1] != keys[2]
    assert "a" != keys[0] != "b"
    assert keys[3] == "mine"


async def test_converted_and_pooled_prompts_are_mended_too(start: Starter, two: Two) -> None:
    repair = Repair(tool_order="stable", volatile_system="move", breakpoints="auto",
                    prompt_cache_key="session")  # fmt: skip
    running = await start(
        routes=(Route(upstream="models", mode="off", repair=repair),),
        pool=pool_of(two, ("chat", "messages")),
        environment={"KEY_a": "one", "KEY_b": "two"},
    )
    found = [await prefix(running, body | {"model": "agent"}, "s") for body in session(4)]
    assert [one["how"] for one in found] == ["new", "break", "kept", "kept"]
    sent = two[0].received[-1].json
    assert "prompt_cache_key" in sent
    assert [one["function"]["name"] for one in sent["tools"]] == names(session(1)[0])
    assert "2026" not in json.dumps(sent["messages"][0])
    two[0].usual = "error=503"
    await prefix(running, session(5)[4] | {"model": "agent"}, "s")
    assert names(two[1].received[-1].json) == names(session(1)[0])
    direct = await start(
        upstream=two[0].url, dialect="chat", mode="off", repair=repair, api_key_env="KEY_a",
        environment={"KEY_a": "one"},
    )  # fmt: skip
    two[0].usual = ""
    for body in session(3):
        await prefix(direct, body, "t")
    assert [one["function"]["name"] for one in two[0].received[-1].json["tools"]] == names(
        session(1)[0]
    )


def test_of_a_mended_prompt_only_what_is_new_is_read() -> None:
    route = Route(upstream="http://x/v1", repair=Repair("stable", "move", "auto"))
    repair = PromptRepair(b"a secret" * 4)
    before = 0
    for body in session(8)[2:]:
        raw = json.dumps(body).encode()
        mended = repair.mended(route, b"t", [], "s", "messages", raw)
        assert mended is not None
        whole = take_apart(mended.prompt.body, "messages")
        assert [*mended.prompt.ends] == [*whole.ends]
        assert mended.prompt.chain == whole.chain
        if "volatile_system" in mended.names:
            assert mended.prompt.kept == before
            before = len(whole)
        elif mended.names:
            before = 0  # the clock is not known to move yet
    assert before


async def test_what_cannot_be_mended_passes_as_it_is(
    start: Starter, faulty: FaultyUpstream
) -> None:
    repair = Repair("stable", "move", "auto", "session")
    running = await start(upstream=faulty.url, dialect="messages", mode="off", repair=repair)
    for raw in (
        b'{"model":"faulty-1","model":"faulty-1","max_tokens":5,"messages":[]}',
        b'{"model":"faulty-1","max_tokens":5,"messages":"no list","tools":7,"system":[1,null]}',
    ):
        await running.post("/v1/messages", raw)
        assert faulty.received[-1].body == raw
