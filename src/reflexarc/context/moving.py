"""Lines of a system prompt that change between requests: learned, taken out, told at the end.

Only what was seen changing is moved, and only where it looks like a clock, an id or a counter: a
line that says something else now is another instruction, and stays where it is.
"""

import re
from collections.abc import Callable
from typing import Any, cast

import msgspec

from reflexarc.context.volatile import is_volatile, template

MAX_LINE_CHARS = 300
"""Longer ones hold more than a clock: they are told by their sentences, which are as short."""
MAX_TEMPLATES = 64
OPENING = "[Of the instructions above, as it is now:]"
_sentence = re.compile(r"(?<=[.!?;])\s+")
MAX_UNITS = 5_000
"""Of one text: a system prompt with more lines and sentences stays as it is."""


class Moving(msgspec.Struct):
    """What is known of one session's system prompt: its last units that may change, and the forms
    of those that did."""

    last: set[str] = set()
    templates: set[str] = set()

    def learn(self, texts: list[str]) -> None:
        """From the system prompt as its client wrote it."""
        units = {unit for text in texts for unit in units_of(text) if is_volatile(unit)}
        gone = {template(unit) for unit in self.last - units}
        come = {template(unit) for unit in units - self.last}
        if self.last and len(self.templates) < MAX_TEMPLATES:
            self.templates |= gone & come
        self.last = units

    def split(self, text: str) -> tuple[str, list[str]]:
        """The text without what moves, and that."""
        if not self.templates or len(_parts(text)) > MAX_UNITS:
            return text, []
        kept: list[str] = []
        moved: list[str] = []
        for line in text.split("\n"):
            rest = self._of_line(line, moved)
            if rest is not None:
                kept.append(rest)
        return "\n".join(kept), moved

    def _of_line(self, line: str, moved: list[str]) -> str | None:
        parts = _parts_of(line)
        stays = [part for part in parts if not self._moves(part)]
        if len(stays) == len(parts):
            return line
        moved += [part for part in parts if self._moves(part)]
        return " ".join(stays) if stays else None

    def _moves(self, unit: str) -> bool:
        return len(unit) <= MAX_LINE_CHARS and template(unit) in self.templates


def units_of(text: str) -> list[str]:
    """Lines, and of long lines their sentences; what is longer yet is none."""
    return [part for part in _parts(text)[:MAX_UNITS] if 0 < len(part) <= MAX_LINE_CHARS]


def _parts(text: str) -> list[str]:
    """All, but no more than one more than are looked at."""
    made: list[str] = []
    for line in text.split("\n", MAX_UNITS):
        made += _parts_of(line)
        if len(made) > MAX_UNITS:
            break
    return made


def _parts_of(line: str) -> list[str]:
    return _sentence.split(line, MAX_UNITS) if len(line) > MAX_LINE_CHARS else [line]


def with_texts(value: Any, change: Callable[[str], str]) -> Any:
    """A system prompt as any dialect has it, each of its texts changed; a block left without text
    is left out, where others stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        made = [with_texts(one, change) for one in cast("list[Any]", value)]
        kept = [one for one in made if not _is_empty(one)]
        return kept or made
    if not isinstance(value, dict):
        return value
    members = cast("dict[str, Any]", value)
    return {
        name: with_texts(one, change) if name in ("text", "content", "parts") else one
        for name, one in members.items()
    }


def _is_empty(block: Any) -> bool:
    return isinstance(block, dict) and cast("dict[str, Any]", block).get("text") == ""


def tail_of(moved: list[str]) -> str:
    """What is told at the end."""
    return "\n".join((OPENING, *moved))
