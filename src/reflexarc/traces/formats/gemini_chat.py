"""One chat of Gemini CLI played back: which messages there were when each answer was asked for."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from reflexarc.steps.prompt import Piece, Prompt
from reflexarc.traces.formats.visible import Prompts, message
from reflexarc.traces.loose import Table, listed, moment, table, tables, text
from reflexarc.traces.requests import (
    FileReport,
    RecordedTool,
    Start,
    estimated,
    measured,
)

_NOT_SENT = frozenset({"info", "error", "warning"})
_HEADER = frozenset({"sessionId", "projectHash"})


class Answer(msgspec.Struct):
    """An answer of the model: `before` is what it was asked with, `asked_s` when the last of that
    was there, `written` how often it stands in the file."""

    id: str
    fields: Table
    before: Prompt | None
    asked_s: float | None
    starts: Start
    written: int = 1

    @property
    def at_s(self) -> float | None:
        return moment(self.fields.get("timestamp"))

    @property
    def model(self) -> str:
        return text(self.fields.get("model"))


class Chat(msgspec.Struct):
    """`answers` in the order in which they came, those taken back too."""

    path: Path
    session: str
    kind: str
    began_s: float
    answers: list[Answer]


def chat_of(path: Path, values: Iterable[Any], report: FileReport, prompts: Prompts) -> Chat:
    """What a file says, line by line; an older one is a single value with all messages."""
    playing = _Playing(report, prompts)
    head: Table = {}
    for value in values:
        fields = table(value)
        change = table(fields.get("$set"))
        if change or isinstance(fields.get("$set"), dict):
            head |= {key: one for key, one in change.items() if key != "messages"}
            if isinstance(change.get("messages"), list):
                playing.replace(tables(change["messages"]))
        elif text(fields.get("$rewindTo")):
            playing.rewind(text(fields["$rewindTo"]))
        elif fields.keys() >= _HEADER:
            head |= {key: one for key, one in fields.items() if key != "messages"}
            for one in tables(fields.get("messages")):
                playing.write(one)
        elif text(fields.get("id")):
            playing.write(fields)
        else:
            report.skip("a line that is no message")
    began = moment(head.get("startTime"))
    return Chat(
        path,
        text(head.get("sessionId")) or path.stem,
        text(head.get("kind")),
        float("inf") if began is None else began,
        list(playing.answers.values()),
    )


def tools_of(fields: Table, answered_s: float | None) -> tuple[RecordedTool, ...]:
    """The calls of an answer. A call's time is when it was done with; it began with the answer at
    the earliest."""
    found: list[RecordedTool] = []
    for call in tables(fields.get("toolCalls")):
        ended_s = moment(call.get("timestamp"))
        is_late = answered_s is not None and ended_s is not None and answered_s > ended_s
        found.append(
            RecordedTool(
                text(call.get("name")),
                text(call.get("id")),
                # an answer that was made for its calls alone is noted after them
                began_s=estimated(None if is_late else answered_s),
                ended_s=measured(ended_s),
                failed=text(call.get("status")) in ("error", "cancelled"),
            )
        )
    return tuple(found)


class _Kept(msgspec.Struct):
    """A message as it stands now. `ready_s`: when all of it was there to be sent."""

    pieces: tuple[Piece, ...]
    ready_s: float | None


class _Playing:
    def __init__(self, report: FileReport, prompts: Prompts) -> None:
        self._report = report
        self._prompts = prompts
        self._before: dict[str, _Kept] = {}
        self._kept: dict[str, _Kept] = {}
        self._answered: set[str] = set()
        self._starts: Start = ""
        self._places = 0
        self.answers: dict[str, Answer] = {}

    def write(self, fields: Table) -> None:
        """A message, new or once more."""
        id = text(fields.get("id"))
        kind = text(fields.get("type"))
        if kind == "gemini":
            self._answer(id, fields)
        elif kind in _NOT_SENT:
            return
        elif kind != "user":
            self._report.skip(
                f"messages of type {kind[:40]!r}" if kind else "messages without type"
            )
            return
        self._keep(id, kind, fields)

    def rewind(self, id: str) -> None:
        """Takes back a message and all after it; everything where it is not known."""
        if id not in self._kept:
            self._kept.clear()
        while self._kept and self._kept.popitem()[0] != id:
            pass
        self._starts = "rewind"

    def replace(self, messages: Sequence[Table]) -> None:
        """All messages anew: compressed, where the first is not the one it was; else some of them
        were changed in place."""
        first = next(iter(self._kept), "")
        self._answered |= {
            text(table(part.get("functionResponse")).get("id"))
            for one in messages
            for part in tables(one.get("content"))
            if "functionResponse" in part
        }
        self._before, self._kept = self._kept, {}
        for one in messages:
            self.write(one)
        if first and next(iter(self._kept), "") != first:
            self._starts = "compaction"

    def _answer(self, id: str, fields: Table) -> None:
        known = self.answers.get(id)
        if known is not None:
            known.written += 1
            if not table(fields.get("tokens")) and table(known.fields.get("tokens")):
                fields = {**fields, "tokens": known.fields["tokens"]}
            known.fields = fields
            return
        last = next(reversed(self._kept.values()), None)
        self.answers[id] = Answer(
            id,
            fields,
            self._prompt(),
            None if last is None else last.ready_s,
            self._starts,
        )
        if table(fields.get("tokens")) or text(fields.get("model")):
            self._starts = ""

    def _prompt(self) -> Prompt | None:
        if self._prompts.cut:
            return None
        pieces = [piece for one in self._kept.values() for piece in one.pieces]
        return self._prompts.of(pieces, walked=len(self._kept))

    def _keep(self, id: str, kind: str, fields: Table) -> None:
        at_s = moment(fields.get("timestamp"))
        place = self._places
        self._places += 1
        role = "model" if kind == "gemini" else "user"
        calls = tables(fields.get("toolCalls"))
        content = _parts(fields.get("content"))
        if calls:
            # kept twice once its history was written anew
            content = [part for part in content if "functionCall" not in table(part)]
        content += [
            {"functionCall": {"name": call.get("name"), "args": call.get("args")}} for call in calls
        ]
        results = [
            part
            for call in calls
            if text(call.get("id")) not in self._answered
            for part in _parts(call.get("result"))
        ]
        pieces = [message(role, content, place)] if content else []
        if results:
            pieces.append(message("user", results, place))
        times = [at_s, *(moment(call.get("timestamp")) for call in calls)]
        known = [one for one in times if one is not None]
        before = self._kept.get(id) or self._before.get(id)
        if before is not None and [p.raw for p in before.pieces] == [p.raw for p in pieces]:
            pieces = list(before.pieces)
        self._kept[id] = _Kept(tuple(pieces), max(known, default=None))


def _parts(content: object) -> list[Any]:
    if isinstance(content, str):
        return [{"text": content}] if content else []
    return listed(content) or ([content] if table(content) else [])
