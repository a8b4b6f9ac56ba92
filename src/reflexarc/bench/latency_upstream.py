"""The fastest upstream there is, for measuring what stands before it: one fixed completion.

`python -m reflexarc.bench.latency_upstream` listens on a free port of 127.0.0.1, prints the port
and answers every complete request with the same bytes, without reading what it says.
"""

import asyncio
import json
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


async def _main() -> None:
    server = await asyncio.get_running_loop().create_server(_Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_main())
