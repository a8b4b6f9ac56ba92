"""A conversation piece by piece, each as it was sent: what is remembered of it is known by them.

A piece is an item of the request's conversation; of responses, all items of one turn of the
model's: its thinking, its words, its calls.
"""

import re
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec
import xxhash

from reflexarc.steps.errors import RequestError
from reflexarc.wire.growing import Grown
from reflexarc.wire.marks import unmarked

BETWEEN = b"\x1e"
"""Between the items of a piece. No JSON holds it but in a string, where it is escaped."""
_MODELS, _OTHERS = 1, 0
_turns = re.compile(rb"\x01+|\x00")


class Pieces(Protocol):
    """`until(at)` stands for all pieces up to and with one, and their order, cache marks aside.
    Equal digests are equal pieces, but to somebody who looks for two of one: what is known by
    them is of one tenant, or tells nothing."""

    def __len__(self) -> int: ...
    def __getitem__(self, at: int, /) -> bytes: ...
    def until(self, at: int, /) -> bytes: ...


class Listed:
    """Pieces by themselves. `begin` keeps those of one kind apart from another's."""

    def __init__(self, raws: Sequence[msgspec.Raw | bytes], begin: bytes = b"") -> None:
        self._raws = raws
        self._digests = chain(raws, begin)

    def __len__(self) -> int:
        return len(self._raws)

    def __getitem__(self, at: int) -> bytes:
        return bytes(self._raws[at])

    def until(self, at: int) -> bytes:
        return self._digests[at]


class Sent:
    """The pieces of a body of the dialect `name`. `first` stands before them: instructions that
    came beside the conversation. What has the same bytes in two dialects is not the same.

    Raises `RequestError` for an item of responses that is none.
    """

    def __init__(self, grown: Grown, name: str, first: bytes = b"") -> None:
        self._grown = grown
        self._first = first
        self._begin = xxhash.xxh3_128_digest(name.encode() + b" " + first)
        grouped = name == "responses"
        self._ends: Sequence[int] = _groups(grown) if grouped else range(1, len(grown) + 1)
        self._before = 1 if first else 0

    def __len__(self) -> int:
        return len(self._ends) + self._before

    def __getitem__(self, at: int) -> bytes:
        if at < self._before:
            return self._first
        at -= self._before
        begin = self._ends[at - 1] if at else 0
        return BETWEEN.join(self._grown.item(one) for one in range(begin, self._ends[at]))

    def until(self, at: int) -> bytes:
        at -= self._before
        return self._begin + (self._grown.chain[self._ends[at] - 1] if at >= 0 else b"")


def chain(messages: Sequence[msgspec.Raw | bytes], start: bytes = b"") -> list[bytes]:
    """The chain's digest after each message, cache marks aside; any chain of appends equals one
    whole chain."""
    digests: list[bytes] = []
    head = start
    for raw in messages:
        head = xxhash.xxh3_128_digest(head + unmarked(bytes(raw)))
        digests.append(head)
    return digests


class _Kind(msgspec.Struct):
    type: Any = None
    role: Any = None


_kind = msgspec.json.Decoder(_Kind)


def _groups(grown: Grown) -> list[int]:
    kinds = grown.kinds
    kinds.extend(
        _MODELS if _is_models(grown.item(at)) else _OTHERS for at in range(len(kinds), len(grown))
    )
    return [found.end() for found in _turns.finditer(kinds)]


def _is_models(raw: bytes) -> bool:
    try:
        kind = _kind.decode(raw)
    except msgspec.MsgspecError as error:
        raise RequestError(f"an item of input does not fit: {error}", param="input") from error
    if kind.role is not None:
        return kind.role == "assistant"
    return not (isinstance(kind.type, str) and kind.type.endswith("_output"))
