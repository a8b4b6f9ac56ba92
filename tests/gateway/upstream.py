"""A scripted System 2 on a real port: takes requests apart, answers with exact bytes."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httptools
import msgspec

MODEL = "desk-model"


class Received(msgspec.Struct):
    """One request as its bytes came."""

    method: str
    target: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes

    def header(self, name: bytes) -> bytes | None:
        return next((value for key, value in self.headers if key.lower() == name), None)


Answering = Callable[["Received", asyncio.StreamWriter], Awaitable[None]]


class Upstream:
    """Keeps what it receives; answers with raw bytes or by a coroutine."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.connections = 0
        self.left = asyncio.Event()
        self.answer: bytes | Answering = completion_bytes("hello")
        self.url = ""
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        reading = _Reading()
        parser = httptools.HttpRequestParser(reading)
        try:
            while chunk := await reader.read(65536):
                parser.feed_data(chunk)
                if not reading.complete:
                    continue
                request = Received(
                    parser.get_method().decode(), reading.target, reading.headers, reading.body
                )
                self.received.append(request)
                if isinstance(self.answer, bytes):
                    writer.write(self.answer)
                    await writer.drain()
                else:
                    answering = asyncio.ensure_future(self.answer(request, writer))
                    gone = asyncio.ensure_future(reader.read(1))
                    await asyncio.wait({answering, gone}, return_when=asyncio.FIRST_COMPLETED)
                    if not answering.done():
                        self.left.set()
                    for one in (answering, gone):
                        one.cancel()
                    await asyncio.gather(answering, gone, return_exceptions=True)
                    break
                reading.__init__()
                parser = httptools.HttpRequestParser(reading)
        except ConnectionError:
            self.left.set()
        finally:
            self._tasks.discard(task)
            writer.close()


class _Reading:
    def __init__(self) -> None:
        self.complete = False
        self.target = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""

    def on_url(self, url: bytes) -> None:
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.complete = True


def http_answer(body: bytes, *headers: tuple[str, str], status: str = "200 OK") -> bytes:
    given = dict(headers)
    given.setdefault("content-type", "application/json")
    lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"HTTP/1.1 {status}\r\n{lines}content-length: {len(body)}\r\n\r\n".encode() + body


def completion_bytes(content: str | None = None, *calls: tuple[str, dict[str, Any]]) -> bytes:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = [
            {
                "id": f"call_up{i}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for i, (name, arguments) in enumerate(calls)
        ]
    body = {
        "id": "chatcmpl-up",
        "object": "chat.completion",
        "created": 1,
        "model": MODEL,
        "choices": [
            {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
    }
    return http_answer(json.dumps(body).encode())
