"""The upstream of the measurement of CPU: many streams at once, each event in a write of its own.

`python -m acceptance.wire_cpu_upstream` listens on a free port of 127.0.0.1 and prints its address.
A request to stream is told the stream of its dialect, an event every `PACE_S`; any other is
answered at once. Late events are not caught up with: two would then come in one read.
"""

import asyncio
import sys
from typing import cast

import httptools
import uvloop

from acceptance.wire_cpu_streams import events
from reflexarc.bench.latency_upstream import BODY

PACE_S = 0.008

_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"cache-control: no-cache\r\nx-request-id: req_0001\r\ntransfer-encoding: chunked\r\n\r\n"
)
_WHOLE = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(BODY)
) + BODY
_DIALECTS = {
    b"/v1/chat/completions": "chat",
    b"/v1/responses": "responses",
    b"/v1/messages": "messages",
}


def _framed(dialect: str) -> list[bytes]:
    pieces = [b"%x\r\n%b\r\n" % (len(event), event) for event in events(dialect)]
    return [*pieces, b"0\r\n\r\n"]


_STREAMS = {name: _framed(name) for name in (*_DIALECTS.values(), "gemini")}


class _Connection(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._parser = httptools.HttpRequestParser(self)
        self._loop = asyncio.get_running_loop()
        self._url = b""
        self._body = b""

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._url, self._body = url, b""

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        dialect = _DIALECTS.get(self._url, "gemini")
        if dialect == "gemini" or b'"stream":true' in self._body.replace(b" ", b""):
            self._transport.write(_HEAD)
            self._loop.call_later(PACE_S, self._tell, _STREAMS[dialect], 0)
        else:
            self._transport.write(_WHOLE)

    def _tell(self, pieces: list[bytes], at: int) -> None:
        if self._transport.is_closing():
            return
        self._transport.write(pieces[at])
        if at + 1 < len(pieces):
            self._loop.call_later(PACE_S, self._tell, pieces, at + 1)


async def _main() -> None:
    server = await asyncio.get_running_loop().create_server(_Connection, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sys.exit(runner.run(_main()))
