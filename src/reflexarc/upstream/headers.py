"""Which headers travel on, both ways: all but those of one connection (RFC 9110, 7.6.1).

`content-encoding` stays with the bytes it describes; nothing is decoded on the way.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from reflexarc.steps.errors import InputError

_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
# The transport writes these itself; `expect` is answered by this side's server.
_REQUEST_OWN = _HOP_BY_HOP | {b"host", b"content-length", b"expect"}
# Meant for this gateway, nobody else's business.
_OURS = frozenset(
    {
        b"x-reflexarc",
        b"x-reflexarc-session",
        b"x-reflexarc-task",
        b"x-reflexarc-tier",
        b"x-reflexarc-local",
        b"x-reflexarc-tenant",
    }
)
KEY_NAMES = (b"authorization", b"api-key", b"x-api-key", b"x-goog-api-key")
"""Headers that a client's key may come in; of several the first of these counts."""
_KEYS = frozenset(KEY_NAMES)
# What means the same whatever the dialect.
_TRAVELS = frozenset(
    {
        b"user-agent",
        b"traceparent",
        b"tracestate",
        b"baggage",
        b"x-request-id",
        b"x-correlation-id",
        b"x-session-affinity",
        b"x-session-id",
    }
)
_TRAVEL_PREFIXES = (b"x-forwarded-", b"helicone-", b"x-b3-")
ANTHROPIC_VERSION = "2023-06-01"


class Key(NamedTuple):
    """A secret as an upstream wants it: the header's name, in lower case, and its value."""

    name: str
    value: str

    @classmethod
    def of(cls, dialect: str, secret: str) -> "Key":
        if dialect == "messages":
            return cls("x-api-key", secret)
        if dialect == "gemini":
            return cls("x-goog-api-key", secret)
        return cls("authorization", f"Bearer {secret}")

    def told_in(self, dialect: str) -> "Key":
        """The same secret as another dialect wants it."""
        bearer = self.name == "authorization"
        return Key.of(dialect, self.value.removeprefix("Bearer ") if bearer else self.value)


def forwarded_request_headers(
    headers: Iterable[tuple[bytes, bytes]], key: Key | None
) -> list[tuple[str, str]]:
    """A client's headers (names in lower case) as the upstream gets them.

    `key` replaces the client's own, in whichever header it came. Raises `InputError` for a value
    that is not UTF-8: it could not be passed on unchanged.
    """
    given = list(headers)
    dropped = _named_by_connection(given, _REQUEST_OWN | _OURS)
    if key is not None:
        dropped |= _KEYS
    kept = [(name.decode(), _text(name, value)) for name, value in given if name not in dropped]
    if key is not None:
        kept.append(key)
    return kept


def converted_request_headers(
    headers: Iterable[tuple[bytes, bytes]], key: Key | None, dialect: str, *, stream: bool
) -> list[tuple[str, str]]:
    """The same where the request goes on in another dialect, `dialect`: what is about the client's
    own stays behind, and its key moves to where this one wants it."""
    kept: list[tuple[str, str]] = []
    given: dict[bytes, str] = {}
    for name, value in headers:
        if name in _TRAVELS or name.startswith(_TRAVEL_PREFIXES):
            kept.append((name.decode(), _text(name, value)))
        elif name in _KEYS:
            given.setdefault(name, _text(name, value))
    name = next((name for name in KEY_NAMES if given.get(name)), None)
    if key is None and name is not None:
        secret = given[name]
        if name == b"authorization":
            scheme, _, rest = secret.partition(" ")
            secret = rest if scheme.lower() == "bearer" else secret
        key = Key.of(dialect, secret.strip())
    kept.append(("content-type", "application/json"))
    kept.append(("accept", "text/event-stream" if stream else "application/json"))
    # It is read on the way: compressing it would only cost both sides.
    kept.append(("accept-encoding", "identity"))
    if dialect == "messages":
        kept.append(("anthropic-version", ANTHROPIC_VERSION))
    if key is not None:
        kept.append(key)
    return kept


def _text(name: bytes, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        shown = name.decode("ascii", "replace")
        raise InputError(f"the value of header {shown} is not UTF-8") from error


def forwarded_response_headers(
    headers: Sequence[tuple[bytes, bytes]],
) -> list[tuple[bytes, bytes]]:
    """An upstream's headers as the client gets them, in order, values untouched."""
    lower = [(name.lower(), value) for name, value in headers]
    dropped = _named_by_connection(lower, _HOP_BY_HOP)
    return [(name, value) for name, value in lower if name not in dropped]


def _named_by_connection(
    headers: Iterable[tuple[bytes, bytes]], always: frozenset[bytes]
) -> frozenset[bytes]:
    named: set[bytes] = set()
    for name, value in headers:
        if name == b"connection":
            named.update(token.strip().lower() for token in value.split(b","))
    return always | named if named else always


_ABOUT_BYTES = frozenset({b"content-type", b"content-length", b"content-encoding", b"etag"})
_IDS = frozenset({b"x-request-id", b"request-id"})


def converted_response_headers(
    headers: Sequence[tuple[bytes, bytes]], dialect: str
) -> list[tuple[bytes, bytes]]:
    """An upstream's headers where its answer goes on in another dialect, `dialect`: without those
    about the bytes it came in, and with its request id under the name clients read. Hints for
    trying again and limits of rate go on as they are."""
    kept = [pair for pair in forwarded_response_headers(headers) if pair[0] not in _ABOUT_BYTES]
    given = next((value for name, value in kept if name in _IDS), None)
    if given is None:
        return kept
    wanted = b"request-id" if dialect == "messages" else b"x-request-id"
    return [*((name, value) for name, value in kept if name not in _IDS), (wanted, given)]
