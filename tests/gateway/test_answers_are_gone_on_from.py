"""`previous_response_id`: where System 1 had a part the gateway owns the chain and expands it;
a session without its acts passes untouched."""

import json
from pathlib import Path
from typing import Any

import pytest

from reflexarc.store.kept import FILE, KeptAnswer, KeptAnswers

from .conftest import Desk, Running, Starter, desk_session
from .upstream import MODEL, Upstream, completion_bytes

LIVE: dict[str, Any] = {"mode": "live", "effects": {"find_customer": "read", "get_order": "read"}}


def tools(desk: Desk) -> list[Any]:
    return [{"type": "function", "strict": False, **tool["function"]} for tool in desk.tools]


def opening(desk: Desk, task: int = 5000) -> dict[str, Any]:
    system, user, *_ = desk_session(task).messages
    return {
        "model": MODEL,
        "input": [
            {"role": "system", "content": system.content},
            {"role": "user", "content": user.content},
        ],
        "tools": tools(desk),
    }


def going_on(desk: Desk, previous: str, call_id: str, result: str) -> dict[str, Any]:
    item = {"type": "function_call_output", "call_id": call_id, "output": result}
    return {
        "model": MODEL,
        "previous_response_id": previous,
        "input": [item],
        "tools": tools(desk),
    }


def call_in(body: dict[str, Any]) -> dict[str, Any]:
    return next(item for item in body["output"] if item["type"] == "function_call")


def result_of(number: int, task: int = 5000) -> str:
    return [m for m in desk_session(task).messages if m.role == "tool"][number].content


def upstream_response(identity: str, *output: dict[str, Any]) -> bytes:
    return json.dumps(
        {
            "id": identity,
            "object": "response",
            "created_at": 1,
            "status": "completed",
            "model": MODEL,
            "output": list(output),
            "usage": {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7},
        }
    ).encode()


def said(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"id": "msg_up", "type": "message", "role": "assistant", "status": "completed",
            "content": content}  # fmt: skip


async def ask(gateway: Running, body: dict[str, Any], **headers: str) -> Any:
    return await gateway.post("/v1/responses", body, headers)


async def test_system_1_goes_on_from_its_own_answer_and_system_2_gets_it_all(
    start: Starter, desk: Desk, reflex_path: Path, upstream: Upstream, http: Any
) -> None:
    gateway = await start(reflex=str(reflex_path), dialect="responses", **LIVE)
    first = await ask(gateway, opening(desk))
    assert first.decision.startswith("live; act; find_customer"), first.body
    found = call_in(first.json)
    second = await ask(gateway, going_on(desk, first.json["id"], found["call_id"], result_of(0)))
    assert second.decision.startswith("live; act; get_order")
    assert json.loads(call_in(second.json)["arguments"]) == desk.next_call().arguments
    assert upstream.received == []

    upstream.answer = http.answer(upstream_response("resp_up", said("Wait.")))
    last = going_on(desk, second.json["id"], call_in(second.json)["call_id"], result_of(1))
    third = await ask(gateway, last)
    assert third.decision.startswith("live; escalate")
    sent = json.loads(upstream.received[0].body)
    assert "previous_response_id" not in sent
    assert [item.get("type", item.get("role")) for item in sent["input"]] == [
        "system",
        "user",
        "function_call",
        "function_call_output",
        "function_call",
        "function_call_output",
    ]
    ids = [item["call_id"] for item in sent["input"][2:]]
    assert ids[0] == ids[1] == found["call_id"]
    assert ids[2] == ids[3]
    assert list(sent) == ["model", "input", "tools"]

    # From its answer on the upstream knows the whole chain again.
    more = {"model": MODEL, "previous_response_id": "resp_up", "input": "Thanks", "tools": []}
    raw = json.dumps(more, indent=1).encode()
    await gateway.post("/v1/responses", raw)
    assert upstream.received[1].body == raw


async def test_a_session_without_acts_passes_untouched(
    start: Starter, reflex_path: Path, upstream: Upstream, http: Any
) -> None:
    gateway = await start(reflex=str(reflex_path), dialect="responses", **LIVE)
    upstream.answer = http.answer(upstream_response("resp_1", said("Yes?")))
    bodies = [
        json.dumps({"model": MODEL, "input": "Hello", "store": True}, indent=2).encode(),
        json.dumps({"previous_response_id": "resp_1", "model": MODEL, "input": "So"}).encode(),
        json.dumps({"previous_response_id": "resp_x", "model": MODEL, "input": ""}).encode(),
    ]
    for body in bodies:
        assert (await gateway.post("/v1/responses", body)).status == 200
    assert [received.body for received in upstream.received] == bodies


async def test_system_1_acts_after_system_2_answered_and_the_chain_is_whole(
    start: Starter, desk: Desk, reflex_path: Path, upstream: Upstream, http: Any
) -> None:
    """System 2 made the first call; its answer is known, so System 1 can make the second."""
    gateway = await start(reflex=str(reflex_path), dialect="responses", **LIVE)
    call = desk_session(5000).messages[2].tool_calls[0]
    made = {"id": "fc_up", "type": "function_call", "call_id": "call_up", "name": call.name,
            "arguments": call.raw, "status": "completed"}  # fmt: skip
    upstream.answer = http.answer(upstream_response("resp_1", made))
    first = await ask(gateway, opening(desk), **{"x-reflexarc": "off"})
    assert first.json["id"] == "resp_1"
    second = await ask(gateway, going_on(desk, "resp_1", "call_up", result_of(0)))
    assert second.decision.startswith("live; act; get_order")
    assert len(upstream.received) == 1
    upstream.answer = http.answer(upstream_response("resp_2", said("Done.")))
    acted = call_in(second.json)
    await ask(gateway, going_on(desk, second.json["id"], acted["call_id"], result_of(1)))
    sent = json.loads(upstream.received[1].body)["input"]
    assert [item.get("call_id") for item in sent[2:]] == [
        "call_up", "call_up", acted["call_id"], acted["call_id"],
    ]  # fmt: skip


@pytest.mark.parametrize("stream", [False, True])
async def test_an_upstream_of_another_dialect_never_hears_of_chains(
    stream: bool, start: Starter, upstream: Upstream
) -> None:
    gateway = await start(dialect="chat", mode="off")
    upstream.answer = completion_bytes("It is sunny.")
    first = await ask(gateway, {"model": MODEL, "input": "Weather?", "stream": stream})
    identity = (
        first.json["id"]
        if not stream
        else json.loads(first.body.split(b"event: response.completed\ndata: ")[1].split(b"\n")[0])[
            "response"
        ]["id"]
    )
    second = await ask(
        gateway, {"model": MODEL, "input": "And tomorrow?", "previous_response_id": identity}
    )
    assert second.status == 200
    assert second.json["previous_response_id"] == identity
    sent = json.loads(upstream.received[1].body)
    assert [(m["role"], m["content"]) for m in sent["messages"]] == [
        ("user", "Weather?"),
        ("assistant", "It is sunny."),
        ("user", "And tomorrow?"),
    ]
    assert "previous_response_id" not in json.dumps(sent)


async def test_what_nobody_knows_is_refused_as_the_api_does(
    start: Starter, desk: Desk, reflex_path: Path, upstream: Upstream
) -> None:
    gateway = await start(reflex=str(reflex_path), dialect="responses", **LIVE)
    first = await ask(gateway, opening(desk), authorization="Bearer ann")
    assert first.decision.startswith("live; act")
    call = call_in(first.json)
    body = going_on(desk, first.json["id"], call["call_id"], result_of(0))
    other = await ask(gateway, body, authorization="Bearer bob")
    assert other.status == 400
    assert other.json["error"]["code"] == "previous_response_not_found"
    assert other.json["error"]["param"] == "previous_response_id"
    assert upstream.received == []
    assert (await ask(gateway, body, authorization="Bearer ann")).status == 200


async def test_what_is_not_to_be_stored_is_not(
    start: Starter, desk: Desk, reflex_path: Path
) -> None:
    gateway = await start(reflex=str(reflex_path), dialect="responses", **LIVE)
    first = await ask(gateway, {**opening(desk), "store": False})
    assert first.decision.startswith("live; act")
    call = call_in(first.json)
    again = await ask(gateway, going_on(desk, first.json["id"], call["call_id"], result_of(0)))
    assert again.status == 400


async def test_a_chain_outlives_the_gateway(start: Starter, desk: Desk, reflex_path: Path) -> None:
    gateway = await start(reflex=str(reflex_path), dialect="responses", **LIVE)
    first = await ask(gateway, opening(desk))
    await gateway.gateway._chains.close()
    another = await start(reflex=str(reflex_path), dialect="responses", **LIVE)
    call = call_in(first.json)
    second = await ask(another, going_on(desk, first.json["id"], call["call_id"], result_of(0)))
    assert second.decision.startswith("live; act; get_order")


async def test_an_own_answer_can_be_asked_for_and_deleted(
    start: Starter, desk: Desk, reflex_path: Path, upstream: Upstream
) -> None:
    gateway = await start(reflex=str(reflex_path), dialect="responses", **LIVE)
    first = await ask(gateway, opening(desk))
    place = f"/v1/responses/{first.json['id']}"
    assert (await gateway.get(place)).json == first.json
    items = (await gateway.get(f"{place}/input_items")).json
    assert [item["role"] for item in items["data"]] == ["user", "system"]
    assert all(item["id"] for item in items["data"])
    async with gateway.client.delete(gateway.base + place) as answer:
        assert (answer.status, (await answer.json())["deleted"]) == (200, True)
    assert upstream.received == []
    await gateway.get(place)  # now it is the upstream's to know
    assert upstream.received[0].target == place.encode()


def test_a_purge_leaves_no_byte_of_what_it_names(tmp_path: Path) -> None:
    kept = KeptAnswers.open(tmp_path)
    for number, text in enumerate(("order W1234567", 'said "quoted words"', "nothing of note")):
        items = json.dumps([{"role": "user", "content": text}]).encode()
        kept.put(KeptAnswer("t1", f"resp_{number}", None, True, 100.0 + number, items))
    assert kept.forget(["W1234567", '"quoted words"']) == 2
    assert kept.get("t1", "resp_2") is not None
    assert kept.forget([], tenants=["t1"]) == 1
    kept.close()
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"W1234567" not in content
    assert b"of note" not in content


def test_kept_answers_go_with_time_and_past_a_limit(tmp_path: Path) -> None:
    kept = KeptAnswers.open(tmp_path)
    for number in range(250):
        kept.put(KeptAnswer("t", f"r{number}", None, True, float(number), b"[]" + b" " * 1000))
    assert kept.retain(50.0) == 50
    assert kept.retain(0.0, max_bytes=100_000) == 101
    assert kept.get("t", "r249") is not None
    assert kept.get("t", "r60") is None
    kept.close()
    assert oct((tmp_path / FILE).stat().st_mode & 0o777) == "0o600"
