"""A client that leaves: the upstream call is cancelled within a second, streamed or not."""

import asyncio
from typing import Any

import pytest


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_client_that_leaves_cancels_the_upstream_call(
    start: Any, upstream: Any, streamed: bool
) -> None:
    async def long_work(_: Any, writer: asyncio.StreamWriter) -> None:
        if streamed:
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                b"transfer-encoding: chunked\r\n\r\n9\r\ndata: {}\n\r\n"
            )
            await writer.drain()
        await asyncio.sleep(30)

    upstream.answer = long_work
    gateway = await start()

    async def ask() -> None:
        async with gateway.client.post(
            gateway.base + "/v1/chat/completions", data=b'{"stream":true}'
        ) as response:
            await response.read()

    asking = asyncio.create_task(ask())
    while not upstream.received:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    asking.cancel()
    await asyncio.wait_for(upstream.left.wait(), 1.0)
    found = await gateway.eventually(
        lambda found: found.get('reflexarc_clients_gone_total{route="/v1"}') == 1
    )
    assert found['reflexarc_requests_total{kind="chat",route="/v1",status="499"}'] == 1
    # The gateway goes on.
    upstream.answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
    assert (await gateway.chat(b"{}")).body == b"{}"
