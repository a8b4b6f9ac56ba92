"""The fastest upstream there is, for measuring what stands before it: one fixed completion.

`python -m reflexarc.bench.latency_upstream [CERT KEY]` listens on a free port of 127.0.0.1, prints
the port and answers every complete request with the same bytes, without reading what it says. With
a certificate and its key it speaks TLS, and prints a second port: each connection to that is told,
as JSON, how many connections the first has accepted and how many handshakes OpenSSL has completed.
"""

import asyncio
import json
import socket
import ssl
import sys
from typing import cast

import httptools

BODY = json.dumps(
    {
        "id": "chatcmpl-fixed",
        "object": "chat.completion",
        "created": 1,
        "model": "bench-model",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "call_fixed",
                            "type": "function",
                            "function": {
                                "name": "get_record_1",
                                "arguments": '{"record_id": "R0000001"}',
                            },
                        }
                    ],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 15, "total_tokens": 1015},
    }
).encode()

_ANSWER = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-ratelimit-remaining-requests: 99\r\n"
    b"content-length: %d\r\n\r\n" % len(BODY)
) + BODY


class _Connection(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        self._transport.write(_ANSWER)


async def _main(files: list[str]) -> None:
    if files:
        await _serve_tls(files[0], files[1])
        return
    server = await asyncio.get_running_loop().create_server(_Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def _serve_tls(cert: str, key: str) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)
    loop = asyncio.get_running_loop()
    accepted = 0
    starting: set[asyncio.Task[object]] = set()

    async def tell(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        counts = {"accepted": accepted, "handshakes": context.session_stats()["accept_good"]}
        writer.write(json.dumps(counts).encode())
        writer.close()

    teller = await asyncio.start_server(tell, "127.0.0.1", 0)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        print(listener.getsockname()[1], teller.sockets[0].getsockname()[1], flush=True)
        # Accepted here, not by the loop's server: that counts only what finished its handshake.
        while True:
            connection, _ = await loop.sock_accept(listener)
            accepted += 1
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            task = loop.create_task(
                loop.connect_accepted_socket(_Connection, connection, ssl=context)
            )
            starting.add(task)
            task.add_done_callback(starting.discard)


if __name__ == "__main__":
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_main(sys.argv[1:]))
