"""Live mode: System 1 answers what it is certified for, as an ordinary turn, always the same."""

import json
from typing import Any


async def test_a_certified_read_is_answered_without_system_2(
    start: Any, upstream: Any, desk: Any, reflex_path: Any
) -> None:
    gateway = await start(reflex=str(reflex_path), mode="live")
    answer = await gateway.chat(desk.request(7000, 4))
    wanted = desk.next_call(7000, 4)
    assert upstream.received == []
    assert answer.status == 200
    assert answer.json["object"] == "chat.completion"
    choice = answer.json["choices"][0]
    call = choice["message"]["tool_calls"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert call["function"]["name"] == wanted.name
    assert json.loads(call["function"]["arguments"]) == wanted.arguments
    assert answer.json["usage"]["completion_tokens"] == 0
    assert answer.json["usage"]["prompt_tokens"] > 0
    mode, action, tool, confidence, bound = answer.decision.split("; ")
    assert (mode, action, tool, bound) == ("live", "act", wanted.name, "max_error=0.05")
    assert 0.9 < float(confidence) <= 1
    assert "system1;dur=" in (answer.header("server-timing") or "")
    assert (answer.header("x-request-id") or "").startswith("req_")


async def test_the_same_request_gets_the_same_call_and_ids(
    start: Any, desk: Any, reflex_path: Any
) -> None:
    gateway = await start(reflex=str(reflex_path), mode="live")
    request, other = desk.request(7001, 4), desk.request(7002, 4)
    first = (await gateway.chat(request)).json
    await gateway.chat(other)
    again = (await gateway.chat(request)).json
    assert (first["id"], first["choices"]) == (again["id"], again["choices"])
    assert first["id"] != (await gateway.chat(other)).json["id"]
    assert len(first["choices"][0]["message"]["tool_calls"][0]["id"]) <= 40


async def test_a_conversation_that_waits_for_nobody_escalates(
    start: Any, upstream: Any, desk: Any
) -> None:
    gateway = await start(loader="moody", mode="live")
    request = desk.request()
    prefilled = {**request, "messages": [*request["messages"], _said("Certainly, I will")]}
    unanswered = {**request, "messages": request["messages"][:-1]}
    assert unanswered["messages"][-1]["role"] == "assistant"
    for body in (prefilled, unanswered, prefilled):
        assert (await gateway.chat(body)).decision == "live; escalate; field:messages"
    assert len(upstream.received) == 3


def _said(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


async def test_a_write_never_acts(start: Any, upstream: Any, desk: Any, reflex_path: Any) -> None:
    gateway = await start(reflex=str(reflex_path), mode="live", max_error=0.5)
    answer = await gateway.chat(desk.request(7003, 6))
    assert answer.decision == "live; escalate; side_effect"
    assert len(upstream.received) == 1


async def test_a_tool_declared_a_write_never_acts_whatever_the_reflex_thinks(
    start: Any, upstream: Any, desk: Any
) -> None:
    request = desk.request()
    request["tools"][1] = {**request["tools"][1], "annotations": {"readOnlyHint": False}}
    answer = await (await start(loader="moody", mode="live")).chat(request)
    assert answer.decision == "live; escalate; side_effect"
    assert len(upstream.received) == 1


async def test_a_bound_tighter_than_any_certificate_escalates(
    start: Any, upstream: Any, desk: Any, reflex_path: Any
) -> None:
    gateway = await start(reflex=str(reflex_path), mode="live", max_error=0.001)
    assert (await gateway.chat(desk.request())).decision == "live; escalate; no_certificate"
    assert len(upstream.received) == 1


async def test_another_model_or_a_changed_schema_escalates(
    start: Any, upstream: Any, desk: Any, reflex_path: Any
) -> None:
    gateway = await start(reflex=str(reflex_path), mode="live")
    other_model = {**desk.request(), "model": "another"}
    assert (await gateway.chat(other_model)).decision == "live; escalate; model_changed"
    changed = json.loads(json.dumps(desk.request()))
    changed["tools"][1]["function"]["description"] += " Beta."
    assert (await gateway.chat(changed)).decision == "live; escalate; schema_changed"
    assert len(upstream.received) == 2


async def test_a_call_that_breaks_its_schema_is_not_made(
    start: Any, upstream: Any, desk: Any
) -> None:
    gateway = await start(loader="wrong_type", mode="live")
    assert (await gateway.chat(desk.request())).decision == "live; escalate; schema:/order_id"
    assert len(upstream.received) == 1


async def test_a_tool_that_is_not_offered_is_not_called(
    start: Any, upstream: Any, desk: Any
) -> None:
    gateway = await start(loader="stranger", mode="live")
    assert (await gateway.chat(desk.request())).decision == "live; escalate; unseen_tools"
    assert len(upstream.received) == 1


async def test_system_2_is_asked_after_so_many_acts_in_a_row(start: Any, desk: Any) -> None:
    gateway = await start(loader="moody", mode="live", max_consecutive_acts=3)
    request = desk.request()
    decisions: list[str] = []
    for _ in range(4):
        answer = await gateway.chat(request)
        decisions.append(answer.decision.split("; ")[1])
        turn = answer.json["choices"][0]["message"]
        request["messages"].append(turn)
        for call in turn.get("tool_calls", []):
            request["messages"].append(
                {"role": "tool", "tool_call_id": call["id"], "content": "{}"}
            )
    assert decisions == ["act", "act", "act", "escalate"]
    request["messages"].append({"role": "user", "content": "Go on."})
    assert (await gateway.chat(request)).decision.startswith("live; act")


async def test_a_token_limit_the_call_might_break_escalates(
    start: Any, desk: Any, reflex_path: Any
) -> None:
    gateway = await start(reflex=str(reflex_path), mode="live")
    tight = await gateway.chat(desk.request(max_tokens=20))
    roomy = await gateway.chat(desk.request(max_completion_tokens=2000))
    assert tight.decision == "live; escalate; field:max_tokens"
    assert roomy.decision.startswith("live; act")


async def test_a_stream_is_a_whole_turn(start: Any, desk: Any, reflex_path: Any) -> None:
    gateway = await start(reflex=str(reflex_path), mode="live")
    plain = await gateway.chat(desk.request(7004, 4, stream=True))
    counted = await gateway.chat(
        desk.request(7004, 4, stream=True, stream_options={"include_usage": True})
    )
    assert (plain.header("content-type") or "").startswith("text/event-stream")
    chunks = _chunks(plain.body)
    assert "usage" not in chunks[-1]
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"
    text = "".join(
        call["function"]["arguments"]
        for chunk in chunks
        for call in chunk["choices"][0]["delta"].get("tool_calls", [])
    )
    assert json.loads(text) == desk.next_call(7004, 4).arguments
    *before, last = _chunks(counted.body)
    assert all(chunk["usage"] is None for chunk in before)
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == 0


def _chunks(body: bytes) -> list[Any]:
    events = body.decode().split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    return [json.loads(event.removeprefix("data: ")) for event in events[:-2]]
