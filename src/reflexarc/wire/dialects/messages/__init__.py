"""The messages dialect: Anthropic's `POST /v1/messages`, as clients and as upstreams speak it.

What goes there and back may come in another form that means the same: one plain text block is
written as a string, neighbours of one role as one message, results before what else a user says,
`output_format` as `output_config.format`; null members, `"stream": false`, `"is_error": false`, the
tool type `custom`, and empty text are left out.
"""

from typing import Any

from reflexarc.wire.dialect import Dialect, Head, StreamReader, StreamWriter, Where
from reflexarc.wire.dialects.messages.counting import count_request, read_count, write_count
from reflexarc.wire.dialects.messages.faults import read_fault, write_fault
from reflexarc.wire.dialects.messages.reading import read_head, read_message
from reflexarc.wire.dialects.messages.replies import read_reply, write_reply
from reflexarc.wire.dialects.messages.streams_in import MessagesStreamReader
from reflexarc.wire.dialects.messages.streams_out import PING, MessagesStreamWriter
from reflexarc.wire.dialects.messages.words import NAME
from reflexarc.wire.dialects.messages.writing import DEFAULT_MAX_TOKENS, write_ask
from reflexarc.wire.faults import Fault
from reflexarc.wire.ids import MESSAGES_IDS, IdMap, IdRule
from reflexarc.wire.losses import Losses
from reflexarc.wire.replies import Reply
from reflexarc.wire.turns import Ask, Turn

__all__ = [
    "DEFAULT_MAX_TOKENS",
    "DIALECT",
    "PING",
    "count_request",
    "read_count",
    "write_count",
]


class MessagesDialect:
    @property
    def name(self) -> str:
        return NAME

    @property
    def conversation(self) -> str:
        return "messages"

    @property
    def ids(self) -> IdRule:
        return MESSAGES_IDS

    @property
    def keep_alive(self) -> bytes:
        return PING

    def read_head(self, values: dict[str, Any], where: Where) -> Head:
        del where  # its body says all
        return read_head(values)

    def read_message(self, value: Any, path: str) -> tuple[Turn, ...]:
        return read_message(value, path)

    def write_ask(self, ask: Ask, losses: Losses, ids: IdMap) -> dict[str, Any]:
        return write_ask(ask, losses, ids)

    def read_reply(self, value: dict[str, Any]) -> Reply:
        return read_reply(value)

    def write_reply(self, reply: Reply, ask: Ask, losses: Losses) -> dict[str, Any]:
        del ask  # nothing of it is echoed
        return write_reply(reply, losses)

    def stream_reader(self) -> StreamReader:
        return MessagesStreamReader()

    def stream_writer(self, ask: Ask, losses: Losses) -> StreamWriter:
        del ask  # nothing of it is echoed
        return MessagesStreamWriter(losses)

    def read_fault(self, status: int, body: bytes) -> Fault:
        return read_fault(status, body)

    def write_fault(self, fault: Fault, request_id: str) -> tuple[int, dict[str, Any]]:
        return write_fault(fault, request_id)


DIALECT: Dialect = MessagesDialect()
