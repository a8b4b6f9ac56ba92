"""A prompt's pieces in the order in which models read them, by what they are."""

import re
from typing import Any, NamedTuple, cast

from reflexarc.context.changes import is_only_mark, value_of
from reflexarc.steps.canonical import canonical_json
from reflexarc.steps.prompt import Piece, Prompt

_SYSTEM_ROLES = frozenset({"system", "developer"})
_USUAL = frozenset(
    {'"auto"', '{"mode":"AUTO"}', '{"type":"auto"}', '{"type":"disabled"}'}
    | {'{"type":"text"}', "null", "{}", '{"mode":"auto"}'}
)
"""Settings that say what is so without them."""
_index = re.compile(r"\[(\d+)\]")


class Laid(NamedTuple):
    """Marks for caches are left out. `settings` by name, those that say nothing left out."""

    tools: list[Piece]
    system: list[Piece]
    messages: list[Piece]
    settings: dict[str, tuple[str, Piece]]

    @property
    def read(self) -> list[Piece]:
        """All but the settings."""
        return [*self.tools, *self.system, *self.messages]


def laid(prompt: Prompt) -> Laid:
    """A system or developer message is part of the system prompt while no other role came."""
    made = Laid([], [], [], {})
    for piece in prompt.pieces:
        if piece.kind == "settings":
            _add_settings(made.settings, piece)
        elif is_only_mark(piece):
            continue
        elif piece.kind == "tool":
            made.tools.append(piece)
        elif piece.kind == "system" or (piece.role in _SYSTEM_ROLES and not made.messages):
            made.system.append(piece)
        else:
            made.messages.append(piece)
    return made


def name_of(tool: Piece) -> str:
    """A tool's name, or its type where it has none."""
    value = value_of(tool)
    if not isinstance(value, dict):
        return tool.path
    members = cast("dict[str, Any]", value)
    for inner in ("function", "toolSpec"):
        if isinstance(members.get(inner), dict):
            members = cast("dict[str, Any]", members[inner])
    for name in ("name", "type"):
        if isinstance(members.get(name), str):
            return cast(str, members[name])
    return next(iter(members), tool.path)


def place_of(piece: Piece) -> int | None:
    """The index of a message in its request."""
    found = _index.search(piece.path)
    return int(found.group(1)) if found and piece.kind == "message" else None


def _add_settings(settings: dict[str, tuple[str, Piece]], piece: Piece) -> None:
    value = value_of(piece)
    if piece.path in ("", "$", "settings") and isinstance(value, dict):
        members = cast("dict[str, Any]", value)
    else:
        members = {piece.path: value}
    for name, one in members.items():
        text = canonical_json(one)
        if text not in _USUAL or name == "model":
            settings[name] = (text, piece)
