"""Takes apart what is new in a body, and sees that it is one JSON object at all: everything else
about it is for others to judge."""

import asyncio
import json

import msgspec
import xxhash

from reflexarc.gateway.asgi import Headers, header
from reflexarc.steps.errors import MalformedError
from reflexarc.upstream import KEY_NAMES
from reflexarc.wire.dialects import dialect
from reflexarc.wire.growing import Bodies, Grown

# Beyond this a body that only some readers accept is checked beside the event loop.
_SLOWLY_CHECKED_BYTES = 1024 * 1024


class _AnyObject(msgspec.Struct):
    """Reads nothing: decoding into it only proves that a body is one JSON object."""


_object = msgspec.json.Decoder(_AnyObject)


class Reading:
    """Remembers the bodies of each key's conversations, so that of the next only what is new is
    read."""

    def __init__(self) -> None:
        self._bodies = Bodies()

    async def read(self, client: str, headers: Headers, body: bytes) -> Grown | None:
        """The body taken apart; None where only some readers would take it (a key given twice,
        half a surrogate pair, deep nesting): the upstream judges. `client`: the dialect. Raises
        `MalformedError` unless it is one JSON object."""
        owner = xxhash.xxh3_128(client.encode())
        for name in KEY_NAMES:
            owner.update(b"\0" + (header(headers, name) or b""))
        try:
            return self._bodies.read(owner.digest(), dialect(client).conversation, body)
        except MalformedError:
            await check_object(body)
            return None


async def check_object(body: bytes) -> None:
    """Raises `MalformedError` unless the body is one JSON object. Nothing of it is kept; what only
    some readers accept (half a surrogate pair, deep nesting) is left to the upstream to judge."""
    try:
        _object.decode(body)
    except msgspec.ValidationError as error:
        raise MalformedError("the body must be a JSON object") from error
    except RecursionError:
        return
    except msgspec.DecodeError as error:
        if len(body) <= _SLOWLY_CHECKED_BYTES:
            _check_leniently(body, error)
        else:
            await asyncio.to_thread(_check_leniently, body, error)


def _check_leniently(body: bytes, error: msgspec.DecodeError) -> None:
    """Slow. Its hooks make nothing, and give other threads their turns."""
    try:
        value = json.loads(body, object_pairs_hook=_no_object, parse_int=_no_number)
    except (ValueError, RecursionError):
        raise MalformedError(f"the body is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise MalformedError("the body must be a JSON object") from error


def _no_object(_: list[tuple[str, object]]) -> dict[str, object]:
    return {}


def _no_number(_: str) -> int:
    return 0
