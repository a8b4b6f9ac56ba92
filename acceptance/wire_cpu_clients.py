"""What asks in the measurement of CPU: many clients who read streams, and one who asks for
decisions at a steady rate beside them."""

import asyncio
import json
import random
import time
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from acceptance.gateway_world import Answered, load
from acceptance.wire_cpu_streams import ARGUMENTS, CALL, MODEL, TEXT, gemini_text
from acceptance.wire_cpu_upstream import PACE_S
from reflexarc.wire.assembling import Assembler
from reflexarc.wire.converting import TurnMemory, read_ask
from reflexarc.wire.dialect import Where
from reflexarc.wire.dialects import dialect
from reflexarc.wire.ids import IdMap
from reflexarc.wire.json import encode_json
from reflexarc.wire.losses import Losses
from reflexarc.wire.sse import SseParser
from reflexarc.wire.turns import Call, Text

PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "gemini": f"/v1beta/models/{MODEL}:streamGenerateContent?alt=sse",
}


def request_of(name: str, chat: bytes) -> bytes:
    """A chat request in any dialect, as its client would have the answer streamed."""
    ask = read_ask(dialect("chat"), chat, Where(stream=True), TurnMemory())
    ask = msgspec.structs.replace(ask, settings=msgspec.structs.replace(ask.settings, stream=True))
    spoken = dialect(name)
    return encode_json(spoken.write_ask(ask, Losses(name), IdMap(spoken.ids)))


class Told(NamedTuple):
    """What came of one stream: its HTTP chunks."""

    pieces: list[bytes]

    def fault(self, client: str, upstream: str) -> str:
        """What is wrong with it; empty where all is there and nothing else."""
        parser, reader, assembler = SseParser(), dialect(client).stream_reader(), Assembler()
        for piece in self.pieces:
            for event in parser.feed(piece):
                for told in reader.read(event):
                    assembler.take(told)
        for told in reader.close():
            assembler.take(told)
        reply = assembler.reply()
        texts = [part.text for part in reply.parts if isinstance(part, Text)]
        if "".join(texts) != "".join(gemini_text() if upstream == "gemini" else TEXT):
            return "the text is not what the upstream said"
        calls = [part for part in reply.parts if isinstance(part, Call)]
        made = [(call.name, json.loads(call.arguments)) for call in calls]
        if made != [(CALL, json.loads("".join(ARGUMENTS)))]:
            return "the call is not the one that the upstream made"
        return "" if reply.stop == "calls" else f"the answer stopped as {reply.stop}"


async def streams(base: str, client: str, count: int, chat: bytes) -> list[Told]:
    """Ask for `count` streams at once, begun a little apart; all that came of them."""
    where = urlsplit(base)
    body = request_of(client, chat)
    key = "x-api-key: k" if client == "messages" else "authorization: Bearer k"
    head = (
        f"POST {where.path}{PATHS[client]} HTTP/1.1\r\nhost: {where.netloc}\r\n{key}\r\n"
        "content-type: application/json\r\naccept: text/event-stream\r\nuser-agent: a-client/1.0"
        f"\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    loop = asyncio.get_running_loop()
    draw = random.Random(count)

    async def one() -> Told:
        await asyncio.sleep(draw.random() * PACE_S * 10)
        ended: asyncio.Future[bytes] = loop.create_future()
        transport, _ = await loop.create_connection(
            lambda: _Reading(ended), str(where.hostname), int(where.port or 0)
        )
        transport.write(head.encode() + body)
        return _dechunked(await ended)

    return list(await asyncio.gather(*(one() for _ in range(count))))


class Beside(NamedTuple):
    """Streams and the answers to what was asked beside them."""

    streams: list[Told]
    answers: list[Answered]
    seconds: float


async def beside(
    base: str,
    client: str,
    count: int,
    asked: bytes,
    asked_at: str,
    bodies: Sequence[bytes],
    rate_per_s: float,
    for_s: float,
) -> Beside:
    """Streams that answer `asked`, and beside them requests to `asked_at` for `for_s`."""
    began_s = time.monotonic()
    asking = asyncio.create_task(load(asked_at, bodies, rate_per_s, for_s))
    told = await streams(base, client, count, asked)
    return Beside(told, await asking, time.monotonic() - began_s)


class _Reading(asyncio.Protocol):
    """Keeps what comes until the connection is closed; looked at later, not to compete."""

    def __init__(self, ended: "asyncio.Future[bytes]") -> None:
        self._ended = ended
        self._parts: list[bytes] = []

    def data_received(self, data: bytes) -> None:
        self._parts.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._ended.set_result(b"".join(self._parts))


def _dechunked(answer: bytes) -> Told:
    """Raises `RuntimeError` for anything but a whole stream."""
    head, _, rest = answer.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200 ") or b"chunked" not in head.lower():
        raise RuntimeError(f"no stream came but {answer[:300].decode('latin-1')!r}")
    pieces: list[bytes] = []
    while True:
        size, _, rest = rest.partition(b"\r\n")
        if not size:
            raise RuntimeError("a stream was cut")
        length = int(size, 16)
        if not length:
            return Told(pieces)
        pieces.append(rest[:length])
        rest = rest[length + 2 :]
