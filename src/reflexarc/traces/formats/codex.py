"""Codex rollouts: `sessions/YYYY/MM/DD/rollout-*.jsonl` and archived ones, also as `.zst`.

A request is one `token_usage_record`, else a `token_count` whose totals differ from the one before:
the same totals are told again and again. What a fork repeats of its parent counts once.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from reflexarc.steps.prompt import Piece, Prompt
from reflexarc.traces.documents import tally
from reflexarc.traces.estimates import output_tokens, prompt_tokens
from reflexarc.traces.formats.codex_copies import (
    difference,
    parent_of,
    threads_of,
    total_before,
)
from reflexarc.traces.formats.codex_rollouts import (
    Compacted,
    Counted,
    Item,
    Recorded,
    RolledBack,
    Thread,
    Turn,
    Vector,
    counts_of,
)
from reflexarc.traces.logs import Head
from reflexarc.traces.loose import Table, amount, table, text
from reflexarc.traces.models import provider
from reflexarc.traces.peek import top_of
from reflexarc.traces.requests import (
    ABSENT,
    Counts,
    FileReport,
    RecordedRequest,
    RecordedTool,
    Start,
    estimated,
    measured,
)

_PARENT_MISSING = "the thread it was forked from is not here: it may include copied history"
_UNCOUNTED = "{} compactions whose tokens are not in this log"
MAX_REFERENCES = 20_000_000
"""Pieces of all prompts together; what is beyond has no prompt."""


class Codex:
    name = "codex"

    def recognises(self, head: Head) -> bool:
        keys = top_of(head).keys
        if {"timestamp", "type", "payload"} <= keys:
            return not keys & {"sessionId", "traceId"}
        fields = table(head.first)
        old = {"id", "timestamp", "instructions"} <= keys and "messages" not in keys
        return old and not text(fields.get("type")) and head.path.name.startswith("rollout-")

    def read(self, paths: Sequence[Path], reports: dict[Path, FileReport]) -> list[RecordedRequest]:
        threads = threads_of(paths, reports)
        seen: set[str] = set()
        found: list[RecordedRequest] = []
        budget = [MAX_REFERENCES]
        for thread in threads.values():
            parent = parent_of(thread, threads)
            if thread.parent and thread.parent not in threads:
                reports[thread.path].notes.append(_PARENT_MISSING)
            reading = _Reading(thread, parent, reports[thread.path], seen, budget)
            found += reading.requests()
        tally(found, reports)
        return found


class _Reading:
    """One thread's requests. `seen`: responses counted already, of all threads. `budget`: pieces
    that prompts may still refer to."""

    def __init__(
        self,
        thread: Thread,
        parent: Thread | None,
        report: FileReport,
        seen: set[str],
        budget: list[int],
    ) -> None:
        self._thread = thread
        self._report = report
        self._seen = seen
        self._budget = budget
        self._copied = parent.vectors if parent is not None else []
        self._parents_turns = (
            {event.id for event in parent.events if isinstance(event, Turn)}
            if parent is not None
            else set[str]()
        )
        self._history: list[Piece] = list(thread.head)
        self._asked: tuple[Piece, ...] | None = None
        self._asked_s: float | None = None
        self._said: list[Item] = []
        self._ready_s: float | None = None
        self._model = ""
        self._made = 0
        self._starts: Start = "session"
        self._results = {
            event.answers: event
            for event in thread.events
            if isinstance(event, Item) and event.answers
        }

    def requests(self) -> list[RecordedRequest]:
        """In the order in which they ended."""
        events = self._thread.events
        records = self._thread.records
        has_counts = records or any(isinstance(event, Counted) for event in events)
        found = list(self._counted() if has_counts else self._uncounted())
        compactions = sum(isinstance(event, Compacted) for event in events)
        if compactions and not records:
            self._report.notes.append(_UNCOUNTED.format(compactions))
        return found

    def _counted(self) -> Iterator[RecordedRequest]:
        before: Vector | None = None
        recorded = in_copy = False
        at = 0
        counted: Table | None = None
        leading = bool(self._copied or self._parents_turns)
        for event in self._thread.events:
            self._take(event)
            if isinstance(event, Turn) and event.id:
                in_copy = leading and event.id in self._parents_turns
            if isinstance(event, Recorded):
                if event.thread not in ("", self._thread.id):
                    self._report.skip("records of another thread, which count in its own file")
                    continue
                # The first record of a file may tell of what was just counted.
                again = not recorded and not self._said and _same(counted, event.usage)
                recorded = True
                if again:
                    self._seen.add(event.response)
                    self._report.duplicate("counted and recorded")
                    continue
                if event.response in self._seen:
                    self._report.duplicate("a response told before")
                    continue
                if event.response:
                    self._seen.add(event.response)
                leading = False
                yield self._request(event.at_s, event.usage, event.response)
            elif isinstance(event, Counted):
                if event.total == before and not (_tells_nothing(before) and self._said):
                    self._report.duplicate("totals told again")
                    continue
                earlier, before = before, event.total
                if leading and at < len(self._copied) and event.total == self._copied[at]:
                    at += 1
                elif not (leading and in_copy):
                    leading = False
                if leading:
                    self._report.duplicate("copied from the thread it was forked from")
                    self._ended()
                elif not recorded:
                    earlier = earlier or total_before(event.total, self._copied)
                    counted = event.last or difference(earlier, event.total)
                    yield self._request(event.at_s, counted, "")

    def _uncounted(self) -> Iterator[RecordedRequest]:
        """Of a file without counts: what the model said between two things that it was told."""
        for event in self._thread.events:
            if isinstance(event, Item) and not event.by_model and self._said:
                yield self._request(self._said[-1].at_s, {}, "")
            self._take(event)
        if self._said:
            yield self._request(self._said[-1].at_s, {}, "")

    def _take(self, event: object) -> None:
        if isinstance(event, Turn):
            self._model = event.model or self._model
            self._ready(event.at_s)
        elif isinstance(event, Compacted):
            if event.history is not None:
                self._history = [*self._thread.head, *event.history]
            self._starts = "compaction"
        elif isinstance(event, RolledBack):
            self._starts = "rewind"
        elif isinstance(event, Item):
            if event.by_model:
                if self._asked is None:
                    self._asked, self._asked_s = self._prompt_pieces(), self._ready_s
                self._said.append(event)
            else:
                self._ready(event.at_s)
            self._history.append(event.piece)

    def _ready(self, at_s: float | None) -> None:
        if at_s is not None:
            self._ready_s = max(at_s, self._ready_s or at_s)

    def _prompt_pieces(self) -> tuple[Piece, ...] | None:
        self._budget[0] -= len(self._history)
        return tuple(self._history) if self._budget[0] >= 0 else None

    def _ended(self) -> None:
        self._asked, self._asked_s, self._said, self._starts = None, None, [], ""

    def _request(self, at_s: float | None, usage: Table, response: str) -> RecordedRequest:
        thread = self._thread
        if self._asked is None and not self._said:
            self._asked, self._asked_s = self._prompt_pieces(), self._ready_s
        prompt = Prompt(self._asked, complete=False) if self._asked else None
        asked_s = self._asked_s
        if asked_s is not None and at_s is not None and asked_s > at_s:
            asked_s = None
        self._made += 1
        request = RecordedRequest(
            id=response or f"{thread.id}:{self._made}",
            session=thread.root or thread.id,
            agent=thread.id if thread.root else "",
            file=str(thread.path),
            model=self._model,
            provider=provider(thread.provider),
            began_s=estimated(asked_s),
            ended_s=measured(at_s),
            gap=True,
            counts=self._counts(usage, prompt),
            tools=tuple(self._tool(item) for item in self._said if item.call is not None),
            prompt=prompt,
            output_text="\n".join(item.words for item in self._said if item.words),
            starts=self._starts,
        )
        self._ended()
        return request

    def _counts(self, usage: Table, prompt: Prompt | None) -> Counts:
        if not usage:
            said = [item.piece.raw for item in self._said]
            return Counts(
                prompt=ABSENT if prompt is None else prompt_tokens(prompt),
                output=output_tokens(*said),
            )
        return counts_of(usage)

    def _tool(self, item: Item) -> RecordedTool:
        assert item.call is not None
        name, identity = item.call
        result = self._results.get(identity)
        return RecordedTool(
            name,
            identity,
            began_s=measured(item.at_s),
            ended_s=ABSENT if result is None else measured(result.at_s),
            own_s=ABSENT if result is None else measured(result.own_s),
        )


def _tells_nothing(total: Vector | None) -> bool:
    return total is not None and all(one is None for one in total)


def _same(one: Table | None, other: Table) -> bool:
    names = ("input_tokens", "output_tokens", "cached_input_tokens")
    return one is not None and all(
        (amount(one.get(name)) or 0) == (amount(other.get(name)) or 0) for name in names
    )
