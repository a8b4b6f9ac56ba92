"""An upstream that closes, lies or speaks something else; a gateway that stops or fails itself."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable

import pytest

from reflexarc.gateway.config import Limits
from reflexarc.upstream import Timeouts

from .conftest import Starter
from .upstream import Received, Upstream

BODY = b'{"model":"m","messages":[]}'


def _says(*pieces: bytes) -> Callable[[Received, asyncio.StreamWriter], Awaitable[None]]:
    """Writes this and closes."""

    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
        await writer.drain()
        writer.close()

    return answer


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\ncontent-le"])
async def test_a_request_on_a_fresh_connection_is_never_sent_twice(
    said: bytes, start: Starter, upstream: Upstream
) -> None:
    upstream.answer = _says(said)
    answer = await (await start()).chat(BODY)
    assert answer.status == 502
    assert "before it answered" in answer.json["error"]["message"]
    assert answer.header("x-should-retry") == "false"
    assert len(upstream.received) == 1


async def test_a_request_whose_answer_had_begun_is_never_sent_twice(
    start: Starter, upstream: Upstream
) -> None:
    gateway = await start()
    assert (await gateway.chat(BODY)).status == 200
    upstream.answer = _says(b"HTTP/1.1 200 OK\r\ncontent-le")
    answer = await gateway.chat(BODY)
    assert (answer.status, answer.header("x-should-retry")) == (502, "false")
    assert upstream.connections == 1
    assert len(upstream.received) == 2


async def test_what_never_reached_the_upstream_may_be_retried(start: Starter) -> None:
    answer = await (await start(upstream="http://127.0.0.1:9/v1")).chat(BODY)
    assert answer.status == 502
    assert answer.header("x-should-retry") is None
    assert "is the model server running?" in answer.json["error"]["message"]


async def test_a_late_answer_may_have_been_billed(start: Starter, upstream: Upstream) -> None:
    async def never(_: Received, __: asyncio.StreamWriter) -> None:
        await asyncio.sleep(30)

    upstream.answer = never
    answer = await (await start(timeouts=Timeouts(first_byte_s=0.1))).chat(BODY)
    assert (answer.status, answer.header("x-should-retry")) == (504, "false")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n", "101"),
        (b"HTTP/1.1 600 Odd\r\ncontent-length: 0\r\n\r\n", "600"),
        (b"SSH-2.0-OpenSSH_9\r\n", "broke HTTP"),
        (b"HTTP/1.1 200 OK\r\nx-a: a\x01b\r\ncontent-length: 2\r\n\r\n{}", "HTTP"),
    ],
)
async def test_what_no_client_could_read_is_a_502(
    said: bytes, told: str, start: Starter, upstream: Upstream
) -> None:
    upstream.answer = _says(said)
    gateway = await start()
    answer = await gateway.chat(BODY)
    assert answer.status == 502
    assert answer.json["error"]["type"] == "upstream_error"
    assert told in answer.json["error"]["message"]
    assert answer.header("x-request-id")
    assert (await gateway.get("/healthz")).status == 200


async def test_tls_on_a_port_without_it_is_told_as_that(start: Starter) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    message = (await (await start(upstream=f"https://127.0.0.1:{port}/v1")).chat(BODY)).json[
        "error"
    ]["message"]
    server.close()
    await server.wait_closed()
    assert "over TLS" in message
    assert "running?" not in message


async def test_a_304_has_no_body_whatever_its_length_says(
    start: Starter, upstream: Upstream
) -> None:
    upstream.answer = b"HTTP/1.1 304 Not Modified\r\netag: x\r\ncontent-length: 40\r\n\r\n"
    gateway = await start()
    answer = await gateway.get("/v1/models")
    assert (answer.status, answer.body, answer.header("etag")) == (304, b"", "x")
    assert answer.header("content-length") is None


async def test_a_stream_says_that_the_gateway_was_stopped(
    start: Starter, upstream: Upstream
) -> None:
    async def stall(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
            b"transfer-encoding: chunked\r\n\r\n9\r\ndata: {}\n\r\n"
        )
        await asyncio.sleep(30)

    upstream.answer = stall
    gateway = await start(grace_s=1.0)
    async with gateway.client.post(gateway.base + "/v1/chat/completions", data=BODY) as answer:
        assert await answer.content.readany() == b"data: {}\n"
        gateway.server.should_exit = True
        rest = await answer.read()
    assert b'"code":"gateway_stopped"' in rest
    assert b"[DONE]" not in rest


async def test_a_fault_of_the_gateway_is_an_answer_in_the_usual_form(
    start: Starter,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    gateway = await start(mode="off")

    async def fails(*_: object) -> int:
        raise ValueError("a secret of the conversation")

    monkeypatch.setattr(gateway.gateway._asks, "answer", fails)
    with caplog.at_level(logging.ERROR):
        answer = await gateway.chat(BODY)
    assert answer.status == 500
    assert answer.json["error"]["type"] == "api_error"
    for name in ("x-request-id", "server-timing", "x-reflexarc-decision"):
        assert answer.header(name)
    assert "ValueError at" in caplog.text
    assert "secret" not in caplog.text + json.dumps(answer.json)
    counted = await gateway.metrics()
    assert counted['reflexarc_requests_total{kind="chat",route="/v1",status="500"}'] == 1


async def test_what_is_refused_unread_closes_its_connection(start: Starter) -> None:
    gateway = await start(limits=Limits(body_bytes=10))
    large = await gateway.chat(BODY)
    assert (large.status, large.header("connection")) == (413, "close")
    lost = await gateway.post("/nowhere", BODY)
    assert (lost.status, lost.header("connection")) == (404, "close")
    assert (await gateway.get("/nowhere")).header("connection") is None
    wrong = await gateway.post("/v1/models", BODY)
    assert (wrong.status, wrong.header("allow"), wrong.header("connection")) == (
        405,
        "GET",
        "close",
    )
    cold = await gateway.post("/healthz", BODY)
    assert (cold.status, cold.header("allow")) == (405, "GET, HEAD")
    assert (cold.json["error"]["code"], cold.header("connection")) == ("http_405", "close")
    for path in ("/v1/chat/completions", "/api/v1/reflex"):
        assert (await gateway.get(path)).header("allow") == "POST"
