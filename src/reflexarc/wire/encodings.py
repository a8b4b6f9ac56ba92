"""`content-encoding` undone: identity, gzip, deflate; whole bodies and streams, within a limit."""

import zlib
from typing import Protocol

from reflexarc.steps.errors import MalformedError

MAX_DECODED_BYTES = 64 * 1024 * 1024


class _Inflater(Protocol):
    """What `zlib.decompressobj` gives; its own class has a private name."""

    @property
    def unconsumed_tail(self) -> bytes: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class Plain:
    """Undoes an encoding chunk by chunk. `max_bytes` bounds what comes out in all: a small body may
    stand for a huge one. Raises `MalformedError` for other encodings and for broken data."""

    def __init__(self, content_encoding: str, max_bytes: int | None = None) -> None:
        self._encoding = content_encoding.strip().lower()
        self._left = MAX_DECODED_BYTES if max_bytes is None else max_bytes
        self._max_bytes = self._left
        self._inflater: _Inflater | None = None
        if self._encoding in ("", "identity"):
            return
        if self._encoding not in ("gzip", "x-gzip", "deflate"):
            raise MalformedError(f"content-encoding {self._encoding!r} cannot be read here")
        self._inflater = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)

    def feed(self, data: bytes) -> bytes:
        if self._inflater is None:
            return data
        plain = self._inflate(self._inflater, data)
        while self._inflater.eof and self._inflater.unused_data and self._encoding != "deflate":
            # A gzip body may be several, one after the other.
            data = self._inflater.unused_data
            self._inflater = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
            plain += self._inflate(self._inflater, data)
        return plain

    def _inflate(self, inflater: _Inflater, data: bytes) -> bytes:
        try:
            plain = inflater.decompress(data, self._left)
        except zlib.error as error:
            raise MalformedError(f"body is not {self._encoding}: {error}") from error
        self._left -= len(plain)
        if inflater.unconsumed_tail:
            raise MalformedError(f"body is longer than {self._max_bytes} bytes when decoded")
        # A limit of 0 would mean none.
        self._left = max(self._left, 1)
        return plain


def plain_bytes(data: bytes, content_encoding: str) -> bytes:
    """A body with its `content-encoding` undone. Raises `MalformedError` for other encodings,
    broken data, or more than `MAX_DECODED_BYTES`."""
    return Plain(content_encoding).feed(data)
