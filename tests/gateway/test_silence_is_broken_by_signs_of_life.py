"""An upstream that is at work and says nothing: clients of a converted stream hear of it, in their
dialect, and a fault that comes after is told inside the stream."""

import asyncio
import json
from typing import Any

import pytest

from reflexarc.wire.dialects import dialect

from .conftest import Response, Starter
from .test_system_1_answers_in_every_dialect import path_of, request_of
from .upstream import MODEL, Received, Upstream

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
CHAT = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "stream": True}


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"id": "c", "created": 1, "model": MODEL, "choices": [choice]}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


async def asked(
    start: Starter, upstream: Upstream, name: str, last: bytes, *, silent_s: float = 0.25
) -> Response:
    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD)
        await writer.drain()
        await asyncio.sleep(silent_s)
        writer.write(last)
        await writer.drain()
        writer.close()

    upstream.answer = answer
    speaks = "chat" if name != "chat" else "messages"
    gateway = await start(dialect=speaks, mode="off")
    return await gateway.post(path_of(name, stream=True), request_of(name, CHAT))


@pytest.mark.parametrize("name", ["responses", "messages", "gemini"])
async def test_a_sign_of_life_comes_before_the_content(
    name: str, start: Starter, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reflexarc.gateway.converted.PING_S", 0.05)
    last = chunk({"content": "Hello"}) + chunk({}, "stop") + b"data: [DONE]\n\n"
    answer = await asked(start, upstream, name, last)
    assert answer.status == 200
    ping = dialect(name).keep_alive
    assert answer.body.startswith(ping)
    assert 1 <= answer.body.count(ping) <= 8 or name == "gemini"
    assert b"Hello" in answer.body


@pytest.mark.parametrize("name", ["responses", "messages", "gemini"])
async def test_a_fault_after_a_sign_of_life_is_told_in_the_stream(
    name: str, start: Starter, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reflexarc.gateway.converted.PING_S", 0.05)
    answer = await asked(start, upstream, name, b'data: {"error": {"message": "full"}}\n\n')
    assert answer.status == 200
    assert b"full" in answer.body


async def test_without_silence_a_fault_keeps_its_status(start: Starter, upstream: Upstream) -> None:
    last = b'data: {"error": {"message": "slow down", "code": 429}}\n\n'
    answer = await asked(start, upstream, "messages", last, silent_s=0.0)
    assert answer.status == 429
    assert b"ping" not in answer.body
