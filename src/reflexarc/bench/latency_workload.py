"""Request bodies of the latency bench, and the sessions their reflex is learned from.

One agent with 100 tools over records: the small bodies (about 1 KB) offer five of them, the large
ones (about 100 KB) all. Half of the bodies grow one conversation, two messages a request, as an
agent's do; the other half are conversations never seen before.
"""

import json
import random
from collections.abc import Iterator
from typing import Any

from reflexarc.steps import Message, Session, ToolCall, ToolSpec

MODEL = "bench-model"
SMALL_BYTES = 1024
LARGE_BYTES = 100 * 1024
_USED_TOOLS = 5


def tools() -> tuple[ToolSpec, ...]:
    """100 read tools; the first five are the ones the agent uses."""
    specs: list[ToolSpec] = []
    for number in range(100):
        words = "" if number < _USED_TOOLS else _prose(random.Random(number), 330)
        specs.append(
            ToolSpec(
                name=f"get_record_{number}",
                description=f"Read kind {number}.{words}",
                parameters={
                    "type": "object",
                    "properties": {"record_id": {"type": "string"}},
                    "required": ["record_id"],
                },
                effect="read",
            )
        )
    return tuple(specs)


def sessions(count: int) -> list[Session]:
    """What the reflex is learned from: records that name the next one, read one after the other."""
    offered = tools()
    made: list[Session] = []
    for number in range(count):
        draw = random.Random(number)
        messages: list[Message] = list(_opening(draw))
        for step in range(6):
            messages.extend(_step(draw, messages, step))
        messages.append(Message("assistant", "That is the whole chain."))
        made.append(Session(f"s{number}", f"t{number}", offered, tuple(messages), model=MODEL))
    return made


def bodies(large: bool, count: int, seed: int) -> list[bytes]:
    """`count` bodies near their size, growing and unrelated ones in turn."""
    offered = tools() if large else tools()[:_USED_TOOLS]
    shown = [_chat_tool(tool) for tool in offered]
    target = LARGE_BYTES if large else SMALL_BYTES
    draw = random.Random(seed)
    growing = _growing(draw, shown, target)
    made: list[bytes] = []
    for number in range(count):
        if number % 2 == 0:
            made.append(next(growing))
        else:
            made.append(_filled(draw, shown, target))
    return made


def _growing(draw: random.Random, shown: list[Any], target: int) -> Iterator[bytes]:
    """One conversation from nine tenths of the size to eleven tenths (and five requests at least),
    then the next one."""
    while True:
        messages = _conversation(draw, shown, target * 9 // 10)
        body = _encode(messages, shown)
        made = 0
        while made < 5 or len(body) < target * 11 // 10:
            yield body
            made += 1
            messages.extend(_step(draw, messages, len(messages), _filler(target)))
            body = _encode(messages, shown)


def _filled(draw: random.Random, shown: list[Any], target: int) -> bytes:
    return _encode(_conversation(draw, shown, target), shown)


def _conversation(draw: random.Random, shown: list[Any], target: int) -> list[Message]:
    messages: list[Message] = list(_opening(draw))
    size = len(_encode(messages, shown))
    while size < target:
        added = _step(draw, messages, len(messages), _filler(target))
        messages.extend(added)
        size += len(json.dumps([_chat_message(m) for m in added]))
    return messages


def _filler(target: int) -> int:
    """Characters of prose in a record: large conversations hold large tool results."""
    return 1200 if target == LARGE_BYTES else 0


def _opening(draw: random.Random) -> tuple[Message, Message]:
    record = f"R{draw.randrange(10**7):07d}"
    return (
        Message("system", "You follow chains of records."),
        Message("user", f"Follow the chain from {record}"),
    )


def _step(
    draw: random.Random, before: list[Message], number: int, filler: int = 0
) -> tuple[Message, Message]:
    """A call on the record last named, and its result, which names the next one."""
    last = before[-1].content
    record = json.loads(last)["next"] if last.startswith("{") else last.split()[-1]
    arguments = {"record_id": record}
    call = ToolCall(
        id=f"call_{number}", name="get_record_1", arguments=arguments, raw=json.dumps(arguments)
    )
    result = {
        "record_id": record,
        "next": f"R{draw.randrange(10**7):07d}",
        "owner": f"person{draw.randrange(1000)}@example.com",
    }
    if filler:
        result["notes"] = _prose(draw, filler)
    return (
        Message("assistant", tool_calls=(call,)),
        Message("tool", json.dumps(result), tool_call_id=call.id),
    )


_WORDS = (
    "order",
    "parcel",
    "account",
    "delivery",
    "note",
    "agreed",
    "changed",
    "signed",
    "waiting",
)


def _prose(draw: random.Random, characters: int) -> str:
    text = ""
    while len(text) < characters:
        text += f" {draw.choice(_WORDS)}"
    return text


def _encode(messages: list[Message], shown: list[Any]) -> bytes:
    body = {
        "model": MODEL,
        "messages": [_chat_message(message) for message in messages],
        "tools": shown,
        "temperature": 0,
    }
    return json.dumps(body, separators=(",", ":")).encode()


def _chat_message(message: Message) -> dict[str, Any]:
    shown: dict[str, Any] = {"role": message.role, "content": message.content or None}
    if message.tool_calls:
        shown["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.raw}}
            for c in message.tool_calls
        ]
    if message.tool_call_id is not None:
        shown["tool_call_id"] = message.tool_call_id
    return shown


def _chat_tool(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        },
    }
