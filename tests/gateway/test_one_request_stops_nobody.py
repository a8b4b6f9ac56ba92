"""All tenants share System 1's process: no body may hold it for long, whatever is in it."""

from collections.abc import Callable
from typing import Any

import pytest

from reflexarc.gateway.conversations import MAX_MESSAGES, MAX_NEW_BYTES, MAX_NEW_MESSAGES
from reflexarc.wire.offered import (
    MAX_SCHEMA_NODES,
    MAX_SCHEMA_STEPS,
    MAX_TOOLS_BYTES,
    schema_extent,
)

from .conftest import Desk, Running, Starter
from .upstream import Upstream


def _doubling(levels: int) -> dict[str, Any]:
    """Each definition holds the next one twice."""
    definitions: dict[str, Any] = {"d0": {"type": "string"}}
    for level in range(1, levels):
        below = {"$ref": f"#/$defs/d{level - 1}"}
        definitions[f"d{level}"] = {"anyOf": [{"allOf": [below]}, {"allOf": [below]}]}
    return {
        "$defs": definitions,
        "type": "object",
        "properties": {"order_id": {"$ref": f"#/$defs/d{levels - 1}"}},
    }


def _with_schema(request: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    function = {"name": "get_order", "description": "Read an order.", "parameters": schema}
    tools = [*request["tools"]]
    tools[1] = {"type": "function", "function": function}
    return {**request, "tools": tools}


def _many(number: int) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def change(request: dict[str, Any]) -> dict[str, Any]:
        said = [{"role": "user", "content": "x"}] * number
        return {**request, "messages": [*said, *request["messages"]]}

    return change


def _long(request: dict[str, Any]) -> dict[str, Any]:
    said = [{"role": "user", "content": "word " * (MAX_NEW_BYTES // 5)}]
    return {**request, "messages": [*said, *request["messages"]]}


def _empty_messages(request: dict[str, Any]) -> dict[str, Any]:
    return {**request, "messages": [{}] * 3_000_000}


def _long_tools(request: dict[str, Any]) -> dict[str, Any]:
    return _with_schema(request, {"type": "object", "description": "x" * MAX_TOOLS_BYTES})


def _long_metadata(request: dict[str, Any]) -> dict[str, Any]:
    return {**request, "metadata": [{}] * 300_000}


def _many_fields(request: dict[str, Any]) -> dict[str, Any]:
    return {**request, **{f"f{number}": 1 for number in range(500_000)}}


CASES: list[tuple[Callable[[dict[str, Any]], dict[str, Any]], str]] = [
    (_many(MAX_NEW_MESSAGES), "too_long"),
    (_many(200_000), "too_long"),
    (_empty_messages, "too_long"),
    (_long, "too_long"),
    (_long_tools, "too_long"),
    (_long_metadata, "too_long"),
    (_many_fields, "malformed_body"),
    (lambda request: _with_schema(request, _doubling(31)), "schema:parameters"),
]


async def _still_acts(gateway: Running, desk: Desk) -> None:
    assert (await gateway.chat(desk.request())).decision.startswith("live; act")
    counted = await gateway.metrics()
    assert not [name for name in counted if "trouble" in name and "created" not in name]
    assert gateway.gateway.system1.restarts == 0


@pytest.mark.parametrize(("change", "reason"), CASES)
async def test_a_chat_request_over_a_limit_escalates(
    change: Callable[[dict[str, Any]], dict[str, Any]],
    reason: str,
    start: Starter,
    upstream: Upstream,
    desk: Desk,
) -> None:
    gateway = await start(loader="moody", mode="live")
    answer = await gateway.chat(change(desk.request()))
    assert answer.decision == f"live; escalate; {reason}"
    assert len(upstream.received) == 1
    await _still_acts(gateway, desk)


@pytest.mark.parametrize("change", [_many(MAX_NEW_MESSAGES), _many(200_000), _long])
async def test_the_native_endpoint_escalates_too(
    change: Callable[[dict[str, Any]], dict[str, Any]], start: Starter, desk: Desk
) -> None:
    gateway = await start(loader="moody", mode="live")
    request = change(desk.request())
    body = {"messages": request["messages"], "tools": request["tools"]}
    answer = await gateway.post("/api/v1/reflex", body)
    assert answer.status == 200
    assert (answer.json["decision"], answer.json["reason"]) == ("escalate", "too_long")
    await _still_acts(gateway, desk)


async def test_a_given_call_is_not_checked_against_a_schema_that_explodes(
    start: Starter, desk: Desk
) -> None:
    gateway = await start(loader="moody", mode="live")
    request = _with_schema(desk.request(), _doubling(31))
    call = {"name": "get_order", "arguments": {"order_id": 7}}
    body = {"messages": request["messages"], "tools": request["tools"], "call": call}
    answer = (await gateway.post("/api/v1/reflex", body)).json
    assert (answer["decision"], answer["reason"]) == ("deny", "schema:parameters")
    await _still_acts(gateway, desk)


async def test_a_deep_call_of_a_schema_that_contains_itself_is_not_checked(
    start: Starter, desk: Desk
) -> None:
    gateway = await start(loader="moody", mode="live")
    again = {"properties": {"x": {"$ref": "#"}}}
    schema = {"type": "object", "anyOf": [again, {**again, "required": ["never"]}]}
    request = _with_schema(desk.request(), schema)
    deep: dict[str, Any] = {"x": 1}
    for _ in range(60):
        deep = {"x": deep}
    call = {"name": "get_order", "arguments": deep}
    body = {"messages": request["messages"], "tools": request["tools"], "call": call}
    answer = (await gateway.post("/api/v1/reflex", body)).json
    assert (answer["decision"], answer["reason"]) == ("deny", "schema:parameters")
    shallow = {"name": "get_order", "arguments": {"x": {"x": {}}}}
    assert (await gateway.post("/api/v1/reflex", {**body, "call": shallow})).json[
        "decision"
    ] == "act"
    await _still_acts(gateway, desk)


async def test_a_conversation_that_grew_request_by_request_is_read(
    start: Starter, desk: Desk
) -> None:
    gateway = await start(loader="moody", mode="live")
    request = desk.request()
    half = MAX_NEW_MESSAGES * 3 // 4
    for number in (half, 2 * half):
        said = [{"role": "user", "content": "x"}] * number
        answer = await gateway.chat({**request, "messages": said})
        assert answer.decision.startswith("live; act")
    assert 2 * half > MAX_NEW_MESSAGES
    assert 2 * half < MAX_MESSAGES


def test_references_count_as_what_they_stand_for() -> None:
    shared = {"$defs": {"a": {"type": "string"}}, "allOf": [{"$ref": "#/$defs/a"}] * 3}
    assert schema_extent(shared) == (10, 0)
    assert schema_extent({"properties": {"x": {"$ref": "#"}, "y": {"$ref": "#"}}}) == (4, 2)
    assert schema_extent({"properties": {"$ref": {"type": "string"}}}) == (3, 0)


@pytest.mark.parametrize(
    "schema",
    [
        _doubling(31),
        {"enum": [[]] * MAX_SCHEMA_NODES},
        {"$ref": "#anchor"},
        {"$dynamicRef": "#a"},
        {"$defs": {"a": {"$id": "b"}}, "$ref": "#/$defs/a"},
        {"$ref": "#/$defs/missing"},
    ],
)
def test_a_schema_that_is_too_large_or_refers_oddly_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"parts|follow|inner|nowhere"):
        schema_extent(schema)
    assert MAX_SCHEMA_STEPS > MAX_SCHEMA_NODES


async def test_long_names_do_not_make_a_head_nobody_reads(start: Starter, desk: Desk) -> None:
    gateway = await start(loader="moody", mode="live")
    field = "\U0001f600" * 20_000
    answer = await gateway.chat({**desk.request(), field: 1})
    assert answer.decision.startswith("live; escalate; field:%F0%9F")
    assert len(answer.decision) < 1600
    request = desk.request()
    kind = "x" * 50_000
    answer = await gateway.chat({**request, "tools": [*request["tools"], {"type": kind}]})
    assert answer.decision == f"live; escalate; {'tool_type:' + kind}"[: len(answer.decision)]
    assert len(answer.decision) == len("live; escalate; ") + 120
