"""OpenAI's Responses: the dialect of `/v1/responses`, for clients and for upstreams."""

from typing import Any

from reflexarc.wire.dialect import Dialect, Head, StreamReader, StreamWriter, Where
from reflexarc.wire.dialects.openai_faults import read_fault, write_fault
from reflexarc.wire.dialects.responses.items_in import NAME, read_item
from reflexarc.wire.dialects.responses.reading import read_head
from reflexarc.wire.dialects.responses.replies import read_reply, write_reply
from reflexarc.wire.dialects.responses.streams_in import ResponsesStreamReader
from reflexarc.wire.dialects.responses.streams_out import ResponsesStreamWriter
from reflexarc.wire.dialects.responses.writing import write_ask
from reflexarc.wire.faults import Fault
from reflexarc.wire.ids import RESPONSES_IDS, IdMap, IdRule
from reflexarc.wire.losses import Losses
from reflexarc.wire.replies import Reply
from reflexarc.wire.sse import comment
from reflexarc.wire.turns import Ask, Turn


class Responses:
    name: str = NAME
    conversation: str = "input"
    ids: IdRule = RESPONSES_IDS
    keep_alive = comment("ping")

    def read_head(self, values: dict[str, Any], where: Where) -> Head:
        return read_head(values, where)

    def read_message(self, value: Any, path: str) -> tuple[Turn, ...]:
        return read_item(value, path)

    def write_ask(self, ask: Ask, losses: Losses, ids: IdMap) -> dict[str, Any]:
        return write_ask(ask, losses, ids)

    def read_reply(self, value: dict[str, Any]) -> Reply:
        return read_reply(value)

    def write_reply(self, reply: Reply, ask: Ask, losses: Losses) -> dict[str, Any]:
        return write_reply(reply, ask, losses)

    def stream_reader(self) -> StreamReader:
        return ResponsesStreamReader()

    def stream_writer(self, ask: Ask, losses: Losses) -> StreamWriter:
        return ResponsesStreamWriter(ask, losses)

    def read_fault(self, status: int, body: bytes) -> Fault:
        return read_fault(status, body)

    def write_fault(self, fault: Fault, request_id: str) -> tuple[int, dict[str, Any]]:
        """The request's id stands in the header `x-request-id` alone."""
        del request_id
        return write_fault(fault)


DIALECT: Dialect = Responses()
