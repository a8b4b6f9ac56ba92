"""A tool schema that is invalid, or refers elsewhere: the request passes, System 1 escalates."""

import asyncio
from typing import Any

import pytest


@pytest.mark.parametrize("kind", ["remote", "file", "meta"])
async def test_no_reference_is_followed(kind: str, start: Any, upstream: Any, desk: Any) -> None:
    asked = asyncio.Event()

    async def trap(_: Any, writer: asyncio.StreamWriter) -> None:
        asked.set()
        writer.close()

    server = await asyncio.start_server(trap, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/schema.json"
    schema: dict[str, Any] = {
        "remote": {"type": "object", "properties": {"order_id": {"$ref": url}}},
        "file": {"$ref": "file:///etc/hostname"},
        "meta": {"$schema": url, "type": "object"},
    }[kind]
    request = desk.request()
    request["tools"][1] = {
        "type": "function",
        "function": {"name": "get_order", "parameters": schema},
    }
    gateway = await start(loader="moody", mode="live")
    answer = await gateway.chat(request)
    server.close()
    await server.wait_closed()
    assert answer.decision == "live; escalate; schema:parameters"
    assert len(upstream.received) == 1
    assert not asked.is_set()


@pytest.mark.parametrize(
    "schema", [{"type": "objekt"}, {"properties": 3}, {"pattern": "("}, {"$ref": "#/nowhere"}]
)
async def test_an_invalid_schema_escalates(
    schema: dict[str, Any], start: Any, upstream: Any, desk: Any
) -> None:
    request = desk.request()
    request["tools"][1] = {
        "type": "function",
        "function": {"name": "get_order", "parameters": schema},
    }
    answer = await (await start(loader="moody", mode="live")).chat(request)
    assert answer.decision == "live; escalate; schema:parameters"
    assert len(upstream.received) == 1
