"""A System 2 behind TLS with a private authority costs one handshake per connection, not more."""

import http.client
import os
import ssl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.beside.tls_upstream import certified, gateway, served


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


def _context(authority: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority, authority.with_suffix(".key"))
    return context


def test_a_thousand_requests_in_turn_share_one_handshake(tmp_path: Path) -> None:
    authority = certified(tmp_path)
    named = {**os.environ, "SSL_CERT_FILE": str(authority)}
    with (
        served(_context(authority)) as upstream,
        gateway(f"https://127.0.0.1:{upstream.port}/v1", named) as port,
    ):
        assert set(_ask(port, 1000)) == {200}
        assert len(upstream.bodies) == 1000
        assert upstream.connections == 1


def test_eight_clients_at_once_take_eight_handshakes_at_most(tmp_path: Path) -> None:
    authority = certified(tmp_path)
    named = {**os.environ, "SSL_CERT_FILE": str(authority)}
    with (
        served(_context(authority)) as upstream,
        gateway(f"https://127.0.0.1:{upstream.port}/v1", named) as port,
        ThreadPoolExecutor(8) as clients,
    ):
        answered = list(clients.map(lambda _: _ask(port, 50), range(8)))
        assert {status for one in answered for status in one} == {200}
        assert upstream.connections <= 8


def test_an_authority_that_is_not_named_is_a_clear_502(tmp_path: Path) -> None:
    authority = certified(tmp_path)
    with (
        served(_context(authority)) as upstream,
        gateway(f"https://127.0.0.1:{upstream.port}/v1", dict(os.environ)) as port,
    ):
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        client.request("POST", "/v1/chat/completions", b"{}")
        answer = client.getresponse()
        said = answer.read()
        client.close()
        assert answer.status == 502
        assert b"SSL_CERT_FILE" in said
        assert upstream.bodies == []
