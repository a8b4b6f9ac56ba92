"""OpenAI chat JSON objects to the vocabulary of steps: one message, one tool. No bytes, no HTTP.

History is read leniently (unknown keys are ignored), because it is written by many harnesses; a
shape that cannot be understood raises `RequestError` whose `param` is the path of the fault. What
is understood as JSON but is not text (images, refusals, thinking that a provider may want back,
freeform calls) sets `Message.opaque`: System 1 escalates there.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import msgspec

from reflexarc.steps import Effect, Message, ToolCall, ToolSpec, nests_deeper
from reflexarc.steps.errors import RequestError
from reflexarc.wire.chat_answer import is_own_call
from reflexarc.wire.thinking import carries_thinking, is_thinking_part

_ROLES: Mapping[str, Literal["system", "developer", "user", "assistant", "tool"]] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}

# Keys of a message that carry something System 1 cannot write or read. Reasoning is among them:
# providers that return it with tool calls want it back in the following requests.
_OPAQUE_KEYS = (
    "audio",
    "refusal",
    "function_call",
    "images",
)

_MAX_ARGUMENT_DEPTH = 64
_EFFECTS: Mapping[str, Effect] = {"read": "read", "write": "write", "think": "think"}


def message_from_chat(obj: Mapping[str, Any], path: str = "message") -> Message:
    """One chat message object. `path` names it in errors, e.g. `messages[3]`.

    Text parts are joined by a line feed. Arguments of calls are parsed here, once; text that is
    not a JSON object gives a call that is not `well_formed` (blank text counts as no arguments:
    several providers write it so). Raises `RequestError`.
    """
    given = _object(obj, path)
    role_name = given.get("role")
    role = _ROLES.get(role_name) if isinstance(role_name, str) else None
    if role is None:
        raise _fault(f"{path}.role", f"must be one of {', '.join(_ROLES)}, not {_short(role_name)}")
    content, opaque = _content(given.get("content"), f"{path}.content")
    opaque = opaque or role_name == "function" or any(given.get(key) for key in _OPAQUE_KEYS)
    calls: tuple[ToolCall, ...] = ()
    raw_calls = given.get("tool_calls")
    if raw_calls:
        if role != "assistant":
            raise _fault(f"{path}.tool_calls", "only an assistant message may carry calls")
        listed = _list(raw_calls, f"{path}.tool_calls")
        calls = tuple(_call(c, f"{path}.tool_calls[{i}]") for i, c in enumerate(listed))
        opaque = opaque or any(
            not isinstance(cast(dict[str, Any], c).get("function"), dict) for c in listed
        )
    return Message(
        role=role,
        content=content,
        tool_calls=calls,
        tool_call_id=_text_or_none(given.get("tool_call_id"), f"{path}.tool_call_id"),
        name=_text_or_none(given.get("name"), f"{path}.name"),
        opaque=opaque,
        thinking=role == "assistant" and carries_thinking(given),
        by_system1=any(is_own_call(call.id) for call in calls),
    )


def messages_given(
    messages: Sequence[Message | Mapping[str, Any]], first: int = 0
) -> list[Message]:
    """Messages from a caller in this process: our own, or chat objects. `first` is the place of
    the first in its conversation, for errors. Raises `RequestError`."""
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance] - what callers really give
        raise _fault("messages", f"must be a list of messages, not {_short(messages)}")
    return [
        message
        if isinstance(message, Message)
        else message_from_chat(message, f"messages[{first + index}]")
        for index, message in enumerate(messages)
    ]


def tool_from_chat(obj: Mapping[str, Any], path: str = "tool") -> ToolSpec:
    """One function tool object. Its effect is what it declares, None where it declares nothing:
    `x-reflexarc-effect: read|write|think`, or MCP annotations (`readOnlyHint`,
    `destructiveHint`), on the tool or on its `function`. Raises `RequestError`, also for hosted
    and custom tools, which have no arguments one could propose."""
    given = _object(obj, path)
    kind = given.get("type", "function")
    if kind != "function":
        raise _fault(f"{path}.type", f"is {_short(kind)}: not learnable, only function tools are")
    if "function" not in given:
        raise _fault(f"{path}.function", "is missing")
    function = _object(given["function"], f"{path}.function")
    name = function.get("name")
    if not isinstance(name, str) or not name:
        raise _fault(f"{path}.function.name", f"must be a non-empty string, not {_short(name)}")
    parameters = function.get("parameters")
    strict = function.get("strict")
    if strict is not None and not isinstance(strict, bool):
        raise _fault(f"{path}.function.strict", f"must be true or false, not {_short(strict)}")
    return ToolSpec(
        name=name,
        description=_text_or_none(function.get("description"), f"{path}.function.description")
        or "",
        parameters=(
            {} if parameters is None else dict(_object(parameters, f"{path}.function.parameters"))
        ),
        strict=strict,
        effect=_effect(given, path) or _effect(function, f"{path}.function"),
    )


def _content(value: Any, path: str) -> tuple[str, bool]:
    """Text of a content field, and whether it holds anything else."""
    if value is None:
        return "", False
    if isinstance(value, str):
        return value, False
    texts: list[str] = []
    opaque = False
    for index, part in enumerate(_list(value, path)):
        fields = _object(part, f"{path}[{index}]")
        if fields.get("type") == "text":
            text = fields.get("text")
            if not isinstance(text, str):
                raise _fault(f"{path}[{index}].text", f"must be a string, not {_short(text)}")
            texts.append(text)
        elif isinstance(kind := fields.get("type"), str):
            opaque = opaque or not is_thinking_part(kind)
        else:
            raise _fault(f"{path}[{index}].type", "must name the kind of part")
    return "\n".join(texts), opaque


def _call(value: Any, path: str) -> ToolCall:
    fields = _object(value, path)
    identity = _text_or_none(fields.get("id"), f"{path}.id") or ""
    if "custom" in fields and "function" not in fields:
        custom = _object(fields["custom"], f"{path}.custom")
        return ToolCall(
            id=identity,
            name=_text_or_none(custom.get("name"), f"{path}.custom.name") or "",
            arguments={},
            raw=_text_or_none(custom.get("input"), f"{path}.custom.input") or "",
            well_formed=False,
        )
    if "function" not in fields:
        raise _fault(f"{path}.function", "is missing")
    function = _object(fields["function"], f"{path}.function")
    name = function.get("name")
    if not isinstance(name, str):
        raise _fault(f"{path}.function.name", f"must be a string, not {_short(name)}")
    arguments = function.get("arguments")
    if isinstance(arguments, dict):  # some harnesses record the object instead of its text
        parsed = cast(dict[str, Any], arguments)
        return ToolCall(identity, name, parsed, msgspec.json.encode(parsed).decode())
    if arguments is None:
        return ToolCall(identity, name, {})
    if not isinstance(arguments, str):
        raise _fault(f"{path}.function.arguments", f"must be JSON text, not {_short(arguments)}")
    return call_from_text(identity, name, arguments)


def call_from_text(identity: str, name: str, text: str) -> ToolCall:
    """A call from its arguments' text as a model wrote it; never raises for odd text. Arguments
    that nest deeper than 64 levels are not read: the call is not `well_formed`."""
    if not text.strip():
        return ToolCall(identity, name, {}, text)
    if nests_deeper(text, _MAX_ARGUMENT_DEPTH):
        return ToolCall(identity, name, {}, text, well_formed=False)
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
        value = None
    if isinstance(value, dict):
        return ToolCall(identity, name, cast(dict[str, Any], value), text)
    return ToolCall(identity, name, {}, text, well_formed=False)


def _effect(fields: Mapping[str, Any], path: str) -> Effect | None:
    declared = fields.get("x-reflexarc-effect")
    if declared is not None:
        effect = _EFFECTS.get(declared) if isinstance(declared, str) else None
        if effect is None:
            raise _fault(
                f"{path}.x-reflexarc-effect",
                f"must be read, write or think, not {_short(declared)}",
            )
        return effect
    annotations = fields.get("annotations")
    if not isinstance(annotations, dict):
        return None
    hints = cast(dict[str, Any], annotations)
    if hints.get("destructiveHint") is True or hints.get("readOnlyHint") is False:
        return "write"
    return "read" if hints.get("readOnlyHint") is True else None


def _object(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _fault(path, f"must be an object, not {_short(value)}")
    return cast(Mapping[str, Any], value)


def _list(value: Any, path: str) -> list[Any]:
    if not isinstance(value, list):
        raise _fault(path, f"must be a list, not {_short(value)}")
    return cast(list[Any], value)


def _text_or_none(value: Any, path: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise _fault(path, f"must be a string, not {_short(value)}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _fault(path: str, what: str) -> RequestError:
    return RequestError(f"{path} {what}", param=path)
