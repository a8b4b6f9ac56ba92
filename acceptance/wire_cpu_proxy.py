"""A proxy that copies bytes, on the gateway's server stack: what its CPU is measured against.

`python -m acceptance.wire_cpu_proxy UPSTREAM` listens on a free port of 127.0.0.1 and prints its
address. uvicorn with httptools and uvloop takes requests, aiohttp sends them on. It keeps
connections to the upstream, takes headers off that are for one hop, and bounds silence; every
proxy needs that much. It parses nothing, counts nothing, does not look whether its client left.
"""

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import uvicorn
import uvloop
import yarl

_HOP = frozenset({b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding"})
_NOT_SENT = _HOP | {b"host", b"content-length"}
_Message = dict[str, Any]


class Proxy:
    """An ASGI application."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._session: aiohttp.ClientSession | None = None

    async def __call__(
        self,
        scope: _Message,
        receive: Callable[[], Awaitable[_Message]],
        send: Callable[[_Message], Awaitable[None]],
    ) -> None:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None, sock_read=300),
            )
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        query = b"?" + scope["query_string"] if scope["query_string"] else b""
        url = yarl.URL(self._upstream + (scope["raw_path"] + query).decode(), encoded=True)
        headers = [
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in scope["headers"]
            if name not in _NOT_SENT
        ]
        async with self._session.request(
            scope["method"], url, data=body, headers=headers, allow_redirects=False
        ) as answer:
            kept = [pair for pair in answer.raw_headers if pair[0].lower() not in _HOP]
            await send({"type": "http.response.start", "status": answer.status, "headers": kept})
            async for chunk in answer.content.iter_any():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _main(upstream: str) -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    config = uvicorn.Config(
        Proxy(upstream),  # pyright: ignore[reportArgumentType] - its scope is typed as any mapping
        http="httptools",
        ws="none",
        lifespan="off",
        proxy_headers=False,
        access_log=False,
        log_level="warning",
        server_header=False,
        date_header=False,
        timeout_keep_alive=75,
    )
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    await uvicorn.Server(config).serve(sockets=[listener])


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sys.exit(runner.run(_main(sys.argv[1])))
