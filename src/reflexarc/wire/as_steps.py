"""Turns of any dialect as the vocabulary that System 1 reads: messages of steps."""

from reflexarc.steps import Message, ToolCall
from reflexarc.wire.chat import call_from_text
from reflexarc.wire.chat_answer import is_own_call
from reflexarc.wire.thinking import is_thinking_part
from reflexarc.wire.turns import Call, Foreign, Part, Result, Text, Thinking, Turn


def messages_of(turn: Turn) -> list[Message]:
    """A message for each result of a turn of tools, else one. Text parts are joined by a line feed;
    what is not text makes a message opaque."""
    if turn.role == "tool":
        return [_result(part) for part in turn.parts if isinstance(part, Result)]
    if turn.role == "assistant":
        return [_assistant(turn)]
    return [
        Message(
            turn.role,
            _text(turn.parts),
            name=turn.name,
            opaque=any(not isinstance(part, Text) for part in turn.parts),
        )
    ]


def tool_call(call: Call) -> ToolCall:
    """A freeform call's text is no object: it equals no other."""
    if call.kind == "custom":
        return ToolCall(call.id, call.name, {}, call.arguments, well_formed=False)
    return call_from_text(call.id, call.name, call.arguments)


def _assistant(turn: Turn) -> Message:
    calls = tuple(tool_call(part) for part in turn.parts if isinstance(part, Call))
    return Message(
        "assistant",
        _text(turn.parts),
        tool_calls=calls,
        name=turn.name,
        opaque=any(_is_opaque(part) for part in turn.parts),
        thinking=any(_thinks(part) for part in turn.parts),
        by_system1=any(is_own_call(call.id) for call in calls),
    )


def _result(result: Result) -> Message:
    return Message(
        "tool",
        _text(result.parts),
        tool_call_id=result.call_id,
        opaque=any(not isinstance(part, Text) for part in result.parts),
    )


def _text(parts: tuple[Part, ...]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, Text))


def _is_opaque(part: Part) -> bool:
    if isinstance(part, Call):
        return part.kind == "custom"
    return not (isinstance(part, Text | Thinking) or _thinks(part))


def _thinks(part: Part) -> bool:
    if isinstance(part, Call):
        return part.signature is not None
    return isinstance(part, Thinking) or (isinstance(part, Foreign) and is_thinking_part(part.what))
