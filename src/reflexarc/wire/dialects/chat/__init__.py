"""OpenAI's chat completions: `POST /v1/chat/completions`, as OpenAI and all its likes speak it."""

from typing import Any

from reflexarc.wire.dialect import Head, Where
from reflexarc.wire.dialects.chat.messages_in import read_message
from reflexarc.wire.dialects.chat.reading import read_head
from reflexarc.wire.dialects.chat.replies_in import read_reply
from reflexarc.wire.dialects.chat.replies_out import ChatStreamWriter, write_reply
from reflexarc.wire.dialects.chat.streams_in import ChatStreamReader
from reflexarc.wire.dialects.chat.writing import write_ask
from reflexarc.wire.dialects.openai_faults import read_fault, write_fault
from reflexarc.wire.faults import Fault
from reflexarc.wire.ids import CHAT_IDS, IdMap, IdRule
from reflexarc.wire.losses import Losses
from reflexarc.wire.replies import Reply
from reflexarc.wire.sse import comment
from reflexarc.wire.turns import Ask, Turn


class Chat:
    name = "chat"
    conversation = "messages"
    ids: IdRule = CHAT_IDS
    keep_alive = comment("ping")

    def read_head(self, values: dict[str, Any], where: Where) -> Head:
        return read_head(values, where)

    def read_message(self, value: Any, path: str) -> tuple[Turn, ...]:
        return read_message(value, path)

    def write_ask(self, ask: Ask, losses: Losses, ids: IdMap) -> dict[str, Any]:
        return write_ask(ask, losses, ids)

    def read_reply(self, value: dict[str, Any]) -> Reply:
        return read_reply(value)

    def write_reply(self, reply: Reply, ask: Ask, losses: Losses) -> dict[str, Any]:
        return write_reply(reply, ask, losses)

    def stream_reader(self) -> ChatStreamReader:
        return ChatStreamReader()

    def stream_writer(self, ask: Ask, losses: Losses) -> ChatStreamWriter:
        return ChatStreamWriter(ask, losses)

    def read_fault(self, status: int, body: bytes) -> Fault:
        return read_fault(status, body)

    def write_fault(self, fault: Fault, request_id: str) -> tuple[int, dict[str, Any]]:
        del request_id  # it stands in a header alone
        return write_fault(fault)


DIALECT = Chat()
