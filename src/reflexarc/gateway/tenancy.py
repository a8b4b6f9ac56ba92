"""Whose a request is: a keyed hash of the secret that it came with."""

import hashlib
import re
from urllib.parse import unquote_to_bytes

from reflexarc.gateway.asgi import Headers, header
from reflexarc.steps.errors import InputError
from reflexarc.upstream import KEY_NAMES

_odd = re.compile(rb"[^\x21-\x7e]")


def tenant_of(headers: Headers, key: bytes) -> bytes:
    """16 bytes that stand for the client's key; nothing is ever shared between keys."""
    given = next((found for name in KEY_NAMES if (found := header(headers, name))), b"")
    return hashlib.blake2b(given, key=key, digest_size=16).digest()


def key_in_header(query: bytes, headers: Headers, *, replaced: bool) -> tuple[bytes, Headers]:
    """Query and headers with a key that came in the query (`?key=`, as Google's API takes it too)
    in its header, where every other key is. With a key in a header too both stay as they are,
    unless it is to be `replaced`: then none goes on. Raises `InputError`."""
    if b"=" not in query:
        return query, headers
    pairs = query.split(b"&")
    keys = [pair for pair in pairs if unquote_to_bytes(pair.partition(b"=")[0]) == b"key"]
    has_other = any(header(headers, name) for name in KEY_NAMES)
    if not keys or (has_other and not replaced):
        return query, headers
    rest = b"&".join(pair for pair in pairs if pair not in keys)
    if has_other:
        return rest, headers
    secret = unquote_to_bytes(keys[0].partition(b"=")[2])
    if _odd.search(secret):
        raise InputError("the key in the query holds a character that no key has")
    return rest, [*headers, (b"x-goog-api-key", secret)]
