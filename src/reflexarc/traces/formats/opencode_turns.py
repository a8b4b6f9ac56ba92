"""One session of OpenCode as requests: its answers, step by step, with what each was asked with."""

from collections.abc import Iterator, Sequence

import msgspec

from reflexarc.steps.prompt import Piece, Prompt
from reflexarc.traces.formats.opencode_steps import (
    Step,
    calls_of,
    counts_of,
    end_of,
    steps_of,
    times_of,
    tool_of,
)
from reflexarc.traces.formats.opencode_stores import Message
from reflexarc.traces.formats.visible import Prompts, message
from reflexarc.traces.loose import Table, moment, table, text
from reflexarc.traces.models import provider
from reflexarc.traces.requests import (
    ABSENT,
    RecordedRequest,
    Start,
    estimated,
    measured,
)

CLEARED = "[Old tool result content cleared]"


class _Entry(msgspec.Struct, frozen=True):
    """A piece of the history; from `cleared_s` on `cleared` was sent in its place."""

    piece: Piece
    cleared: Piece | None = None
    cleared_s: float = float("inf")


class Turns:
    """Played through once. `agent` is "" for a session that no other began."""

    def __init__(self, session: str, agent: str, prompts: Prompts) -> None:
        self._session = session
        self._agent = agent
        self._prompts = prompts
        self._entries: list[_Entry] = []
        self._from = 0
        self._at: dict[str, int] = {}
        self._tail: dict[str, str] = {}
        self._starts: Start = "session"

    def requests(
        self, messages: Sequence[Message], seen: set[tuple[object, ...]]
    ) -> Iterator[RecordedRequest | None]:
        """Its requests; None for one that a session it was forked from has (told by `seen`)."""
        for one in messages:
            self._at[one.id] = len(self._entries)
            if text(one.info.get("role")) == "assistant":
                yield from self._answer(one, seen)
            else:
                self._asked(one)

    def _asked(self, one: Message) -> None:
        content: list[Table] = []
        for part in one.parts:
            kind = text(part.get("type"))
            if kind == "text" and not part.get("ignored"):
                content.append({"type": "text", "text": part.get("text")})
            elif kind == "file" and not text(part.get("mime")).startswith("text/plain"):
                content.append({"type": "file", "url": part.get("url")})
            elif kind in ("compaction", "subtask"):
                content.append({"type": kind})
                self._tail[one.id] = text(part.get("tail_start_id"))
        if content:
            self._add(message("user", content, len(self._entries)))

    def _answer(
        self, one: Message, seen: set[tuple[object, ...]]
    ) -> Iterator[RecordedRequest | None]:
        info = one.info
        error = table(info.get("error"))
        is_summary = bool(info.get("summary"))
        yield from self._retried(one, seen)
        before = len(self._entries)
        asked_s: float | None = None
        for step in steps_of(one):
            yield self._request(one, step, asked_s, is_summary, seen)
            self._said(step)
            asked_s = max(
                (end for end in map(end_of, calls_of(step)) if end is not None), default=None
            )
        if error and not (text(error.get("name")) == "MessageAbortedError" and _has_content(one)):
            # what failed is not sent again
            del self._entries[before:]
        if is_summary and not error and info.get("finish"):
            asked = text(info.get("parentID"))
            start = self._tail.get(asked) or asked
            self._from = max(self._from, self._at.get(start, self._at[one.id]))
            self._starts = "compaction"

    def _request(
        self,
        one: Message,
        step: Step,
        asked_s: float | None,
        is_summary: bool,
        seen: set[tuple[object, ...]],
    ) -> RecordedRequest | None:
        info = one.info
        completed_s = moment(table(info.get("time")).get("completed"))
        counts, unknown = counts_of(step.tokens)
        is_known = counts.prompt.value is not None or counts.output.value is not None
        model = text(info.get("modelID")) or text(table(info.get("model")).get("modelID"))
        key = (step.number, one.created_s, completed_s, model, counts)
        if is_known and completed_s is not None:
            if key in seen:
                # the session goes on from another's
                self._starts = "branch" if self._starts == "session" else self._starts
                return None
            seen.add(key)
        failed = bool(info.get("error")) and not is_known
        unfinished = not is_known and completed_s is None and not info.get("finish")
        first_s, ended = times_of(step, completed_s)
        began = measured(one.created_s) if not step.number else estimated(asked_s)
        if began.value is not None and ended.value is not None and ended.value < began.value:
            began = ABSENT
        if began.value is None or first_s is None or first_s < began.value:
            first_s = None
        request = RecordedRequest(
            id=f"{one.id}:{step.number}",
            session=self._session,
            agent=f"{self._agent}/compaction".lstrip("/") if is_summary else self._agent,
            file=one.file,
            model=model,
            provider=provider(
                text(info.get("providerID")) or text(table(info.get("model")).get("providerID"))
            ),
            began_s=began,
            first_s=measured(first_s),
            ended_s=ended,
            gap=step.number > 0,
            counts=counts,
            cost_usd=measured(step.cost or None),
            tools=tuple(tool_of(part) for part in calls_of(step)),
            prompt=self._prompt(one.created_s),
            output_text="".join(
                text(part.get("text")) for part in step.parts if part.get("type") == "text"
            ),
            starts="session" if is_summary else self._starts,
            failed=failed or unfinished,
            unknown_cache=unknown,
            notes=("it had not ended when the log was written",)
            if unfinished and not failed
            else (),
        )
        if not is_summary and not request.failed:
            self._starts = ""
        return request

    def _retried(self, one: Message, seen: set[tuple[object, ...]]) -> Iterator[RecordedRequest]:
        for number, part in enumerate(one.parts):
            if part.get("type") == "retry":
                key = ("retry", number, one.created_s, text(one.info.get("modelID")))
                if key in seen:
                    continue
                seen.add(key)
                yield RecordedRequest(
                    id=f"{one.id}:retry{number}",
                    session=self._session,
                    agent=self._agent,
                    file=one.file,
                    model=text(one.info.get("modelID")),
                    provider=provider(text(one.info.get("providerID"))),
                    ended_s=measured(moment(table(part.get("time")).get("created"))),
                    failed=True,
                )

    def _said(self, step: Step) -> None:
        content: list[Table] = []
        for part in step.parts:
            kind = text(part.get("type"))
            if kind in ("text", "reasoning"):
                content.append({"type": kind, "text": part.get("text")})
            elif kind == "tool":
                called = {"id": part.get("callID"), "name": part.get("tool")}
                given = table(part.get("state")).get("input")
                content.append({"type": "tool-call", **called, "input": given})
        if content:
            self._add(message("assistant", content, len(self._entries)))
        for part in calls_of(step):
            state = table(part.get("state"))
            place = len(self._entries)
            output = state.get("output") if "output" in state else state.get("error")
            cleared_s = moment(table(state.get("time")).get("compacted"))
            self._entries.append(
                _Entry(
                    _result(part, output, place),
                    None if cleared_s is None else _result(part, CLEARED, place),
                    float("inf") if cleared_s is None else cleared_s,
                )
            )

    def _add(self, piece: Piece) -> None:
        self._entries.append(_Entry(piece))

    def _prompt(self, at_s: float | None) -> Prompt | None:
        if self._prompts.cut:
            return None
        pieces: list[Piece] = []
        for entry in self._entries[self._from :]:
            is_cleared = at_s is not None and at_s >= entry.cleared_s
            pieces.append(entry.cleared if is_cleared and entry.cleared else entry.piece)
        return self._prompts.of(pieces)


def _result(part: Table, output: object, place: int) -> Piece:
    return message("tool", {"id": part.get("callID"), "output": output}, place)


def _has_content(one: Message) -> bool:
    return any(part.get("type") not in ("step-start", "reasoning") for part in one.parts)
