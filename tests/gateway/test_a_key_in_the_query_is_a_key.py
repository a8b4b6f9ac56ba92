"""Google's API takes a key in the query too: it tells tenants apart, moves to where the upstream
wants it, and goes nowhere where the gateway has a key of its own."""

import pytest

from reflexarc.gateway.tenancy import key_in_header, tenant_of
from reflexarc.steps.errors import InputError

from .conftest import Starter
from .upstream import MODEL, Upstream

PATH = f"/v1beta/models/{MODEL}:generateContent"
BODY = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


def test_two_keys_are_two_tenants_however_they_came() -> None:
    def tenant(query: bytes, *headers: tuple[bytes, bytes]) -> bytes:
        return tenant_of(key_in_header(query, list(headers), replaced=False)[1], b"k")

    assert tenant(b"alt=sse&key=a") != tenant(b"alt=sse&key=b")
    assert tenant(b"key=a%2Fb") == tenant(b"", (b"x-goog-api-key", b"a/b"))
    assert tenant(b"%6bey=a") == tenant(b"key=a")


@pytest.mark.parametrize("secret", [b"a%0d%0ax-evil:1", b"a%20b", b"%ff"])
def test_what_no_header_may_hold_is_refused(secret: bytes) -> None:
    with pytest.raises(InputError):
        key_in_header(b"key=" + secret, [], replaced=False)


def test_beside_a_key_in_a_header_both_stay() -> None:
    headers = [(b"authorization", b"Bearer x")]
    assert key_in_header(b"a=1&key=b", headers, replaced=False) == (b"a=1&key=b", headers)
    assert key_in_header(b"a=1&key=b", headers, replaced=True) == (b"a=1", headers)


async def test_it_goes_where_the_upstream_wants_it(start: Starter, upstream: Upstream) -> None:
    wanted = {"gemini": (b"x-goog-api-key", b"k"), "chat": (b"authorization", b"Bearer k")}
    for dialect, (name, value) in wanted.items():
        gateway = await start(dialect=dialect, mode="off")
        await gateway.post(f"{PATH}?key=k&fields=a", BODY)
        received = upstream.received.pop()
        assert received.header(name) == value
        assert b"key=" not in received.target


async def test_it_goes_nowhere_where_the_gateway_has_its_own(
    start: Starter, upstream: Upstream
) -> None:
    gateway = await start(
        dialect="gemini", mode="off", api_key_env="KEY", environment={"KEY": "ours"}
    )
    for path in (PATH, f"/v1beta/models/{MODEL}:countTokens"):
        await gateway.post(f"{path}?key=theirs", BODY)
        received = upstream.received.pop()
        assert received.header(b"x-goog-api-key") == b"ours"
        assert b"theirs" not in received.target + b"".join(v for _, v in received.headers)
