"""The pieces of a request's prompt, of its members as they came: what is cached of it, in order.

Nothing is read but what a piece is and who says it. What does not fit its dialect is a piece as it
stands: whoever is asked judges it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from reflexarc.steps.prompt import Piece
from reflexarc.wire.dialects import dialect

_SETTINGS = {
    "chat": (
        "model", "tool_choice", "response_format", "reasoning_effort", "reasoning.effort",
        "reasoning.enabled", "thinking", "verbosity", "chat_template_kwargs",
    ),
    "responses": ("model", "tool_choice", "reasoning.effort", "text.format", "text.verbosity"),
    "messages": (
        "model", "tool_choice", "thinking", "output_format", "output_config.effort",
        "output_config.format",
    ),
    "gemini": (
        "model", "toolConfig", "tool_config", "generationConfig.thinkingConfig",
        "generationConfig.responseSchema", "generationConfig.responseJsonSchema",
        "generation_config.thinking_config", "generation_config.response_schema",
    ),
}  # fmt: skip
"""Members that a model is told of, or that a cache goes by."""
_SYSTEM = {
    "responses": ("instructions",),
    "messages": ("system",),
    "gemini": ("systemInstruction", "system_instruction"),
}
_DECLARATIONS = ("functionDeclarations", "function_declarations")

_list = msgspec.json.Decoder(list[msgspec.Raw])
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])


class _Said(msgspec.Struct):
    role: Any = None


_said = msgspec.json.Decoder(_Said)


def pieces_of(
    dialect_name: str,
    members: Mapping[str, msgspec.Raw],
    messages: Iterable[msgspec.Raw | bytes] | None = None,
) -> tuple[Piece, ...]:
    """All pieces of a request. `messages`: its conversation, where that was taken apart already.
    Raises nothing for what a request holds."""
    if messages is None:
        raw = members.get(dialect(dialect_name).conversation)
        listed = None if raw is None else _elements(raw)
        messages = listed if listed is not None else () if raw is None else (raw,)
    return (*head_pieces(dialect_name, members), *message_pieces(dialect_name, messages))


def head_pieces(dialect_name: str, members: Mapping[str, msgspec.Raw]) -> tuple[Piece, ...]:
    """Those beside the conversation: settings, tools, system prompt."""
    return (
        *_settings(dialect_name, members),
        *_tools(members),
        *_system(dialect_name, members),
    )


def message_pieces(
    dialect_name: str, messages: Iterable[msgspec.Raw | bytes], start: int = 0
) -> tuple[Piece, ...]:
    """Those of the messages from the one numbered `start` on, which comes first in `messages`."""
    name = dialect(dialect_name).conversation
    return tuple(_message(bytes(raw), f"{name}[{at}]") for at, raw in enumerate(messages, start))


def _message(raw: bytes, path: str) -> Piece:
    try:
        role = _said.decode(raw).role
    except (msgspec.MsgspecError, RecursionError):
        role = None
    # What has no role is an item of its own kind; a text alone is the user's.
    return Piece("message", path, raw, role if isinstance(role, str) else "")


def _settings(dialect_name: str, members: Mapping[str, msgspec.Raw]) -> Iterable[Piece]:
    for path in _SETTINGS[dialect_name]:
        name, _, inner = path.partition(".")
        raw = members.get(name)
        if raw is not None and inner:
            raw = _object_of(raw).get(inner)
        if raw is not None:
            yield Piece("settings", path, bytes(raw))


def _tools(members: Mapping[str, msgspec.Raw]) -> Iterable[Piece]:
    for name in ("tools", "functions"):
        raw = members.get(name)
        for at, one in enumerate(() if raw is None else _elements(raw) or ()):
            yield from _tool(one, f"{name}[{at}]")


def _tool(raw: msgspec.Raw, path: str) -> Iterable[Piece]:
    """Several where one entry declares several functions."""
    for name in _DECLARATIONS:
        if name.encode() not in bytes(raw):
            continue
        fields = _object_of(raw)
        if name in fields and len(fields) == 1:
            for at, one in enumerate(_elements(fields[name]) or ()):
                yield Piece("tool", f"{path}.{name}[{at}]", bytes(one))
            return
    yield Piece("tool", path, bytes(raw))


def _system(dialect_name: str, members: Mapping[str, msgspec.Raw]) -> Iterable[Piece]:
    for name in _SYSTEM.get(dialect_name, ()):
        raw = members.get(name)
        if raw is None or bytes(raw) == b"null":
            continue
        listed = _elements(raw)
        for at, one in enumerate(listed or ()):
            yield Piece("system", f"{name}[{at}]", bytes(one))
        if listed is None:
            yield Piece("system", name, bytes(raw))


def _elements(raw: msgspec.Raw | bytes) -> Sequence[msgspec.Raw] | None:
    """None for anything but a list."""
    try:
        return _list.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _object_of(raw: msgspec.Raw) -> Mapping[str, msgspec.Raw]:
    try:
        return _object.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return {}
