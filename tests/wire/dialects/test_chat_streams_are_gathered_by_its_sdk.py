"""What the openai SDK's own gathering of a stream makes of streams that carry signatures."""

from typing import Any

import msgspec
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

from reflexarc.wire.dialects import dialect
from reflexarc.wire.losses import Losses
from reflexarc.wire.replies import Began, Ended, Event, PartBegan, PartEnded, PartGrew, PartSigned
from reflexarc.wire.sse import SseParser
from reflexarc.wire.turns import Ask, Call, Settings, Text, Thinking


def gathered(*events: Event) -> Any:
    """The message that a user of `stream()` gets."""
    ask = Ask("chat", Settings(model="m", stream=True), (), ())
    writer = dialect("chat").stream_writer(ask, Losses("chat"))
    told = b"".join(writer.write(event) for event in (Began("id", "m", 1), *events, Ended("end")))
    state: Any = ChatCompletionStreamState()
    for event in SseParser().feed(told):
        if event.data != b"[DONE]":
            chunk = ChatCompletionChunk.model_validate(msgspec.json.decode(event.data))
            state.handle_chunk(chunk)
    return state.get_final_completion().choices[0].message


def test_signed_thinking_of_several_blocks_is_one_list() -> None:
    message = gathered(
        PartBegan(0, Thinking("")),
        PartGrew(0, "first"),
        PartSigned(0, "one", "messages"),
        PartEnded(0),
        PartBegan(1, Text("")),
        PartGrew(1, "so"),
        PartEnded(1),
        PartBegan(2, Thinking("", "two", "messages", redacted=True)),
        PartEnded(2),
    )
    assert message.content == "so"
    assert [item["index"] for item in message.reasoning_details] == [0, 1]
    (turn,) = dialect("chat").read_message(message.to_dict(), "messages[0]")
    signed = [part for part in turn.parts if isinstance(part, Thinking)]
    assert [(part.text, part.signature, part.redacted) for part in signed] == [
        ("first", "one", False),
        ("", "two", True),
    ]


def test_a_call_that_is_signed_after_it_came_keeps_all_it_has() -> None:
    message = gathered(
        PartBegan(0, Call("a", "look", "")),
        PartGrew(0, '{"city":"Oslo"}'),
        PartSigned(0, "sig", "gemini"),
        PartEnded(0),
    )
    (call,) = message.tool_calls
    assert (call.id, call.function.arguments) == ("a", '{"city":"Oslo"}')
    (turn,) = dialect("chat").read_message(
        {"role": "assistant", "tool_calls": [call.to_dict()]}, "messages[0]"
    )
    (read,) = turn.parts
    assert isinstance(read, Call)
    assert (read.signature, read.origin) == ("sig", "gemini")
