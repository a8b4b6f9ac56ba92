"""A conversation as SmolLM2 reads it (ChatML), tools and what became of calls included. Pure.

The tools stand first and turns are only ever added, so that the engine's cache of the prefix holds
from one step to the next.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from reflexarc.steps import Message, ToolSpec

_PERSONA = "You are a helpful assistant."
_HOW = (
    'To use a tool, reply with {"tool":NAME,"arguments":{...}}, values taken from what the user '
    "said. Otherwise reply in words."
)
_MAX_DESCRIPTION_CHARS = 200
END = "<|im_end|>"


def rendered(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> str:
    """The prompt up to where the assistant's turn begins."""
    lead = [m.content for m in messages if m.role == "system"]
    system = "\n".join(lead) or _PERSONA
    if tools:
        system += "\n\nTools:\n" + "\n".join(map(_tool, tools)) + f"\n{_HOW}"
    turns = [_turn("system", system)]
    names: dict[str, str] = {}
    for message in messages:
        if message.role == "user":
            turns.append(_turn("user", message.content))
        elif message.role == "assistant":
            names.update((call.id, call.name) for call in message.tool_calls)
            called = [
                call_text(call.name, _arguments(call.raw, call.arguments))
                for call in message.tool_calls
            ]
            turns.append(_turn("assistant", "\n".join(filter(None, [message.content, *called]))))
        elif message.role == "tool":
            name = names.get(message.tool_call_id or "") or message.name or "the tool"
            turns.append(_turn("user", f"Result of {name}: {message.content}"))
    return "".join(turns) + "<|im_start|>assistant\n"


def call_text(name: str, arguments: str) -> str:
    """A call as the assistant writes it. `arguments`: JSON text."""
    return f"{call_opening(name)}{arguments}}}"


def call_opening(name: str) -> str:
    """The beginning of a call, after which its arguments follow."""
    return f'{{"tool":{msgspec.json.encode(name).decode()},"arguments":'


def _turn(role: str, text: str) -> str:
    # What a client writes may not end its turn, or begin another's.
    safe = text.replace("<|im_", "< |im_").replace("<|endoftext|>", "< |endoftext|>")
    return f"<|im_start|>{role}\n{safe}{END}\n"


def _tool(tool: ToolSpec) -> str:
    given = tool.parameters.get("properties")
    properties = cast(dict[str, Any], given) if isinstance(given, dict) else {}
    shown = ", ".join(f"{name}: {_kind(schema)}" for name, schema in properties.items())
    description = " ".join(tool.description.split())[:_MAX_DESCRIPTION_CHARS]
    return f"- {tool.name}({shown})" + (f": {description}" if description else "")


def _kind(schema: Any) -> str:
    if not isinstance(schema, dict):
        return "any"
    fields = cast(Mapping[str, Any], schema)
    if isinstance(fields.get("enum"), list):
        values = cast(list[Any], fields["enum"])[:8]
        return "|".join(str(value) for value in values)
    kind = fields.get("type")
    return kind if isinstance(kind, str) else "any"


def _arguments(raw: str, parsed: Mapping[str, Any]) -> str:
    return raw.strip() or msgspec.json.encode(parsed).decode()
