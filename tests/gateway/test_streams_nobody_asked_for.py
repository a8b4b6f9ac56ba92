"""An upstream that streams though a whole answer was asked for: put together as far as its own last
word, never without bound; and a fault of ours inside an answer keeps no connection."""

import asyncio
import json
from typing import Any, cast

import pytest

from reflexarc.gateway.converted import Converter
from reflexarc.gateway.copying import Copy
from reflexarc.gateway.exchange import Exchange
from reflexarc.gateway.forwarding import Forwarder
from reflexarc.steps.errors import UpstreamError
from reflexarc.upstream import Answer
from reflexarc.wire.converting import Conversion
from reflexarc.wire.dialects import dialect
from reflexarc.wire.turns import Ask, Settings, Text, Turn

TYPE = (b"content-type", b"text/event-stream")


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "c", "model": "m", "choices": [choice]}).encode() + b"\n\n"


class Streaming:
    """An answer of chunks; after the last it is silent for ever."""

    status = 200
    finished = False

    def __init__(self, *chunks: bytes, more: bytes = b"") -> None:
        self.headers = [TYPE]
        self.released = False
        self._chunks = list(chunks)
        self._more = more

    async def next_chunk(self) -> bytes:
        if self._chunks:
            return self._chunks.pop(0)
        if self._more:
            await asyncio.sleep(0)
            return self._more
        return await asyncio.Event().wait() and b""

    def release(self) -> None:
        self.released = True


def converter(sent: list[Any], copy: Copy | None = None) -> Converter:
    ask = Ask("messages", Settings("m", max_tokens=9), (Turn("user", (Text("hi"),)),))
    conversion = Conversion(dialect("messages"), dialect("chat"), ask, 1)

    async def send(message: Any) -> None:
        sent.append(message)

    return Converter(conversion, copy, "r", lambda _: [], send)


async def test_it_is_whole_with_its_last_word_though_the_upstream_stays() -> None:
    sent: list[Any] = []
    copy = Copy(10_000)
    answer = Streaming(chunk({"content": "Hello"}), chunk({}, "stop") + b"data: [DONE]\n\n")
    status = await asyncio.wait_for(converter(sent, copy).answer(cast(Answer, answer)), 5)
    assert (status, json.loads(sent[1]["body"])["content"][0]["text"]) == (200, "Hello")
    assert copy.body is not None


async def test_it_is_not_read_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reflexarc.gateway.converted.MAX_WHOLE_BYTES", 10_000)
    answer = Streaming(more=chunk({"content": "on and on"}))
    with pytest.raises(UpstreamError, match="longer than 10000 bytes"):
        await asyncio.wait_for(converter([]).answer(cast(Answer, answer)), 5)


async def test_a_fault_of_ours_keeps_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Streaming(chunk({"content": "Hello"}))

    class Transport:
        async def send(self, *_: Any) -> Any:
            return answer

    async def fails(*_: Any) -> int:
        raise KeyError("a fault of ours")

    monkeypatch.setattr(Converter, "answer", fails)
    ask = Ask("messages", Settings("m"), ())
    exchange = Exchange(
        "/v1", "POST", cast(Any, None), [], b"{}", 0.0, b"r", lambda: b"none",
        client="messages", conversion=Conversion(dialect("messages"), dialect("chat"), ask, 1),
    )  # fmt: skip
    forwarder = Forwarder(cast(Any, Transport()), cast(Any, None), lambda: 0.0)

    class Asker:
        receive = asyncio.Event().wait
        send = None

    with pytest.raises(KeyError):
        await forwarder.forward(exchange, cast(Any, Asker()))
    assert answer.released
