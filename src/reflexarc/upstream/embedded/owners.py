"""Whose a request is: the tenant by its key, the session by its name or by how it begins. Pure."""

import hashlib
from collections.abc import Mapping

import msgspec

from reflexarc.upstream.embedded.request import ChatRequest
from reflexarc.upstream.headers import KEY_NAMES

TENANT_HEADER = "x-reflexarc-tenant"
"""The tenant as the gateway in front knows it, where the client's key does not come so far."""

SESSION_HEADERS = (
    "x-reflexarc-session",
    "x-session-affinity",
    "x-session-id",
    "x-correlation-id",
)
"""Of several the first names the session."""


class Owner(msgspec.Struct, frozen=True):
    """Keyed hashes of 16 bytes. A session is its tenant's: another's of the same name is
    another."""

    tenant: bytes
    session: bytes

    @property
    def name(self) -> str:
        """As a file may be named."""
        return self.session.hex()


def owner_of(headers: Mapping[str, str], request: ChatRequest, key: bytes) -> Owner:
    """The session is named by a header, else by `prompt_cache_key`, else by how it begins: its
    tools, its first system message and its first user message. `headers`: any case."""
    tenant = tenant_of(headers, key)
    named = next((value for name in SESSION_HEADERS if (value := headers.get(name))), None)
    if named is not None:
        parts = [b"header", named.encode("utf-8", "surrogateescape")]
    elif request.cache_key:
        parts = [b"cache key", request.cache_key.encode()]
    else:
        parts = [b"beginning", _beginning(request)]
    return Owner(tenant, _hash(key, [tenant, *parts]))


def tenant_of(headers: Mapping[str, str], key: bytes) -> bytes:
    """By both the client's key and the tenant's name: who only names one gets no other's."""
    secret = next((value for name in KEY_NAMES if (value := headers.get(name.decode()))), "")
    named = headers.get(TENANT_HEADER, "")
    return _hash(key, [value.encode("utf-8", "surrogateescape") for value in (secret, named)])


def engine_headers(tenant: str, session: str | None) -> list[tuple[str, str]]:
    """What the gateway says of a request to the engine: its tenant, and its session if named."""
    named = [] if session is None else [(SESSION_HEADERS[0], session)]
    return [(TENANT_HEADER, tenant), *named]


def _beginning(request: ChatRequest) -> bytes:
    first = {
        role: next((m.content for m in request.messages if m.role == role), "")
        for role in ("system", "user")
    }
    return msgspec.json.encode([request.tools, first["system"], first["user"]])


def _hash(key: bytes, parts: list[bytes]) -> bytes:
    digest = hashlib.blake2b(key=key, digest_size=16)
    for part in parts:
        # Lengths, so that no two lists of parts read alike.
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.digest()
