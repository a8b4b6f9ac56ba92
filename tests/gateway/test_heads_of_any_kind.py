"""Raw bytes on a socket: upgrades, heads without end, trailers, pipelines, what is not HTTP."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from .conftest import Desk, Running, Starter
from .upstream import Upstream

BODY = json.dumps({"model": "desk-model", "messages": []}).encode()
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"


class Wire:
    """One connection of a client that writes what it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, *pieces: bytes) -> None:
        """Each piece arrives alone."""
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            await asyncio.sleep(0.02)

    async def answer(self) -> tuple[int, dict[bytes, bytes], bytes]:
        head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), 10)
        first, *lines = head.strip().split(b"\r\n")
        headers = dict(line.split(b": ", 1) for line in lines)
        body = await self.reader.readexactly(int(headers.get(b"content-length", b"0")))
        return int(first.split()[1]), headers, body

    async def rest(self) -> bytes:
        """What comes until the gateway closes."""
        return await asyncio.wait_for(self.reader.read(), 10)


Connect = Callable[[Running], Awaitable[Wire]]


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    wires: list[Wire] = []

    async def connecting(gateway: Running) -> Wire:
        host, port = gateway.base.removeprefix("http://").split(":")
        wires.append(Wire(*await asyncio.open_connection(host, int(port))))
        return wires[-1]

    yield connecting
    for wire in wires:
        wire.writer.close()
        with contextlib.suppress(ConnectionError):
            await wire.writer.wait_closed()


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket", b"a, b"])
@pytest.mark.parametrize("cut", ["one piece", "after the head", "in the body", "in the head"])
async def test_an_upgrade_is_ignored_and_the_body_stays_whole(
    start: Starter, connect: Connect, upstream: Upstream, protocol: bytes, cut: str
) -> None:
    gateway = await start(mode="off")
    wire = await connect(gateway)
    head = (
        HEAD
        + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: %b\r\nHTTP2-Settings: AAMAAABk\r\n"
        % protocol
        + b"content-length: %d\r\n\r\n" % len(BODY)
    )
    place = {"after the head": len(head), "in the body": len(head) + 9, "in the head": 130}.get(cut)
    whole = head + BODY
    await wire.send(*([whole] if place is None else [whole[:place], whole[place:]]))
    status, headers, _ = await wire.answer()
    assert status == 200
    assert headers.get(b"connection") != b"close"
    assert upstream.received[0].body == BODY
    assert upstream.received[0].header(b"upgrade") is None
    # The connection goes on with whole requests.
    await wire.send(HEAD + b"content-length: %d\r\n\r\n" % len(BODY) + BODY)
    assert (await wire.answer())[0] == 200
    assert [request.body for request in upstream.received] == [BODY, BODY]


async def test_a_body_beside_an_upgrade_is_never_a_request(
    start: Starter, connect: Connect, upstream: Upstream
) -> None:
    gateway = await start(mode="off")
    wire = await connect(gateway)
    hidden = b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n"
    head = HEAD + b"Connection: Upgrade\r\nUpgrade: h2c\r\ncontent-length: %d\r\n\r\n" % len(hidden)
    await wire.send(head, hidden)
    status, _, body = await wire.answer()
    assert status == 400
    assert b"not JSON" in body
    wire.writer.write_eof()
    assert await wire.rest() == b""
    assert upstream.received == []


async def test_upgrades_in_a_pipeline_with_chunked_bodies_come_one_after_the_other(
    start: Starter, connect: Connect, upstream: Upstream
) -> None:
    gateway = await start(mode="off")
    wire = await connect(gateway)
    one = (
        HEAD
        + b"connection: upgrade\r\nupgrade: h2c\r\ntransfer-encoding: chunked\r\n\r\n"
        + b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
    )
    await wire.send(one * 5)
    for _ in range(5):
        assert (await wire.answer())[0] == 200
    assert [request.body for request in upstream.received] == [BODY] * 5


async def test_connect_is_refused(start: Starter, connect: Connect) -> None:
    wire = await connect(await start(mode="off"))
    await wire.send(b"CONNECT a:443 HTTP/1.1\r\nhost: a:443\r\n\r\n")
    status, headers, _ = await wire.answer()
    assert (status, headers[b"connection"]) == (400, b"close")
    assert await wire.rest() == b""


@pytest.mark.parametrize("line", [b"x-a: 0123456789abcdef\r\n", b"x" * 1000])
async def test_a_head_without_end_is_a_431_and_the_connection_closes(
    start: Starter, connect: Connect, line: bytes
) -> None:
    gateway = await start(mode="off")
    wire = await connect(gateway)
    wire.writer.write(HEAD)
    sent = 0

    async def pour() -> None:
        nonlocal sent
        while sent < 20_000_000:
            wire.writer.write(line * 100)
            sent += len(line) * 100
            await wire.writer.drain()
            await asyncio.sleep(0)

    with pytest.raises(ConnectionError):
        await pour()
    assert sent < 10_000_000  # the rest lay in buffers of the socket
    counted = await gateway.metrics()
    key = 'reflexarc_requests_total{kind="other",route="",status="431"}'
    assert counted[key] == 1


async def test_the_431_is_in_the_usual_form(start: Starter, connect: Connect) -> None:
    wire = await connect(await start(mode="off"))
    await wire.send(HEAD, b"x-a: " + b"a" * 70_000)
    status, headers, body = await wire.answer()
    assert status == 431
    assert json.loads(body)["error"]["code"] == "headers_too_large"
    for name in (b"x-request-id", b"server-timing", b"x-reflexarc-decision"):
        assert name in headers
    assert headers[b"connection"] == b"close"
    assert await wire.rest() == b""


async def test_trailers_are_no_headers(
    start: Starter, connect: Connect, upstream: Upstream
) -> None:
    gateway = await start(mode="off")
    wire = await connect(gateway)
    chunk = b"%x\r\n%b\r\n0\r\n" % (len(BODY), BODY)
    trailers = b"authorization: Bearer other\r\nx-late: 1\r\n\r\n"
    await wire.send(HEAD + b"transfer-encoding: chunked\r\n\r\n" + chunk + trailers)
    assert (await wire.answer())[0] == 200
    received = upstream.received[0]
    assert received.body == BODY
    assert received.header(b"authorization") is None
    assert received.header(b"x-late") is None


@pytest.mark.parametrize("line", [b"x-late: 0123456789abcdef\r\n" * 1000, b"x" * 25_000])
async def test_trailers_without_end_are_refused(
    start: Starter, connect: Connect, line: bytes
) -> None:
    wire = await connect(await start(mode="off"))
    await wire.send(HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n", *([line] * 4))
    assert (await wire.answer())[0] == 431


async def test_a_pipeline_is_answered_in_order(
    start: Starter, connect: Connect, upstream: Upstream, desk: Desk
) -> None:
    gateway = await start(mode="off")
    wire = await connect(gateway)
    bodies = [json.dumps(desk.request(task)).encode() for task in range(4)]
    await wire.send(
        b"".join(HEAD + b"content-length: %d\r\n\r\n" % len(body) + body for body in bodies)
    )
    for _ in bodies:
        assert (await wire.answer())[0] == 200
    assert [request.body for request in upstream.received] == bodies


async def test_what_is_not_http_is_answered_after_the_answers_before_it(
    start: Starter, connect: Connect, upstream: Upstream
) -> None:
    gateway = await start(mode="off")
    wire = await connect(gateway)
    good = HEAD + b"content-length: %d\r\n\r\n" % len(BODY) + BODY
    await wire.send(good + b"no http at all\r\n\r\n")
    assert (await wire.answer())[0] == 200
    status, headers, body = await wire.answer()
    assert status == 400
    assert json.loads(body)["error"]["code"] == "bad_http"
    for name in (b"x-request-id", b"server-timing", b"x-reflexarc-decision"):
        assert name in headers
    assert headers[b"connection"] == b"close"
    assert await wire.rest() == b""
    assert len(upstream.received) == 1


async def test_a_broken_chunk_is_a_400(
    start: Starter, connect: Connect, upstream: Upstream
) -> None:
    wire = await connect(await start(mode="off"))
    await wire.send(HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\nzz\r\n")
    assert (await wire.answer())[0] == 400
    assert await wire.rest() == b""
    assert upstream.received == []
