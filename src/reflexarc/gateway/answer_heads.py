"""The head of an upstream's answer as its client gets it."""

from collections.abc import Sequence

from reflexarc.gateway.asgi import Headers
from reflexarc.gateway.labels import id_headers, timing_label
from reflexarc.upstream import converted_response_headers, forwarded_response_headers

_REPLACED = frozenset({b"x-reflexarc-decision", b"x-reflexarc-prefix", b"x-reflexarc-pruned"})
_BODILESS = frozenset({204, 304})
_ABOUT_BYTES = frozenset({b"content-type", b"content-length", b"content-encoding", b"etag"})


def answer_headers(
    given: Sequence[tuple[bytes, bytes]],
    status: int,
    client: str,
    request_id: bytes,
    label: bytes,
    own_ms: float,
    upstream_ms: float,
    *,
    converted: bool,
    decoded: bool = False,
) -> Headers:
    """`converted`: the answer goes on in another dialect; `decoded`: in its own, but what was about
    its bytes no longer holds."""
    headers = converted_response_headers(given, client) if converted else (
        forwarded_response_headers(given)
    )  # fmt: skip
    has_id = False
    kept: Headers = []
    for pair in headers:
        has_id = has_id or pair[0] in (b"x-request-id", b"request-id")
        if pair[0] in _REPLACED or (decoded and pair[0] in _ABOUT_BYTES):
            continue
        if pair[0] != b"content-length" or status not in _BODILESS:
            kept.append(pair)
    if not has_id:
        kept.extend(id_headers(client, request_id))
    kept.append((b"server-timing", timing_label(reflexarc=own_ms, upstream=upstream_ms)))
    kept.append((b"x-reflexarc-decision", label))
    return kept
