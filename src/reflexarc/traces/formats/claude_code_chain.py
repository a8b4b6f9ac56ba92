"""Which lines a response of Claude Code was asked with: the chain of parents, and the results of
parallel calls beside it."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from reflexarc.steps.prompt import Piece, Prompt
from reflexarc.traces.formats.claude_code_lines import Line
from reflexarc.traces.loose import text
from reflexarc.traces.requests import Start

MAX_REFERENCES = 20_000_000
"""Pieces of all prompts together, of all transcripts read at once; what is beyond has no prompt."""


class Place(msgspec.Struct, frozen=True):
    """Where a response stands. `asked_s`: when the last of what it answers was there."""

    prompt: Prompt | None
    asked_s: float | None
    starts: Start


class Chain:
    """Asked for responses in the order in which they were made. `cut` says where prompts were left
    out."""

    def __init__(self, lines: Sequence[Line], groups: Mapping[str, Any]) -> None:
        self._by_uuid: dict[str, Line] = {}
        for line in lines:
            if line.uuid:  # the first that has it: later ones are copies
                self._by_uuid.setdefault(line.uuid, line)
        self._chained = {line.file for line in lines if line.parent}
        self._answering: dict[str, list[Line]] = {}
        for line in lines:
            for called in line.answers:
                self._answering.setdefault(called, []).append(line)
        self._calls: dict[str, list[str]] = {
            key: [
                text(block.get("id"))
                for line in group.lines
                for block in line.blocks
                if block.get("type") == "tool_use"
            ]
            for key, group in groups.items()
        }
        self._last: dict[tuple[str, str], tuple[str, str]] = {}
        self._references = 0
        self.cut = ""

    def place(self, first: Line) -> Place:
        before, root = self._before(first)
        thread = (first.session, first.agent)
        last = self._last.get(thread)
        self._last[thread] = (first.group, root)
        return Place(
            self._prompt(before), _asked_s(before, first), self._starts(first, before, root, last)
        )

    def _before(self, first: Line) -> tuple[list[Line], str]:
        """What it was asked with, in order, and the line that this begins with."""
        found: dict[int, Line] = {}
        groups: list[str] = []
        at = self._by_uuid.get(first.parent)
        root = first.uuid
        while at is not None and at.order not in found and at.order < first.order:
            root = at.uuid
            if at.is_boundary:
                break
            found[at.order] = at
            if at.group and at.group != first.group:
                groups.append(at.group)
            at = self._by_uuid.get(at.parent)
        for group in dict.fromkeys(groups):
            for called in self._calls.get(group, ()):
                for line in self._answering.get(called, ()):
                    # Results of parallel calls hang on their own calls, not on one another.
                    if line.order < first.order and line.file == first.file:
                        found.setdefault(line.order, line)
        own = [line for line in found.values() if line.group != first.group]
        return sorted(own, key=lambda line: line.order), root

    def _prompt(self, before: Sequence[Line]) -> Prompt | None:
        pieces: list[Piece] = [line.piece for line in before if line.piece is not None]
        if not pieces:
            return None
        self._references += len(pieces)
        if self._references > MAX_REFERENCES:
            self.cut = (
                f"prompts hold more than {MAX_REFERENCES:,} messages in all: of the rest only the "
                "counts are known; read fewer transcripts at once"
            )
            return None
        return Prompt(tuple(pieces), complete=False)

    def _starts(
        self, first: Line, before: Sequence[Line], root: str, last: tuple[str, str] | None
    ) -> Start:
        if last is None:
            return "session"
        if first.file not in self._chained or not first.parent:
            return "" if first.file not in self._chained else "branch"
        group, last_root = last
        if any(line.group == group for line in before):
            return ""
        boundary = self._by_uuid.get(root)
        if root != last_root and boundary is not None and boundary.is_boundary:
            return "compaction"
        return "rewind" if root == last_root else "branch"


def _asked_s(before: Sequence[Line], first: Line) -> float | None:
    """The latest of the lines right before it that are not the model's."""
    times: list[float] = []
    for line in reversed(before):
        if line.kind == "assistant":
            break
        if line.kind == "user" and line.at_s is not None:
            times.append(line.at_s)
    asked = max(times, default=None)
    if asked is None or (first.at_s is not None and asked > first.at_s):
        return None
    return asked
