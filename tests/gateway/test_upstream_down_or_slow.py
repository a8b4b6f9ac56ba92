"""System 2 down, slow or breaking off: a clear error in the client's dialect, nothing lost."""

import asyncio
import contextlib
import re
import time
from typing import Any

from reflexarc.gateway.serving import listen
from reflexarc.upstream import Timeouts

BODY = b'{"model":"m","messages":[]}'


async def test_an_upstream_that_is_down_is_a_502(start: Any) -> None:
    unused = listen("127.0.0.1", 0)
    port = unused.getsockname()[1]
    unused.close()
    gateway = await start(upstream=f"http://127.0.0.1:{port}/v1")
    answer = await gateway.chat(BODY)
    assert answer.status == 502
    error = answer.json["error"]
    assert (error["type"], error["code"]) == ("upstream_error", "upstream_unreachable")
    assert f"127.0.0.1:{port}" in error["message"]
    assert answer.header("x-request-id")
    assert answer.header("server-timing")


async def test_an_upstream_that_is_slow_to_begin_is_a_504(start: Any, upstream: Any) -> None:
    async def never(_: Any, __: Any) -> None:
        await asyncio.sleep(30)

    upstream.answer = never
    gateway = await start(timeouts=Timeouts(first_byte_s=0.2))
    began_s = time.monotonic()
    answer = await gateway.chat(BODY)
    assert answer.status == 504
    assert answer.json["error"]["code"] == "upstream_timeout"
    assert time.monotonic() - began_s < 10
    assert len(upstream.received) == 1  # it had the request: it is not asked twice


async def test_a_stream_that_falls_silent_ends_with_an_error_event(
    start: Any, upstream: Any
) -> None:
    async def stall(_: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
            b"transfer-encoding: chunked\r\n\r\n9\r\ndata: {}\n\r\n"
        )
        await asyncio.sleep(30)

    upstream.answer = stall
    gateway = await start(timeouts=Timeouts(idle_s=0.2))
    answer = await asyncio.wait_for(gateway.chat(b'{"stream":true}'), 10)
    assert b"fell silent for 0.2 s" in answer.body
    assert answer.status == 200
    assert answer.body.startswith(b"data: {}\n")
    assert b'data: {"error":{"message":' in answer.body
    assert b"[DONE]" not in answer.body


async def test_an_answer_cut_short_is_seen_to_be_cut(start: Any, upstream: Any) -> None:
    import aiohttp
    import pytest

    async def cut(_: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.close()

    upstream.answer = cut
    gateway = await start()
    with pytest.raises(aiohttp.ClientPayloadError):
        await gateway.chat(BODY)


async def test_a_stale_pooled_connection_costs_nothing(start: Any, upstream: Any) -> None:
    gateway = await start()
    await gateway.chat(BODY)
    for task in list(upstream._tasks):  # the upstream drops its idle connections
        task.cancel()
    answer = await gateway.chat(BODY)
    assert answer.status == 200
    assert upstream.connections == 2


async def test_several_stale_connections_cost_nothing_either(start: Any, http: Any) -> None:
    """An upstream that closes each connection at its second request, before a byte."""
    both = asyncio.Event()
    asked = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            found = re.search(rb"content-length: (\d+)", head.lower())
            assert found is not None
            await reader.readexactly(int(found.group(1)))
            asked += 1
            if asked == 2:
                both.set()
            await both.wait()
            writer.write(http.completion("x"))
            await writer.drain()
            await reader.readuntil(b"\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        gateway = await start(upstream=f"http://127.0.0.1:{port}/v1")
        first = await asyncio.gather(gateway.chat(BODY), gateway.chat(BODY))
        assert [answer.status for answer in first] == [200, 200]
        assert (await gateway.chat(BODY)).status == 200
        assert asked == 3


async def test_the_upstreams_own_errors_pass_unchanged(
    start: Any, upstream: Any, http: Any
) -> None:
    body = b'{"error":{"message":"slow down","type":"rate","param":null,"code":null}}'
    upstream.answer = http.answer(
        body, ("retry-after", "7"), ("x-should-retry", "true"), status="429 Too Many Requests"
    )
    answer = await (await start()).chat(BODY)
    assert (answer.status, answer.body, answer.header("retry-after")) == (429, body, "7")
    assert answer.header("x-should-retry") == "true"
