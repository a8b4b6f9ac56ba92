"""A converted stream that was told to its end: who hangs up then was answered, whatever its
upstream still does."""

import asyncio
import time
from typing import Any

import pytest

from .conftest import Starter
from .upstream import Received, Upstream

BODY = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'
SAID = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","model":"m",'
    b'"role":"assistant","type":"message","content":[],"usage":{"input_tokens":1,"output_tokens":1'
    b"}}}\n\n"
    b'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":'
    b'{"type":"text","text":""}}\n\n'
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":'
    b'{"type":"text_delta","text":"hello"}}\n\n'
    b'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n'
    b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},'
    b'"usage":{"output_tokens":2}}\n\n'
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
)
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
COUNTED = 'reflexarc_requests_total{kind="chat",route="/v1",status="200"}'
GONE = 'reflexarc_clients_gone_total{route="/v1"}'


async def ask_and_close(gateway: Any) -> bytes:
    """Asks, and hangs up at the answer's last byte."""
    url = gateway.base.removeprefix("http://")
    host, _, port = url.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n" % len(BODY) + BODY
    )
    told = await reader.readuntil(END)
    writer.close()
    return told


@pytest.mark.parametrize("ends", [True, False])
async def test_the_request_counts_as_answered(
    start: Starter, upstream: Upstream, ends: bool
) -> None:
    async def tell(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b"%x\r\n%b\r\n" % (len(SAID), SAID))
        await writer.drain()
        await asyncio.sleep(0.4 if ends else 30)  # longer than a client goes unwatched
        writer.write(END)
        await writer.drain()

    upstream.answer = tell
    gateway = await start(dialect="messages")
    began_s = time.monotonic()
    told = await ask_and_close(gateway)
    assert b"hello" in told
    assert b"[DONE]" in told
    found = await gateway.eventually(lambda found: found.get(COUNTED) == 1)
    assert GONE not in found
    if not ends:  # it is hung up on soon
        await asyncio.wait_for(upstream.left.wait(), 3.0)
        assert time.monotonic() - began_s < 10


async def test_a_connection_whose_answer_ended_is_used_again(
    start: Starter, upstream: Upstream
) -> None:
    upstream.answer = HEAD + b"%x\r\n%b\r\n" % (len(SAID), SAID) + END
    gateway = await start(dialect="messages", mode="off", record="none")
    for _ in range(3):
        assert b"hello" in (await gateway.post("/v1/chat/completions", BODY)).body
    assert upstream.connections == 1
