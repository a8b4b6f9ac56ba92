"""Text of others made safe to show: nothing that moves a cursor, nothing that no file can hold."""

import re
from typing import Any, cast

_UNREADABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters but tab and line feed, marks that turn the direction of text, half surrogates
(which names of files that are not UTF-8 hold)."""


def readable(text: str) -> str:
    """What cannot be shown becomes one sign that says so."""
    return text if text.isascii() and text.isprintable() else _UNREADABLE.sub("\ufffd", text)


def all_readable(value: Any) -> Any:
    """The same for every string of a value made of dicts and lists, keys too."""
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, dict):
        members = cast("dict[Any, Any]", value)
        return {all_readable(name): all_readable(one) for name, one in members.items()}
    if isinstance(value, list | tuple):
        return [all_readable(one) for one in cast("list[Any]", value)]
    return value
