"""Uvicorn's HTTP protocol with one change: an answer's head leaves together with its first bytes.

Uvicorn writes the head at once and the body next: two system calls, and two wake-ups of the client,
where one does.
"""

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class OneWriteProtocol(HttpToolsProtocol):
    """Give it to `uvicorn.Config(http=...)`."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - uvicorn narrows asyncio's own signature
        held = _HeadHolder(cast(asyncio.Transport, transport), self.loop)
        super().connection_made(cast(asyncio.Transport, held))


class _HeadHolder:
    """A transport that keeps what looks like a head until the next write, or the loop's next turn:
    whatever it was, it is neither lost nor reordered."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""

    def write(self, data: bytes) -> None:
        if self._head:
            data, self._head = self._head + data, b""
        elif data.startswith(b"HTTP/1.1 ") and data.endswith(b"\r\n\r\n"):
            self._head = data
            self._loop.call_soon(self._flush)
            return
        self._transport.write(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._head:
            data, self._head = self._head, b""
            self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        """All else is the transport's own."""
        return getattr(self._transport, name)
