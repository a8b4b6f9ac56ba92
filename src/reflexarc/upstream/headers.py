"""Which headers travel on, both ways: all but those of one connection (RFC 9110, 7.6.1).

`content-encoding` stays with the bytes it describes; nothing is decoded on the way.
"""

from collections.abc import Iterable, Sequence

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
_OURS = {b"x-reflexarc", b"x-reflexarc-session", b"x-reflexarc-task"}


def forwarded_request_headers(
    headers: Iterable[tuple[bytes, bytes]], authorization: str | None
) -> list[tuple[str, str]]:
    """A client's headers (names in lower case) as the upstream gets them.

    `authorization` replaces the client's own header where given. Raises `InputError` for a value
    that is not UTF-8: it could not be passed on unchanged.
    """
    given = list(headers)
    dropped = _named_by_connection(given, _REQUEST_OWN | _OURS)
    kept: list[tuple[str, str]] = []
    for name, value in given:
        if name in dropped or (authorization is not None and name == b"authorization"):
            continue
        try:
            kept.append((name.decode(), value.decode()))
        except UnicodeDecodeError as error:
            shown = name.decode("ascii", "replace")
            raise InputError(f"the value of header {shown} is not UTF-8") from error
    if authorization is not None:
        kept.append(("authorization", authorization))
    return kept


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
