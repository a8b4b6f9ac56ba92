"""A System 2 behind TLS with a private authority costs one handshake per connection, not more."""

import asyncio
import http.client
import os
import ssl
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yarl

from reflexarc.gateway.app import Gateway
from reflexarc.gateway.config import GatewayConfig, Route, Tls
from reflexarc.gateway.tls import upstream_context
from reflexarc.gateway.warming import warm_up
from reflexarc.steps.errors import UpstreamUnreachableError
from reflexarc.upstream import Timeouts, Transport
from tests.beside.tls_upstream import Upstream, certified, served, serving


def _ask(port: int, requests: int) -> list[int]:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    statuses: list[int] = []
    for _ in range(requests):
        client.request("POST", "/v1/chat/completions", b"{}")
        answer = client.getresponse()
        answer.read()
        statuses.append(answer.status)
    client.close()
    return statuses


def _until_connected(upstream: Upstream, count: int) -> None:
    """A client knows of its connection a little before the server does."""
    for _ in range(500):
        if upstream.connections >= count:
            break
        time.sleep(0.01)
    assert upstream.connections == count


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certified(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def context(authority: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority, authority.with_suffix(".key"))
    return context


def test_a_thousand_requests_share_handshakes_one_client_or_eight(
    authority: Path, context: ssl.SSLContext, tmp_path: Path
) -> None:
    config = tmp_path / "reflexarc.toml"
    named = {**os.environ, "SSL_CERT_FILE": str(authority)}
    with served(context) as upstream, ThreadPoolExecutor(8) as clients:
        config.write_text(
            f'[[route]]\nwarm_connections = 2\nupstream = "https://127.0.0.1:{upstream.port}/v1"\n'
        )
        with serving("--config", str(config), environment=named) as port:
            _until_connected(upstream, 2)
            assert upstream.bodies == []
            assert set(_ask(port, 600)) == {200}
            # OpenSSL's own count beside that of accepted connections.
            assert (upstream.connections, context.session_stats()["accept_good"]) == (2, 2)
            answered = list(clients.map(lambda _: _ask(port, 50), range(8)))
            assert {status for one in answered for status in one} == {200}
            assert len(upstream.bodies) == 1000
            assert upstream.connections <= 8
            assert context.session_stats()["accept_good"] == upstream.connections


async def test_a_gateway_believes_the_authority_that_its_configuration_names(
    authority: Path, context: ssl.SSLContext
) -> None:
    with served(context) as upstream:
        route = Route(f"https://127.0.0.1:{upstream.port}/v1", warm_connections=2)
        gateway = Gateway(GatewayConfig((route,), tls=Tls(ca_file=str(authority))))
        await gateway.start()
        try:
            _until_connected(upstream, 2)
        finally:
            await gateway.close()


async def test_an_authority_that_is_not_named_is_told_and_keeps_no_gateway_from_starting(
    context: ssl.SSLContext, caplog: pytest.LogCaptureFixture
) -> None:
    transport = Transport(Timeouts(), time.perf_counter)
    with served(context) as upstream:
        url = f"https://127.0.0.1:{upstream.port}/v1"
        await warm_up(transport, GatewayConfig((Route(url, warm_connections=1),)))
        assert "starts without warm connections" in caplog.text
        with pytest.raises(UpstreamUnreachableError, match="SSL_CERT_FILE or tls") as told:
            await transport.send("POST", yarl.URL(url), [], b"{}")
        assert told.value.status == 502
        assert upstream.bodies == []
    await transport.close()


# --- an upstream that closes idle connections before we do ------------------------------------


class _Impatient:
    """Answers requests over TLS, and closes a connection `idle_s` after an answer, or (None) when
    the next request on it arrives, unread: what a request meets that crosses with a close."""

    def __init__(self, idle_s: float | None) -> None:
        self.idle_s = idle_s
        self.connections = 0
        self.closed = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await reader.readuntil(b"\r\n\r\n{}")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
            if self.idle_s is None:
                await reader.read(1)
            else:
                await asyncio.sleep(self.idle_s)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            self.closed += 1


@pytest.fixture
async def transport(authority: Path) -> AsyncIterator[Transport]:
    transport = Transport(
        Timeouts(), time.perf_counter, upstream_context(Tls(ca_file=str(authority)))
    )
    yield transport
    await transport.close()


@pytest.mark.parametrize("idle_s", [0.0, 0.002, None])
async def test_an_upstream_that_closes_first_costs_no_request(
    idle_s: float | None, context: ssl.SSLContext, transport: Transport
) -> None:
    upstream = _Impatient(idle_s)
    server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0, ssl=context)
    url = yarl.URL(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
    async with server:
        for number in range(40):
            answer = await transport.send("POST", url, [("content-length", "2")], b"{}")
            assert answer.status == 200
            assert b"".join([chunk async for chunk in answer.chunks()]) == b"{}"
            answer.release()
            await asyncio.sleep(0.0005 * (number % 8))
    assert upstream.connections > 10


async def test_warm_connections_that_cannot_be_had_are_told(
    context: ssl.SSLContext, transport: Transport
) -> None:
    closed = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = closed.sockets[0].getsockname()[1]
    closed.close()
    await closed.wait_closed()
    with pytest.raises(UpstreamUnreachableError, match="cannot be reached"):
        await transport.warm(yarl.URL(f"https://127.0.0.1:{port}/v1"), 2)
    with served(context) as upstream:
        await transport.warm(yarl.URL(f"https://127.0.0.1:{upstream.port}/v1"), 2)
        _until_connected(upstream, 2)
