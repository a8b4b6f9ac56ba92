"""`POST /api/v1/reflex`: decides, checks given calls, keeps sessions, refuses what does not fit."""

import json
from typing import Any

import pytest


def _native(desk: Any, task: int = 8000, messages: int = 4, **more: Any) -> dict[str, Any]:
    request = desk.request(task, messages)
    return {"messages": request["messages"], "tools": request["tools"], **more}


@pytest.fixture
async def ask(start: Any, reflex_path: Any) -> Any:
    gateway = await start(reflex=str(reflex_path))

    async def asking(body: Any) -> Any:
        return await gateway.post("/api/v1/reflex", body)

    return asking


async def test_a_certified_read_is_an_act_with_everything_that_explains_it(
    ask: Any, desk: Any
) -> None:
    answer = await ask(_native(desk, alternatives=2))
    assert answer.status == 200
    body = answer.json
    wanted = desk.next_call(8000, 4)
    assert set(body) == {
        "decision",
        "calls",
        "confidence",
        "guarantee",
        "reason",
        "checks",
        "alternatives",
        "session",
        "timing_ms",
        "open",
    }
    assert (body["decision"], body["open"]) == ("act", [])
    call = body["calls"][0]
    assert set(call) == {"id", "name", "arguments", "sources"}
    assert (call["name"], call["arguments"]) == (wanted.name, wanted.arguments)
    assert call["sources"]["order_id"]["kind"] == "tool_result"
    assert call["sources"]["order_id"]["message"] == 3
    assert 0.9 < body["confidence"] <= 1
    assert set(body["guarantee"]) == {
        "max_error", "confidence_level", "scope", "n", "errors", "certificate_class",
    }  # fmt: skip
    assert body["guarantee"]["certificate_class"] == "model-based"
    assert body["guarantee"]["max_error"] <= 0.05
    assert body["checks"] == [
        {"check": "known_tool", "ok": True, "detail": ""},
        {"check": "schema", "ok": True, "detail": ""},
    ]
    assert len(body["alternatives"]) <= 2
    assert body["session"]["messages"] == 4
    assert body["session"]["reused"] == 0
    assert set(body["timing_ms"]) == {"parse", "context", "decide", "check", "total"}
    assert body["timing_ms"]["total"] > 0


async def test_the_same_request_gets_the_same_call_id(ask: Any, desk: Any) -> None:
    first, again, other = [
        (await ask(_native(desk, task))).json["calls"][0]["id"] for task in (8000, 8000, 8001)
    ]
    assert first == again != other


async def test_a_write_escalates(ask: Any, desk: Any) -> None:
    body = (await ask(_native(desk, messages=6))).json
    assert (body["decision"], body["reason"]) == ("escalate", "side_effect")
    assert (body["calls"], body["guarantee"]) == ([], None)


async def test_the_callers_bound_counts(ask: Any, desk: Any) -> None:
    body = (await ask(_native(desk, max_error=0.0001))).json
    assert (body["decision"], body["reason"]) == ("escalate", "no_certificate")


async def test_a_bound_is_tightened_but_never_loosened(
    start: Any, desk: Any, reflex_path: Any
) -> None:
    gateway = await start(reflex=str(reflex_path), max_error=0.0001)
    for asked in (_native(desk), _native(desk, max_error=0.5)):
        body = (await gateway.post("/api/v1/reflex", asked)).json
        assert (body["decision"], body["reason"]) == ("escalate", "no_certificate")


async def test_it_acts_only_where_a_chat_request_would_be_answered(start: Any, desk: Any) -> None:
    gateway = await start(loader="moody", max_consecutive_acts=2)
    body = _native(desk)
    said = {"role": "assistant", "content": "Certainly, I will"}
    prefilled = {**body, "messages": [*body["messages"], said]}
    answer = (await gateway.post("/api/v1/reflex", prefilled)).json
    assert (answer["decision"], answer["reason"]) == ("escalate", "field:messages")
    reasons: list[str] = []
    for _ in range(3):
        answer = (await gateway.post("/api/v1/reflex", body)).json
        reasons.append(answer["reason"])
        for call in answer["calls"]:
            function = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
            made = [{"id": call["id"], "type": "function", "function": function}]
            body["messages"] += [
                {"role": "assistant", "content": None, "tool_calls": made},
                {"role": "tool", "tool_call_id": call["id"], "content": "{}"},
            ]
    assert reasons == ["certified", "certified", "act_cap"]
    assert answer["calls"] == []


async def test_a_given_call_is_checked(ask: Any, desk: Any) -> None:
    def call(name: str, **arguments: Any) -> dict[str, Any]:
        return _native(desk, call={"name": name, "arguments": arguments})

    fits = (await ask(call("refund_order", order_id="W1"))).json
    assert (fits["decision"], fits["calls"]) == ("act", [])
    broken = (await ask(call("refund_order", order_id=7))).json
    assert (broken["decision"], broken["reason"]) == ("deny", "schema:/order_id")
    assert broken["checks"][-1]["ok"] is False
    unknown = (await ask(call("launch_rocket"))).json
    assert (unknown["decision"], unknown["reason"]) == ("deny", "guard:known_tool")


async def test_a_session_needs_only_what_is_new(ask: Any, desk: Any) -> None:
    whole = _native(desk, messages=4)["messages"]
    opened = (await ask(_native(desk, messages=2, session="s"))).json
    assert opened["calls"][0]["name"] == "find_customer"
    head = opened["session"]["head"]
    went_on = (await ask({"session": "s", "append": whole[2:], "head": head})).json
    assert went_on["calls"][0]["name"] == "get_order"
    assert went_on["session"]["messages"] == 4
    assert went_on["session"]["reused"] == 2
    # Any chain of appends equals one whole request.
    at_once = (await ask(_native(desk, messages=4))).json
    assert at_once["session"]["head"] == went_on["session"]["head"]


async def test_a_wrong_head_is_a_409_and_changes_nothing(ask: Any, desk: Any) -> None:
    whole = _native(desk, messages=4)["messages"]
    head = (await ask(_native(desk, messages=2, session="s"))).json["session"]["head"]
    wrong = await ask({"session": "s", "append": whole[2:], "head": "0" * 32})
    assert (wrong.status, wrong.json["head"]) == (409, head)
    assert wrong.json["error"]["code"] == "wrong_head"
    right = await ask({"session": "s", "append": whole[2:], "head": head})
    assert right.json["session"]["messages"] == 4


async def test_a_session_that_is_not_held_is_a_409(ask: Any, desk: Any) -> None:
    appended = await ask({"session": "unheard", "append": _native(desk)["messages"]})
    assert (appended.status, appended.json["head"]) == (409, None)


async def test_a_faulty_append_changes_nothing(ask: Any, desk: Any) -> None:
    head = (await ask(_native(desk, messages=2, session="s"))).json["session"]["head"]
    faulty = await ask({"session": "s", "append": [{"role": "oracle"}]})
    assert (faulty.status, faulty.json["error"]["param"]) == (422, "messages[2].role")
    assert (await ask({"session": "s", "append": []})).json["session"]["head"] == head


async def test_sessions_are_kept_apart_by_key(start: Any, desk: Any, reflex_path: Any) -> None:
    gateway = await start(reflex=str(reflex_path))
    body = _native(desk, messages=2, session="s")
    await gateway.post("/api/v1/reflex", body, {"authorization": "Bearer one"})
    for key, status in (("one", 200), ("two", 409)):
        answer = await gateway.post(
            "/api/v1/reflex",
            {"session": "s", "append": []},
            {"authorization": f"Bearer {key}"},
        )
        assert answer.status == status


MISFITS: list[tuple[dict[str, Any], str]] = [
    ({"max_eror": 0.1}, "max_eror"),
    ({"max_error": 0}, "max_error"),
    ({"max_error": 1}, "max_error"),
    ({"max_error": "0.1"}, "max_error"),
    ({"max_error": True}, "max_error"),
    ({"alternatives": 17}, "alternatives"),
    ({"alternatives": -1}, "alternatives"),
    ({"alternatives": 1.0}, "alternatives"),
    ({"messages": "hi"}, "messages"),
    ({"messages": []}, "messages"),
    ({"messages": [3]}, "messages[0]"),
    ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
    ({"messages": None}, "messages"),
    ({"tools": None}, "tools"),
    ({"tools": {}}, "tools"),
    ({"tools": []}, "tools"),
    ({"tools": [{"type": "function"}]}, "tools[0].function"),
    ({"session": ""}, "session"),
    ({"session": 3}, "session"),
    ({"head": "0"}, "head"),
    ({"append": []}, "append"),
    ({"append": [], "session": "s"}, "append"),
    ({"reflex": "another"}, "reflex"),
    ({"call": "get_order"}, "call"),
    ({"call": {"name": "get_order"}}, "call.arguments"),
    ({"call": {"arguments": {}}}, "call.name"),
    ({"call": {"name": "get_order", "arguments": {}, "id": 1}}, "call.id"),
]


async def test_what_does_not_fit_is_a_422_with_its_path(ask: Any, desk: Any) -> None:
    for change, param in MISFITS:
        answer = await ask({**_native(desk), **change})
        assert (answer.status, answer.json["error"]["param"]) == (422, param), change


async def test_what_is_not_strict_json_is_a_400(ask: Any) -> None:
    for body in (b"", b"[]", b"{", b'{"messages":[],"messages":[]}', b"\xff", b"{" * 9000):
        answer = await ask(body)
        assert (answer.status, answer.json["error"]["code"]) == (400, "malformed_body"), body


async def test_nesting_past_the_limit_is_a_400(ask: Any, desk: Any) -> None:
    deep: Any = {}
    for _ in range(200):
        deep = {"x": deep}
    request = _native(desk)
    request["messages"][1]["extra"] = deep
    assert (await ask(json.dumps(request).encode())).status == 400


async def test_without_a_reflex_it_escalates(start: Any, desk: Any) -> None:
    answer = await (await start()).post("/api/v1/reflex", _native(desk))
    assert (answer.status, answer.json["reason"]) == (200, "no_reflex")
