"""What System 2 answered, read from a copy of its bytes in whatever dialect they are.

Only for looking on (shadow comparison, audits, the store): the bytes themselves went to the client.
"""

from typing import Any

import msgspec

from reflexarc.steps import ToolCall
from reflexarc.steps.errors import MalformedError
from reflexarc.wire.as_steps import tool_call
from reflexarc.wire.assembling import Assembler, BrokenOffError
from reflexarc.wire.dialect import Dialect
from reflexarc.wire.dialects import dialect
from reflexarc.wire.json import decode_strict
from reflexarc.wire.replies import Reply, ReplyPart, Stop
from reflexarc.wire.sse import SseParser
from reflexarc.wire.thinking import is_thinking_part
from reflexarc.wire.turns import Call, Foreign, Text, Thinking
from reflexarc.wire.usage import Usage

_WHOLE: frozenset[Stop] = frozenset({"end", "calls", "stop_sequence", "refusal"})


class Answer(msgspec.Struct, frozen=True):
    """One assistant turn. `complete` is false where the answer broke off: no finish reason, cut
    by its token limit, an error inside the stream; such a turn is no evidence of what System 2
    wanted. `stop` is why it ended, None where it did not. `thinking`: it carried thinking that
    the provider may want back. `usage` as it was told, None where it was not."""

    content: str
    calls: tuple[ToolCall, ...]
    complete: bool
    stop: Stop | None
    thinking: bool = False
    usage: Usage | None = None

    def as_chat(self) -> dict[str, Any]:
        """The turn as a chat message of a history: its calls as they were written, no thinking."""
        message: dict[str, Any] = {"role": "assistant", "content": self.content or None}
        if self.calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.raw},
                }
                for call in self.calls
            ]
        return message


def answer_from_body(data: bytes, content_type: str, dialect_name: str = "chat") -> Answer:
    """Reads an answer or, where the content type says so, a stream. Raises `MalformedError`."""
    spoken = dialect(dialect_name)
    if content_type.lower().startswith("text/event-stream"):
        return answer_from_stream(data, spoken)
    value = decode_strict(data, "answer")
    if not isinstance(value, dict):
        raise MalformedError("answer is not a JSON object")
    return answer_of(spoken.read_reply(value))  # pyright: ignore[reportUnknownArgumentType] - of anything


def answer_from_stream(data: bytes, spoken: Dialect) -> Answer:
    """Reads a whole stream, as far as it came."""
    parser, reader, assembler = SseParser(), spoken.stream_reader(), Assembler()
    for event in parser.feed(data):
        for told in reader.read(event):
            assembler.take(told)
    for told in reader.close():
        assembler.take(told)
    if assembler.fault is not None and assembler.fault.code == "upstream_malformed":
        raise MalformedError(assembler.fault.message)
    try:
        return answer_of(assembler.reply())
    except BrokenOffError:
        return _answer(assembler.parts, None)


def answer_of(reply: Reply) -> Answer:
    return _answer(reply.parts, reply.stop, reply.usage)


def _answer(parts: tuple[ReplyPart, ...], stop: Stop | None, usage: Usage | None = None) -> Answer:
    calls = [part for part in parts if isinstance(part, Call)]
    return Answer(
        content="".join(part.text for part in parts if isinstance(part, Text)),
        calls=tuple(tool_call(call) for call in calls),
        complete=stop in _WHOLE,
        stop=stop,
        thinking=any(_thinks(part) for part in parts)
        or any(call.signature is not None for call in calls),
        usage=usage,
    )


def _thinks(part: ReplyPart) -> bool:
    return isinstance(part, Thinking) or (isinstance(part, Foreign) and is_thinking_part(part.what))
