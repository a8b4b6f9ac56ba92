"""Requests to models as logs tell of them, in one form; every number with how it is known."""

from typing import Literal

import msgspec

from reflexarc.steps.prompt import Blocks, Prompt

Kind = Literal["measured", "derived", "estimated", "absent"]
"""`measured`: it stands in the log. `derived`: worked out exactly from what does. `estimated`: by a
rule of thumb or an upper bound. `absent`: not in this log, which is not zero."""


class Figure(msgspec.Struct, frozen=True):
    """A number and its kind. `value` is None where, and only where, it is absent."""

    value: float | None = None
    kind: Kind = "absent"

    def __post_init__(self) -> None:
        if (self.value is None) != (self.kind == "absent"):
            raise ValueError("a figure without a value is absent, and one with a value is not")


ABSENT = Figure()


def measured(value: float | None) -> Figure:
    """What stands in the log; absent where it does not."""
    return ABSENT if value is None else Figure(value, "measured")


def derived(value: float | None) -> Figure:
    return ABSENT if value is None else Figure(value, "derived")


def estimated(value: float | None) -> Figure:
    return ABSENT if value is None else Figure(value, "estimated")


class Counts(msgspec.Struct, frozen=True):
    """Tokens of a request. `prompt` is all that the model read; `cache_read` and `cache_write` are
    parts of it (`cache_write_1h` a part of `cache_write`). `output` is all that was generated,
    `reasoning` a part of it. `context`: how long the conversation was for the last sampling pass,
    where that is not `prompt` (several passes in one request)."""

    prompt: Figure = ABSENT
    cache_read: Figure = ABSENT
    cache_write: Figure = ABSENT
    cache_write_1h: Figure = ABSENT
    output: Figure = ABSENT
    reasoning: Figure = ABSENT
    context: Figure = ABSENT


class RecordedTool(msgspec.Struct, frozen=True):
    """A call that a request's answer made. Times in Unix seconds; `own_s` is the tool's own time,
    without waits for permission."""

    name: str
    id: str = ""
    began_s: Figure = ABSENT
    ended_s: Figure = ABSENT
    own_s: Figure = ABSENT
    failed: bool = False


Start = Literal["", "session", "compaction", "rewind", "branch"]


class RecordedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request to a model.

    `id` tells it from all others of its format, across files. `session` is its conversation,
    `agent` the subagent in it ("" for the main one): prompts of one (session, agent) follow one
    another. `file` is the one it is counted under. `provider` is named as prices name it ("" where
    unknown). Times in Unix seconds; `gap`: `began_s` is an upper bound that holds client work too
    (an "observed gap"), not a request's start. `starts`: with this request a new chain of
    prompts begins, and why: what is not sent again then is no prefix break. `unknown_cache`:
    whether cached tokens are inside the prompt cannot be told, so no hit rate is made of it.
    """

    id: str
    session: str
    file: str
    agent: str = ""
    model: str = ""
    provider: str = ""
    service_tier: str = ""
    began_s: Figure = ABSENT
    first_s: Figure = ABSENT
    ended_s: Figure = ABSENT
    gap: bool = False
    counts: Counts = Counts()
    cost_usd: Figure = ABSENT
    tools: tuple[RecordedTool, ...] = ()
    prompt: Prompt | Blocks | None = None
    output_text: str = ""
    starts: Start = ""
    failed: bool = False
    unknown_cache: bool = False
    notes: tuple[str, ...] = ()


class FileReport(msgspec.Struct):
    """What one file gave. `skipped` and `duplicates` count by reason and by rule; `notes` are
    sentences for a reader. `at_least`: something in the middle was unreadable, totals may be more.
    `requests` are those counted under it (failed ones are `errors`, not requests)."""

    file: str
    format: str = ""
    lines: int = 0
    requests: int = 0
    errors: int = 0
    skipped: dict[str, int] = {}
    duplicates: dict[str, int] = {}
    notes: list[str] = []
    oldest_s: float | None = None
    newest_s: float | None = None
    at_least: bool = False

    def note(self, sentence: str) -> None:
        """A sentence, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def skip(self, reason: str, times: int = 1) -> None:
        self.skipped[reason] = self.skipped.get(reason, 0) + times

    def duplicate(self, rule: str, times: int = 1) -> None:
        self.duplicates[rule] = self.duplicates.get(rule, 0) + times
