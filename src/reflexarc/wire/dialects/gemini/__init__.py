"""Gemini's `generateContent`, as clients send it and as an upstream takes it."""

from typing import Any

from reflexarc.wire.dialect import Dialect, Head, StreamReader, StreamWriter, Where
from reflexarc.wire.dialects.gemini import faults, reading, replies_in, replies_out, writing
from reflexarc.wire.dialects.gemini.shapes import NAME
from reflexarc.wire.dialects.gemini.streams_in import GeminiStreamReader
from reflexarc.wire.faults import Fault
from reflexarc.wire.ids import GEMINI_IDS, IdMap, IdRule
from reflexarc.wire.losses import Losses
from reflexarc.wire.replies import Reply
from reflexarc.wire.turns import Ask, Turn

KEEP_ALIVE = b"\n"
"""Between chunks. Google's clients take a comment for a broken answer, and a chunk without content
for a turn to forget."""


class GeminiDialect:
    """See `wire.dialect.Dialect`."""

    name = NAME
    conversation = "contents"
    ids: IdRule = GEMINI_IDS
    keep_alive = KEEP_ALIVE

    def read_head(self, values: dict[str, Any], where: Where) -> Head:
        return reading.read_head(values, where)

    def read_message(self, value: Any, path: str) -> tuple[Turn, ...]:
        return reading.read_message(value, path)

    def write_ask(self, ask: Ask, losses: Losses, ids: IdMap) -> dict[str, Any]:
        return writing.write_ask(ask, losses, ids)

    def read_reply(self, value: dict[str, Any]) -> Reply:
        return replies_in.read_reply(value)

    def write_reply(self, reply: Reply, ask: Ask, losses: Losses) -> dict[str, Any]:
        del ask  # Nothing that was asked changes how an answer is said.
        return replies_out.write_reply(reply, losses)

    def stream_reader(self) -> StreamReader:
        return GeminiStreamReader()

    def stream_writer(self, ask: Ask, losses: Losses) -> StreamWriter:
        del ask
        return replies_out.GeminiStreamWriter(losses)

    def read_fault(self, status: int, body: bytes) -> Fault:
        return faults.read_fault(status, body)

    def write_fault(self, fault: Fault, request_id: str) -> tuple[int, dict[str, Any]]:
        return faults.write_fault(fault, request_id)


DIALECT: Dialect = GeminiDialect()
