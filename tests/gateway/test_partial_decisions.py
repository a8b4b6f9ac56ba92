"""Only free text is missing: the native endpoint says what is sure, the proxy may force a tool."""

import json
from pathlib import Path
from typing import Any

import pytest

from reflexarc.reflex import learn
from reflexarc.wire.tool_choice import with_tool_choice
from tests.reflex import memos
from tests.reflex.test_in_process import chat_message, chat_tool

from .upstream import Received, Upstream, completion_bytes, http_answer


@pytest.fixture(scope="module")
def memo_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("memos") / "memos.reflex"
    learn(memos.sessions(0, 120), max_error=0.05).save(path)
    return path


def request(task: int, tool: str, **more: Any) -> dict[str, Any]:
    messages, _ = memos.before(task, tool)
    return {
        "messages": [chat_message(message) for message in messages],
        "tools": [chat_tool(spec) for spec in memos.TOOLS],
        **more,
    }


async def test_the_native_endpoint_says_what_is_sure_and_what_is_open(
    start: Any, memo_path: Path
) -> None:
    gateway = await start(reflex=str(memo_path))
    _, wanted = memos.before(9000, "search_handbook")
    body = (await gateway.post("/api/v1/reflex", request(9000, "search_handbook"))).json
    assert (body["decision"], body["reason"], body["open"]) == (
        "partial",
        "certified",
        ["question"],
    )
    [call] = body["calls"]
    assert (call["name"], call["arguments"]) == (
        "search_handbook",
        {"policy_id": wanted.arguments["policy_id"]},
    )
    assert call["sources"]["policy_id"]["kind"] == "tool_result"
    assert (body["guarantee"]["scope"], body["guarantee"]["max_error"]) == ("partial", 0.05)
    assert all(check["ok"] for check in body["checks"])


async def test_the_native_endpoint_never_gives_a_partial_write(start: Any, memo_path: Path) -> None:
    gateway = await start(reflex=str(memo_path))
    body = (await gateway.post("/api/v1/reflex", request(9000, "create_note"))).json
    assert (body["decision"], body["calls"], body["open"]) == ("escalate", [], [])


async def test_a_tighter_bound_is_asked_of_a_partial_too(start: Any, memo_path: Path) -> None:
    gateway = await start(reflex=str(memo_path))
    tight = request(9000, "search_handbook", max_error=0.0005)
    body = (await gateway.post("/api/v1/reflex", tight)).json
    assert (body["decision"], body["guarantee"]) == ("escalate", None)


def chat(task: int, tool: str, **more: Any) -> dict[str, Any]:
    return {"model": "memo-model", **request(task, tool), **more}


def forced(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


async def test_the_proxy_forces_the_tool_and_changes_nothing_else(
    start: Any, upstream: Upstream, memo_path: Path
) -> None:
    gateway = await start(reflex=str(memo_path), mode="live", partial="force_tool_choice")
    written = {"policy_id": "PO-1", "question": "Is it covered?"}
    upstream.answer = completion_bytes(None, ("search_handbook", written))
    sent = json.dumps(chat(9000, "search_handbook", temperature=0.0)).encode()
    answer = await gateway.chat(sent)
    mode, action, tool, confidence = answer.decision.split("; ")
    assert (mode, action, tool) == ("live", "partial", "search_handbook")
    assert 0.5 < float(confidence) <= 1
    [received] = upstream.received
    assert received.body == with_tool_choice(sent, "search_handbook")
    assert json.loads(received.body) == {
        **json.loads(sent), "tool_choice": forced("search_handbook")
    }  # fmt: skip
    assert received.header(b"content-length") == str(len(received.body)).encode()
    call = answer.json["choices"][0]["message"]["tool_calls"][0]
    assert json.loads(call["function"]["arguments"]) == written
    await gateway.eventually(lambda found: _decisions(found, "partial") == 1)


def _decisions(found: dict[str, float], action: str) -> float:
    return sum(
        value
        for name, value in found.items()
        if name.startswith("reflexarc_decisions_total") and f'action="{action}"' in name
    )


async def test_a_stream_is_forced_too(start: Any, upstream: Upstream, memo_path: Path) -> None:
    gateway = await start(reflex=str(memo_path), mode="live", partial="force_tool_choice")
    body = b"data: [DONE]\n\n"
    upstream.answer = http_answer(body, ("content-type", "text/event-stream"))
    answer = await gateway.chat(chat(9001, "search_handbook", stream=True, tool_choice="auto"))
    assert answer.body == body
    assert answer.decision.startswith("live; partial; search_handbook")
    assert json.loads(upstream.received[0].body)["tool_choice"] == forced("search_handbook")


@pytest.mark.parametrize("route", [{"mode": "live"}, {"mode": "shadow"}])
async def test_nothing_is_forced_that_nobody_asked_for(
    start: Any, upstream: Upstream, memo_path: Path, route: dict[str, str]
) -> None:
    if route["mode"] == "shadow":
        route = {**route, "partial": "force_tool_choice"}
    gateway = await start(reflex=str(memo_path), **route)
    sent = json.dumps(chat(9000, "search_handbook")).encode()
    answer = await gateway.chat(sent)
    assert "partial" not in answer.decision
    assert upstream.received[0].body == sent


@pytest.mark.parametrize(
    ("tool", "more"),
    [
        ("create_note", {}),
        ("search_handbook", {"model": "another"}),
        ("search_handbook", {"tool_choice": "required"}),
        ("search_handbook", {"response_format": {"type": "json_object"}}),
    ],
)
async def test_writes_and_what_is_not_understood_are_never_forced(
    start: Any, upstream: Upstream, memo_path: Path, tool: str, more: dict[str, Any]
) -> None:
    gateway = await start(reflex=str(memo_path), mode="live", partial="force_tool_choice")
    sent = json.dumps(chat(9000, tool, **more)).encode()
    answer = await gateway.chat(sent)
    assert answer.decision.startswith("live; escalate")
    assert upstream.received[0].body == sent


@pytest.mark.parametrize("status", ["400 Bad Request", "422 Unprocessable Content"])
async def test_an_upstream_that_refuses_gets_the_request_as_it_was_once(
    start: Any, upstream: Upstream, memo_path: Path, status: str
) -> None:
    async def refusing(received: Received, writer: Any) -> None:
        choosy = b"tool_choice" in received.body
        body = b'{"error":{"message":"tool_choice must be auto"}}'
        answer = http_answer(body, ("connection", "close"), status=status)
        whole = completion_bytes("Fine.").partition(b"\r\n\r\n")[2]
        writer.write(answer if choosy else http_answer(whole, ("connection", "close")))
        await writer.drain()

    upstream.answer = refusing
    gateway = await start(reflex=str(memo_path), mode="live", partial="force_tool_choice")
    sent = json.dumps(chat(9000, "search_handbook")).encode()
    first = await gateway.chat(sent)
    assert first.status == 200
    assert first.decision == "live; escalate; partial_refused"
    assert [r.body == sent for r in upstream.received] == [False, True]
    again = await gateway.chat(sent)
    assert (again.status, again.decision) == (200, "live; escalate; partial_refused")
    assert [r.body == sent for r in upstream.received] == [False, True, True]


async def test_a_request_that_is_wrong_itself_is_refused_as_ever(
    start: Any, upstream: Upstream, memo_path: Path
) -> None:
    body = b'{"error":{"message":"no such model"}}'
    upstream.answer = http_answer(body, status="400 Bad Request")
    gateway = await start(reflex=str(memo_path), mode="live", partial="force_tool_choice")
    for _ in range(2):
        answer = await gateway.chat(chat(9000, "search_handbook"))
        assert (answer.status, answer.body) == (400, body)
    assert len(upstream.received) == 4, "nothing was learned about the upstream"


async def test_a_partial_is_not_forced_where_the_client_switched_system_1_off(
    start: Any, upstream: Upstream, memo_path: Path
) -> None:
    gateway = await start(reflex=str(memo_path), mode="live", partial="force_tool_choice")
    sent = json.dumps(chat(9000, "search_handbook")).encode()
    answer = await gateway.chat(sent, {"x-reflexarc": "off"})
    assert "partial" not in answer.decision
    assert upstream.received[0].body == sent
